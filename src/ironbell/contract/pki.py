"""Key pairs of a cluster: authorities, the service accounts' keys, client certificates.

The functions that make keys take milliseconds (ECDSA) to tenths of a second (RSA): call them from a performer, through
`asyncio.to_thread`; the interpreter is free meanwhile. The rest is quick: reading an RSA key checks, as Go does, that
its numbers fit, and not once more that the primes are primes.

Other than upstream's, our authorities have a random serial number instead of 0, as RFC 5280 section 4.1.2.2 asks.

Source: kubernetes-sigs/cluster-api: util/certs/{certs,types}.go, util/secret/certificates.go.
"""

from __future__ import annotations

import hashlib
import threading
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, TypeAlias

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.utils import CryptographyDeprecationWarning

from ironbell.base.errors import IronbellError, Retry
from ironbell.codec.certificates import (
    CLIENT,
    CLOCK_SKEW,
    SERVER,
    CertificateSpec,
    Constraints,
    Issuer,
    Usage,
    certificate_pem,
    general_names,
    issue,
    private_pem,
)

AUTHORITY_NAME: Final = "kubernetes"
AUTHORITY_DAYS: Final = 3650
CLIENT_LIFETIME: Final = timedelta(hours=8760)
_PARSING: Final = threading.Lock()

PrivateKey: TypeAlias = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey


class KeyAlgorithm(StrEnum):
    """Values of `encryptionAlgorithm`."""

    RSA_2048 = "RSA-2048"
    RSA_3072 = "RSA-3072"
    RSA_4096 = "RSA-4096"
    ECDSA_P256 = "ECDSA-P256"
    ECDSA_P384 = "ECDSA-P384"


_RSA_BITS: Final = {KeyAlgorithm.RSA_2048: 2048, KeyAlgorithm.RSA_3072: 3072, KeyAlgorithm.RSA_4096: 4096}


class PkiError(IronbellError):
    """A certificate or key cannot be read, or they do not belong together. The message has none of their content."""

    reason, retry = "CertificateUnusable", Retry.NEVER


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate (or a public key) and its private key, in PEM."""

    certificate: bytes
    key: bytes

    def __repr__(self) -> str:
        return "KeyPair(***)"


@dataclass(frozen=True, slots=True)
class Subject:
    """Subject of a certificate."""

    common_name: str
    organizations: tuple[str, ...] = ()
    alternatives: tuple[str, ...] = ()
    """Host names and addresses."""
    is_server: bool = False
    is_client: bool = True


def algorithm_of(text: str) -> KeyAlgorithm:
    """Return the algorithm that `encryptionAlgorithm` names; RSA 2048 if it is empty.

    Raises:
        PkiError: there is no such algorithm.
    """
    try:
        return KeyAlgorithm(text or KeyAlgorithm.RSA_2048)
    except ValueError:
        raise PkiError(f"encryptionAlgorithm {text!r} is unknown; use {', '.join(KeyAlgorithm)}") from None


def create_authority(algorithm: KeyAlgorithm, now: datetime, *, days: int = 0, name: str = AUTHORITY_NAME) -> KeyPair:
    """Create a self-signed authority that signs leaves only. Blocks while the key is generated.

    Args:
        days: how long it is valid; 0 means ten years.
    """
    key = _create_key(algorithm)
    spec = CertificateSpec(
        common_name=name,
        not_before=now - CLOCK_SKEW,
        not_after=now + timedelta(days=days or AUTHORITY_DAYS),
        constraints=Constraints(is_authority=True, path_length=0),
        usage=Usage(enciphers_keys=True, signs_certificates=True),
        has_subject_identifier=True,
    )
    return KeyPair(certificate_pem(issue(spec, key)), private_pem(key, traditional=True))


def create_service_account_keys(algorithm: KeyAlgorithm) -> KeyPair:
    """Create the service accounts' pair, with a public key in place of a certificate. Blocks during key generation."""
    key = _create_key(algorithm)
    encoding, form = serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    return KeyPair(key.public_key().public_bytes(encoding, form), private_pem(key, traditional=True))


