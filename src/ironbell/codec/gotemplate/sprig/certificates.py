"""Private keys and certificates. They differ each time; what they say is sprig's.

Source: Masterminds/sprig v3.3.0: crypto.go (genPrivateKey, genCA, genSelfSignedCert, genSignedCert).
"""

from __future__ import annotations

import ipaddress
from datetime import timedelta
from typing import Any, Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed25519, rsa

from ironbell.base.clock import SystemClock
from ironbell.codec.certificates import (
    CLIENT,
    SERVER,
    CertificateSpec,
    Constraints,
    Issuer,
    SigningKey,
    Usage,
    certificate_pem,
    issue,
    private_pem,
)
from ironbell.codec.gotemplate.errors import KEY_BITS, KEY_BYTES, CallError
from ironbell.codec.gotemplate.functions import Library, P
from ironbell.codec.gotemplate.meter import charge
from ironbell.codec.gotemplate.sprig.encoding import CorruptInput, decode_base64
from ironbell.codec.gotemplate.values import Field, Struct, StructType, encode

CERTIFICATES = Library()
_add = CERTIFICATES.add
_TYPE: Final = StructType(
    P.CERTIFICATE.value,
    (Field("Cert", "Cert", "string", omit_empty=False), Field("Key", "Key", "string", omit_empty=False)),
)
_MAX_DAYS = 365 * 200
_MAX_NAME = 64
_LARGE_KEY, _NEW_KEY, _GIVEN_KEY = 300_000, 100_000, 50_000
"""Steps for a new RSA key of 4096 bits or DSA parameters, for one of 2048 bits, and for checking one that is given."""
Key = SigningKey


def _pair(certificate: str, key: str) -> Struct:
    return Struct(_TYPE, {"Cert": certificate, "Key": key})


