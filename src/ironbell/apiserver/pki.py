"""The embedded API's own certificate authority.

One folder holds the authority, the server's certificate and one certificate per client identity. Everything is made
when it is first asked for, kept, and renewed at start when it would expire soon or no longer fits (other addresses,
other groups, another authority). Keys are ECDSA P-256; a renewed authority keeps its key and its name, so that clients
that trust the old certificate trust what the new one signs.

Failure modes: `PkiError` when a file cannot be read or written or does not hold what its name says; nothing is replaced
silently, because a new authority would lock out every client.

Source: kubernetes/kubernetes: cmd/kubeadm/app/util/pkiutil (usages, lifetimes, names).
"""

from __future__ import annotations

import ipaddress
import os
import tempfile
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

import msgspec
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from ironbell.base.clock import Clock
from ironbell.base.errors import IronbellError, Retry

AUTHORITY_LIFETIME = timedelta(days=3650)
LEAF_LIFETIME = timedelta(days=365)
RENEW_BEFORE = timedelta(days=60)
_CLOCK_SKEW = timedelta(minutes=5)


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
        """Open the authority in `folder`, or make it there.

        Raises:
            PkiError: the folder's files cannot be read, written or used together.
        """
        self._folder, self._clock = folder, clock
        make_private_folder(folder)
        self._pair = KeyPair(folder / "ca.crt", folder / "ca.key")
        self._key = self._load_or_make_key(self._pair)
        self._certificate = self._load_or_make_authority()

    @property
    def certificate_pem(self) -> bytes:
        """What clients must trust."""
        return self._certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def certificate_path(self) -> Path:
        """Where that is kept."""
        return self._pair.certificate

    def server(self, addresses: Sequence[str]) -> KeyPair:
        """The server's pair, good for these host names and IP addresses."""
        names = [_general_name(address) for address in dict.fromkeys(addresses)]
        pair = self._leaf_pair("server")
        current = _load_certificate(pair.certificate)
        if current is None or not self._is_usable(current, pair) or not _covers(current, names):
            builder = self._leaf_builder("ironbell-api", [], pair, usage=ExtendedKeyUsageOID.SERVER_AUTH)
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
            self._sign(builder, pair)
        return pair

    def client(self, name: str, groups: Sequence[str] = ()) -> KeyPair:
        """The pair of a client that the API knows as user `name` in `groups`."""
        pair = self._leaf_pair(f"client-{_file_name(name)}")
        current = _load_certificate(pair.certificate)
        if current is None or not self._is_usable(current, pair) or subject(current) != (name, tuple(groups)):
            self._sign(self._leaf_builder(name, groups, pair, usage=ExtendedKeyUsageOID.CLIENT_AUTH), pair)
        return pair

    def _leaf_pair(self, stem: str) -> KeyPair:
        return KeyPair(self._folder / f"{stem}.crt", self._folder / f"{stem}.key")

    def _load_or_make_key(self, pair: KeyPair) -> ec.EllipticCurvePrivateKey:
        raw = read_private(pair.key)
        if raw is None:
            key = ec.generate_private_key(ec.SECP256R1())
            encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
            write_private(pair.key, key.private_bytes(encoding, form, serialization.NoEncryption()))
            return key
        try:
            loaded = serialization.load_pem_private_key(raw, None)
        except (ValueError, TypeError) as error:
            raise PkiError(f"{pair.key} holds no private key in PEM form: restore it or remove the folder") from error
        if not isinstance(loaded, ec.EllipticCurvePrivateKey):
            raise PkiError(f"{pair.key} holds no elliptic-curve key: restore it or remove the folder")
        return loaded

    def _load_or_make_authority(self) -> x509.Certificate:
        current = _load_certificate(self._pair.certificate)
        if current is not None and current.public_key() != self._key.public_key():
            raise PkiError(f"{self._pair.certificate} and {self._pair.key} do not belong together: restore one of them")
        if current is not None and self._remains(current, LEAF_LIFETIME):
            return current
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "ironbell-ca")])
        builder = self._builder(name, self._key.public_key(), AUTHORITY_LIFETIME)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        builder = builder.add_extension(_key_usage(signs_certificates=True), critical=True)
        made = builder.issuer_name(name).sign(self._key, hashes.SHA256())
        write_private(self._pair.certificate, made.public_bytes(serialization.Encoding.PEM))
        return made

    def _leaf_builder(
        self, name: str, groups: Sequence[str], pair: KeyPair, *, usage: x509.ObjectIdentifier
    ) -> x509.CertificateBuilder:
        attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        attributes.append(x509.NameAttribute(NameOID.COMMON_NAME, name))
        public = self._load_or_make_key(pair).public_key()
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        return (
            self._builder(x509.Name(attributes), public, LEAF_LIFETIME)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
            .add_extension(issuer, critical=False)
        )

    def _builder(
        self, name: x509.Name, public: ec.EllipticCurvePublicKey, lifetime: timedelta
    ) -> x509.CertificateBuilder:
        now = self._clock.now()
        return (
            x509.CertificateBuilder()
            .subject_name(name)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _CLOCK_SKEW)
            .not_valid_after(now + lifetime)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        )

    def _sign(self, builder: x509.CertificateBuilder, pair: KeyPair) -> None:
        certificate = builder.issuer_name(self._certificate.subject).sign(self._key, hashes.SHA256())
        write_private(pair.certificate, certificate.public_bytes(serialization.Encoding.PEM))

    def _is_usable(self, certificate: x509.Certificate, pair: KeyPair) -> bool:
        try:
            certificate.verify_directly_issued_by(self._certificate)
        except (ValueError, TypeError, InvalidSignature):
            return False
        same_key = certificate.public_key() == self._load_or_make_key(pair).public_key()
        return same_key and self._remains(certificate, RENEW_BEFORE)

    def _remains(self, certificate: x509.Certificate, margin: timedelta) -> bool:
        now: datetime = self._clock.now()
        return certificate.not_valid_before_utc <= now and now + margin < certificate.not_valid_after_utc


def subject(certificate: x509.Certificate) -> tuple[str, tuple[str, ...]]:
    """User name and groups as a client certificate states them."""
    names = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    groups = certificate.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    return str(names[0].value) if names else "", tuple(str(group.value) for group in groups)


def make_private_folder(folder: Path) -> None:
    """Make a folder that only its owner can enter.

    Raises:
        PkiError: it cannot be made.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise PkiError(f"cannot make the folder {folder}: {error.strerror}") from error


def write_private(path: Path, content: bytes) -> None:
    """Replace a file at once, readable by its owner only.

    Raises:
        PkiError: it cannot be written.
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
    """A file's content; None if it is not there.

    Raises:
        PkiError: it cannot be read.
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


def _general_name(address: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(address))
    except ValueError:
        return x509.DNSName(address)


def _covers(certificate: x509.Certificate, names: Sequence[x509.GeneralName]) -> bool:
    try:
        present = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return False
    return set(names) <= set(present)


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _file_name(identity: str) -> str:
    """An identity as part of a file name; every character outside a safe set becomes its code."""
    return "".join(c if c.isascii() and (c.isalnum() or c in "-_") else f"%{ord(c):02x}" for c in identity)
