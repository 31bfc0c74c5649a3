"""Findings: what blocks an object, as the object itself reports it; one function for each kind. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Final

from ironbell.api import inclusteripam
from ironbell.api.bmc import JOB, MACHINE, TASK
from ironbell.api.capt import TINKERBELL_MACHINE
from ironbell.api.cluster import CLUSTER
from ironbell.api.cluster import MACHINE as CLUSTER_MACHINE
from ironbell.api.clusteripam import IP_ADDRESS_CLAIM
from ironbell.api.tinkerbell import HARDWARE, TEMPLATE, WORKFLOW
from ironbell.contract.causes import Weight
from ironbell.controllers.capi.cluster import endpoint
from ironbell.operations.why import addresses, servers, workflows
from ironbell.operations.why.depends import CHANGES
from ironbell.operations.why.model import Finding, Object, Ref
from ironbell.operations.why.pauses import pause
from ironbell.operations.why.world import World, condition, conditions, group_of, is_deleting, since

GOOD_WHEN_FALSE: Final = frozenset(
    {"Deleting", "Paused", "Updating", "RollingOut", "ScalingUp", "ScalingDown", "Remediating"}
)
"""Conditions of Cluster API that report something to wait for while they are True."""
_OUR_DOMAINS: Final = ("cluster.x-k8s.io", "tinkerbell.org", "ironbell.dev")
_TOPOLOGY_FAILED: Final = {
    "ReconcileFailed": "Correct spec.topology of the Cluster, or its ClusterClass",
    "ClusterClassNotReconciled": "Correct the ClusterClass",
}
"""Remedies by reason of TopologyReconciled, for reasons that need the user."""
_SUMMARIES: Final = ("Available", "Ready", "Provisioned")
_OPTIONAL: Final = {(kind.group, kind.kind) for kind in (WORKFLOW, JOB, IP_ADDRESS_CLAIM)}
"""Kinds whose objects are created when they are needed: a missing one blocks nothing."""


def finding(obj: Object, world: World, now: datetime) -> Finding | None:
    """Return what blocks the object according to its own report, or None."""
    paused, judge = pause(obj), _JUDGES.get((group_of(obj), obj["kind"]))
    if paused is not None or judge is None:
        return paused or _deletion(obj) or _summary(obj)
    return judge(obj, world, now) or _deletion(obj)


def missing(ref: Ref, world: World) -> Finding | None:
    """The finding for a reference to an object, or a kind, that does not exist."""
    if (ref.group, ref.kind) in _OPTIONAL:
        return None
    if (ref.group, ref.kind) in world.absent_kinds:
        kind = f"{ref.kind}.{ref.group}".rstrip(".")
        message = f"cannot be read: the API has no kind {kind}"
        remedy = "Install its provider, or correct the reference"
        return Finding(message, "NoSuchKind", "", "the kind is installed", remedy, Weight.NEEDS_HELP)
    return Finding(
        "does not exist",
        "NotFound",
        ends_when="it exists",
        remedy="Create it, or correct the reference to it",
        weight=Weight.NEEDS_HELP,
    )


def one_line(message: str) -> str:
    """A condition's message, which may be a list in lines, as one line."""
    parts = [line.strip().removeprefix("* ") for line in message.splitlines() if line.strip()]
    return "".join(f"{part} " if part.endswith(":") else f"{part}; " for part in parts).rstrip("; :")


_ENDS_DELETION: Final = {
    "DrainingNode": "its pods have left the Node",
    "WaitingForVolumeDetach": "the Node's volumes are detached",
    "WaitingForPreDrainHook": "the hook's annotation is removed",
    "WaitingForPreTerminateHook": "the hook's annotation is removed",
}
"""When a Machine's deletion continues, by reason, for waits that do not concern its dependents."""


def _deletion(obj: Object) -> Finding | None:
    if not is_deleting(obj):
        return None
    deleting, meta = condition(obj, "Deleting"), obj["metadata"]
    finalizers, since_ = [str(finalizer) for finalizer in meta.get("finalizers") or []], meta["deletionTimestamp"]
    names = ", ".join(finalizers) or "the garbage collector"
    if finalizers and not any(_is_known_finalizer(finalizer) for finalizer in finalizers):
        message = f"is being deleted and waits for {names}, which another program removes"
        remedy = "Check the program that set it; remove the finalizer by hand if that program no longer runs"
        return Finding(message, "ForeignFinalizer", since_, "it is removed", remedy, Weight.NEEDS_HELP)
    reported = one_line(deleting.get("message", "")) if deleting.get("status") == "True" else ""
    message = f"is being deleted: {reported}" if reported else f"is being deleted and waits for {names}"
    reason = deleting.get("reason", "") or "Deleting"
    return Finding(message, reason, since_, _ENDS_DELETION.get(reason, "its dependents are deleted"))


def _is_known_finalizer(finalizer: str) -> bool:
    """Return whether Ironbell, Cluster API or the API server removes the finalizer."""
    domain, slash, _ = finalizer.partition("/")
    return domain.endswith(_OUR_DOMAINS) or (not slash and "." not in domain)


