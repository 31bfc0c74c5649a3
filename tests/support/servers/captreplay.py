"""The Tinkerbell provider on virtual time: replicas of its controllers over one API, and servers that do as they are
told. Every replica works without an election unless the test wants one: what decides is the write."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ironbell.api import bmc, capt, cluster, tinkerbell
from ironbell.api.bmc.job import JOB
from ironbell.api.capt import TINKERBELL_CLUSTER, TINKERBELL_MACHINE
from ironbell.api.client import Api, NotFound
from ironbell.api.cluster import CLUSTER, MACHINE
from ironbell.api.core.secret import SECRET
from ironbell.api.crd.document import crd_document
from ironbell.api.kind import Kind
from ironbell.api.meta import to_builtin
from ironbell.api.tinkerbell import HARDWARE, WORKFLOW
from ironbell.apiserver.access.identity import ADMIN
from ironbell.apiserver.core import ApiServer
from ironbell.base.clock import rfc3339
from ironbell.base.randomness import SeededRandomness
from ironbell.codec.cel import compile_rule
from ironbell.contract.servers.claim import INSTALLED_SYSTEM_UP
from ironbell.controllers.capt.controllers import controllers
from ironbell.kube.client import Client
from ironbell.kube.manager.controller import Controller
from ironbell.kube.manager.leader import LeaderElection, LeaseSettings
from ironbell.kube.manager.manager import Manager
from ironbell.lab.sim.injection import FaultyApi, InjectedFaults
from ironbell.lab.sim.virtualtime import VirtualClock
from support.kubeadm.workloads import no_workloads
from support.servers.captworld import EVERY_VERSION, server
from support.servers.wipereports import wipe_action
from support.waiting import until

NAMESPACE = "default"
MakeControllers: TypeAlias = "Callable[[CaptSite, Api], Sequence[Controller]]"


def provider(site: CaptSite, api: Api) -> Sequence[Controller]:
    """The provider's controllers."""
    site_url, workloads = "http://192.0.2.1:7080", no_workloads(site.clock)
    return controllers(api, site_url, lambda _name: None, images=EVERY_VERSION, workloads=workloads)


@dataclass
class Replica:
    """One process with controllers, as it were: it may be killed with any write."""

    site: CaptSite
    number: int
    elected: bool
    faults: InjectedFaults
    lease_faults: InjectedFaults
    controllers: MakeControllers
    kills: int = 0
    _task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name=f"replica {self.number}")

    async def kill(self) -> None:
        """End it where it is; a write that is under way may be carried out, and nobody hears the answer."""
        assert self._task is not None
        self.faults.killed.set()
        self.lease_faults.rejections = 1.0  # who is killed hands no Lease back
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self.lease_faults.rejections = 0.0
        self.faults.kill_after(0)
        self.kills += 1

    async def kill_with_write(self, number: int, *, within_s: float) -> None:
        """End it with a write of those that come, or after a time, and start it anew."""
        self.faults.kill_after(number)
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self.faults.killed.wait()
        await self.kill()
        self.start()

    async def _run(self) -> None:
        site, lag = self.site, SeededRandomness(self.site.seed * 10 + self.number)
        api = FaultyApi(site.server.client(ADMIN), self.faults)
        manager = Manager(
            api, clock=site.clock, randomness=lag, lag_s=lambda: lag.fraction() * site.lag_s, component="ironbell"
        )
        for controller in self.controllers(site, api):
            manager.add(controller)
        election = None
        if self.elected:
            settings = LeaseSettings(NAMESPACE, "capt", f"r{self.number}-{self.kills}")
            leases = FaultyApi(site.server.client(ADMIN), self.lease_faults)
            election = LeaderElection(leases, settings, site.clock, lag)
        await manager.run(election)


