"""Bootstrap data as a host reads it: cloud-init's (or Ignition's) files and commands, and in them what kubeadm is told.

Only what kubeadm needs is carried out. Jinja expressions over the host's metadata are expanded as cloud-init does.

Failure modes: `BootstrapDataError` for data that such a host could not use.

Source: canonical/cloud-init: doc/rtd/explanation/instancedata.rst; coreos/ignition: config/v2_3/types/schema.go;
kubernetes/kubernetes: cmd/kubeadm/app/apis/kubeadm/v1beta4/types.go.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote_to_bytes

import msgspec

from ironbell.base.errors import IronbellError, Retry
from ironbell.codec import goyaml

_KUBEADM = re.compile(r"kubeadm\s+(init|join)\b[^&|;]*?--config[ =](\S+)")
_EXPRESSION = re.compile(r"\{\{\s*(?:ds\.meta_data|v1)\.([A-Za-z0-9_]+)\s*\}\}")
_PKI = "/etc/kubernetes/pki"


class BootstrapDataError(IronbellError):
    """A host cannot use its bootstrap data."""

    reason, retry = "BootstrapDataUnusable", Retry.NEVER


@dataclass(frozen=True, slots=True)
class Script:
    """What a first boot does."""

    files: Mapping[str, bytes]
    commands: tuple[str, ...]

    def __repr__(self) -> str:
        return f"Script({len(self.files)} files)"


@dataclass(frozen=True, slots=True)
class Kubeadm:
    """One run of kubeadm: what it is told, by kind of document, and the files that it finds."""

    verb: str
    """`init` or `join`."""
    documents: Mapping[str, Mapping[str, Any]]
    files: Mapping[str, bytes] = field(repr=False)

    @property
    def registration(self) -> Mapping[str, Any]:
        """`nodeRegistration` of the document that has it."""
        kind = "InitConfiguration" if self.verb == "init" else "JoinConfiguration"
        return self.part(kind, "nodeRegistration")

    @property
    def is_control_plane(self) -> bool:
        return self.verb == "init" or self.documents.get("JoinConfiguration", {}).get("controlPlane") is not None

    def part(self, kind: str, *path: str) -> Mapping[str, Any]:
        """A part of a document; empty if it is not there."""
        found: Any = self.documents.get(kind, {})
        for name in path:
            found = found.get(name) if isinstance(found, dict) else None
        return found if isinstance(found, dict) else {}

    def kubelet_args(self) -> dict[str, str]:
        """`kubeletExtraArgs`, a list or (before v1beta4) a map."""
        args = self.registration.get("kubeletExtraArgs") or {}
        return dict(args) if isinstance(args, dict) else {arg["name"]: arg.get("value", "") for arg in args}

    def pki(self, name: str) -> bytes:
        """A file of the certificates' folder; empty if it is not there."""
        folder = self.part("ClusterConfiguration").get("certificatesDir") or _PKI
        return self.files.get(f"{folder}/{name}") or self.files.get(f"{_PKI}/{name}") or b""


def read_script(data: bytes, data_format: str, metadata: Mapping[str, str]) -> Script:
    """Files and commands of bootstrap data.

    Args:
        data: the Secret's `value`.
        data_format: the Secret's `format`; empty means cloud-config.
        metadata: what the host knows about itself.

    Raises:
        BootstrapDataError: it cannot be read.
    """
    return _ignition(data) if data_format == "ignition" else _cloud_config(data, metadata)


def read_kubeadm(script: Script) -> Kubeadm:
    """What the script tells kubeadm.

    Raises:
        BootstrapDataError: it does not run kubeadm, or in a way that cannot work.
    """
    found = next((match for command in script.commands if (match := _KUBEADM.search(command))), None)
    if found is None:
        raise BootstrapDataError("the bootstrap data runs neither kubeadm init nor kubeadm join")
    verb, path = found.groups()
    if path not in script.files:
        raise BootstrapDataError(f"kubeadm {verb}: {path} is not there")
    try:
        documents = [one for one in goyaml.load_all(script.files[path]) if isinstance(one, dict)]
    except goyaml.YamlError as error:
        raise BootstrapDataError(f"kubeadm {verb}: {path} is no YAML: {error}") from error
    by_kind = {str(document.get("kind")): document for document in documents}
    needed = "InitConfiguration" if verb == "init" else "JoinConfiguration"
    if needed not in by_kind:
        raise BootstrapDataError(f"kubeadm {verb}: {path} has no {needed}")
    return Kubeadm(verb, by_kind, script.files)


def _cloud_config(data: bytes, metadata: Mapping[str, str]) -> Script:
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise BootstrapDataError(f"user data is no text: {error}") from error
    if text.startswith("## template: jinja"):
        text = _EXPRESSION.sub(lambda match: metadata.get(match[1], match[0]), text)
    if "#cloud-config" not in text[:200]:
        raise BootstrapDataError("user data is no #cloud-config")
    try:
        document = goyaml.load(text)
    except goyaml.YamlError as error:
        raise BootstrapDataError(f"user data is no YAML: {error}") from error
    files = {str(file["path"]): _content(file) for file in document.get("write_files") or ()}
    commands = [command if isinstance(command, str) else " ".join(command) for command in document.get("runcmd") or ()]
    return Script(files, tuple(commands))


def _content(file: Mapping[str, Any]) -> bytes:
    content = str(file.get("content") or "")
    if file.get("encoding") not in ("base64", "b64"):
        return content.encode()
    try:
        return base64.b64decode(content)
    except binascii.Error as error:
        raise BootstrapDataError(f"write_files: {file['path']} is no base 64") from error


def _ignition(data: bytes) -> Script:
    try:
        document = msgspec.json.decode(data)
    except msgspec.DecodeError as error:
        raise BootstrapDataError(f"the Ignition configuration is no JSON: {error}") from error
    files = dict(_ignition_files(document))
    commands = [text for path, text in files.items() if path.endswith(".sh")]
    return Script(files, tuple(text.decode(errors="replace") for text in commands))


def _ignition_files(document: Mapping[str, Any]) -> Iterator[tuple[str, bytes]]:
    for file in (document.get("storage") or {}).get("files") or ():
        source = str((file.get("contents") or {}).get("source") or "")
        head, _, body = source.partition(",")
        raw = unquote_to_bytes(body)
        yield str(file["path"]), base64.b64decode(raw) if head.endswith(";base64") else raw
