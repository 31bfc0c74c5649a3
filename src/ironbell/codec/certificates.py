"""X.509 certificates from a frozen specification: the one place that builds them.

What a certificate is for, how long it is valid and which key it has is the caller's to decide; how its extensions are
encoded and how it is signed is decided here.

Source: RFC 5280 section 4.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, TypeAlias

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed25519, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

CLIENT: Final = ExtendedKeyUsageOID.CLIENT_AUTH
SERVER: Final = ExtendedKeyUsageOID.SERVER_AUTH
AUTHORITY_LIFETIME: Final = timedelta(days=3650)
"""How long our own authorities are valid."""
CLOCK_SKEW: Final = timedelta(minutes=5)
"""By how much certificates are valid before they are issued: clocks of machines differ."""

SigningKey: TypeAlias = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey | dsa.DSAPrivateKey


@dataclass(frozen=True, slots=True)
class Constraints:
    """The basic constraints: whether the certificate is an authority's, and how many authorities may follow it."""

    is_authority: bool = False
    path_length: int | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """The key usages that we set; `digital_signature` always is."""

    enciphers_keys: bool = False
    signs_certificates: bool = False
    signs_revocations: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateSpec:
    """Everything that a certificate states but its keys and issuer. An extension that is None or empty is left out."""

    common_name: str
    organizations: tuple[str, ...] = ()
    not_before: datetime
    not_after: datetime
    constraints: Constraints | None = None
    usage: Usage | None = None
    purposes: tuple[x509.ObjectIdentifier, ...] = ()
    """Extended key usages."""
    alternatives: tuple[x509.GeneralName, ...] = ()
    has_subject_identifier: bool = False
    has_authority_identifier: bool = False


@dataclass(frozen=True, slots=True)
class Issuer:
    """The authority that signs a certificate."""

    certificate: x509.Certificate
    key: SigningKey


def issue(spec: CertificateSpec, key: SigningKey, issuer: Issuer | None = None) -> x509.Certificate:
    """Return the certificate for `key`, signed by `issuer`, or by the key itself without one.

    Raises:
        ValueError, TypeError, UnsupportedAlgorithm: the key or a name cannot be used.
    """
    signer, public = issuer.key if issuer is not None else key, key.public_key()
    subject = _subject(spec)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.certificate.subject if issuer is not None else subject)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(spec.not_before)
        .not_valid_after(spec.not_after)
    )
    if spec.usage is not None:
        builder = builder.add_extension(_key_usage(spec.usage), critical=True)
    if spec.purposes:
        builder = builder.add_extension(x509.ExtendedKeyUsage(spec.purposes), critical=False)
    if spec.constraints is not None:
        constraints = x509.BasicConstraints(spec.constraints.is_authority, spec.constraints.path_length)
        builder = builder.add_extension(constraints, critical=True)
    if spec.has_subject_identifier:
        builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
    if spec.has_authority_identifier and issuer is not None:
        builder = builder.add_extension(_authority_identifier(issuer), critical=False)
    if spec.alternatives:
        builder = builder.add_extension(x509.SubjectAlternativeName(spec.alternatives), critical=False)
    return builder.sign(signer, _digest(signer))


def general_names(names: Sequence[str]) -> tuple[x509.GeneralName, ...]:
    """Host names and addresses as a certificate states them, each once."""
    return tuple(_general_name(name) for name in dict.fromkeys(names))


def certificate_pem(certificate: x509.Certificate) -> bytes:
    """A certificate in PEM."""
    return certificate.public_bytes(serialization.Encoding.PEM)


def private_pem(key: SigningKey, *, traditional: bool = False) -> bytes:
    """An unencrypted private key in PEM: PKCS #8, or the traditional form (`RSA PRIVATE KEY`) that kubeadm writes."""
    form = serialization.PrivateFormat.TraditionalOpenSSL if traditional else serialization.PrivateFormat.PKCS8
    return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())


def new_key() -> ec.EllipticCurvePrivateKey:
    """A new ECDSA P-256 key."""
    return ec.generate_private_key(ec.SECP256R1())


def _subject(spec: CertificateSpec) -> x509.Name:
    names = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, name) for name in spec.organizations]
    if spec.common_name:
        names.append(x509.NameAttribute(NameOID.COMMON_NAME, spec.common_name))
    return x509.Name(names)


def _key_usage(usage: Usage) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=usage.enciphers_keys,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=usage.signs_certificates,
        crl_sign=usage.signs_revocations,
        encipher_only=False,
        decipher_only=False,
    )


def _authority_identifier(issuer: Issuer) -> x509.AuthorityKeyIdentifier:
    """The issuer's own key identifier: programs derive one from a key in different ways (Go takes SHA-256), and
    OpenSSL finds no issuer under another one."""
    try:
        own = issuer.certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier)
    except x509.ExtensionNotFound:
        return x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer.key.public_key())
    return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(own.value)


def _digest(key: SigningKey) -> hashes.SHA256 | hashes.SHA384 | None:
    if isinstance(key, ed25519.Ed25519PrivateKey):
        return None
    is_p384 = isinstance(key, ec.EllipticCurvePrivateKey) and isinstance(key.curve, ec.SECP384R1)
    return hashes.SHA384() if is_p384 else hashes.SHA256()


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
