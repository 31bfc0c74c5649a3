"""Random walks over what people do with clusters on few servers, on virtual time or through real processes.

Up to three names are created, scaled, upgraded, deleted and used again, Machines are deleted, and controllers are
killed or stopped meanwhile. After each step everything must become as it was asked for, or wait for a true reason,
and still be so after a quiet time. `oracle` judges what is there: Nodes as their clusters hold them, servers as
they stand in the rack. Where the walk takes place is a `Place`: `replay` has the one on virtual time, `processes`
those of real processes.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

from ironbell.api import bmc, cluster, tinkerbell
from ironbell.api.bootstrap import KUBEADM_CONFIG
from ironbell.api.capt import TINKERBELL_CLUSTER, TINKERBELL_MACHINE
from ironbell.api.controlplane import KUBEADM_CONTROL_PLANE
from ironbell.api.core.node import Node
from ironbell.api.core.secret import SECRET
from ironbell.api.tinkerbell import HARDWARE
from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.contract.servers.claim import claim_of
from ironbell.lab.fleet.state import ServerState
from ironbell.lab.sim.cluster.objects import CONTROL_PLANE
from ironbell.lab.sim.provider.kinds import DEV_CLUSTER, DEV_MACHINE
from support.fleet.clusters import NAMESPACE, in_memory
from support.fleet.clusters import cluster as documents
from support.lives.oracle import Asked, Seen, SeenMachine, SeenNode, SeenServer, may_wait, troubles

STEPS: Final = 6
NAMES: Final = ("red", "green", "blue")
VERSIONS: Final = ("v1.34.2", "v1.34.3", "v1.35.1")
SERVERS: Final = (5, 8)
"""The fewest and the most."""
CONTROL_PLANE_LABEL: Final = "cluster.x-k8s.io/control-plane"
_SEEN_S: Final = 60.0
"""How long the controllers may take to see a Cluster."""
KINDS: Final = (
    *cluster.KINDS,
    KUBEADM_CONFIG,
    KUBEADM_CONTROL_PLANE,
    TINKERBELL_CLUSTER,
    TINKERBELL_MACHINE,
    DEV_CLUSTER,
    DEV_MACHINE,
    *(kind for kind in tinkerbell.KINDS if kind is not HARDWARE),
    *(kind for kind in bmc.KINDS if kind is not bmc.MACHINE),
    SECRET,
)
"""Of which a deleted cluster leaves nothing. Templates stay, as they do with upstream."""


class WalkError(AssertionError):
    """Something is not as it was asked for."""


@dataclass(frozen=True)
class Pace:
    """How long a walk waits, in seconds of its place."""

    pauses_s: Sequence[float]
    """Between two things that people do; one of them is chosen, and shortened at random."""
    stopped_s: float
    """How long controllers are stopped at most."""
    quiet_s: float
    settled_s: float
    """How long it may take at most until everything is as it was asked for."""


class Place(Protocol):
    """Where a walk takes place: the API, what runs there, and what is seen."""

    pace: Pace
    has_machines_in_memory: bool
    """Whether clusters may be made of DevMachines, which must outlive the processes that are stopped."""
    answers_when_stopped: bool
    """Whether the API answers while controllers are stopped."""

    def now_s(self) -> float: ...
    async def look(self) -> Seen: ...
    async def until(
        self, holds: Callable[[], Awaitable[object]], *, within_s: float, message: Callable[[], str]
    ) -> None: ...
    async def finalizers(self, name: str) -> Sequence[str] | None:
        """Those of a Cluster; None if there is none."""
        ...

    async def machines(self) -> Sequence[SeenMachine]: ...
    async def create(self, manifests: list[dict[str, Any]]) -> None: ...
    async def change(self, name: str, old: Asked, new: Asked) -> None: ...
    async def delete(self, name: str) -> None: ...
    async def delete_machine(self, name: str) -> None: ...
    async def kill(self, dice: random.Random) -> str:
        """Kill something that runs, and start it again; what it was."""
        ...

    async def stop(self) -> None: ...
    async def start(self) -> None: ...
    def endpoint(self, name: str) -> str:
        """The host of a cluster's API."""
        ...

    def check(self) -> None:
        """What else must hold."""
        ...


