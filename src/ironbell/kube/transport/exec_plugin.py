"""Credential plugins: a program that prints a token or a client certificate, as a kubeconfig's `exec` names it.

The program gets no standard input, and shares our standard error. Its answer is kept until it expires or the server
rejects it; for any number of waiting requests, the program runs once.

Failure modes: what is wrong with the kubeconfig is a `ConnectionConfigError`; a run that fails is a `CredentialError`,
an API that is unavailable for now, which callers try again. Neither repeats what the program printed.

Source: kubernetes/client-go: plugin/pkg/client/auth/exec/exec.go; client.authentication.k8s.io v1, v1beta1.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import signal
import ssl
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from ironbell.api.client import Unavailable
from ironbell.base.clock import Clock, SystemClock, parse_rfc3339
from ironbell.kube.transport.tokens import ConnectionConfigError

GROUP = "client.authentication.k8s.io"
VERSIONS = (f"{GROUP}/v1", f"{GROUP}/v1beta1")
RUN_S = 60.0
EARLY = timedelta(seconds=5)
"""So much before it expires a credential is taken as expired: it has to travel, and clocks differ."""
_MODES = ("Never", "IfAvailable", "Always")


class CredentialError(Unavailable):
    """A credential plugin gave no credential this time."""

    reason = "CredentialPluginFailed"


@dataclass(frozen=True, slots=True)
class Credential:
    """Credential that a plugin returned."""

    token: str = field(default="", repr=False)
    certificate: bytes = field(default=b"", repr=False)
    key: bytes = field(default=b"", repr=False)
    expires: datetime | None = None


class _Status(msgspec.Struct, rename="camel"):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: str = ""


class _Answer(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    status: _Status | None = None


@dataclass(frozen=True)
class ExecSpec:
    """Command of a plugin, and its settings."""

    api_version: str
    command: str
    arguments: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    install_hint: str = ""
    cluster: Mapping[str, Any] | None = field(default=None, repr=False)
    """Cluster information for a plugin that requests it."""


def read_exec(section: Mapping[str, Any], *, folder: Path, cluster: Mapping[str, Any], where: str) -> ExecSpec:
    """A kubeconfig's `exec`.

    Args:
        section: the user's `exec`.
        folder: where a relative command with a slash starts from.
        cluster: the `cluster` part of ExecCredential's spec, for plugins that ask for it.
        where: file and user, to begin messages with.

    Raises:
        ConnectionConfigError: a field is missing, unknown, or asks for what there is not.
    """
    version, command = str(section.get("apiVersion") or ""), str(section.get("command") or "")
    if version not in VERSIONS:
        raise ConnectionConfigError(f"{where}: exec.apiVersion is {version!r}; supported are {' and '.join(VERSIONS)}")
    if not command:
        raise ConnectionConfigError(f"{where}: exec.command is missing")
    mode = str(section.get("interactiveMode") or ("" if version.endswith("/v1") else "IfAvailable"))
    if mode not in _MODES:
        raise ConnectionConfigError(f"{where}: exec.interactiveMode must be one of {', '.join(_MODES)}")
    if mode == "Always":
        raise ConnectionConfigError(
            f"{where}: exec.interactiveMode is Always, which needs a terminal; use a plugin that works without one"
        )
    try:
        environment = tuple((str(entry["name"]), str(entry["value"])) for entry in section.get("env") or ())
    except (KeyError, TypeError) as error:
        raise ConnectionConfigError(f"{where}: exec.env must be a list of name and value") from error
    return ExecSpec(
        version,
        str(folder / command) if "/" in command and not command.startswith("/") else command,
        tuple(str(argument) for argument in section.get("args") or ()),
        environment,
        str(section.get("installHint") or "").strip(),
        dict(cluster) if section.get("provideClusterInfo") else None,
    )


class ExecPlugin:
    """A plugin, with its last answer."""

    def __init__(self, spec: ExecSpec, *, clock: Clock | None = None, run_s: float = RUN_S) -> None:
        self._spec, self._run_s = spec, run_s
        self._clock = clock or SystemClock()
        self._held: Credential | None = None
        self._running: asyncio.Task[Credential] | None = None

    async def credential(self) -> Credential:
        """The credential to use now.

        Raises:
            CredentialError: the plugin cannot be run, takes too long, or gives none.
        """
        held = self._held
        if held is not None and (held.expires is None or self._clock.now() < held.expires - EARLY):
            return held
        if self._running is None:
            self._running = asyncio.create_task(self._renew(), name="credential plugin")
            self._running.add_done_callback(self._finished)
        return await asyncio.shield(self._running)

    async def __call__(self) -> str:
        """The token alone, as a `TokenSource`; empty where the plugin gives certificates."""
        return (await self.credential()).token

    def forget(self, used: str = "") -> None:
        """Run the plugin for the next request, because the server rejected its last answer."""
        if self._held is not None and (not used or used == self._held.token):
            self._held = None

    def _finished(self, task: asyncio.Task[Credential]) -> None:
        self._running = None
        if not task.cancelled():
            task.exception()  # waiting requests get it; there may be none

    async def _renew(self) -> Credential:
        self._held = read_credential(await self._run(), self._spec)
        return self._held

    async def _run(self) -> bytes:
        spec = self._spec
        info: dict[str, Any] = {"interactive": False}
        if spec.cluster is not None:
            info["cluster"] = spec.cluster
        request = {"apiVersion": spec.api_version, "kind": "ExecCredential", "spec": info}
        environment = {
            **os.environ,
            **dict(spec.environment),
            "KUBERNETES_EXEC_INFO": msgspec.json.encode(request).decode(),
        }
        try:
            process = await asyncio.create_subprocess_exec(
                spec.command, *spec.arguments, stdin=DEVNULL, stdout=PIPE, env=environment, start_new_session=True
            )
        except OSError as error:
            raise _failure(spec, f"cannot be run: {error.strerror}") from error
        try:
            async with asyncio.timeout(self._run_s):
                output, _ = await process.communicate()
        except TimeoutError:
            raise _failure(spec, f"did not answer within {self._run_s:g} s") from None
        finally:
            await _end(process)
        if process.returncode:
            raise _failure(spec, f"ended with status {process.returncode}")
        return output


class PluginTls:
    """A TLS context with the plugin's client certificate in it."""

    def __init__(self, plugin: ExecPlugin, build: Callable[[Credential], ssl.SSLContext]) -> None:
        self._plugin, self._build = plugin, build
        self._last: tuple[Credential, ssl.SSLContext] | None = None

    async def __call__(self) -> ssl.SSLContext:
        """The context for the next connection."""
        credential = await self._plugin.credential()
        if self._last is None or self._last[0] is not credential:
            self._last = (credential, await asyncio.to_thread(self._build, credential))
        return self._last[1]

    def forget(self, used: str = "") -> None:
        """Run the plugin for the next request."""
        self._plugin.forget(used)


