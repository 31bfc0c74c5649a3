"""Random walks through real processes: what people do is done with kubectl and `ironbell`, over sockets, in real time.

A `Rig` is what runs: `ironbell up --simulate N`, or a kube-apiserver with our components beside it (`rigs`).
As a program: `python -m support.lives.processes embedded|real SEEDS [STEPS]`, a line for each seed as it ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import shutil
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

from ironbell.api.capt import TINKERBELL_MACHINE
from ironbell.api.cluster import CLUSTER, MACHINE
from ironbell.api.core.node import NODE
from ironbell.api.core.secret import SECRET, Secret
from ironbell.api.tinkerbell import HARDWARE
from ironbell.base.errors import IronbellError
from ironbell.contract.clusters.secrets import VALUE, Purpose, secret_name, value_of
from ironbell.kube.client import Client
from ironbell.kube.transport.connection import from_content, from_kubeconfig
from ironbell.kube.transport.http import HttpApi
from ironbell.kube.transport.kubeconfig import choose_from
from ironbell.lab.fleet.state import FileStore
from support.fleet.clusters import NAMESPACE
from support.fleet.seeds import seeds_of
from support.lives.oracle import Asked, Seen, SeenMachine, SeenNode
from support.lives.walk import (
    KINDS,
    NAMES,
    SERVERS,
    STEPS,
    Pace,
    Walk,
    WalkError,
    replicas,
    seen_machines,
    seen_node,
    seen_objects,
    seen_server,
)
from support.programs.kubectl import Kubectl, find_kubectl
from support.site.components import IRONBELL

SHORT: Final = Pace(pauses_s=(0, 0.5, 2), stopped_s=1.0, quiet_s=1.5, settled_s=120.0)
"""For `make test`."""
SHORT_SEEDS, SHORT_STEPS = (38, 46), 5
"""The walks of `make test`: they do all that a walk can, and have more asked for than there are servers."""
SHORT_S: Final = 60.0
"""How long each of them takes at most on a machine that has nothing else to do."""
LONG: Final = Pace(pauses_s=(0, 1, 10), stopped_s=20.0, quiet_s=10.0, settled_s=300.0)
"""For soaks."""
_LOOK_S: Final = 0.5
_NODES_S: Final = 5.0
_COMMAND_S: Final = 90.0


class Rig(Protocol):
    """The processes. Its servers are those of a fleet, and kept in files."""

    kubeconfig: Path
    servers: Path
    """The folder of the servers' states."""

    def start(self) -> None:
        """Start all that does not run, and wait until it is ready."""
        ...

    def stop(self) -> None:
        """SIGTERM, and wait."""
        ...

    def kill(self, dice: random.Random) -> str:
        """kill -9 something, and have it started again; what it was."""
        ...

    def end_of_log(self) -> str: ...


OpenRig = Callable[[Path, int], AbstractContextManager[Rig]]
"""Gives what runs, in a folder and with so many servers, once it is ready."""