@dataclass
class Walk:
    """One walk; `told` says what was done, and `done` in a word each."""

    place: Place
    dice: random.Random
    steps: int = STEPS
    told: list[str] = field(default_factory=list)
    done: list[str] = field(default_factory=list)
    asked: dict[str, Asked] = field(default_factory=dict)
    slowest_s: float = 0.0
    """The longest that it took until everything was as asked, to within a quiet time."""
    _used: set[str] = field(default_factory=set)

    async def go(self) -> None:
        """Walk it; at the end everything is deleted.

        Raises:
            WalkError: something is not as it was asked for.
        """
        for _ in range(self.steps):
            for _ in range(self.dice.choice((1, 1, 2))):
                await self._change()
                await asyncio.sleep(self.dice.choice(self.place.pace.pauses_s) * self.dice.random())
            await self._settles()
        for name in sorted(self.asked):
            await self._delete(name)
        await self._settles()

    async def _settles(self) -> None:
        """Everything becomes as it was asked for, or waits for a true reason; and then it is quiet."""
        pace = self.place.pace
        found: list[str] = []
        seen = Seen()
        began_s = self.place.now_s()
        until_s = began_s + pace.settled_s

        async def judge() -> bool:
            nonlocal seen
            seen = await self.place.look()
            found[:] = troubles(self.asked, seen)
            return not found

        await asyncio.sleep(pace.quiet_s)
        before: Seen | None = None
        while seen != before:
            left_s = until_s - self.place.now_s()
            if left_s < 0:
                raise WalkError(f"no {pace.quiet_s:.0f} s are quiet: {before} became {seen}")
            await self.place.until(judge, within_s=left_s, message=lambda: "\n".join(found))
            before = seen
            self.slowest_s = max(self.slowest_s, self.place.now_s() - began_s)
            await asyncio.sleep(pace.quiet_s)
            await judge()
        self.place.check()
        self._tell("lack", "servers are lacking") if may_wait(self.asked, seen) else self._tell("settle", "as asked")

    async def _change(self) -> None:
        """One thing that somebody does, or that happens."""
        free = [name for name in NAMES if name not in self.asked]
        there = sorted(self.asked)
        on_cluster = {self._delete: 4, self._scale: 4, self._upgrade: 3, self._replace: 2}
        weights = {"create": 6 if free else 0, "change": 13 if there else 0, "kill": 2, "stop": 2}
        match self.dice.choices(list(weights), list(weights.values()))[0]:
            case "create":
                await self._create(self.dice.choice(free))
            case "change":
                (what,) = self.dice.choices(list(on_cluster), list(on_cluster.values()))
                await what(self.dice.choice(there))
            case "kill":
                killed = await self.place.kill(self.dice)
                self._tell(f"kill {killed}", f"killed: {killed}")
            case _:
                await self._stop_for_a_while()

    async def _create(self, name: str) -> None:
        """At once when the name is free again, as `delete --wait` lets one do."""

        async def gone() -> bool:
            return await self.place.finalizers(name) is None

        await self.place.until(gone, within_s=self.place.pace.settled_s, message=lambda: f"{name} is not deleted")
        asked = Asked(self.dice.choice((1, 1, 1, 3)), self.dice.randint(1, 3), VERSIONS[0])
        if self.place.has_machines_in_memory:
            asked = replace(asked, on_servers=self.dice.random() < 0.75)
        self.asked[name] = asked
        self._tell("create again" if name in self._used else "create", f"create {name}: {asked}")
        self._used.add(name)
        await self.place.create(self._documents(name))

        async def kept() -> bool:
            return bool(await self.place.finalizers(name))

        # before the controllers have seen a Cluster nothing keeps it when it is deleted, as with upstream
        await self.place.until(kept, within_s=_SEEN_S, message=lambda: f"{name} is not seen by the controllers")

    async def _scale(self, name: str) -> None:
        if self.dice.random() < 0.3:
            asked = replace(self.asked[name], control_planes=self.dice.choice((1, 3)))
        else:
            asked = replace(self.asked[name], workers=self.dice.randint(0, 4))
        self._tell("scale", f"scale {name} from {self.asked[name]} to {asked}")
        await self._becomes(name, asked)

    async def _upgrade(self, name: str) -> None:
        old = self.asked[name]
        asked = replace(old, version=VERSIONS[min(VERSIONS.index(old.version) + 1, len(VERSIONS) - 1)])
        self._tell("upgrade", f"upgrade {name} from {old.version} to {asked.version}")
        await self._becomes(name, asked)

    async def _becomes(self, name: str, asked: Asked) -> None:
        old = self.asked[name]
        self.asked[name] = asked
        await self.place.change(name, old, asked)

    async def _replace(self, name: str) -> None:
        """Somebody deletes a worker's Machine; its server is released, and perhaps claimed again."""
        found = [one for one in await self.place.machines() if one.cluster == name]
        workers = sorted(one.name for one in found if not one.control_plane)
        if workers:
            chosen = self.dice.choice(workers)
            self._tell("replace", f"delete Machine {chosen}")
            await self.place.delete_machine(chosen)

    async def _delete(self, name: str) -> None:
        self._tell("delete", f"delete {name}")
        del self.asked[name]
        await self.place.delete(name)

    async def _stop_for_a_while(self) -> None:
        """Controllers are stopped; something else is asked for meanwhile, or just before."""
        if not self.place.answers_when_stopped:
            await self._ask_something()
        self._tell("stop", "stop")
        await self.place.stop()
        if self.place.answers_when_stopped:
            await self._ask_something()
        await asyncio.sleep(self.place.pace.stopped_s * self.dice.random())
        self._tell("start", "start")
        await self.place.start()

    async def _ask_something(self) -> None:
        if self.asked:
            what = self.dice.choice((self._delete, self._scale, self._upgrade, self._replace))
            await what(self.dice.choice(sorted(self.asked)))

    def _documents(self, name: str) -> list[dict[str, Any]]:
        asked = self.asked[name]
        found = documents(
            name,
            self.place.endpoint(name),
            control_planes=asked.control_planes,
            workers=asked.workers,
            spread=False,
            told=asked.on_servers,
            version=asked.version,
        )
        return found if asked.on_servers else in_memory(found)

    def _tell(self, word: str, what: str) -> None:
        self.done.append(word)
        self.told.append(f"at {self.place.now_s():.0f} s: {what}")


