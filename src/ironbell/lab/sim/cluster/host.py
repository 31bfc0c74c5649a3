"""One simulated machine: from power-on to a node, and what may happen to it afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import msgspec
import structlog

from ironbell.api.client import ApiError, NotFound, PatchType
from ironbell.api.core.secret import Secret
from ironbell.base.clock import Clock, rfc3339
from ironbell.base.errors import IronbellError
from ironbell.base.randomness import Randomness
from ironbell.contract.clusters.secrets import FORMAT, VALUE, value_of
from ironbell.kube.decision import Key, Query
from ironbell.lab.sim.cluster import kubeadm, objects
from ironbell.lab.sim.cluster.bootstrap import Kubeadm, read_kubeadm, read_script
from ironbell.lab.sim.cluster.cluster import SimCluster
from ironbell.lab.sim.cluster.kubeadm import KubeadmError
from ironbell.lab.sim.cluster.objects import CONTROL_PLANE, NodeFacts
from ironbell.lab.sim.timing import Delays, Timing

MONITOR_GRACE_S = 50.0
"""Time after which a silent kubelet's node is called unknown (kube-controller-manager: --node-monitor-grace-period)."""
READ_EVERY_S = 2.0

log = structlog.get_logger()

_NOW = Timing()

ReadSecret = Callable[[Key], Awaitable[Secret]]


@dataclass(frozen=True, slots=True)
class HostFault:
    """Faults of a host."""

    never_boots: bool = False
    slow_boot_s: float = 0.0
    kubeadm_fails: str = ""
    """Message that kubeadm ends with."""


@dataclass(frozen=True, slots=True)
class HostPlan:
    """A machine to start."""

    uid: str
    key: Key
    cluster: Key
    secret: Key
    """Its bootstrap data."""
    version: str
    control_plane: bool = False
    provider_id: str = ""
    address: str = ""
    run: Kubeadm | None = None
    """The run of kubeadm, where the bootstrap data has been read already."""
    rejoins: bool = False
    """Whether it is a node already, and the simulation was restarted: its token is not checked any more."""
    known: bool = False
    """Whether it was known before: to this API, or to the one that managed the cluster until now."""
    vm: Timing = _NOW
    """Until its operating system runs."""
    node: Timing = _NOW
    """From there until kubeadm has a node; the parts of a control plane come after that."""
    etcd: Timing = _NOW
    api_server: Timing = _NOW
    fault: HostFault = field(default_factory=HostFault)


@dataclass(frozen=True, slots=True)
class HostState:
    """The state of a host."""

    running: bool = False
    """The operating system runs."""
    joined: bool = False
    """kubeadm has ended well."""
    error: str = ""
    """Error that the bootstrap ended with."""
    node: str = ""
    """The node's name."""
    dead: bool = False
    """The machine stays, and does nothing any more."""


@dataclass(frozen=True, slots=True)
class HostQuery(Query[HostState | None]):
    """Query for the state of a DevMachine's host; the answer is None for one that is not powered on."""

    subject: ClassVar[str] = "the state of the simulated host"

    uid: str


def metadata_of(plan: HostPlan) -> Mapping[str, str]:
    """Metadata of a machine: by cloud-init's names, and by those of providers of bare metal."""
    name = plan.key[1]
    return {
        **dict.fromkeys(("local_hostname", "hostname", "name"), name),
        **dict.fromkeys(("instance_id", "uuid"), plan.uid),
        "provider_id": plan.provider_id,
    }


