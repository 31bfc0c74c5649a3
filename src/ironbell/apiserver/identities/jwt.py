"""Signed tokens in compact form, ES256: issued, and verified with the server's keys.

Signing and checking take some tens of microseconds, so they are done on the event loop.

Source: RFC 7515 (JWS), RFC 7517 (JWK), RFC 7518 section 3.4 (ES256), RFC 7638 (thumbprints).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from pathlib import Path
from typing import Any

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

from ironbell.apiserver.access.pki import PkiError, read_private, write_private

_SIZE = 32
_HASH = ec.ECDSA(hashes.SHA256())


class SigningKey:
    """The key that signs and verifies tokens."""

    def __init__(self, key: ec.EllipticCurvePrivateKey) -> None:
        self._key = key
        self._public = key.public_key()
        encoding, form = serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        self.key_id = _encode(hashlib.sha256(self._public.public_bytes(encoding, form)).digest())
        header = {"alg": "ES256", "kid": self.key_id}
        self._header = _encode(msgspec.json.encode(header))

    @classmethod
    def load(cls, path: Path) -> SigningKey:
        """The key in a file, which is created, readable by its owner only, if it is missing.

        Raises:
            PkiError: the file is unusable.
        """
        raw = read_private(path)
        if raw is None:
            key = ec.generate_private_key(ec.SECP256R1())
            encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
            write_private(path, key.private_bytes(encoding, form, serialization.NoEncryption()))
            return cls(key)
        try:
            loaded = serialization.load_pem_private_key(raw, None)
        except (ValueError, TypeError) as error:
            raise PkiError(f"{path} holds no private key in PEM form: restore it or remove it") from error
        if not isinstance(loaded, ec.EllipticCurvePrivateKey) or loaded.curve.name != "secp256r1":
            raise PkiError(f"{path} holds no P-256 key: restore it, or remove it to withdraw all tokens")
        return cls(loaded)

    def sign(self, claims: dict[str, Any]) -> str:
        """A token that states `claims`."""
        text = f"{self._header}.{_encode(msgspec.json.encode(claims))}"
        r, s = decode_dss_signature(self._key.sign(text.encode(), _HASH))
        return f"{text}.{_encode(r.to_bytes(_SIZE, 'big') + s.to_bytes(_SIZE, 'big'))}"

    def verify(self, token: str) -> dict[str, Any] | None:
        """The claims of a token that this key has signed, or None; times are not checked."""
        try:
            text, _, signature = token.rpartition(".")
            header, _, payload = text.partition(".")
            if header != self._header:
                return None
            raw = _decode(signature)
            if len(raw) != 2 * _SIZE:
                return None
            r, s = int.from_bytes(raw[:_SIZE], "big"), int.from_bytes(raw[_SIZE:], "big")
            self._public.verify(encode_dss_signature(r, s), text.encode(), _HASH)
            return msgspec.json.decode(_decode(payload), type=dict[str, Any])
        except (InvalidSignature, binascii.Error, ValueError, msgspec.MsgspecError):
            return None

    def jwk(self) -> dict[str, str]:
        """The public key as a member of a JSON Web Key Set."""
        numbers = self._public.public_numbers()
        x, y = (_encode(number.to_bytes(_SIZE, "big")) for number in (numbers.x, numbers.y))
        return {"use": "sig", "kty": "EC", "kid": self.key_id, "crv": "P-256", "alg": "ES256", "x": x, "y": y}


def _encode(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
