"""Controllers as `ironbell run` runs them: over HTTP, under one identity, with a Lease per component.

Each component has a Lease of its own, so that whatever processes the components are spread over, one replica of each
works at a time. A replica that waits keeps its caches filled. One that loses the Lease ends the process: who starts
anew cannot have anything half done in memory.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Protocol

from ironbell.api.client import Api
from ironbell.app import roles
from ironbell.app.components import (
    CAPT,
    CLUSTER_API,
    IPAM,
    KUBEADM_BOOTSTRAP,
    KUBEADM_CONTROL_PLANE,
    RUFIO,
    TINK_CONTROLLER,
    Component,
)
from ironbell.app.node_images import image_askers
from ironbell.app.rendering_pool import RenderingPool
from ironbell.app.run_options import ElectionOptions
from ironbell.app.value_schemas import VariableSchemas
from ironbell.base.clock import Clock
from ironbell.base.errors import IronbellError
from ironbell.base.randomness import Randomness
from ironbell.contract.node_images import NO_IMAGES, ImageSource
from ironbell.contract.racks import INSTALLS_PER_RACK
from ironbell.controllers.capi import controllers as capi
from ironbell.controllers.capi.machine.machine import NOTHING_MORE
from ironbell.controllers.capi.machine.node_metadata import Synced
from ironbell.controllers.capt import controllers as capt
from ironbell.controllers.ipam import controllers as ipam
from ironbell.controllers.kubeadm import controllers as kubeadm
from ironbell.controllers.kubeadm.config.tokens import TOKEN_TTL, Lifetime
from ironbell.controllers.rufio import controllers as rufio
from ironbell.controllers.rufio.bmc_access import BmcAccess
from ironbell.controllers.rufio.connect import connect
from ironbell.controllers.tink import controllers as tink
from ironbell.kube.connection import POD_FILES
from ironbell.kube.controller import Controller
from ironbell.kube.leader import LeaderElection, LeaseSettings
from ironbell.kube.runtime import GRACE_S, Manager
from ironbell.workload.access import Workloads
from ironbell.workload.etcd_forward import ForwardedEtcd
from ironbell.workload.following import follow, kubeconfigs_from
from ironbell.workload.kubeconfigs import http_link

HAND_BACK_S = 5.0
"""Left of the grace period for handing back the Lease and ending sessions with BMCs."""


class LeaseLostError(IronbellError):
    """Another replica may work now."""

    reason = "LeaseLost"


class Closable(Protocol):
    """What is held open."""

    async def close(self) -> None: ...


@dataclass
class Ingredients:
    """What controllers are made of."""

    manager: Manager
    api: Api
    clock: Clock
    randomness: Randomness
    token_ttl: timedelta = TOKEN_TTL
    synced: Synced = NOTHING_MORE
    metadata_url: str = ""
    namespace: str = ""
    """The only one that is looked at; empty for all."""
    installs_per_rack: int = INSTALLS_PER_RACK
    images: ImageSource = NO_IMAGES
    rendering: RenderingPool = field(default_factory=RenderingPool)
    held: list[Closable] = field(default_factory=list)

    def workloads(self) -> Workloads:
        """Connections to all workload clusters that have a kubeconfig."""
        workloads = Workloads(http_link, kubeconfigs_from(self.api), clock=self.clock, randomness=self.randomness)
        follow(workloads, self.manager.informers)
        self.held.append(workloads)
        return workloads


@dataclass
class Controllers:
    """The controllers of one component. `run` returns after `stop`."""

    name: str
    manager: Manager
    election: LeaderElection | None
    held: Sequence[Closable]
    """What its controllers hold open: sessions with BMCs, connections to workload clusters, rendering processes."""
    rendering: RenderingPool
    """Where templates are rendered; started by whoever asks first."""

    async def run(self) -> None:
        """Run until stopped or cancelled.

        Raises:
            LeaseLostError: the Lease could not be renewed in time.
        """
        try:
            await self.manager.run(self.election)
        finally:
            for one in self.held:
                await one.close()
        if self.election is not None and self.election.was_lost:
            raise LeaseLostError(
                f"{self.name} lost its lease {self.election.settings.name}; another replica takes over"
            )

    def stop(self) -> None:
        """Let it end: what is being written is finished, then the Lease is handed back."""
        self.manager.stop()

    async def check(self) -> str:
        """Ready when the caches are filled: a replica that waits for the Lease is ready to take over."""
        return "" if self.manager.has_synced else "caches are being filled"


def make_controllers(
    component: Component,
    api: Api,
    *,
    namespace: str,
    election: ElectionOptions,
    workers: Mapping[str, int],
    grace_s: float,
    clock: Clock,
    randomness: Randomness,
    token_ttl_s: float = TOKEN_TTL.total_seconds(),
    synced: Synced = NOTHING_MORE,
    metadata_url: str = "",
    installs_per_rack: int = INSTALLS_PER_RACK,
    images: ImageSource = NO_IMAGES,
) -> Controllers:
    """Put a component together."""
    manager = Manager(
        api,
        component=f"ironbell-{component.name}",
        namespace=namespace,
        clock=clock,
        randomness=randomness,
        grace_s=max(GRACE_S, grace_s - HAND_BACK_S),
    )
    with_ = Ingredients(
        manager,
        api,
        clock,
        randomness,
        timedelta(seconds=token_ttl_s),
        synced,
        metadata_url,
        namespace,
        installs_per_rack,
        images,
    )
    for controller in _with_workers(_CONTROLLERS[component.name](with_), workers):
        manager.add(controller)
    settings = LeaseSettings(
        election.namespace or own_namespace(),
        f"ironbell-{component.name}",
        f"{socket.gethostname()}_{randomness.token_bytes(8).hex()}",
        election.duration_s,
        election.renew_s,
        election.retry_s,
    )
    return Controllers(
        component.name,
        manager,
        LeaderElection(api, settings, clock, randomness) if election.is_on else None,
        with_.held,
        with_.rendering,
    )


def controller_names() -> list[str]:
    """Names of all controllers, as metrics and `--workers` have them."""
    return [*tink.WRITES, *rufio.WRITES, *capi.WRITES, *kubeadm.WRITES, *capt.WRITES, *ipam.WRITES]


def own_namespace() -> str:
    """The namespace of the pod that this is, else the one that `ironbell install` makes."""
    try:
        return (POD_FILES / "namespace").read_text().strip()
    except OSError:
        return os.environ.get("POD_NAMESPACE") or roles.NAMESPACE


def _with_workers(controllers: Iterable[Controller], workers: Mapping[str, int]) -> Iterable[Controller]:
    for controller in controllers:
        count = workers.get(controller.reconciler.name) or workers.get("") or controller.workers
        yield replace(controller, workers=count)


def _nobody_else(_controller: str) -> Api | None:
    """All write as the process's own ServiceAccount."""
    return None