class Host:
    """One machine; `run` is its life until it waits for what happens to it."""

    def __init__(
        self,
        plan: HostPlan,
        cluster: SimCluster,
        *,
        read_secret: ReadSecret,
        clock: Clock,
        randomness: Randomness,
        changed: Callable[[], None],
    ) -> None:
        self.plan = plan
        self.cluster = cluster
        self.state = HostState()
        self._read_secret = read_secret
        self._clock = clock
        self._randomness = randomness
        self._changed = changed
        self._task: asyncio.Task[None] | None = None
        self._settled = asyncio.Event()
        self._silences = 0

    def start(self) -> None:
        """Power on."""
        self._task = asyncio.create_task(self._run(), name=f"host {self.plan.key[1]}")

    async def settled(self) -> HostState:
        """The state in which kubeadm ended, once it has. Cancellation point."""
        await self._settled.wait()
        return self.state

    async def stop(self) -> None:
        """Power off, for good: the disk is wiped. Cancellation point."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self.state.node:
            self.cluster.etcd.stop(self.state.node)
            self.cluster.stop_api_server(self.state.node)

    async def _run(self) -> None:
        try:
            await self._boot()
        except IronbellError as error:
            log.info("host did not come up", host=self.plan.key[1], cause=error.message)
            self._set(error=error.message)
        except Exception:
            # The boundary of a host: a defect of the simulation stays with the one that met it.
            log.exception("simulated host met a defect", host=self.plan.key[1])
            self._set(error="the simulation met a defect; see its log")

    async def _boot(self) -> None:
        plan = self.plan
        await asyncio.sleep(plan.vm.draw(self._randomness) + plan.fault.slow_boot_s)
        if plan.fault.never_boots:
            await asyncio.Event().wait()
        self._set(running=True)
        run = plan.run or await self._read_bootstrap_data()
        await asyncio.sleep(plan.node.draw(self._randomness))
        if plan.fault.kubeadm_fails:
            raise KubeadmError(plan.fault.kubeadm_fails)
        facts = self._facts(run)
        self._set(node=facts.name)
        delays = Delays(plan.etcd.draw(self._randomness), plan.api_server.draw(self._randomness))
        act = kubeadm.rejoin if plan.rejoins else kubeadm.init if run.verb == "init" else kubeadm.join
        await act(self.cluster, run, facts, delays=delays, clock=self._clock)
        self._set(joined=True)

    async def _read_bootstrap_data(self) -> Kubeadm:
        secret = await self._bootstrap_secret()
        script = read_script(
            value_of(secret, VALUE) or b"",
            (value_of(secret, FORMAT) or b"").decode(),
            metadata_of(self.plan),
        )
        return read_kubeadm(script)

    async def _bootstrap_secret(self) -> Secret:
        """Read the bootstrap data, retrying until it is available."""
        while True:
            try:
                return await self._read_secret(self.plan.secret)
            except NotFound as error:
                raise KubeadmError(f"the bootstrap data was deleted: {error.message}") from error
            except ApiError as error:
                log.debug("bootstrap data not read", host=self.plan.key[1], cause=error.message)
            await asyncio.sleep(READ_EVERY_S)

    def _facts(self, run: Kubeadm) -> NodeFacts:
        registration, args = run.registration, run.kubelet_args()
        taints: Any = registration.get("taints")
        if taints is None:
            taints = [{"key": CONTROL_PLANE, "effect": "NoSchedule"}] if run.is_control_plane else []
        labels = dict(label.partition("=")[::2] for label in args.get("node-labels", "").split(",") if label)
        return NodeFacts(
            name=str(registration.get("name") or self.plan.key[1]),
            provider_id=args.get("provider-id", self.plan.provider_id),
            address=self.plan.address,
            version=self.plan.version,
            control_plane=run.is_control_plane,
            labels=labels,
            taints=tuple(taints),
            cri_socket=str(registration.get("criSocket") or objects.CRI_SOCKET),
        )

    def _set(self, **changes: Any) -> None:
        self.state = replace(self.state, **changes)
        if self.state.joined or self.state.error:
            self._settled.set()
        self._changed()

    def die(self) -> None:
        """Stop doing anything, which cannot be observed from outside."""
        self._set(dead=True)

    async def revive(self) -> None:
        """Run again with the same disk after a loss of power. Cancellation point."""
        self._silences += 1
        self._set(dead=False)
        self.cluster.etcd.start(self.state.node)
        if self.plan.control_plane:
            self.cluster.run_api_server(self.state.node)
        await self.report("True")

    async def silence(self, has_successor: Callable[[], bool]) -> None:
        """The kubelet falls silent: after a while its node is called unknown, unless a later lifetime of the machine
        has become the node of that name since. Cancellation point."""
        self._silences += 1
        silence = self._silences
        await asyncio.sleep(MONITOR_GRACE_S)
        await self.report("Unknown", lambda: silence == self._silences and not has_successor())

    async def report(self, ready: str, still: Callable[[], bool] = lambda: True) -> None:
        """Set the node's conditions, if the node exists and `still` holds once its API answers. Cancellation point."""
        async with self.cluster.inside() as api:
            if not still():
                return
            conditions = objects.node_conditions(rfc3339(self._clock.now()), ready=ready)
            body = msgspec.json.encode({"status": {"conditions": conditions}})
            with suppress(NotFound):
                await api.patch(
                    objects.NODES,
                    "",
                    self.state.node,
                    body,
                    patch_type=PatchType.STRATEGIC,
                    subresource="status",
                )
