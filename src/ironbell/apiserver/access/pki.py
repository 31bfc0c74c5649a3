"""The embedded API's own certificate authority.

One folder holds the authority, the server's certificate and one certificate per client identity. Each file is created
on first use, kept, and renewed at start when it would expire soon or no longer fits (other addresses, other groups,
another authority). Keys are ECDSA P-256; a renewed authority keeps its key and its name, so that clients that trust the
old certificate trust what the new one signs.

Failure modes: `PkiError` when a file cannot be read or written or does not hold what its name says; nothing is replaced
silently, because a new authority would lock out every client.

Source: kubernetes/kubernetes: cmd/kubeadm/app/util/pkiutil (usages, lifetimes, names).
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

import msgspec
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from ironbell.base.clock import Clock
from ironbell.base.errors import IronbellError, Retry
from ironbell.codec.certificates import (
    AUTHORITY_LIFETIME,
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
    new_key,
    private_pem,
)

LEAF_LIFETIME = timedelta(days=365)
RENEW_BEFORE = timedelta(days=60)


class PkiError(IronbellError):
    """A certificate or key file is unusable."""

    reason, retry = "CertificateUnusable", Retry.NEVER


class KeyPair(msgspec.Struct, frozen=True):
    """A certificate with its private key, as files."""

    certificate: Path
    key: Path


class Authority:
    """A certificate authority in a folder."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        """Open the authority in `folder`, or create it.

        Raises:
            PkiError: the folder's files cannot be read, written or used together.
        """
        self._folder, self._clock = folder, clock
        create_private_folder(folder)
        self._pair = KeyPair(folder / "ca.crt", folder / "ca.key")
        self._key = self._load_or_create_key(self._pair)
        self._certificate = self._load_or_create_authority()

    @property
    def certificate_pem(self) -> bytes:
        """The certificate that clients must trust."""
        return certificate_pem(self._certificate)

    @property
    def certificate_path(self) -> Path:
        """Path of the authority's certificate."""
        return self._pair.certificate

    def server(self, addresses: Sequence[str]) -> KeyPair:
        """The server's pair, valid for these host names and IP addresses."""
        names = general_names(addresses)
        pair = self._leaf_pair("server")
        current = _load_certificate(pair.certificate)
        if current is None or not self._is_usable(current, pair) or not _covers(current, names):
            self._issue_leaf(pair, "ironbell-api", purpose=SERVER, names=names)
        return pair

    def client(self, name: str, groups: Sequence[str] = ()) -> KeyPair:
        """The pair of a client that the API knows as user `name` in `groups`."""
        pair = self._leaf_pair(f"client-{_file_name(name)}")
        current = _load_certificate(pair.certificate)
        if current is None or not self._is_usable(current, pair) or subject(current) != (name, tuple(groups)):
            self._issue_leaf(pair, name, groups, purpose=CLIENT)
        return pair

    def _leaf_pair(self, stem: str) -> KeyPair:
        return KeyPair(self._folder / f"{stem}.crt", self._folder / f"{stem}.key")

    def _load_or_create_key(self, pair: KeyPair) -> ec.EllipticCurvePrivateKey:
        raw = read_private(pair.key)
        if raw is None:
            key = new_key()
            write_private(pair.key, private_pem(key))
            return key
        try:
            loaded = serialization.load_pem_private_key(raw, None)
        except (ValueError, TypeError) as error:
            raise PkiError(f"{pair.key} holds no private key in PEM form: restore it or remove the folder") from error
        if not isinstance(loaded, ec.EllipticCurvePrivateKey):
            raise PkiError(f"{pair.key} holds no elliptic-curve key: restore it or remove the folder")
        return loaded

    def _load_or_create_authority(self) -> x509.Certificate:
        current = _load_certificate(self._pair.certificate)
        if current is not None and current.public_key() != self._key.public_key():
            raise PkiError(f"{self._pair.certificate} and {self._pair.key} do not belong together: restore one of them")
        if current is not None and self._remains(current, LEAF_LIFETIME):
            return current
        now = self._clock.now()
        spec = CertificateSpec(
            common_name="ironbell-ca",
            not_before=now - CLOCK_SKEW,
            not_after=now + AUTHORITY_LIFETIME,
            constraints=Constraints(is_authority=True),
            usage=Usage(signs_certificates=True, signs_revocations=True),
            has_subject_identifier=True,
        )
        authority = issue(spec, self._key)
        write_private(self._pair.certificate, certificate_pem(authority))
        return authority

    def _issue_leaf(
        self,
        pair: KeyPair,
        name: str,
        groups: Sequence[str] = (),
        *,
        purpose: x509.ObjectIdentifier,
        names: tuple[x509.GeneralName, ...] = (),
    ) -> None:
        now = self._clock.now()
        spec = CertificateSpec(
            common_name=name,
            organizations=tuple(groups),
            not_before=now - CLOCK_SKEW,
            not_after=now + LEAF_LIFETIME,
            constraints=Constraints(),
            usage=Usage(),
            purposes=(purpose,),
            alternatives=names,
            has_subject_identifier=True,
            has_authority_identifier=True,
        )
        certificate = issue(spec, self._load_or_create_key(pair), Issuer(self._certificate, self._key))
        write_private(pair.certificate, certificate_pem(certificate))

    def _is_usable(self, certificate: x509.Certificate, pair: KeyPair) -> bool:
        try:
            certificate.verify_directly_issued_by(self._certificate)
        except (ValueError, TypeError, InvalidSignature):
            return False
        same_key = certificate.public_key() == self._load_or_create_key(pair).public_key()
        return same_key and self._remains(certificate, RENEW_BEFORE)

    def _remains(self, certificate: x509.Certificate, margin: timedelta) -> bool:
        now: datetime = self._clock.now()
        return certificate.not_valid_before_utc <= now and now + margin < certificate.not_valid_after_utc


def subject(certificate: x509.Certificate) -> tuple[str, tuple[str, ...]]:
    """User name and groups as a client certificate states them."""
    names = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    groups = certificate.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    return str(names[0].value) if names else "", tuple(str(group.value) for group in groups)


def create_private_folder(folder: Path) -> None:
    """Create a folder that only its owner can enter.

    Raises:
        PkiError: the folder cannot be created.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise PkiError(f"cannot make the folder {folder}: {error.strerror}") from error


def write_private(path: Path, content: bytes) -> None:
    """Replace a file at once, readable by its owner only.

    Raises:
        PkiError: the file cannot be written.
    """
    try:
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            Path(temporary).replace(path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise PkiError(f"cannot write {path}: {error.strerror}") from error


def read_private(path: Path) -> bytes | None:
    """A file's content; None if it does not exist.

    Raises:
        PkiError: the file cannot be read.
    """
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise PkiError(f"cannot read {path}: {error.strerror}") from error


def _load_certificate(path: Path) -> x509.Certificate | None:
    raw = read_private(path)
    if raw is None:
        return None
    try:
        return x509.load_pem_x509_certificate(raw)
    except ValueError as error:
        raise PkiError(f"{path} holds no certificate in PEM form: restore it or remove it") from error


def _covers(certificate: x509.Certificate, names: Sequence[x509.GeneralName]) -> bool:
    try:
        present = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return False
    return set(names) <= set(present)


def _file_name(identity: str) -> str:
    """An identity as part of a file name; every character outside a safe set becomes its code."""
    return "".join(c if c.isascii() and (c.isalnum() or c in "-_") else f"%{ord(c):02x}" for c in identity)