@_add("genPrivateKey", P.STRING)
def _gen_private_key(kind: str) -> str:
    key: Key
    charge(_LARGE_KEY if kind in ("", "rsa", "dsa") else _GIVEN_KEY // 10)
    match kind:
        case "" | "rsa":
            key = rsa.generate_private_key(65537, 4096)
        case "dsa":
            key = dsa.generate_private_key(2048)
        case "ecdsa":
            key = ec.generate_private_key(ec.SECP256R1())
        case "ed25519":
            key = ed25519.Ed25519PrivateKey.generate()
        case _:
            return f"Unknown type {kind}"
    return _key_text(key)


def _key_text(key: Key) -> str:
    """PEM, in the traditional form where the kind of key has one."""
    return private_pem(key, traditional=not isinstance(key, ed25519.Ed25519PrivateKey)).decode()


def _load_key(text: str) -> Key:
    charge(_GIVEN_KEY)
    if len(text) > KEY_BYTES:
        raise CallError(f"a private key of more than {KEY_BYTES} characters")
    try:
        key = serialization.load_pem_private_key(encode(text), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise CallError("error parsing private key") from None
    if not isinstance(key, Key):
        raise CallError("invalid private key type")
    if isinstance(key, rsa.RSAPrivateKey | dsa.DSAPrivateKey) and key.key_size > KEY_BITS:
        raise CallError(f"a private key of more than {KEY_BITS} bits")
    return key


def _load_certificate(text: bytes) -> x509.Certificate:
    if len(text) > KEY_BYTES:
        raise CallError(f"a certificate of more than {KEY_BYTES} bytes")
    try:
        return x509.load_pem_x509_certificate(text)
    except ValueError:
        raise CallError("unable to decode certificate") from None


def _new_key() -> Key:
    return rsa.generate_private_key(65537, 2048)


@_add("buildCustomCert", P.STRING, P.STRING, cost=_GIVEN_KEY)
def _build_custom_cert(certificate: str, key: str) -> Struct:
    try:
        certificate_text, key_text = decode_base64(encode(certificate)), decode_base64(encode(key))
    except CorruptInput:
        raise CallError("unable to decode base64 certificate or private key") from None
    _load_certificate(certificate_text)
    _load_key(key_text.decode("utf-8", "replace"))
    return _pair(certificate_text.decode("utf-8", "replace"), key_text.decode("utf-8", "replace"))


@_add("genCA", P.STRING, P.INT, cost=_NEW_KEY)
def _gen_ca(name: str, days: int) -> Struct:
    return _issue(name, [], [], days, key=_new_key(), is_authority=True)


@_add("genCAWithKey", P.STRING, P.INT, P.STRING, cost=_GIVEN_KEY)
def _gen_ca_with_key(name: str, days: int, key: str) -> Struct:
    return _issue(name, [], [], days, key=_load_key(key), is_authority=True)


@_add("genSelfSignedCert", P.STRING, P.LIST, P.LIST, P.INT, cost=_NEW_KEY)
def _gen_self_signed(name: str, addresses: list[Any], names: list[Any], days: int) -> Struct:
    return _issue(name, addresses, names, days, key=_new_key())


@_add("genSelfSignedCertWithKey", P.STRING, P.LIST, P.LIST, P.INT, P.STRING, cost=_GIVEN_KEY)
def _gen_self_signed_with_key(name: str, addresses: list[Any], names: list[Any], days: int, key: str) -> Struct:
    return _issue(name, addresses, names, days, key=_load_key(key))


@_add("genSignedCert", P.STRING, P.LIST, P.LIST, P.INT, P.CERTIFICATE, cost=_NEW_KEY)
def _gen_signed(name: str, addresses: list[Any], names: list[Any], days: int, authority: Struct) -> Struct:
    return _issue(name, addresses, names, days, key=_new_key(), authority=authority)


@_add("genSignedCertWithKey", P.STRING, P.LIST, P.LIST, P.INT, P.CERTIFICATE, P.STRING, cost=_GIVEN_KEY)
def _gen_signed_with_key(
    name: str, addresses: list[Any], names: list[Any], days: int, authority: Struct, key: str
) -> Struct:
    return _issue(name, addresses, names, days, key=_load_key(key), authority=authority)


def _issue(
    name: str,
    addresses: list[Any],
    names: list[Any],
    days: int,
    *,
    key: Key,
    is_authority: bool = False,
    authority: Struct | None = None,
) -> Struct:
    if len(encode(name)) > _MAX_NAME:
        raise CallError(f"the common name of a certificate has more than {_MAX_NAME} bytes")
    if any("\ud800" <= char <= "\udfff" for char in name):
        raise CallError("the common name of a certificate is no UTF-8")
    issuer = None
    if authority is not None:
        issuer = Issuer(_load_certificate(encode(authority.values["Cert"])), _load_key(authority.values["Key"]))
    now = SystemClock().now().replace(microsecond=0)
    if not -_MAX_DAYS < days < _MAX_DAYS:
        raise CallError("a certificate cannot be valid for so long")
    spec = CertificateSpec(
        common_name=name,
        not_before=min(now, now + timedelta(days=days)),
        not_after=max(now, now + timedelta(days=days)),
        constraints=Constraints(is_authority),
        usage=Usage(enciphers_keys=True, signs_certificates=is_authority),
        purposes=(SERVER, CLIENT),
        alternatives=tuple(_alternatives(addresses, names)),
    )
    try:
        certificate = issue(spec, key, issuer)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise CallError("error creating certificate") from None
    return _pair(certificate_pem(certificate).decode(), _key_text(key))


def _alternatives(addresses: list[Any], names: list[Any]) -> list[x509.GeneralName]:
    if not all(isinstance(item, str) for item in (*addresses, *names)):
        raise CallError("addresses and names of a certificate must be strings")
    try:
        return [x509.DNSName(item) for item in names] + [
            x509.IPAddress(ipaddress.ip_address(item)) for item in addresses
        ]
    except ValueError:
        raise CallError("error parsing an address or name of a certificate") from None
