"""Kubeconfig files: how kubectl and our own components reach the embedded API.

Credentials are embedded, so that one file can be copied to another machine; the file is readable by its owner only.

Source: kubernetes/client-go: tools/clientcmd/api/v1/types.go.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ironbell.apiserver.pki import KeyPair, write_private


@dataclass(frozen=True, slots=True)
class Credentials:
    """How a client proves who it is: by certificate or by token."""

    certificate: KeyPair | None = None
    token: str = ""

    def __repr__(self) -> str:
        return "Credentials(***)"


def kubeconfig(*, server: str, authority_pem: bytes, user: str, credentials: Credentials, name: str) -> bytes:
    """The file's content: one cluster, one user, one context, all reachable as the current context."""
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {"server": server, **_authority(authority_pem)}}],
        "users": [{"name": user, "user": _user(credentials)}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": user, "namespace": "default"}}],
        "current-context": name,
        "preferences": {},
    }
    from ironbell.codec import goyaml  # a start that keeps its files needs none

    return goyaml.dump(document).encode()


def write_kubeconfig(path: Path, content: bytes) -> Path:
    """Write the file for its owner's eyes only, and give its path."""
    write_private(path, content)
    return path


def _authority(pem: bytes) -> dict[str, Any]:
    return {"certificate-authority-data": base64.b64encode(pem).decode()} if pem else {}


def _user(credentials: Credentials) -> dict[str, Any]:
    if credentials.certificate is None:
        return {"token": credentials.token}
    return {
        "client-certificate-data": base64.b64encode(credentials.certificate.certificate.read_bytes()).decode(),
        "client-key-data": base64.b64encode(credentials.certificate.key.read_bytes()).decode(),
    }
