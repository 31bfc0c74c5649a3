"""Controllers as `ironbell run` runs them: over HTTP, under one identity, with a Lease per component.

Each component has its own Lease, so that one replica of each is active at a time, however the components are spread
over processes. A waiting replica keeps its caches filled. One that loses the Lease exits: a process that starts again
has nothing half done in memory.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from ironbell.api.client import Api
from ironbell.app import roles
from ironbell.app.run.options import ElectionOptions
from ironbell.app.systems import SYSTEMS
from ironbell.base.clock import Clock
from ironbell.base.errors import IronbellError
from ironbell.base.randomness import Randomness
from ironbell.contract.system import DEFAULT_SETTINGS, Runtime, Settings, System
from ironbell.kube.manager.controller import Controller
from ironbell.kube.manager.leader import LeaderElection, LeaseSettings
from ironbell.kube.manager.manager import GRACE_S, Manager
from ironbell.kube.transport.connection import POD_FILES

HAND_BACK_S = 5.0
"""Part of the grace period that is reserved for releasing the Lease and closing sessions with BMCs."""


class LeaseLostError(IronbellError):
    """Another replica may be active now."""

    reason = "LeaseLost"


@dataclass
class Controllers:
    """The controllers of one component. `run` returns after `stop`."""

    name: str
    manager: Manager
    election: LeaderElection | None
    runtime: Runtime
    """Resources that its controllers share: sessions with BMCs, connections to workload clusters, rendering
    processes."""

    async def run(self) -> None:
        """Run until stopped or cancelled.

        Raises:
            LeaseLostError: the Lease could not be renewed in time.
        """
        try:
            await self.manager.run(self.election)
        finally:
            await self.runtime.close()
        if self.election is not None and self.election.was_lost:
            raise LeaseLostError(
                f"{self.name} lost its lease {self.election.settings.name}; another replica takes over"
            )

    def stop(self) -> None:
        """Stop: writes in progress are finished, then the Lease is released."""
        self.manager.stop()

    async def check(self) -> str:
        """Ready once the caches are filled: a replica that waits for the Lease is ready to take over."""
        return "" if self.manager.has_synced else "caches are being filled"


def create_controllers(
    system: System,
    api: Api,
    *,
    namespace: str,
    election: ElectionOptions,
    workers: Mapping[str, int],
    grace_s: float,
    clock: Clock,
    randomness: Randomness,
    settings: Settings = DEFAULT_SETTINGS,
) -> Controllers:
    """Create the controllers of a system, under the process's own identity."""
    manager = Manager(
        api,
        component=f"ironbell-{system.name}",
        namespace=namespace,
        clock=clock,
        randomness=randomness,
        grace_s=max(GRACE_S, grace_s - HAND_BACK_S),
    )
    runtime = Runtime(api, _no_other_identity, clock, randomness, manager.informers, settings, namespace)
    for controller in _with_workers(system.controllers.load()(runtime), workers):
        manager.add(controller)
    lease = LeaseSettings(
        election.namespace or own_namespace(),
        f"ironbell-{system.name}",
        f"{socket.gethostname()}_{randomness.token_bytes(8).hex()}",
        election.duration_s,
        election.renew_s,
        election.retry_s,
    )
    leadership = LeaderElection(api, lease, clock, randomness) if election.is_on else None
    return Controllers(system.name, manager, leadership, runtime)


def controller_names() -> list[str]:
    """Names of all controllers, as metrics and `--workers` have them."""
    return [name for system in SYSTEMS for name in system.permissions.load().writes]


def own_namespace() -> str:
    """The namespace of this pod, or else the one that `ironbell install` creates."""
    try:
        return (POD_FILES / "namespace").read_text().strip()
    except OSError:
        return os.environ.get("POD_NAMESPACE") or roles.NAMESPACE


def _with_workers(controllers: Iterable[Controller], workers: Mapping[str, int]) -> Iterable[Controller]:
    for controller in controllers:
        count = workers.get(controller.reconciler.name) or workers.get("") or controller.workers
        yield replace(controller, workers=count)


def _no_other_identity(_controller: str) -> Api | None:
    return None