def replicas(asked: Asked) -> dict[str, dict[str, Any]]:
    """The specs of a control plane and of workers that become as asked for, as merge patches."""
    return {
        "plane": {"spec": {"replicas": asked.control_planes, "version": asked.version}},
        "workers": {"spec": {"replicas": asked.workers, "template": {"spec": {"version": asked.version}}}},
    }


def seen_machines(machines: Sequence[Any], infrastructure: Sequence[Any]) -> list[SeenMachine]:
    """Machines, and what they and what stands behind them say of themselves."""
    says = {one.metadata.name: _says(one) for one in infrastructure}
    return [
        SeenMachine(
            one.metadata.name,
            one.spec.cluster_name,
            CONTROL_PLANE_LABEL in one.metadata.labels,
            one.spec.version or "",
            f"{_says(one)} | {says.get(one.metadata.name, 'nothing stands behind it')}",
            one.metadata.deletion_timestamp is not None,
        )
        for one in machines
    ]


def _says(one: Any) -> str:
    return "; ".join(
        f"{each.type}: {each.message}" for each in one.status.conditions if each.message and each.status != "True"
    )


def seen_node(node: Node, cluster_: str) -> SeenNode:
    """A Node as its cluster holds it."""
    ready = any(said.type == "Ready" and said.status == "True" for said in node.status.conditions)
    version = node.status.node_info.kubelet_version
    return SeenNode(node.metadata.name, cluster_, CONTROL_PLANE in node.metadata.labels, version, ready)


def seen_server(hardware: Hardware, state: ServerState) -> SeenServer:
    """A server as it stands in the rack."""
    claim = claim_of(hardware)
    remains = {
        "is on": state.on,
        "has data on its disks": bool(state.disks),
        "has user data": bool(hardware.spec.user_data),
    }
    used = ", ".join(what for what, is_so in remains.items() if is_so)
    return SeenServer(hardware.metadata.name, claim.name if claim is not None else "", used)


def seen_objects(found: Sequence[tuple[str, Sequence[Any]]]) -> list[str]:
    """`Kind NAME` of objects by their kinds, without those of the servers themselves."""
    return [
        f"{kind} {one.metadata.name}"
        for kind, objects in found
        for one in objects
        if one.metadata.namespace == NAMESPACE and not one.metadata.name.startswith("sim-")
    ]
