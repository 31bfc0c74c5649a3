"""The deletion of a control plane: after the workers, all Machines at once, without changes to etcd. Pure.

Its Secrets are deleted before it, and not left to the garbage collection: a control plane of the same name that is
created meanwhile would use the authorities and the kubeconfig of the deleted one.

Source: kubernetes-sigs/cluster-api: controlplane/kubeadm/reconcilers/kubeadmcontrolplane (reconcileDelete).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from ironbell.api.cluster.machine import MACHINE
from ironbell.api.core.secret import SECRET_METADATA
from ironbell.base.listing import listed
from ironbell.contract.clusters.slow_deletions import stale_message
from ironbell.controllers.kubeadm.controlplane.conditions.marks import Mark
from ironbell.controllers.kubeadm.controlplane.names import ANNOTATION_HOOK
from ironbell.controllers.kubeadm.controlplane.observed import Observed, is_controlled_by
from ironbell.kube.decision import Action, delete, patch
from ironbell.kube.finalizers import is_deleting

_MOST_NAMES = 5
_ORPHAN = "orphan"
"""The finalizer of `kubectl delete --cascade=orphan`: dependents are kept."""


@dataclass(frozen=True)
class Deletion:
    """The progress of a deletion; `done` when the finalizer can be removed."""

    mark: Mark
    actions: tuple[Action, ...] = ()
    done: bool = False


def next_step(observed: Observed, now: datetime) -> Deletion:
    """Return the next step for a control plane that is being deleted."""
    if not observed.machines:
        return Deletion(Mark("True", "DeletionCompleted", "Deletion completed"), tuple(_secrets(observed)), done=True)
    waits = []
    if observed.pools:
        waits.append(f"* MachinePools: {listed(observed.pools, _MOST_NAMES)}")
    if observed.workers:
        waits.append(f"* Machines: {listed(observed.workers, _MOST_NAMES)}")
    if waits:
        message = "KubeadmControlPlane deletion blocked because following objects still exist:"
        return Deletion(Mark("True", "WaitingForWorkersDeletion", "\n".join([message, *waits])))
    actions: list[Action] = []
    for machine in observed.machines:
        if ANNOTATION_HOOK in machine.metadata.annotations:
            actions.append(patch(MACHINE, machine, {"metadata": {"annotations": {ANNOTATION_HOOK: None}}}))
        if not is_deleting(machine):
            actions.append(delete(MACHINE, machine))
    count = len(observed.machines)
    message = f"Deleting {count} Machine{'s' if count > 1 else ''}"
    if stale := stale_message(observed.machines, now):
        message = f"{message} and {stale}"
    return Deletion(Mark("True", "WaitingForMachineDeletion", message), tuple(actions))


def _secrets(observed: Observed) -> Iterator[Action]:
    """Yield the deletion of the Secrets that this control plane controls."""
    if _ORPHAN in observed.kcp.metadata.finalizers:
        return
    for secret in observed.secrets.values():
        if is_controlled_by(secret, observed.kcp) and not is_deleting(secret):
            yield delete(SECRET_METADATA, secret)