def create_signed_pair(
    authority: KeyPair,
    subject: Subject,
    algorithm: KeyAlgorithm,
    now: datetime,
    *,
    lifetime: timedelta = CLIENT_LIFETIME,
) -> KeyPair:
    """Create a pair whose certificate an authority signs, valid from when the authority is. Blocks like the others.

    Raises:
        PkiError: the authority cannot be used.
    """
    issuer, issuer_key = usable(authority)
    key = _create_key(algorithm)
    spec = CertificateSpec(
        common_name=subject.common_name,
        organizations=subject.organizations,
        not_before=issuer.not_valid_before_utc,
        not_after=now + lifetime,
        usage=Usage(enciphers_keys=True),
        purposes=(*([SERVER] if subject.is_server else []), *([CLIENT] if subject.is_client else [])),
        alternatives=general_names(subject.alternatives),
        has_authority_identifier=True,
    )
    certificate = issue(spec, key, Issuer(issuer, issuer_key))
    return KeyPair(certificate_pem(certificate), private_pem(key, traditional=True))


def usable(pair: KeyPair) -> tuple[x509.Certificate, PrivateKey]:
    """First certificate and key of a pair.

    Raises:
        PkiError: one of them cannot be read, or they do not belong together.
    """
    certificate, key = certificates(pair.certificate)[0], _private_key(pair.key)
    if certificate.public_key() != key.public_key():
        raise PkiError("certificate and key do not belong together")
    return certificate, key


def certificates(pem: bytes) -> Sequence[x509.Certificate]:
    """The certificates of a bundle, at least one.

    Raises:
        PkiError: there is none, or one cannot be read.
    """
    try:
        # upstream's authorities have serial number 0, which is read with a warning
        with _PARSING, warnings.catch_warnings():
            warnings.simplefilter("ignore", CryptographyDeprecationWarning)
            return x509.load_pem_x509_certificates(pem)
    except ValueError:
        raise PkiError("there is no certificate in PEM form") from None


def first_certificate(pem: bytes) -> bytes:
    """The first certificate of a bundle, in PEM.

    Raises:
        PkiError: it cannot be read.
    """
    return certificates(pem)[0].public_bytes(serialization.Encoding.PEM)


def certificate_hashes(pem: bytes) -> list[str]:
    """Return the `caCertHashes` of kubeadm: a digest of the public key of each certificate in a bundle.

    Raises:
        PkiError: a certificate cannot be read.
    """
    encoding, form = serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    keys = [certificate.public_key().public_bytes(encoding, form) for certificate in certificates(pem)]
    return [f"sha256:{hashlib.sha256(key).hexdigest()}" for key in keys]


def expires_at(pem: bytes) -> datetime:
    """Return when the first certificate of a bundle expires.

    Raises:
        PkiError: it cannot be read.
    """
    return certificates(pem)[0].not_valid_after_utc


def check_pair(pair: KeyPair) -> None:
    """Hold a pair of an authority to being usable for signing.

    Raises:
        PkiError: it is not.
    """
    usable(pair)


def check_service_account_keys(pair: KeyPair) -> None:
    """Hold the service accounts' pair to being one.

    Raises:
        PkiError: it is not.
    """
    try:
        public = serialization.load_pem_public_key(pair.certificate)
    except ValueError:
        raise PkiError("there is no public key in PEM form") from None
    if _private_key(pair.key).public_key() != public:
        raise PkiError("public and private key do not belong together")


def _create_key(algorithm: KeyAlgorithm) -> PrivateKey:
    if algorithm in _RSA_BITS:
        return rsa.generate_private_key(65537, _RSA_BITS[algorithm])
    return ec.generate_private_key(ec.SECP384R1() if algorithm is KeyAlgorithm.ECDSA_P384 else ec.SECP256R1())


def _private_key(pem: bytes) -> PrivateKey:
    try:
        # OpenSSL tests the primes of RSA keys again: 40 ms for 2,048 bits, in which no other thread runs
        key = serialization.load_pem_private_key(pem, None, unsafe_skip_rsa_key_validation=True)
    except (ValueError, TypeError):
        raise PkiError("there is no unencrypted private key in PEM form") from None
    if not isinstance(key, rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey):
        raise PkiError("the private key is neither RSA nor ECDSA")
    if isinstance(key, rsa.RSAPrivateKey) and not _is_consistent(key.private_numbers()):
        raise PkiError("the numbers of the RSA private key do not belong together")
    return key


def _is_consistent(key: rsa.RSAPrivateNumbers) -> bool:
    """Return whether the numbers fit, primality aside: RFC 8017 section 3.2, and what Go checks when it reads a key."""
    p, q, e = key.p, key.q, key.public_numbers.e
    if min(p, q, e, key.d) < 2 or not p & q & e & 1 or p * q != key.public_numbers.n:
        return False
    parts = key.dmp1 == key.d % (p - 1) and key.dmq1 == key.d % (q - 1) and key.iqmp * q % p == 1
    return parts and key.dmp1 * e % (p - 1) == 1 and key.dmq1 * e % (q - 1) == 1