def _summary(obj: Object) -> Finding | None:
    """Report the object's summary condition, if it is bad."""
    reported = conditions(obj)
    blocked = reported.get("ScalingUp", {})
    if blocked.get("status") == "True" and _creation_failed(obj):
        remedy = "Correct what the API rejects"
        return replace(_of_condition(blocked, Weight.NEEDS_HELP), ends_when="Machines are created", remedy=remedy)
    weight = Weight.CONSEQUENCE if group_of(obj).endswith("cluster.x-k8s.io") else Weight.WAITING
    if not reported and "status" in obj and group_of(obj).startswith("infrastructure."):
        return None
    for name in _SUMMARIES:
        if name in reported and reported[name].get("status") != "True":
            # Machines have the message in Ready
            message = reported[name].get("message") or reported.get("Ready", {}).get("message", "")
            return _of_condition({**reported[name], "message": message}, weight)
    for name in CHANGES:
        if reported.get(name, {}).get("status") == "True":
            return _of_condition(reported[name], weight)
    return None


def _creation_failed(obj: Object) -> bool:
    """Return whether the API rejects Machines, or what they need; only a v1beta1 condition has this as a reason."""
    legacy = obj.get("status", {}).get("deprecated", {}).get("v1beta1", {}).get("conditions", [])
    created: Object = next((reported for reported in legacy if reported["type"] == "MachinesCreated"), {})
    return created.get("status") == "False" and created.get("reason") != "PreflightCheckFailed"


def _of_condition(reported: Object, weight: Weight) -> Finding:
    message, reason = one_line(reported.get("message", "")), reported.get("reason", "")
    message = message or f"condition {reported['type']} is {reported['status']}" + (f" ({reason})" if reason else "")
    desired = "False" if reported["type"] in GOOD_WHEN_FALSE else "True"
    return Finding(message, reason, since(reported), f"condition {reported['type']} is {desired}", weight=weight)


def _cluster(obj: Object, world: World, now: datetime) -> Finding | None:
    deletion = _deletion(obj)
    if deletion is not None:
        return deletion
    shared = next((entry for entry in conditions(obj).values() if entry.get("reason") == endpoint.IN_USE), None)
    if shared is not None:
        remedy, ends = endpoint.remedy(CLUSTER.convert(obj)), "each Cluster has an endpoint of its own"
        message = one_line(shared.get("message", "")).removesuffix(f". {remedy}.")
        return Finding(message, endpoint.IN_USE, since(shared), ends, remedy, Weight.NEEDS_HELP)
    initialized = condition(obj, "ControlPlaneInitialized").get("status") == "True"
    probe, topology = condition(obj, "RemoteConnectionProbe"), condition(obj, "TopologyReconciled")
    if initialized and probe.get("status") == "False":
        address = obj.get("spec", {}).get("controlPlaneEndpoint") or {}
        where = f"{address.get('host', '?')}:{address.get('port', '?')}"
        return Finding(
            f"its API server at {where} does not answer",
            probe.get("reason", ""),
            since(probe),
            "the API server answers again",
            "Check that the control plane's servers run and that this address reaches them",
            Weight.NEEDS_HELP,
        )
    if topology.get("status") == "False":
        remedy = _TOPOLOGY_FAILED.get(topology.get("reason", ""), "")
        reported = _of_condition(topology, Weight.NEEDS_HELP if remedy else Weight.WAITING)
        return replace(reported, remedy=remedy)
    return _summary(obj)


def _machine(obj: Object, world: World, now: datetime) -> Finding | None:
    """Report a Machine. The conditions of its infrastructure, bootstrap and control plane follow from their objects."""
    deletion = _deletion(obj)
    if deletion is not None:
        return deletion
    node = condition(obj, "NodeReady")
    ref = (obj.get("status", {}).get("nodeRef") or {}).get("name", "")
    if ref and node.get("status") == "False":
        message = f"its Node {ref} is not Ready: {one_line(node.get('message', '')) or node.get('reason', '')}"
        remedy = f"Check the kubelet and the network plugin on {ref}"
        return Finding(message, node.get("reason", ""), since(node), "the Node is Ready", remedy, Weight.WAITING)
    summary = _summary(obj)
    infrastructure = condition(obj, "InfrastructureReady").get("status")
    if summary is not None and infrastructure == "True" and not ref:
        message = "its server runs, but no Node with its provider ID has joined the cluster"
        since_ = since(condition(obj, "InfrastructureReady"))
        remedy = "Check cloud-init's log on the server, and the provider ID of its kubelet"
        return Finding(message, "WaitingForNode", since_, "its Node joins", remedy, Weight.WAITING)
    return summary


_JUDGES: Final[dict[tuple[str, str], Callable[[Object, World, datetime], Finding | None]]] = {
    (CLUSTER.group, CLUSTER.kind): _cluster,
    (CLUSTER_MACHINE.group, CLUSTER_MACHINE.kind): _machine,
    (TINKERBELL_MACHINE.group, TINKERBELL_MACHINE.kind): servers.tinkerbell_machine,
    (HARDWARE.group, HARDWARE.kind): servers.hardware,
    (MACHINE.group, MACHINE.kind): servers.bmc_machine,
    (WORKFLOW.group, WORKFLOW.kind): workflows.workflow,
    (TEMPLATE.group, TEMPLATE.kind): workflows.template,
    (JOB.group, JOB.kind): workflows.job,
    (TASK.group, TASK.kind): workflows.job,
    (IP_ADDRESS_CLAIM.group, IP_ADDRESS_CLAIM.kind): addresses.claim,
    **{(kind.group, kind.kind): addresses.pool for kind in inclusteripam.KINDS},
}
