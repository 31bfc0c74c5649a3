"""What must hold at every write while clusters come and go on simulated servers, and what is counted there.

A server has one owner at a time, and an owner one server; none is lost. None loses its claim before its disks are wiped
and it is off, unless it is held. One that is nobody's is neither switched on nor written to. One learns its owner's
user data only once it is installed for it. Each write is checked by what it changed, so that a fleet costs no more than
a server does.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import msgspec

from ironbell.api.capt.names import LABEL_OWNER_NAME
from ironbell.apiserver.store.entry import Change
from ironbell.contract.servers.claim import CLAIMED_BY, HELD
from ironbell.lab.fleet.state import ServerState
from ironbell.lab.sim.replay import ReplaySite
from support.fleet.replay import FleetSite

_HARDWARE, _WORKFLOW = "hardware.tinkerbell.org", "workflows.tinkerbell.org"
_TOLD = 20


class ChurnError(AssertionError):
    """Something happened that must not, or did not that must."""


class _Metadata(msgspec.Struct, frozen=True):
    annotations: dict[str, str] = {}


class _Annotated(msgspec.Struct, frozen=True):
    metadata: _Metadata


class _Status(msgspec.Struct, frozen=True):
    state: str = ""


class _Working(msgspec.Struct, frozen=True):
    status: _Status = _Status()


_ANNOTATED = msgspec.json.Decoder(_Annotated)
_WORKING = msgspec.json.Decoder(_Working)


@dataclass
class Watch:
    """It."""

    site: ReplaySite
    fleet: FleetSite
    broken: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    """`lives`: servers that were taken, became a node, and were given back; `given back`: all of those; `held`."""
    owners: dict[str, str] = field(default_factory=dict)
    """Of the servers that are taken."""
    _servers_of: dict[str, set[str]] = field(default_factory=dict)
    _nodes: set[str] = field(default_factory=set)
    """Servers that have become nodes for their present owner."""
    _installed: set[str] = field(default_factory=set)
    """Workflows that have succeeded."""

    def __post_init__(self) -> None:
        self.site.server.context.store.listen(self._changed)
        self.fleet.watchers.append(self._turned)

    @property
    def under_way(self) -> int:
        """Lives of servers that are nodes now."""
        return len(self._nodes)

    def check(self) -> None:
        """Raises:
        ChurnError: something was broken until now.
        """
        if self.broken:
            raise ChurnError("\n".join(self.broken[:_TOLD]))

    def _changed(self, change: Change) -> None:
        entry = change.entry
        if entry.resource == _WORKFLOW:
            done = not change.deleted and _WORKING.decode(entry.body).status.state == "SUCCESS"
            (self._installed.add if done else self._installed.discard)(entry.name)
            return
        if entry.resource != _HARDWARE:
            return
        name = entry.name
        if change.deleted:
            self._note(f"{name} is lost")
            return
        annotations = _ANNOTATED.decode(entry.body).metadata.annotations
        before, owner = self.owners.get(name, ""), annotations.get(CLAIMED_BY, "")
        labelled = (entry.labels or {}).get(LABEL_OWNER_NAME, "")
        if labelled != owner.partition("/")[2].partition(" ")[0]:
            self._note(f"{name} is of {owner or 'nobody'} by its annotation, of {labelled or 'nobody'} by its label")
        if before == owner:
            return
        if before:
            self._servers_of[before].discard(name)
            del self.owners[name]
        if owner:
            self._taken(name, owner, before)
        else:
            self._released(name, before, held=HELD in annotations)

    def _taken(self, name: str, owner: str, before: str) -> None:
        if before:
            self._note(f"{name} of {before} is taken by {owner}")
        self.owners[name] = owner
        self._nodes.discard(name)
        servers = self._servers_of.setdefault(owner, set())
        servers.add(name)
        if len(servers) > 1:
            self._note(f"{owner} has {', '.join(sorted(servers))}")

    def _released(self, name: str, owner: str, *, held: bool) -> None:
        state = self.fleet.servers[name].state
        self.counts["given back"] += 1
        self.counts["lives"] += name in self._nodes
        self.counts["held"] += held
        self._nodes.discard(name)
        if held:
            return
        if state.disks or state.node is not None:
            self._note(f"{name} is given back by {owner}, and not wiped: {sorted(state.disks)}")
        if state.on:
            self._note(f"{name} is given back by {owner}, and is on")

    def _turned(self, name: str, before: ServerState, state: ServerState) -> None:
        if name in self.owners:
            learnt = state.node is not None and (before.node is None or before.node.instance != state.node.instance)
            if learnt and self.owners[name].split()[1].rpartition("/")[2] not in self._installed:
                self._note(f"{name} has learnt its user data, and is not installed for {self.owners[name]}")
            if state.node is not None and state.node.joined:
                self._nodes.add(name)
            return
        if state.on and not before.on:
            self._note(f"{name} is nobody's, and is switched on")
        if state.disks and state.disks != before.disks:
            self._note(f"{name} is nobody's, and is written to: {sorted(state.disks)}")

    def _note(self, what: str) -> None:
        self.broken.append(f"at {self.site.clock.monotonic():.1f} s: {what}")
