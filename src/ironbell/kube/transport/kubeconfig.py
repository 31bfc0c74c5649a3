"""Kubeconfig files, several of them put together as kubectl does.

Of several files the first that sets something wins: the current context, and each named cluster, user and context.
Paths inside a file start from that file's folder.

Failure modes: `ConnectionConfigError` names file and field. Contents of credentials never appear in messages.

Source: kubernetes/client-go: tools/clientcmd/loader.go, tools/clientcmd/api/v1/types.go.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ironbell.codec import goyaml
from ironbell.kube.transport.tokens import ConnectionConfigError


@dataclass(frozen=True)
class Section:
    """A named cluster or user with the file it stands in."""

    path: Path
    name: str
    fields: Mapping[str, Any]

    @property
    def where(self) -> str:
        """To begin messages with."""
        return str(self.path)

    def text(self, name: str) -> str:
        """A field as text; empty where it is not."""
        return str(self.fields.get(name) or "")

    def file(self, name: str) -> Path | None:
        """The file that a field names."""
        return self.path.parent / self.text(name) if self.text(name) else None

    def data(self, name: str) -> bytes:
        """Return the data of `name`-data (base64) or of the file `name`; the former takes precedence.

        Raises:
            ConnectionConfigError: neither can be read.
        """
        try:
            if self.text(f"{name}-data"):
                return base64.b64decode(self.text(f"{name}-data"), validate=True)
            file = self.file(name)
            return file.read_bytes() if file else b""
        except (binascii.Error, OSError) as error:
            raise ConnectionConfigError(f"{self.path}: {name} is unusable: {error}") from error


@dataclass(frozen=True)
class Chosen:
    """A context with what it names."""

    context: str
    cluster: Section
    user: Section
    namespace: str = ""


@dataclass(frozen=True)
class _File:
    path: Path
    content: Mapping[str, Any]


def choose(paths: Sequence[Path], context: str = "") -> Chosen:
    """The context named, else the current one, out of these files.

    Raises:
        ConnectionConfigError: a file cannot be read, or the context is incomplete.
    """
    files = [_read(path) for path in paths]
    if not files:
        raise ConnectionConfigError("no kubeconfig was given")
    return _choose(files, context)


def choose_from(content: bytes, *, where: str) -> Chosen:
    """The current context of a kubeconfig that is not a file; `where` names it in messages.

    Raises:
        ConnectionConfigError: the text is not a kubeconfig, or the context is incomplete.
    """
    try:
        return _choose([_parse(Path(where), content.decode())], "")
    except UnicodeDecodeError as error:
        raise ConnectionConfigError(f"{where} is not a kubeconfig: it is binary") from error


def _choose(files: Sequence[_File], context: str) -> Chosen:
    name = context or next((str(file.content["current-context"]) for file in files if _current(file)), "")
    chosen = _named(files, "contexts", name, "context")
    cluster = _named(files, "clusters", chosen.text("cluster"), "cluster")
    user = _named(files, "users", chosen.text("user"), "user") if chosen.text("user") else Section(chosen.path, "", {})
    if not cluster.text("server"):
        raise ConnectionConfigError(f"{cluster.path}: the cluster of context {name!r} has no server")
    return Chosen(name, cluster, user, chosen.text("namespace"))


def _current(file: _File) -> bool:
    return bool(file.content.get("current-context"))


def _read(path: Path) -> _File:
    try:
        return _parse(path, path.read_text())
    except OSError as error:
        problem = (error.strerror or str(error)).lower()
        raise ConnectionConfigError(f"the kubeconfig {path} cannot be read: {problem}") from error
    except UnicodeDecodeError as error:
        raise ConnectionConfigError(f"{path} is not a kubeconfig: it is a binary file") from error


def _parse(path: Path, content: str) -> _File:
    try:
        config = goyaml.load(content)
    except goyaml.YamlError as error:
        raise ConnectionConfigError(f"the kubeconfig {path} is no YAML: {error}") from error
    if not isinstance(config, dict):
        raise ConnectionConfigError(f"{path} is not a kubeconfig")
    return _File(path, config)


def _named(files: Sequence[_File], section: str, name: str, inner: str) -> Section:
    for file, entry in _entries(files, section):
        if entry.get("name") == name and isinstance(entry.get(inner), dict):
            return Section(file.path, name, entry[inner])
    paths = ", ".join(str(file.path) for file in files)
    if section == "contexts":
        raise ConnectionConfigError(f"{paths}: {_no_context(files, name)}")
    raise ConnectionConfigError(f'{paths}: the context names {inner} "{name}", which is not among its {section}')


def _no_context(files: Sequence[_File], name: str) -> str:
    """Return the error about a context that does not exist, with those that do."""
    known = sorted({str(entry.get("name")) for _, entry in _entries(files, "contexts")})
    problem = f'there is no context "{name}"' if name else "no current context is set"
    if not known:
        return f"{problem}, and no other one; give a kubeconfig that has contexts"
    return f"{problem}; choose one of these with --context: {', '.join(known)}"


def _entries(files: Sequence[_File], section: str) -> Iterator[tuple[_File, Mapping[str, Any]]]:
    for file in files:
        entries = file.content.get(section)
        for entry in entries if isinstance(entries, list) else ():
            if isinstance(entry, dict):
                yield file, entry
