"""The state of a simulated server: power, what runs, the content of its disks. Stored in a file each, so that a
restarted simulation continues with the same servers.

A file is replaced as a whole: it has the old or the new state, whenever the process is killed.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Protocol

import msgspec
import structlog

from ironbell.agent.messages import Power

_log = structlog.get_logger()


class Runs(StrEnum):
    """System that runs on a server that is on."""

    NOTHING = ""
    FIRMWARE = "firmware"
    IN_MEMORY_OS = "in-memory OS"
    INSTALLED_SYSTEM = "installed system"


class DiskContents(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Content of a disk; empty on one that was wiped."""

    image: str = ""
    files: dict[str, str] = {}
    """Files that actions wrote into it, by path."""


class Node(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The node that the installed system became. cloud-init runs user data once for each instance."""

    instance: str
    hostname: str
    user_data: str = ""
    joined: bool = False
    error: str = ""


class AgentStart(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Kernel arguments of the in-memory OS for the agent."""

    agent_id: str
    host: str
    port: int
    boot_token: str = ""


class ServerState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The whole state of a server."""

    on: bool = False
    runs: Runs = Runs.NOTHING
    boots: int = 0
    target: str = "None"
    """Boot override, in Redfish's words."""
    enabled: str = "Disabled"
    tries_network: bool = False
    """Whether its firmware, which has taken the override, still tries to boot over the network."""
    agent: AgentStart | None = None
    leaves: Power | None = None
    """How the in-memory OS ends, once the site has the result of the action that ends it."""
    disks: dict[str, DiskContents] = {}
    node: Node | None = None
    wipes: int = 0
    """Number of times that a disk was wiped."""


class Store(Protocol):
    """Storage of states."""

    def load(self, name: str) -> ServerState: ...
    def save(self, name: str, state: ServerState) -> None: ...


class MemoryStore:
    """For simulations that are not continued."""

    def load(self, name: str) -> ServerState:
        return ServerState()

    def save(self, name: str, state: ServerState) -> None:
        return None


class FileStore:
    """A folder with a file for each server. It holds user data, and so secrets: its owner alone may read it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    def load(self, name: str) -> ServerState:
        """The stored state of a server, or a new one if none is stored or it cannot be read."""
        path = self._path(name)
        try:
            return msgspec.json.decode(path.read_bytes(), type=ServerState)
        except FileNotFoundError:
            return ServerState()
        except (OSError, msgspec.MsgspecError) as error:
            _log.warning("state of a simulated server not read, starting empty", file=str(path), cause=str(error))
            return ServerState()

    def save(self, name: str, state: ServerState) -> None:
        partial = self._folder / f".{name}.partial"
        partial.write_bytes(msgspec.json.encode(state))
        partial.replace(self._path(name))

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.json"
