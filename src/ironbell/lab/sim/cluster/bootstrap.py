"""Bootstrap data as a host reads it: files and commands of cloud-init or Ignition, and kubeadm's configuration.

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
    """Files and commands of a first boot."""

    files: Mapping[str, bytes]
    commands: tuple[str, ...]

    def __repr__(self) -> str:
        return f"Script({len(self.files)} files)"


@dataclass(frozen=True, slots=True)
class Kubeadm:
    """One run of kubeadm: its configuration, by kind of document, and the files that it reads."""

    verb: str
    """`init` or `join`."""
    documents: Mapping[str, Mapping[str, Any]]
    files: Mapping[str, bytes] = field(repr=False)

    @property
    def registration(self) -> Mapping[str, Any]:
        """`nodeRegistration` of the document that has it."""
        kind = "InitConfiguration" if self.verb == "init" else "JoinConfiguration"
        return self.section(kind, "nodeRegistration")

    @property
    def is_control_plane(self) -> bool:
        return self.verb == "init" or self.documents.get("JoinConfiguration", {}).get("controlPlane") is not None

    def section(self, kind: str, *path: str) -> Mapping[str, Any]:
        """A section of a document; empty if it is missing."""
        value: Any = self.documents.get(kind, {})
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        return value if isinstance(value, dict) else {}

    def kubelet_args(self) -> dict[str, str]:
        """`kubeletExtraArgs`, a list or (before v1beta4) a map."""
        args = self.registration.get("kubeletExtraArgs") or {}
        return dict(args) if isinstance(args, dict) else {arg["name"]: arg.get("value", "") for arg in args}

    def pki(self, name: str) -> bytes:
        """A file of the certificates' folder; empty if it is missing."""
        folder = self.section("ClusterConfiguration").get("certificatesDir") or _PKI
        return self.files.get(f"{folder}/{name}") or self.files.get(f"{_PKI}/{name}") or b""


def read_script(data: bytes, data_format: str, metadata: Mapping[str, str]) -> Script:
    """Files and commands of bootstrap data.

    Args:
        data: the Secret's `value`.
        data_format: the Secret's `format`; empty means cloud-config.
        metadata: what the host knows about itself.

    Raises:
        BootstrapDataError: the data cannot be read.
    """
    return _ignition(data) if data_format == "ignition" else _cloud_config(data, metadata)


def read_kubeadm(script: Script) -> Kubeadm:
    """The run of kubeadm in a script.

    Raises:
        BootstrapDataError: it does not run kubeadm, or in a way that cannot work.
    """
    match = next((match for command in script.commands if (match := _KUBEADM.search(command))), None)
    if match is None:
        raise BootstrapDataError("the bootstrap data runs neither kubeadm init nor kubeadm join")
    verb, path = match.groups()
    if path not in script.files:
        raise BootstrapDataError(f"kubeadm {verb}: {path} does not exist")
    try:
        documents = [document for document in goyaml.load_all(script.files[path]) if isinstance(document, dict)]
    except goyaml.YamlError as error:
        raise BootstrapDataError(f"kubeadm {verb}: {path} is not YAML: {error}") from error
    by_kind = {str(document.get("kind")): document for document in documents}
    needed = "InitConfiguration" if verb == "init" else "JoinConfiguration"
    if needed not in by_kind:
        raise BootstrapDataError(f"kubeadm {verb}: {path} has no {needed}")
    return Kubeadm(verb, by_kind, script.files)


def _cloud_config(data: bytes, metadata: Mapping[str, str]) -> Script:
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise BootstrapDataError(f"user data is not text: {error}") from error
    if text.startswith("## template: jinja"):
        text = _EXPRESSION.sub(lambda match: metadata.get(match[1], match[0]), text)
    if "#cloud-config" not in text[:200]:
        raise BootstrapDataError("user data is not a #cloud-config")
    try:
        document = goyaml.load(text)
    except goyaml.YamlError as error:
        raise BootstrapDataError(f"user data is not YAML: {error}") from error
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
        raise BootstrapDataError(f"write_files: {file['path']} is not base 64") from error


def _ignition(data: bytes) -> Script:
    try:
        document = msgspec.json.decode(data)
    except msgspec.DecodeError as error:
        raise BootstrapDataError(f"the Ignition configuration is not JSON: {error}") from error
    files = dict(_ignition_files(document))
    commands = [text for path, text in files.items() if path.endswith(".sh")]
    return Script(files, tuple(text.decode(errors="replace") for text in commands))


def _ignition_files(document: Mapping[str, Any]) -> Iterator[tuple[str, bytes]]:
    for file in (document.get("storage") or {}).get("files") or ():
        source = str((file.get("contents") or {}).get("source") or "")
        head, _, body = source.partition(",")
        raw = unquote_to_bytes(body)
        yield str(file["path"]), base64.b64decode(raw) if head.endswith(";base64") else raw
