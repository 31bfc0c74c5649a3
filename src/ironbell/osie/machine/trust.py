"""Adds private certificate authorities to those that the image trusts.

Three ways, all optional: built into the image (`ironbell osie build --ca`), appended to the initrd as
`/etc/ironbell/ca.pem`, or fetched from `ironbell.ca_url=` when its SHA-256 is given by `ironbell.ca_sha256=`: the
digest comes from the boot script, and a client that could change the script could change anything.

Failure modes: a file that cannot be fetched or has another digest is not trusted, and that is reported.
"""

from __future__ import annotations

import hashlib
import urllib.error
import urllib.request
from pathlib import Path

from ironbell.osie.machine.cmdline import Arguments
from ironbell.osie.machine.console import Console

BUNDLE = Path("/etc/ssl/certs/ca-certificates.crt")
FROM_BOOT = Path("/etc/ironbell/ca.pem")
_TIMEOUT_S = 10.0
_LIMIT_BYTES = 1 << 20


def extend(arguments: Arguments, console: Console, *, bundle: Path = BUNDLE, from_boot: Path = FROM_BOOT) -> None:
    """Add the authorities to the bundle, once at boot."""
    if from_boot.exists():
        _append(bundle, from_boot.read_bytes())
        console.report("trust: added the certificate authority from the boot chain")
    if not arguments.ca_url:
        return
    if not arguments.ca_sha256:
        console.report("trust: ironbell.ca_url is ignored without ironbell.ca_sha256")
        return
    try:
        content = _fetch(arguments.ca_url)
    except (OSError, ValueError) as error:
        console.report(f"trust: {arguments.ca_url}: {error}")
        return
    if hashlib.sha256(content).hexdigest() != arguments.ca_sha256:
        console.report(f"trust: {arguments.ca_url} is not the certificate authority that the boot script named")
        return
    _append(bundle, content)
    console.report(f"trust: added the certificate authority of {arguments.ca_url}")


def _fetch(url: str) -> bytes:
    if not url.startswith(("http://", "https://")):
        raise ValueError("must begin with http:// or https://")
    with urllib.request.urlopen(url, timeout=_TIMEOUT_S) as answer:  # noqa: S310 - the scheme is checked above
        return bytes(answer.read(_LIMIT_BYTES))


def _append(bundle: Path, content: bytes) -> None:
    with bundle.open("ab") as stream:
        stream.write(b"\n" + content.strip() + b"\n")
