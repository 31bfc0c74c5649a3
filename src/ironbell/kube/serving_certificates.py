"""Certificates for a server that Kubernetes calls (webhooks), made and renewed by ourselves and kept in a Secret.

The Secret holds an authority with its key, and a serving certificate with its own. Both are renewed long before they
expire. A renewed authority is put in front of the one before, which stays trusted until it has expired, so that callers
and servers may learn of the change in any order.

Pure but for the making of keys, which takes a few milliseconds: call `renewed` in a thread.

Source: kubernetes.io: reference/access-authn-authz/extensible-admission-controllers (caBundle);
core/v1 Secret of type kubernetes.io/tls.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

AUTHORITY, AUTHORITY_KEY, CERTIFICATE, KEY = "ca.crt", "ca.key", "tls.crt", "tls.key"
AUTHORITY_LIFETIME, AUTHORITY_MARGIN = timedelta(days=3650), timedelta(days=365)
LIFETIME, MARGIN = timedelta(days=90), timedelta(days=30)
_SKEW = timedelta(minutes=5)


def renewed(held: Mapping[str, bytes], names: Sequence[str], now: datetime) -> dict[str, bytes] | None:
    """What the Secret must hold; None if it holds that already.

    Args:
        held: its data as it is; empty where there is none. What cannot be read is made anew.
        names: host names and addresses that callers use.
    """
    data = dict(held)
    authorities = [one for one in _certificates(data.get(AUTHORITY, b"")) if one.not_valid_after_utc > now]
    key = _key(data.get(AUTHORITY_KEY, b""))
    is_old = not authorities or key is None or not _belong(authorities[0], key)
    if is_old or authorities[0].not_valid_after_utc - now < AUTHORITY_MARGIN:
        key = ec.generate_private_key(ec.SECP256R1())
        authorities.insert(0, _authority(key, now))
        data |= {AUTHORITY_KEY: _encoded(key)}
    assert key is not None  # noqa: S101
    data[AUTHORITY] = b"".join(one.public_bytes(serialization.Encoding.PEM) for one in authorities)
    if not _serves(data, authorities[0], names, now):
        leaf_key = ec.generate_private_key(ec.SECP256R1())
        leaf = _leaf(leaf_key, authorities[0], key, names, now)
        data |= {CERTIFICATE: leaf.public_bytes(serialization.Encoding.PEM), KEY: _encoded(leaf_key)}
    return data if data != dict(held) else None


def _serves(data: Mapping[str, bytes], authority: x509.Certificate, names: Sequence[str], now: datetime) -> bool:
    """Whether the serving certificate is good for a while."""
    found, key = _certificates(data.get(CERTIFICATE, b"")), _key(data.get(KEY, b""))
    if not found or key is None or not _belong(found[0], key) or found[0].not_valid_after_utc - now < MARGIN:
        return False
    try:
        found[0].verify_directly_issued_by(authority)
        extension = found[0].extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except (ValueError, TypeError, InvalidSignature, x509.ExtensionNotFound):
        return False
    return set(_alternatives(names)) <= set(extension.value)


def _authority(key: ec.EllipticCurvePrivateKey, now: datetime) -> x509.Certificate:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"ironbell-webhooks@{int(now.timestamp())}")])
    builder = _builder(name, name, key, now, AUTHORITY_LIFETIME)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    return builder.add_extension(_usage(signs=True), critical=True).sign(key, hashes.SHA256())


def _leaf(
    key: ec.EllipticCurvePrivateKey,
    authority: x509.Certificate,
    authority_key: ec.EllipticCurvePrivateKey,
    names: Sequence[str],
    now: datetime,
) -> x509.Certificate:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "ironbell-webhooks")])
    builder = _builder(name, authority.subject, key, now, LIFETIME)
    for extension, critical in (
        (x509.BasicConstraints(ca=False, path_length=None), True),
        (_usage(signs=False), True),
        (x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), False),
        (x509.SubjectAlternativeName(_alternatives(names)), False),
        (x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), False),
    ):
        builder = builder.add_extension(extension, critical=critical)
    return builder.sign(authority_key, hashes.SHA256())


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime, lifetime: timedelta
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + lifetime)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _alternatives(names: Sequence[str]) -> list[x509.GeneralName]:
    found: list[x509.GeneralName] = []
    for name in dict.fromkeys(names):
        try:
            found.append(x509.IPAddress(ipaddress.ip_address(name)))
        except ValueError:
            found.append(x509.DNSName(name))
    return found


def _certificates(pem: bytes) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(pem)
    except ValueError:
        return []


def _key(pem: bytes) -> ec.EllipticCurvePrivateKey | None:
    try:
        key = serialization.load_pem_private_key(pem, None)
    except (ValueError, TypeError):
        return None
    return key if isinstance(key, ec.EllipticCurvePrivateKey) else None


def _belong(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> bool:
    return certificate.public_key() == key.public_key()


def _encoded(key: ec.EllipticCurvePrivateKey) -> bytes:
    form = serialization.PrivateFormat.PKCS8
    return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