@dataclass
class LivePlace:
    """A `Place` of real processes. Machines in memory would not outlive the simulation's process."""

    rig: Rig
    home: Path
    addresses: dict[str, str]
    pace: Pace = SHORT
    has_machines_in_memory: bool = False
    answers_when_stopped: bool = False
    _began_s: float = field(default_factory=time.monotonic)

    def now_s(self) -> float:
        return time.monotonic() - self._began_s

    async def look(self) -> Seen:
        async with self._client() as client:
            hardware, *found = await asyncio.gather(
                _all(client, HARDWARE), self._machines(client), *(_all(client, kind) for kind in KINDS)
            )
            machines, *objects = found
            secrets = {one.metadata.name: one for one in objects[KINDS.index(SECRET)]}
        nodes = await asyncio.gather(*(self._nodes(name, secrets) for name in NAMES))
        store = FileStore(self.rig.servers)
        servers = [seen_server(one, store.load(one.metadata.name)) for one in hardware]
        named = seen_objects([(kind.kind, each) for kind, each in zip(KINDS, objects, strict=True)])
        return Seen(machines, [node for each in nodes for node in each], servers, sorted(named))

    async def machines(self) -> list[SeenMachine]:
        async with self._client() as client:
            return await self._machines(client)

    async def _machines(self, client: Client) -> list[SeenMachine]:
        return seen_machines(await _all(client, MACHINE), await _all(client, TINKERBELL_MACHINE))

    async def _nodes(self, name: str, secrets: dict[str, Secret]) -> list[SeenNode]:
        """A cluster's Nodes, as it answers with its own kubeconfig; none if it does not."""
        secret = secrets.get(secret_name(name, Purpose.KUBECONFIG))
        content = secret and value_of(secret, VALUE)
        if not content:
            return []
        with contextlib.suppress(IronbellError, TimeoutError):
            async with asyncio.timeout(_NODES_S), HttpApi(from_content(choose_from(content, where=name))) as api:
                return [seen_node(one, name) for one in await _all(Client(api), NODE)]
        return []

    async def until(
        self, holds: Callable[[], Awaitable[object]], *, within_s: float, message: Callable[[], str]
    ) -> None:
        end_s = time.monotonic() + within_s
        while not await self._holds(holds):
            if time.monotonic() > end_s:
                raise WalkError(message())
            await asyncio.sleep(_LOOK_S)

    async def _holds(self, holds: Callable[[], Awaitable[object]]) -> bool:
        """An API that cannot be asked at the moment shows nothing."""
        try:
            return bool(await holds())
        except IronbellError:
            return False

    async def finalizers(self, name: str) -> Sequence[str] | None:
        async with self._client() as client:
            found = await client.find(CLUSTER, NAMESPACE, name)
            return None if found is None else found.metadata.finalizers

    async def create(self, manifests: list[dict[str, Any]]) -> None:
        await self._kubectl(
            "apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests})
        )

    async def change(self, name: str, old: Asked, new: Asked) -> None:
        if old.version == new.version:
            numbers = {
                "--control-planes": (old.control_planes, new.control_planes),
                "--workers": (old.workers, new.workers),
            }
            changed = [word for key, (was, is_) in numbers.items() if was != is_ for word in (key, str(is_))]
            if changed:
                await self._ironbell("cluster", "scale", name, *changed)
            return
        for resource, patch in (("kubeadmcontrolplane", "plane"), ("machinedeployment", "workers")):
            text = json.dumps(replicas(new)[patch])
            await self._kubectl("patch", resource, name, "--type", "merge", "--patch", text)

    async def delete(self, name: str) -> None:
        await self._ironbell("cluster", "delete", name, "--yes", "--no-wait")

    async def delete_machine(self, name: str) -> None:
        await self._kubectl("delete", "machines.cluster.x-k8s.io", name, "--wait=false")

    async def kill(self, dice: random.Random) -> str:
        return await asyncio.to_thread(self.rig.kill, dice)

    async def stop(self) -> None:
        await asyncio.to_thread(self.rig.stop)

    async def start(self) -> None:
        await asyncio.to_thread(self.rig.start)

    def endpoint(self, name: str) -> str:
        return self.addresses[name]

    def check(self) -> None:
        return None

    @asynccontextmanager
    async def _client(self) -> AsyncIterator[Client]:
        async with HttpApi(from_kubeconfig(self.rig.kubeconfig)) as api:
            yield Client(api)

    async def _kubectl(self, *words: str, stdin: str = "") -> None:
        kubectl = Kubectl(find_kubectl(), self.rig.kubeconfig, self.home)
        await kubectl.ok(*words, "--namespace", NAMESPACE, stdin=stdin)

    async def _ironbell(self, *words: str) -> None:
        command = [*IRONBELL, *words, "--kubeconfig", str(self.rig.kubeconfig)]
        output = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(*command, stdout=output, stderr=asyncio.subprocess.STDOUT)
        async with asyncio.timeout(_COMMAND_S):
            said, _ = await process.communicate()
        if process.returncode:
            raise WalkError(f"ironbell {' '.join(words)}: {said.decode()}")


async def _all(client: Client, kind: Any) -> list[Any]:
    return list((await client.list(kind)).items)


@dataclass(frozen=True)
class Walked:
    """How a seed ended."""

    seed: int
    servers: int
    took_s: float
    done: Sequence[str]
    """What was done, in a word each."""
    slowest_s: float
    """The longest that it took until everything was as asked."""
    failure: str = ""

    def __str__(self) -> str:
        how = "failed" if self.failure else "passed"
        counts = ", ".join(f"{self.done.count(word)} {word}" for word in sorted(set(self.done)))
        settled = f"as asked within {self.slowest_s:.0f} s each time"
        return f"seed {self.seed} {how} in {self.took_s:.0f} s: {self.servers} servers; {counts}; {settled}"


def walk(seed: int, folder: Path, rig: OpenRig, *, steps: int = STEPS, pace: Pace = SHORT) -> Walked:
    """Walk one seed, in a folder of its own; it holds the logs if the walk fails."""
    dice = random.Random(seed)
    count = dice.randint(*SERVERS)
    home = folder / "home"
    home.mkdir(parents=True)
    # one seed after another, and several beside each other: clusters of none may be at addresses of others
    addresses = {name: f"127.97.{seed % 250}.{number}" for number, name in enumerate(NAMES, start=1)}
    began_s, failure = time.monotonic(), ""
    story: list[str] = []
    done: list[str] = []
    logs: list[str] = []
    slowest_s = 0.0
    try:
        with rig(folder, count) as running:
            walking = Walk(LivePlace(running, home, addresses, pace), dice, steps, story, done)
            try:
                asyncio.run(walking.go())
            finally:
                slowest_s = walking.slowest_s
                logs.append(running.end_of_log())
    except (AssertionError, IronbellError, TimeoutError) as error:
        failure = "\n  ".join([f"seed {seed}: {error}\nthe walk:", *story, *logs])
    return Walked(seed, count, time.monotonic() - began_s, done, slowest_s, failure)


def _main() -> None:
    from support.lives.rigs import RIGS

    form, seeds, *steps = sys.argv[1:]
    failed = False
    for seed in seeds_of(seeds):
        folder = Path(tempfile.mkdtemp(prefix=f"walk-{form}-{seed}-"))
        walked = walk(seed, folder, RIGS[form], steps=int(steps[0]) if steps else STEPS, pace=LONG)
        print(walked, flush=True)
        if walked.failure:
            failed = True
            print(f"{walked.failure}\nlogs: {folder}", flush=True)
        else:
            shutil.rmtree(folder, ignore_errors=True)  # what was killed may still be closing its files
    sys.exit(failed)


if __name__ == "__main__":
    _main()
