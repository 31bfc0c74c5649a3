"""The agent's settings: from the kernel command line, environment and flags; the later one takes precedence.

Kernel arguments are upstream's: `grpc_authority`, `worker_id`, `hw_addr`, `tinkerbell_tls`,
`tinkerbell_insecure_tls`. Variables are upstream's too: `AGENT_<FLAG>` and the older names without a prefix. Flags
take one dash or two, as Go programs do; those that have no meaning here (container runtimes, other transports) are
accepted and have no effect, so that units and scripts written for upstream's agent start this one.

Source: tinkerbell/tinkerbell: cmd/agent; tinkerbell/hook: images/hook-bootkit.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ironbell.base.errors import IronbellError, Retry
from ironbell.base.ports import GRPC_PORT
from ironbell.codec.durations import DurationError, parse_seconds

HEARTBEAT_S = 20.0
BOOT_ID_VARIABLE = "IRONBELL_BOOT_ID"
BOOT_TOKEN_VARIABLE = "IRONBELL_BOOT_TOKEN"  # noqa: S105 - the name of a variable
BOOT_TOKEN_ARGUMENT = "ironbell.boot_token"  # noqa: S105 - the name of a kernel argument
CA_FILE_VARIABLE = "IRONBELL_CA_FILE"

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_CMDLINE = Path("/proc/cmdline")
_TRUE = {"1", "t", "true", "yes", "on", ""}
_FALSE = {"0", "f", "false", "no", "off"}
# Flag to its default; None is a flag of upstream's that has no effect.
_FLAGS: Mapping[str, str | None] = {
    "id": "",
    "grpc-server": "",
    "grpc-tls": "false",
    "grpc-insecure-tls": "false",
    "attribute-detection": "true",
    "backoff-max-interval": "5s",
    "heartbeat-interval": "20s",
    "log-level": None,
    "runtime": None,
    "transport": None,
    "grpc-retry-interval": None,
    "registry-name": None,
    "registry-user": None,
    "registry-pass": None,
    "docker-socket": None,
    "containerd-namespace": None,
    "containerd-socket": None,
    "containerd-data-root": None,
    "containerd-registry-config-path": None,
}
_ALIASES: Mapping[str, str] = {
    "tinkerbell-grpc-authority": "grpc-server",
    "tinkerbell-tls": "grpc-tls",
    "tinkerbell-insecure-tls": "grpc-insecure-tls",
    "registry-username": "registry-user",
    "registry-password": "registry-pass",
    "docker-registry": "registry-name",
}
_KERNEL_ARGUMENTS: Sequence[tuple[str, str]] = (
    ("hw_addr", "id"),
    ("worker_id", "id"),
    ("grpc_authority", "grpc-server"),
    ("tinkerbell_tls", "grpc-tls"),
    ("tinkerbell_insecure_tls", "grpc-insecure-tls"),
)
_OLD_VARIABLES: Sequence[tuple[str, str]] = (
    ("WORKER_ID", "id"),
    ("ID", "id"),
    ("TINKERBELL_GRPC_AUTHORITY", "grpc-server"),
    ("TINKERBELL_TLS", "grpc-tls"),
    ("TINKERBELL_INSECURE_TLS", "grpc-insecure-tls"),
)


class SettingsError(IronbellError):
    """The agent's settings do not name the server or its id, or are not valid."""

    reason = "BadSettings"
    retry = Retry.NEVER


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of the agent."""

    agent_id: str
    host: str
    port: int
    tls: bool = False
    verifies_tls: bool = True
    ca_file: str = ""
    boot_id: str = ""
    boot_token: str = field(default="", repr=False)
    """Proves to the server that this is the machine that got the boot script; secret."""
    detects_attributes: bool = True
    backoff_max_s: float = 5.0
    heartbeat_s: float = HEARTBEAT_S
    """Seconds between signs of life while an action runs; 0 sends none."""


def parse_cmdline(text: str) -> dict[str, str]:
    """A kernel command line as its arguments; one without a value is empty, of repeated ones the last is used."""
    try:
        words = shlex.split(text)
    except ValueError:
        words = text.split()
    return {key: value for key, _, value in (word.partition("=") for word in words)}


def read_cmdline(path: Path = _CMDLINE) -> dict[str, str]:
    """This machine's kernel command line."""
    try:
        return parse_cmdline(path.read_text("utf-8", "replace"))
    except OSError:
        return {}


