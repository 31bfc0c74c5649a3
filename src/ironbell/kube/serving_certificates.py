"""Certificates for a server that Kubernetes calls (webhooks), made and renewed by ourselves and kept in a Secret.

The Secret holds an authority with its key, and a serving certificate with its own. Both are renewed long before they
expire. A renewed authority is put in front of the one before, which stays trusted until it has expired, so that callers
and servers may learn of the change in any order.

Pure but for the making of keys, which takes a few milliseconds: call `renewed` in a thread.

Source: kubernetes.io: reference/access-authn-authz/extensible-admission-controllers (caBundle);
core/v1 Secret of type kubernetes.io/tls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from ironbell.codec.certificates import (
    AUTHORITY_LIFETIME,
    CLOCK_SKEW,
    SERVER,
    CertificateSpec,
    Constraints,
    Issuer,
    Usage,
    certificate_pem,
    general_names,
    issue,
    new_key,
    private_pem,
)

AUTHORITY, AUTHORITY_KEY, CERTIFICATE, KEY = "ca.crt", "ca.key", "tls.crt", "tls.key"
AUTHORITY_MARGIN = timedelta(days=365)
LIFETIME, MARGIN = timedelta(days=90), timedelta(days=30)


def renewed(held: Mapping[str, bytes], names: Sequence[str], now: datetime) -> dict[str, bytes] | None:
    """Return the data that the Secret must hold; None if it holds them already.

    Args:
        held: its current data; empty if there is none. Data that cannot be read are replaced.
        names: host names and addresses that callers use.
    """
    data = dict(held)
    authorities = [
        authority for authority in _certificates(data.get(AUTHORITY, b"")) if authority.not_valid_after_utc > now
    ]
    key = _key(data.get(AUTHORITY_KEY, b""))
    is_old = not authorities or key is None or not _belong(authorities[0], key)
    if is_old or authorities[0].not_valid_after_utc - now < AUTHORITY_MARGIN:
        key = new_key()
        authorities.insert(0, _authority(key, now))
        data |= {AUTHORITY_KEY: private_pem(key)}
    assert key is not None  # noqa: S101
    data[AUTHORITY] = b"".join(certificate_pem(authority) for authority in authorities)
    if not _serves(data, authorities[0], names, now):
        leaf_key = new_key()
        leaf = _leaf(leaf_key, Issuer(authorities[0], key), names, now)
        data |= {CERTIFICATE: certificate_pem(leaf), KEY: private_pem(leaf_key)}
    return data if data != dict(held) else None


def _serves(data: Mapping[str, bytes], authority: x509.Certificate, names: Sequence[str], now: datetime) -> bool:
    """Return whether the serving certificate is valid for a while."""
    chain, key = _certificates(data.get(CERTIFICATE, b"")), _key(data.get(KEY, b""))
    if not chain or key is None or not _belong(chain[0], key) or chain[0].not_valid_after_utc - now < MARGIN:
        return False
    try:
        chain[0].verify_directly_issued_by(authority)
        extension = chain[0].extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except (ValueError, TypeError, InvalidSignature, x509.ExtensionNotFound):
        return False
    return set(general_names(names)) <= set(extension.value)


def _authority(key: ec.EllipticCurvePrivateKey, now: datetime) -> x509.Certificate:
    spec = CertificateSpec(
        common_name=f"ironbell-webhooks@{int(now.timestamp())}",
        not_before=now - CLOCK_SKEW,
        not_after=now + AUTHORITY_LIFETIME,
        constraints=Constraints(is_authority=True, path_length=0),
        usage=Usage(signs_certificates=True, signs_revocations=True),
        has_subject_identifier=True,
    )
    return issue(spec, key)


def _leaf(key: ec.EllipticCurvePrivateKey, authority: Issuer, names: Sequence[str], now: datetime) -> x509.Certificate:
    spec = CertificateSpec(
        common_name="ironbell-webhooks",
        not_before=now - CLOCK_SKEW,
        not_after=now + LIFETIME,
        constraints=Constraints(),
        usage=Usage(),
        purposes=(SERVER,),
        alternatives=general_names(names),
        has_subject_identifier=True,
        has_authority_identifier=True,
    )
    return issue(spec, key, authority)


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