def _tink(with_: Ingredients) -> list[Controller]:
    with_.held.append(with_.rendering)
    return tink.controllers(with_.rendering, with_.rendering.parse, _nobody_else)


def _rufio(with_: Ingredients) -> list[Controller]:
    access = BmcAccess(with_.api, connect)
    with_.held.append(access)
    return rufio.controllers(access, with_.clock, _nobody_else)


def _cluster_api(with_: Ingredients) -> list[Controller]:
    return capi.controllers(
        with_.workloads(), with_.api, with_.clock, _nobody_else, VariableSchemas(), synced=with_.synced
    )


def _kubeadm_bootstrap(with_: Ingredients) -> list[Controller]:
    lifetime = Lifetime(with_.token_ttl)
    workloads = with_.workloads()
    return kubeadm.bootstrap_controllers(
        workloads, with_.api, with_.clock, with_.randomness, _nobody_else, lifetime=lifetime
    )


def _kubeadm_control_plane(with_: Ingredients) -> list[Controller]:
    workloads = with_.workloads()
    etcd = ForwardedEtcd(workloads, with_.api, with_.clock)
    return kubeadm.control_plane_controllers(workloads, etcd.connect, with_.api, with_.clock, _nobody_else)


def _capt(with_: Ingredients) -> list[Controller]:
    return capt.controllers(
        with_.api,
        with_.metadata_url,
        _nobody_else,
        at_once=with_.installs_per_rack,
        images=with_.images,
        image_askers=image_askers(with_.images),
        workloads=with_.workloads(),
    )


def _ipam(with_: Ingredients) -> list[Controller]:
    # What was given out of a pool for all namespaces is known only to who sees all of them.
    return ipam.controllers(with_.api, _nobody_else, sees_all=not with_.namespace)


_CONTROLLERS: Mapping[str, Callable[[Ingredients], list[Controller]]] = {
    TINK_CONTROLLER.name: _tink,
    RUFIO.name: _rufio,
    CLUSTER_API.name: _cluster_api,
    KUBEADM_BOOTSTRAP.name: _kubeadm_bootstrap,
    KUBEADM_CONTROL_PLANE.name: _kubeadm_control_plane,
    CAPT.name: _capt,
    IPAM.name: _ipam,
}
