"""What is not as people asked for it on few servers, judged from what they asked for and what is there. Pure.

No condition counts but as the reason why a Machine waits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

_OF_MACHINES = ("TinkerbellMachine", "DevMachine", "KubeadmConfig", "Template", "Workflow", "Job", "Task")
"""Kinds whose objects are of one Machine, and bear its name as a part of theirs."""


@dataclass(frozen=True)
class Asked:
    """A cluster as its manifests have it."""

    control_planes: int
    workers: int
    version: str
    on_servers: bool = True
    """Whether its machines are servers; else they are made in memory, and never lacking."""

    @property
    def whole(self) -> int:
        return self.control_planes + self.workers

    def of(self, control_plane: bool) -> int:
        return self.control_planes if control_plane else self.workers


@dataclass(frozen=True)
class SeenMachine:
    """A Machine, and what it and its TinkerbellMachine say of themselves."""

    name: str
    cluster: str
    control_plane: bool
    version: str
    says: str = ""
    going: bool = False
    """Whether it is being deleted."""


@dataclass(frozen=True)
class SeenNode:
    """A Node in its own cluster."""

    server: str
    cluster: str
    control_plane: bool
    version: str
    ready: bool = True


@dataclass(frozen=True)
class SeenServer:
    """A server; `used` is why it is not blank and off."""

    name: str
    owner: str = ""
    used: str = ""


@dataclass(frozen=True)
class Seen:
    """What is there."""

    machines: Sequence[SeenMachine] = ()
    nodes: Sequence[SeenNode] = ()
    servers: Sequence[SeenServer] = ()
    objects: Sequence[str] = ()
    """`Kind NAME` of everything that clusters consist of."""


def troubles(asked: Mapping[str, Asked], seen: Seen) -> list[str]:
    """What is not as it was asked for, and has no true reason."""
    found = [*_left(asked, seen), *_idle(seen)]
    if not may_wait(asked, seen):
        return [*found, *_exact(asked, seen)]
    made = {name: one for name, one in asked.items() if not one.on_servers}
    return [*found, *_short(_on_servers(asked), _without(seen, made)), *_exact(made, _only(seen, made))]


def _on_servers(asked: Mapping[str, Asked]) -> dict[str, Asked]:
    return {name: one for name, one in asked.items() if one.on_servers}


def _only(seen: Seen, clusters: Container[str]) -> Seen:
    """The Machines and Nodes of these clusters."""
    return replace(
        seen,
        machines=[one for one in seen.machines if one.cluster in clusters],
        nodes=[one for one in seen.nodes if one.cluster in clusters],
    )


def _without(seen: Seen, clusters: Container[str]) -> Seen:
    """The Machines and Nodes of all clusters but these."""
    return replace(
        seen,
        machines=[one for one in seen.machines if one.cluster not in clusters],
        nodes=[one for one in seen.nodes if one.cluster not in clusters],
    )


def _left(asked: Mapping[str, Asked], seen: Seen) -> Iterator[str]:
    """Objects of clusters that nobody asked for, or of Machines that are gone."""
    machines = {one.name for one in seen.machines}
    for one in seen.objects:
        kind, _, name = one.partition(" ")
        orphan = kind in _OF_MACHINES and not any(machine in name for machine in machines)
        if orphan or not asked.keys() & set(name.split("-")):
            yield f"{one} was left behind"


def _idle(seen: Seen) -> Iterator[str]:
    """Servers that are not free and wiped although nobody has them, or that are kept for who is gone or goes."""
    machines = {one.name for one in seen.machines}
    for server in seen.servers:
        if not server.owner and server.used:
            yield f"{server.name} is nobody's, but {server.used}"
        if server.owner and server.owner not in machines:
            yield f"{server.name} belongs to {server.owner}, which does not exist"
    yield from (f"{one.name} is still being deleted: {one.says}" for one in seen.machines if one.going)


def may_wait(asked: Mapping[str, Asked], seen: Seen) -> bool:
    """Whether servers are lacking: none is free, and more are needed than there are. Whoever rolls needs one more."""
    asked = _on_servers(asked)
    rolls = any(one.cluster in asked and one.version != asked[one.cluster].version for one in seen.nodes)
    needed = sum(one.whole for one in asked.values()) + rolls
    return needed > len(seen.servers) and all(one.owner for one in seen.servers)


def _exact(asked: Mapping[str, Asked], seen: Seen) -> Iterator[str]:
    """What is not exactly as asked for, where there are enough servers."""
    machines = Counter((one.cluster, one.control_plane) for one in seen.machines)
    nodes = Counter((one.cluster, one.control_plane, one.version, one.ready) for one in seen.nodes)
    wanted = {(name, role): one.of(role) for name, one in asked.items() for role in (True, False) if one.of(role)}
    wanted_nodes = {(*of, asked[of[0]].version, True): count for of, count in wanted.items()}
    if machines != wanted:
        yield f"Machines are {_told(machines)}, not {_told(wanted)}"
    if nodes != wanted_nodes:
        yield f"Nodes are {_told(nodes)}, not {_told(wanted_nodes)}"
    if machines != wanted or nodes != wanted_nodes:
        serving = _serving(seen)
        yield from (f"{one.name}: {one.says}" for one in seen.machines if one.name not in serving)


def _short(asked: Mapping[str, Asked], seen: Seen) -> Iterator[str]:
    """Where servers are lacking: each that exists must serve, and only who gets none may wait, and must say so."""
    serving = _serving(seen)
    for server in seen.servers:
        if server.owner not in serving:
            yield f"{server.name} belongs to {server.owner}, which is no Ready Node, while others wait for servers"
    if len(seen.nodes) != len(serving):
        yield f"there are {len(seen.nodes)} Nodes, of which {len(serving)} are Ready on servers of their clusters"
    for name, one in asked.items():
        yield from _numbers(name, one, seen)
    lacking = f"all {len(seen.servers)} Hardware are claimed"
    headless = {name for name in asked if not any(one.cluster == name and one.control_plane for one in seen.nodes)}
    for machine in seen.machines:
        if machine.name in serving or lacking in machine.says:
            continue
        if machine.cluster in headless and not machine.control_plane and "control plane" in machine.says:
            continue
        yield f"{machine.name} does not say that servers are lacking: {machine.says}"


def _serving(seen: Seen) -> set[str]:
    """The Machines whose servers are Ready Nodes of their clusters."""
    owners = {one.name: one.owner for one in seen.servers}
    clusters = {one.name: one.cluster for one in seen.machines}
    ready = {owners.get(one.server, ""): one.cluster for one in seen.nodes if one.ready}
    return {owner for owner, cluster_ in ready.items() if clusters.get(owner) == cluster_}


def _numbers(name: str, asked: Asked, seen: Seen) -> Iterator[str]:
    """How many Machines a cluster has that cannot have all its servers. A control plane makes one after another, and
    workers follow a control plane that is as asked for; who rolls has one more."""
    machines = [one for one in seen.machines if one.cluster == name]
    old_head = any(one.version != asked.version for one in machines if one.control_plane)
    for role, title in ((True, "control plane"), (False, "worker")):
        mine = [one for one in machines if one.control_plane is role]
        up = sum(1 for one in seen.nodes if (one.cluster, one.control_plane) == (name, role))
        rolls = any(one.version != asked.version for one in mine)
        least = min(asked.of(role), up + 1) if role else up if old_head else asked.workers
        if not least <= len(mine) <= asked.of(role) + rolls:
            counts = f"{len(mine)} {title} Machines, of which {up} are Nodes"
            yield f"{name} has {counts}, and {asked.of(role)} are asked for"


def _told(counts: Mapping[tuple[Any, ...], int]) -> str:
    words = {True: "control plane", False: "worker"}
    found = [f"{n} {of[0]} {words[of[1]]}{' '.join(['', *map(str, of[2:])])}" for of, n in sorted(counts.items())]
    return ", ".join(found) or "none"
