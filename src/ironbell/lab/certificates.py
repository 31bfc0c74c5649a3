"""The certificate of the lab's BMCs: an authority of the lab's own, and one server certificate for the loopback."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

from ironbell.codec.certificates import (
    SERVER,
    CertificateSpec,
    Constraints,
    Issuer,
    certificate_pem,
    general_names,
    issue,
    new_key,
    private_pem,
)
from ironbell.lab.files import LabFolder

VALID_DAYS = 3650
_EPOCH = datetime(2020, 1, 1, tzinfo=UTC)


def create_certificates(folder: LabFolder) -> None:
    """Create authority and server certificate, unless they exist."""
    if folder.certificate.exists() and folder.authority.exists() and folder.key.exists():
        return
    authority_key, server_key = new_key(), new_key()
    until = _EPOCH + timedelta(days=VALID_DAYS)
    authority_spec = CertificateSpec(
        common_name="Ironbell lab BMC authority",
        not_before=_EPOCH,
        not_after=until,
        constraints=Constraints(is_authority=True, path_length=0),
        has_subject_identifier=True,
    )
    server_spec = CertificateSpec(
        common_name="lab BMC",
        not_before=_EPOCH,
        not_after=until,
        purposes=(SERVER,),
        alternatives=general_names(["127.0.0.1", "localhost"]),
        has_authority_identifier=True,
    )
    authority = issue(authority_spec, authority_key)
    server = issue(server_spec, server_key, Issuer(authority, authority_key))
    write_private(folder.key, private_pem(server_key))
    folder.certificate.write_bytes(certificate_pem(server))
    folder.authority.write_bytes(certificate_pem(authority))


def write_private(path: Path, content: bytes) -> None:
    """Write a file that only its owner can read, from its first byte on."""
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