async def _end(process: asyncio.subprocess.Process) -> None:
    """Leave nothing of the plugin behind, its own children included."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await asyncio.shield(process.wait())


def read_credential(output: bytes, spec: ExecSpec) -> Credential:
    """Parse the output of a plugin.

    Raises:
        CredentialError: it is no ExecCredential of the version asked for, or has no credential in it.
    """
    try:
        answer = msgspec.json.decode(output, type=_Answer)
    except msgspec.MsgspecError:
        raise _failure(spec, "printed no ExecCredential") from None
    if answer.kind != "ExecCredential" or answer.api_version != spec.api_version:
        raise _failure(spec, f"printed no ExecCredential of {spec.api_version}")
    status = answer.status or _Status()
    if not status.token and not status.client_certificate_data:
        raise _failure(spec, "gave neither a token nor a client certificate")
    if bool(status.client_certificate_data) != bool(status.client_key_data):
        raise _failure(spec, "gave a client certificate without its key, or a key alone")
    try:
        expires = parse_rfc3339(status.expiration_timestamp) if status.expiration_timestamp else None
    except ValueError:
        raise _failure(spec, "returned an expirationTimestamp that is not a time") from None
    return Credential(status.token, status.client_certificate_data.encode(), status.client_key_data.encode(), expires)


def _failure(spec: ExecSpec, problem: str) -> CredentialError:
    hint = f"; {spec.install_hint}" if spec.install_hint else ""
    return CredentialError(f"the credential plugin {spec.command!r} {problem}{hint}")


def cluster_info(cluster: Mapping[str, Any], authority: bytes) -> dict[str, Any]:
    """Return the information of a kubeconfig's cluster for a plugin: its address and authority."""
    info: dict[str, Any] = {
        name: cluster[name]
        for name in ("server", "tls-server-name", "insecure-skip-tls-verify", "proxy-url")
        if cluster.get(name)
    }
    if authority:
        info["certificate-authority-data"] = base64.b64encode(authority).decode()
    for extension in cluster.get("extensions") or ():
        if isinstance(extension, dict) and extension.get("name") == f"{GROUP}/exec":
            info["config"] = extension.get("extension")
    return info
