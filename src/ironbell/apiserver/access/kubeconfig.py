"""Kubeconfig files: how kubectl and our own components reach the embedded API.

Credentials are embedded, so that one file can be copied to another machine; the file is readable by its owner only.

Source: kubernetes/client-go: tools/clientcmd/api/v1/types.go.
"""

from __future__ import annotations

import base64
from pathlib import Path

import msgspec

from ironbell.apiserver.access.pki import KeyPair, write_private


class Credentials(msgspec.Struct, frozen=True):
    """A client's proof of identity: a certificate or a token."""

    certificate: KeyPair | None = None
    token: str = ""

    def __repr__(self) -> str:
        return "Credentials(***)"


def kubeconfig(*, server: str, authority_pem: bytes, user: str, credentials: Credentials, name: str) -> bytes:
    """The file's content: one cluster, one user, one context, all reachable as the current context."""
    # Text by hand, because a first start needs this YAML and no other.
    lines = [
        "apiVersion: v1",
        "kind: Config",
        "clusters:",
        f"- name: {_quoted(name)}",
        "  cluster:",
        f"    server: {_quoted(server)}",
        *_indented(_authority(authority_pem)),
        "users:",
        f"- name: {_quoted(user)}",
        "  user:",
        *_indented(_user(credentials)),
        "contexts:",
        f"- name: {_quoted(name)}",
        "  context:",
        *_indented({"cluster": name, "user": user, "namespace": "default"}),
        f"current-context: {_quoted(name)}",
        "preferences: {}",
    ]
    return "".join(f"{line}\n" for line in lines).encode()


def write_kubeconfig(path: Path, content: bytes) -> Path:
    """Write the file, readable by its owner only, and return its path."""
    write_private(path, content)
    return path


def _authority(pem: bytes) -> dict[str, str]:
    return {"certificate-authority-data": base64.b64encode(pem).decode()} if pem else {}


def _user(credentials: Credentials) -> dict[str, str]:
    if credentials.certificate is None:
        return {"token": credentials.token}
    return {
        "client-certificate-data": base64.b64encode(credentials.certificate.certificate.read_bytes()).decode(),
        "client-key-data": base64.b64encode(credentials.certificate.key.read_bytes()).decode(),
    }


def _indented(fields: dict[str, str]) -> list[str]:
    return [f"    {key}: {_quoted(value)}" for key, value in fields.items()]


def _quoted(text: str) -> str:
    """Return a text as a YAML scalar: every JSON string is one."""
    return msgspec.json.encode(text).decode()