def read_boot_id(environment: Mapping[str, str], path: Path = _BOOT_ID) -> str:
    """The name of this boot, which changes at each reboot; a machine made of namespaces has it in its environment."""
    if given := environment.get(BOOT_ID_VARIABLE, "").strip():
        return given
    try:
        return path.read_text("ascii").strip()
    except OSError:
        return ""


def resolve(
    arguments: Sequence[str], *, environment: Mapping[str, str], cmdline: Mapping[str, str], boot_id: str
) -> Settings:
    """Combine all sources into the settings.

    Raises:
        SettingsError: the server or this machine's id is not set, or a value cannot be read.
    """
    values = {flag: default for flag, default in _FLAGS.items() if default is not None}
    values |= {flag: cmdline[key] for key, flag in _KERNEL_ARGUMENTS if cmdline.get(key)}
    values |= {flag: environment[key] for key, flag in _OLD_VARIABLES if environment.get(key)}
    for flag in (*_FLAGS, *_ALIASES):
        if value := environment.get("AGENT_" + flag.upper().replace("-", "_"), ""):
            values[_ALIASES.get(flag, flag)] = value
    values |= _flags(arguments)
    if not values["id"]:
        raise SettingsError("the agent has no id: set the kernel argument worker_id=, or -id, or AGENT_ID")
    host, port = _address(values["grpc-server"])
    return Settings(
        agent_id=values["id"],
        host=host,
        port=port,
        tls=_boolean("grpc-tls", values["grpc-tls"]),
        verifies_tls=not _boolean("grpc-insecure-tls", values["grpc-insecure-tls"]),
        ca_file=environment.get(CA_FILE_VARIABLE, ""),
        boot_id=boot_id,
        boot_token=environment.get(BOOT_TOKEN_VARIABLE, "") or cmdline.get(BOOT_TOKEN_ARGUMENT, ""),
        detects_attributes=_boolean("attribute-detection", values["attribute-detection"]),
        backoff_max_s=_duration("backoff-max-interval", values["backoff-max-interval"]),
        heartbeat_s=_duration("heartbeat-interval", values["heartbeat-interval"]),
    )


def _flags(arguments: Sequence[str]) -> dict[str, str]:
    parser = argparse.ArgumentParser(prog="ironbell-agent", description="Run workflow actions on this machine.")
    for flag in (*_FLAGS, *_ALIASES):
        target = _ALIASES.get(flag, flag)
        text = argparse.SUPPRESS if _FLAGS.get(target) is None or flag in _ALIASES else f"default: {_FLAGS[target]!r}"
        parser.add_argument(
            f"-{flag}", f"--{flag}", dest=target, nargs="?", const="true", default=argparse.SUPPRESS, help=text
        )
    return vars(parser.parse_args(arguments))


def _address(text: str) -> tuple[str, int]:
    if not text:
        raise SettingsError(
            "the agent has no server: set the kernel argument grpc_authority=HOST:PORT, or -grpc-server"
        )
    host, colon, port = text.rpartition(":")
    if not colon or (host.count(":") and not host.endswith("]")):
        host, port = text, str(GRPC_PORT)
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise SettingsError(f"the server's address is {text!r}; write HOST:PORT")
    return host, int(port)


def _boolean(name: str, value: str) -> bool:
    lowered = value.strip().lower()
    if lowered not in _TRUE | _FALSE:
        raise SettingsError(f"{name} is {value!r}; write true or false")
    return lowered in _TRUE


def _duration(name: str, value: str) -> float:
    try:
        return parse_seconds(value)
    except DurationError as error:
        raise SettingsError(f"{name} is {value!r}; write a duration such as 5s") from error