@dataclass
class CaptSite:
    """The API, its replicas, and everything that servers and Cluster API would do."""

    server: ApiServer
    clock: VirtualClock
    seed: int
    lag_s: float
    replicas: list[Replica] = field(default_factory=list)

    @property
    def client(self) -> Client:
        return Client(self.server.client(ADMIN))

    async def all(self, kind: Kind[Any]) -> list[Any]:
        return (await self.client.list(kind)).items

    async def add_cluster(self, name: str = "prod", namespace: str = NAMESPACE) -> None:
        """A Cluster whose infrastructure is ready."""
        place = {"namespace": namespace, "name": name}
        reference = {"apiGroup": TINKERBELL_CLUSTER.group, "kind": TINKERBELL_CLUSTER.kind, "name": name}
        endpoint = {"host": "192.0.2.10", "port": 6443}
        spec = {"infrastructureRef": reference, "controlPlaneEndpoint": endpoint}
        await self.client.create(CLUSTER, {"metadata": place, "spec": spec})
        labels = {"cluster.x-k8s.io/cluster-name": name}
        await self.client.create(TINKERBELL_CLUSTER, {"metadata": {**place, "labels": labels}, "spec": {}})

    async def add_server(self, name: str, **changes: Any) -> None:
        made = to_builtin(server(name, **changes))
        metadata = {field: made["metadata"][field] for field in ("labels", "annotations") if field in made["metadata"]}
        metadata |= {"namespace": made["metadata"]["namespace"], "name": name}
        await self.client.create(HARDWARE, {"metadata": metadata, "spec": made["spec"]})

    async def add_machine(self, name: str, cluster: str = "prod", namespace: str = NAMESPACE, **spec: Any) -> None:
        """A Machine with its TinkerbellMachine and bootstrap data, as Cluster API makes them."""
        data = {"value": b64encode(b"#cloud-config\n").decode()}
        place = {"namespace": namespace, "name": name, "labels": {"cluster.x-k8s.io/cluster-name": cluster}}
        await self.client.create(SECRET, {"metadata": place, "data": data})
        reference = {"apiGroup": TINKERBELL_MACHINE.group, "kind": TINKERBELL_MACHINE.kind, "name": name}
        wanted = {
            "clusterName": cluster,
            "version": "v1.35.2",
            "bootstrap": {"dataSecretName": name},
            "infrastructureRef": reference,
        }
        machine = await self.client.create(MACHINE, {"metadata": place, "spec": wanted})
        owner = {"apiVersion": MACHINE.api_version, "kind": "Machine", "name": name, "uid": machine.metadata.uid}
        spec = {"bootOptions": {"bootMode": "netboot"}, **spec}
        metadata = {**place, "ownerReferences": [{**owner, "controller": True}]}
        await self.client.create(TINKERBELL_MACHINE, {"metadata": metadata, "spec": spec})

    async def until(self, is_it: Callable[[], Awaitable[object]], *, within_s: float = 3600, what: str = "it") -> None:
        """Look every second of virtual time."""
        await until(is_it, what, within_s=within_s, every_s=1)

    async def serve(self) -> None:
        """Servers and their BMCs: every Workflow and Job comes to a good end, and what was installed reports."""
        while True:
            for workflow in await self.all(WORKFLOW):
                if not workflow.status.state and not workflow.metadata.deletion_timestamp:
                    await self._carry_out(workflow)
            for job in await self.all(JOB):
                if not job.status.conditions:
                    done = {"conditions": [{"type": "Completed", "status": "True"}]}
                    await self._say(JOB, job.metadata.name, {"status": done}, "status")
            await asyncio.sleep(2)

    async def _carry_out(self, workflow: Any) -> None:
        now = rfc3339(self.clock.now())
        action = {"id": "1", "name": "act", "state": "SUCCESS", "message": "done", "executionStop": now}
        if workflow.metadata.name.endswith("-wipe"):
            action |= wipe_action(await self.client.get(HARDWARE, NAMESPACE, workflow.spec.hardware_ref))
        tasks = [{"name": "t", "id": "1", "agentID": "a", "actions": [action]}]
        if not workflow.metadata.name.endswith("-wipe"):
            up = {"metadata": {"annotations": {INSTALLED_SYSTEM_UP: now}}}
            await self._say(HARDWARE, workflow.spec.hardware_ref, up)
        await self._say(WORKFLOW, workflow.metadata.name, {"status": {"state": "SUCCESS", "tasks": tasks}}, "status")

    async def _say(self, kind: Kind[Any], name: str, body: dict[str, Any], subresource: str = "") -> None:
        with suppress(NotFound):
            await self.client.merge_patch(kind, NAMESPACE, name, body=body, subresource=subresource)


@asynccontextmanager
async def capt_site(
    seed: int,
    *,
    replicas: int = 1,
    elected: bool = False,
    lag_s: float = 0.5,
    others: Sequence[MakeControllers] = (),
    more_kinds: Sequence[Kind[Any]] = (),
) -> AsyncIterator[CaptSite]:
    """A site; run it on a `VirtualLoop`. `others` have a replica each, beside those of the provider."""
    clock = VirtualClock(asyncio.get_running_loop())
    kinds: Sequence[Kind[Any]] = (*tinkerbell.KINDS, *bmc.KINDS, *cluster.KINDS, *capt.KINDS, *more_kinds)
    async with ApiServer.open(
        None,
        clock=clock,
        randomness=SeededRandomness(seed),
        definitions=[crd_document(kind) for kind in kinds],
        compile_rule=compile_rule,
    ) as opened:
        site = CaptSite(opened, clock, seed, lag_s)
        for number, make in enumerate([*[provider] * replicas, *others]):
            faults = [InjectedFaults(SeededRandomness(seed * 100 + number)) for _ in range(2)]
            site.replicas.append(Replica(site, number, elected, *faults, make))
        await site.add_cluster()
        for replica in site.replicas:
            replica.start()
        engine = asyncio.create_task(site.serve(), name="servers")
        try:
            yield site
            assert not engine.done(), engine
        finally:
            engine.cancel()
            await asyncio.gather(engine, return_exceptions=True)
            for replica in site.replicas:
                await replica.kill()
