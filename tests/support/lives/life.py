"""One random life, by seed: clusters are made, changed, disturbed, and taken away.

As a program it lives one, and prints its story and the digest of everything that was written; the same seed gives the
same with the same PYTHONHASHSEED: `PYTHONHASHSEED=0 python -m support.lives.life SEED [CHANGES]`.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from ironbell.api.bootstrap import KUBEADM_CONFIG
from ironbell.api.client import AlreadyExists, Invalid
from ironbell.api.cluster import CLUSTER, MACHINE, MACHINE_DEPLOYMENT, MACHINE_SET
from ironbell.api.controlplane import KUBEADM_CONTROL_PLANE
from ironbell.api.core.node import NODE
from ironbell.api.core.secret import SECRET
from ironbell.api.kind import Collection
from ironbell.apiserver.store.entry import Change
from ironbell.base.errors import IronbellError
from ironbell.contract.clusters.secrets import CERTIFICATE, KEY, Purpose, encoded, secret_name
from ironbell.contract.pki import KeyAlgorithm, create_authority
from ironbell.kube.client import Client
from ironbell.lab.sim.cluster.host import HostFault, HostPlan
from ironbell.lab.sim.provider.kinds import DEV_CLUSTER, DEV_MACHINE
from ironbell.lab.sim.replay import ReplaySite
from ironbell.lab.sim.virtualtime import VirtualLoop
from support.capi.site import NAMESPACE, site
from support.lives.disturbances import Disturbances
from support.lives.invariants import Invariants
from support.lives.picture import (
    CLUSTER_NAME,
    CONTROL_PLANES,
    DEPLOYMENTS,
    MACHINES,
    OWNED_BY,
    SETS,
    is_going,
    key_of,
    labels,
    replicas,
    told,
)
from support.lives.releases import APP
from support.lives.wanted import VERSIONS, Wanted, change, documents, draw

CONVERGED_S = 4 * 3600.0
IDLE_S = 300.0
IDLE_WRITES = 10
_PODS = Collection("", "v1", "pods", namespaced=True)
_BUDGETS = Collection("policy", "v1", "poddisruptionbudgets", namespaced=True)
_MINE = (
    CLUSTER,
    MACHINE,
    MACHINE_SET,
    MACHINE_DEPLOYMENT,
    KUBEADM_CONTROL_PLANE,
    KUBEADM_CONFIG,
    DEV_CLUSTER,
    DEV_MACHINE,
)
_SUPPLIED = (Purpose.ETCD_CA, Purpose.API_SERVER_ETCD_CLIENT)


@dataclass
class Life:
    """One life; `story` tells what was done."""

    seed: int
    changes: int = 1
    """How many times at most something else is wanted."""
    story: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.digest = hashlib.sha256()
        self.written: Counter[tuple[str, str]] = Counter()
        rng = self.random
        names = ["one", "two"] if rng.random() < 0.1 else ["one"]
        self.wanted = [draw(rng, name, small=len(names) > 1) for name in names]
        self.slow = rng.choice((0.0, 0.0, 0.2))
        self.lag_s = rng.choice((0.0, 0.05, 0.5))
        self.pods = rng.random() < 0.5
        self.dies_young = rng.random() < 0.12

    def run(self) -> None:
        """Live it. Raises with the story for what is broken, or does not come about."""
        with asyncio.Runner(loop_factory=VirtualLoop) as runner:
            try:
                runner.run(self._live())
            except (AssertionError, IronbellError) as error:
                story = "\n  ".join(self.story)
                raise AssertionError(f"seed {self.seed}: {error}\nstory:\n  {story}") from error

    async def _live(self) -> None:
        async with site(self.seed, lag_s=self.lag_s, faults=self._fault) as opened:
            opened.server.context.store.listen(lambda written: self._note(opened, written))
            self.site, self.invariants = opened, Invariants(opened)
            self.disturbances = Disturbances(opened, self.invariants.picture, self.random, self._tell, self.slow)
            for wanted in self.wanted:
                await self.create(wanted)
            if self.dies_young:
                # before the controllers have seen a Cluster nothing keeps it, as with upstream
                await asyncio.sleep(2 + self.random.choice((1, 30, 300)) * self.random.random())
            else:
                await self._grow_old()
            await self._removed()

    async def _grow_old(self) -> None:
        rng = self.random
        if rng.random() < 0.5:
            await self.disturbances.one(rng.choice(self.wanted))
        await self.converged()
        for _ in range(rng.randrange(1, self.changes + 1)):
            if self.pods:
                await self.run_pods()
            for _ in range(rng.choice((1, 1, 2))):
                await self._want_else(rng.choice(self.wanted))
                for _ in range(rng.randrange(0, 3)):
                    await self.disturbances.one(rng.choice(self.wanted))
            await self.converged()
        await self._idle()

    def _fault(self, plan: HostPlan) -> HostFault:
        wanted = next(one for one in self.wanted if one.key == plan.cluster)
        return self.disturbances.fault(plan, health_checks=wanted.health_checks)

    async def create(self, wanted: Wanted) -> None:
        """Apply a new cluster, with what users supply for it."""
        self._tell(f"create {wanted}; machines take {wanted.vm_s} s")
        if wanted.external_etcd:
            for purpose in _SUPPLIED:
                pair = create_authority(KeyAlgorithm.ECDSA_P256, self.site.clock.now())
                data = encoded({CERTIFICATE: pair.certificate, KEY: pair.key})
                meta = {"name": secret_name(wanted.name, purpose), "namespace": NAMESPACE}
                await self.site.client.create(SECRET, {"metadata": meta, "data": data})
        await self.apply(wanted)

    async def apply(self, wanted: Wanted) -> None:
        """Apply what is wanted now."""
        await self.site.apply(documents(wanted))

    async def _want_else(self, wanted: Wanted) -> None:
        change(self.random, wanted)
        self._tell(f"want {wanted}")
        try:
            await self.apply(wanted)
        except Invalid as error:
            # a topology takes no other version while it is on its way to one
            if not wanted.topology or "previous upgrade" not in error.message:
                raise
            self._tell("refused: an upgrade is under way")
            wanted.version -= 1
            await self.apply(wanted)

    async def run_pods(self) -> None:
        """Somebody's pods on every node, in places with a budget that lets none go."""
        for wanted in self.wanted:
            async with self.site.cloud.clusters[wanted.key].inside() as api:
                for node in sorted(one.metadata.name for one in (await Client(api).list(NODE)).items):
                    meta = {"name": f"{APP}-{node}", "namespace": "default", "labels": {APP: node}}
                    spec = {"nodeName": node, "containers": [{"name": "c", "image": "i"}]}
                    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
                    pod = msgspec.json.encode({"metadata": meta, "spec": spec, "status": ready})
                    try:
                        await api.create(_PODS, "default", pod)
                    except AlreadyExists:
                        continue
                    await api.replace(_PODS, "default", meta["name"], pod, subresource="status")  # type: ignore[arg-type]
                    if self.random.random() < 0.1:
                        self._tell(f"a budget keeps the pod on {node}")
                        keeps = {"minAvailable": 1, "selector": {"matchLabels": {APP: node}}}
                        budget = {"metadata": {"name": node, "namespace": "default"}, "spec": keeps}
                        await api.create(_BUDGETS, "default", msgspec.json.encode(budget))

    async def converged(self) -> None:
        """All is as wanted."""

        async def converged() -> bool:
            self.invariants.check()
            await self._tend()
            return all(self._is_converged(wanted) for wanted in self.wanted)

        await self.site.until(converged, within_s=CONVERGED_S, message=self._missing)
        for wanted in self.wanted:
            self.invariants.calm(wanted.key)
        self._tell("converged")

    async def _tend(self) -> None:
        """Without health checks somebody looks after machines whose bootstrap has failed, and deletes them."""
        for wanted in self.wanted:
            if wanted.health_checks:
                continue
            for host in list(self.site.cloud.hosts.values()):
                machine = self.invariants.picture.machine_of(host.plan.key)
                if host.plan.cluster == wanted.key and host.state.error and machine and not is_going(machine):
                    self._tell(f"give up {host.plan.key[1]}: {host.state.error}")
                    self.invariants.picture.deleted_by_user.add(key_of(machine))
                    await self.site.client.delete(MACHINE, *key_of(machine))

    def _is_converged(self, wanted: Wanted) -> bool:
        version, picture = VERSIONS[wanted.version], self.invariants.picture
        hosts = [host for host in self.site.cloud.hosts.values() if host.plan.cluster == wanted.key]
        if len(hosts) != wanted.machines or any(host.state.dead for host in hosts):
            return False
        machines = list(picture.machines(wanted.key))
        if len(machines) != wanted.machines or not self._is_whole_inside(wanted):
            return False
        for one in machines:
            running = one.get("status", {}).get("phase") == "Running" and one["spec"]["version"] == version
            if not running or is_going(one) or picture.is_outdated(one):
                return False
        mine = [one for resource in OWNED_BY for one in picture.objects[resource].values()]
        mine = [one for one in mine if labels(one).get(CLUSTER_NAME) == wanted.name]
        counts = [(one.get("status", {}), replicas(one)) for one in mine]
        return len(mine) == 1 + len(wanted.pools) and all(
            status.get("availableReplicas", 0) == status.get("upToDateReplicas", 0) == number
            for status, number in counts
        )

    def _is_whole_inside(self, wanted: Wanted) -> bool:
        """What the cluster itself says."""
        cluster = self.site.cloud.clusters[wanted.key]
        members = 0 if wanted.external_etcd else wanted.control_planes
        if not cluster.answers or len(cluster.etcd.members) != members:
            return False
        return len(list(cluster.server.context.store.objects("nodes").entries())) == wanted.machines

    async def _idle(self) -> None:
        """What is as wanted stays so, and next to nothing is written."""
        machines = {one.metadata.uid for one in await self.site.all(MACHINE)}
        await asyncio.sleep(60)
        self.written.clear()
        await asyncio.sleep(IDLE_S)
        self.invariants.check()
        for wanted in self.wanted:
            if not self._is_converged(wanted):
                raise AssertionError(f"does not stay {wanted}")
        if {one.metadata.uid for one in await self.site.all(MACHINE)} != machines:
            raise AssertionError("Machines were replaced, and nobody wanted anything")
        if self.written.total() > IDLE_WRITES:
            raise AssertionError(f"writes in {IDLE_S} s, and nobody wanted anything: {self.written}")

    async def _removed(self) -> None:
        """The clusters are deleted, and nothing is left of them."""
        rng = self.random
        for wanted in self.wanted:
            self._tell(f"delete {wanted.name}")
            await self.site.client.delete(CLUSTER, *wanted.key)
        if rng.random() < 0.5:
            await rng.choice((self.disturbances.crash, self.disturbances.crash_with_write))(self.wanted[0])

        async def gone() -> bool:
            self.invariants.check()
            return not await self.site.all(CLUSTER)

        await self.site.until(gone, within_s=CONVERGED_S, message=lambda: "a Cluster does not go")
        await asyncio.sleep(60)
        self.invariants.check()
        left = [f"{kind.kind} {one.metadata.name}" for kind in _MINE for one in await self.site.all(kind)]
        supplied = {secret_name(wanted.name, purpose) for wanted in self.wanted for purpose in _SUPPLIED}
        left += [
            f"Secret {one.metadata.name}"
            for one in await self.site.all(SECRET)
            if one.metadata.namespace == NAMESPACE and one.metadata.name not in supplied
        ]
        left += [f"host {host.plan.key[1]}" for host in self.site.cloud.hosts.values()]
        left += [f"simulated cluster {key[1]}" for key in self.site.cloud.clusters]
        if left:
            raise AssertionError(f"left behind: {', '.join(left)}")

    def _note(self, opened: ReplaySite, change: Change) -> None:
        entry = change.entry
        if entry.resource != "events":
            self.written[entry.resource, entry.name] += 1
        line = (opened.clock.monotonic(), entry.resource, entry.namespace, entry.name, entry.version, change.deleted)
        self.digest.update(repr(line).encode())

    def _missing(self) -> str:
        """What there is, where it should be otherwise."""
        lines = [f"does not come to {wanted}" for wanted in self.wanted]
        for cluster in self.site.cloud.clusters.values():
            etcd, nodes = cluster.etcd, cluster.server.context.store.objects("nodes").entries()
            members = " ".join(member.name for member in etcd.members)
            lines.append(f"nodes {' '.join(one.name for one in nodes)}; members {members}; running {etcd.running}")
        for resource in (CONTROL_PLANES, DEPLOYMENTS, SETS, MACHINES):
            lines += [told(body) for body in self.invariants.picture.objects[resource].values()]
        return "\n    ".join(lines)

    def _tell(self, what: str) -> None:
        self.story.append(f"{self.site.clock.monotonic():9.1f} s  {what}")


def main(arguments: Sequence[str]) -> None:
    """Live one, and print it."""
    life = Life(int(arguments[0]), int(arguments[1]) if len(arguments) > 1 else 1)
    life.run()
    sys.stdout.write("\n".join([*life.story, f"digest {life.digest.hexdigest()}"]) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
