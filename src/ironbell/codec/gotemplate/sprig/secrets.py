"""Passwords and encryption.

`bcrypt` and `htpasswd` call the C library's crypt, as no library of ours has bcrypt; where it lacks, they fail.

Source: Masterminds/sprig v3.3.0: crypto.go.
"""

from __future__ import annotations

import base64
import ctypes
import hashlib
import hmac
import secrets
from typing import Final

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from ironbell.codec.gotemplate.errors import CallError
from ironbell.codec.gotemplate.functions import Library, P
from ironbell.codec.gotemplate.sprig.encoding import CorruptInput, decode_base64
from ironbell.codec.gotemplate.values import decode, encode

SECRETS = Library()
_add = SECRETS.add
_BCRYPT_ALPHABET: Final = "./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_BCRYPT_MAX_BYTES = 72
_BCRYPT_STEPS, _SCRYPT_STEPS = 50_000, 150_000
"""Limit for one hash: they are slow by design."""
_BLOCK = 16
_VOWELS, _CONSONANTS = "AEIOU", "BCDFGHJKLMNPQRSTVWXYZ"
_LETTERS = _VOWELS + _VOWELS.lower() + _CONSONANTS + _CONSONANTS.lower()
_CHARACTERS: Final = {
    "V": _VOWELS,
    "C": _CONSONANTS,
    "v": _VOWELS.lower(),
    "c": _CONSONANTS.lower(),
    "A": _VOWELS + _CONSONANTS,
    "a": _LETTERS,
    "n": "0123456789",
    "o": "@&%?,=[]_:-+*$#!'^~;()/.",
    "x": _LETTERS + "0123456789!@#$%^&*()",
}
# The Master Password algorithm's templates (https://masterpassword.app/masterpassword-algorithm.pdf).
_TEMPLATES: Final = {
    "maximum": "anoxxxxxxxxxxxxxxxxx axxxxxxxxxxxxxxxxxno",
    "long": (
        "CvcvnoCvcvCvcv CvcvCvcvnoCvcv CvcvCvcvCvcvno CvccnoCvcvCvcv CvccCvcvnoCvcv CvccCvcvCvcvno CvcvnoCvccCvcv "
        "CvcvCvccnoCvcv CvcvCvccCvcvno CvcvnoCvcvCvcc CvcvCvcvnoCvcc CvcvCvcvCvccno CvccnoCvccCvcv CvccCvccnoCvcv "
        "CvccCvccCvcvno CvcvnoCvccCvcc CvcvCvccnoCvcc CvcvCvccCvccno CvccnoCvcvCvcc CvccCvcvnoCvcc CvccCvcvCvccno"
    ),
    "medium": "CvcnoCvc CvcCvcno",
    "short": "Cvcn",
    "basic": "aaanaaan aannaaan aaannaaa",
    "pin": "nnnn",
}
_SEED = b"com.lyndir.masterpassword"


@_add("bcrypt", P.STRING, cost=_BCRYPT_STEPS)
def _bcrypt(text: str) -> str:
    data = encode(text)
    if len(data) > _BCRYPT_MAX_BYTES:
        return "failed to encrypt string with bcrypt: bcrypt: password length exceeds 72 bytes"
    if b"\0" in data:
        raise CallError("a password with a null byte")
    bits = int.from_bytes(secrets.token_bytes(16), "big") << 4
    salt = "".join(_BCRYPT_ALPHABET[bits >> shift & 63] for shift in range(126, -6, -6))
    try:
        library = ctypes.CDLL("libcrypt.so.1")
    except OSError:
        raise CallError("bcrypt needs the system's libcrypt") from None
    library.crypt_r.restype = ctypes.c_char_p
    # Larger than struct crypt_data of any version.
    work = ctypes.create_string_buffer(1 << 17)
    hashed = library.crypt_r(data, f"$2a$10${salt}".encode(), work)
    if not hashed or not hashed.startswith(b"$2a$"):
        raise CallError("the system's libcrypt has no bcrypt")
    return str(hashed.decode())


@_add("htpasswd", P.STRING, P.STRING, cost=_BCRYPT_STEPS)
def _htpasswd(user: str, password: str) -> str:
    return f"invalid username: {user}" if ":" in user else f"{user}:{_bcrypt(password)}"


@_add("derivePassword", P.UINT32, P.STRING, P.STRING, P.STRING, P.STRING, cost=_SCRYPT_STEPS)
def _derive_password(counter: int, kind: str, password: str, user: str, site: str) -> str:
    templates = _TEMPLATES.get(kind)
    if templates is None:
        return f"cannot find password template {kind}"
    salt = _SEED + _sized(user)
    key = hashlib.scrypt(encode(password), salt=salt, n=32768, r=8, p=2, dklen=64, maxmem=1 << 27)
    seed = hmac.digest(key, _SEED + _sized(site) + counter.to_bytes(4, "big"), "sha256")
    choices = templates.split()
    template = choices[seed[0] % len(choices)]
    pairs = zip(template, seed[1:], strict=False)
    return "".join(_CHARACTERS[char][byte % len(_CHARACTERS[char])] for char, byte in pairs)


def _sized(text: str) -> bytes:
    data = encode(text)
    return len(data).to_bytes(4, "big") + data


def _aes(password: str, vector: bytes) -> Cipher[modes.CBC]:
    return Cipher(algorithms.AES(encode(password)[:32].ljust(32, b"\0")), modes.CBC(vector))


@_add("encryptAES", P.STRING, P.STRING)
def _encrypt_aes(password: str, text: str) -> str:
    if not text:
        return ""
    data = encode(text)
    padding = _BLOCK - len(data) % _BLOCK
    vector = secrets.token_bytes(_BLOCK)
    encryptor = _aes(password, vector).encryptor()
    sealed = encryptor.update(data + bytes((padding,)) * padding) + encryptor.finalize()
    return base64.b64encode(vector + sealed).decode()


@_add("decryptAES", P.STRING, P.STRING)
def _decrypt_aes(password: str, text: str) -> str:
    if not text:
        return ""
    try:
        sealed = decode_base64(encode(text))
    except CorruptInput as error:
        raise CallError(f"illegal base64 data at input byte {error.offset}") from None
    if len(sealed) < 2 * _BLOCK or len(sealed) % _BLOCK:
        raise CallError("the text was not encrypted by encryptAES")
    decryptor = _aes(password, sealed[:_BLOCK]).decryptor()
    opened = decryptor.update(sealed[_BLOCK:]) + decryptor.finalize()
    if opened[-1] > len(opened):
        raise CallError("wrong password")
    return decode(opened[: len(opened) - opened[-1]])
