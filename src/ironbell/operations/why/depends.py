"""Dependencies of an object: queries, and references to follow, nearest and most likely first. Pure.

Only dependencies that can block are followed: while the actions of a Workflow run, its Hardware is not, whatever its
BMC reports.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

from ironbell.api import core
from ironbell.api.bmc import JOB, MACHINE, TASK
from ironbell.api.capt import TINKERBELL_MACHINE
from ironbell.api.cluster import CLUSTER, CLUSTER_CLASS, MACHINE_DEPLOYMENT, MACHINE_POOL, MACHINE_SET
from ironbell.api.cluster import MACHINE as CLUSTER_MACHINE
from ironbell.api.cluster.names import (
    ANNOTATION_PAUSED,
    LABEL_CLUSTER_NAME,
    LABEL_CONTROL_PLANE,
    LABEL_DEPLOYMENT_NAME,
)
from ironbell.api.clusteripam import IP_ADDRESS_CLAIM
from ironbell.api.tinkerbell import HARDWARE, TEMPLATE, WORKFLOW
from ironbell.api.tinkerbell.workflow import WorkflowState
from ironbell.contract.causes import weight_of
from ironbell.contract.clusters.machine_causes import POWERED_ON
from ironbell.contract.servers.claim import claim_of
from ironbell.controllers.tink.names import Reason
from ironbell.operations.why import addresses
from ironbell.operations.why.model import Object, Query, Ref
from ironbell.operations.why.pauses import is_paused
from ironbell.operations.why.world import World, condition, group_of, is_deleting, labels, owners, ref_of
from ironbell.provisioner.lifecycle.created import power_off_name, wipe_name

FOLLOWED_SETS: Final = 6
"""Number of sets of workers of one Cluster that are followed."""
FOLLOWED_MACHINES: Final = 4
"""Number of Machines of one owner that are followed: one for each way in which they wait, then the oldest."""
CONTROL_PLANE: Final = "control-plane"
"""Scope of a Cluster of which only the infrastructure and the control plane are followed."""
WITHOUT_BMC: Final = "without-bmc"
"""Scope of a server that has been started: its BMC cannot block it. Workflows and Jobs that need the BMC refer to it
themselves."""
ROOT: Final = "root"
"""Scope of a server that the user named: the machine that claims, installs or wipes it is followed as well."""
OPTIONAL: Final = "optional"
"""Scope of an object that blocks nothing if it does not exist."""
CHANGES: Final = ("RollingOut", "ScalingUp", "ScalingDown")
_COUNTED: Final = ("replicas", "readyReplicas", "availableReplicas", "upToDateReplicas")
_CAPI: Final = "cluster.x-k8s.io"
_OF_PROVIDERS: Final = ("InfrastructureReady", "BootstrapConfigReady", POWERED_ON)
_BEFORE_ACTIONS: Final = {Reason.PREPARING, Reason.BOOT_JOB_RUNNING, Reason.BOOT_JOB_FAILED, Reason.NO_BMC}
_OF_HARDWARE: Final = {Reason.HARDWARE_ERROR, Reason.HARDWARE_MISSING, Reason.BMC_SHARED}
_OF_TEMPLATE: Final = {Reason.TEMPLATE_MISSING, Reason.TEMPLATE_NOT_RENDERED}


def queries(obj: Object) -> list[Query]:
    """Lists that contain the object's dependencies."""
    kind, namespace, name = _kind(obj), obj["metadata"].get("namespace", ""), obj["metadata"]["name"]
    if kind == (CLUSTER.group, CLUSTER.kind):
        kinds = (MACHINE_DEPLOYMENT, MACHINE_POOL, MACHINE_SET, CLUSTER_MACHINE)
        return [Query(kind.group, kind.kind, namespace, f"{LABEL_CLUSTER_NAME}={name}") for kind in kinds]
    if _is_scaled(obj):
        machines = _machines(obj)
        sets = replace(machines, kind=MACHINE_SET.kind)
        return [machines, sets] if obj["kind"] == MACHINE_DEPLOYMENT.kind else [machines]
    if kind == (JOB.group, JOB.kind):
        return [Query(TASK.group, TASK.kind, namespace, f"owner-name={name}")]
    if kind == (HARDWARE.group, HARDWARE.kind):
        return [Query(core.EVENT.group, core.EVENT.kind, namespace, fields=f"involvedObject.name={name}")]
    if kind == (WORKFLOW.group, WORKFLOW.kind):
        server = hardware_of_workflow(obj) if obj.get("status", {}).get("state") == WorkflowState.FAILED else None
        fields = f"metadata.name={server.name}" if server is not None else ""
        return [Query(HARDWARE.group, HARDWARE.kind, namespace, fields=fields)] if fields else []
    return addresses.queries(obj) if _is_infrastructure_machine(obj) else []


def as_root(root: Ref) -> Ref:
    """Mark the object that the user named, from which more is followed than from others."""
    is_server = (root.group, root.kind) == (HARDWARE.group, HARDWARE.kind)
    return replace(root, scope=ROOT) if is_server and not root.scope else root


def dependencies(obj: Object, scope: str, world: World) -> list[Ref]:
    """References to objects that may block this one; while it is paused, only to its Cluster."""
    if is_paused(obj):
        return _pausing(obj)
    return _dependencies(obj, scope, world)


def _dependencies(obj: Object, scope: str, world: World) -> list[Ref]:
    follow = _FOLLOWED.get(_kind(obj))
    if follow is not None:
        return follow(obj, scope, world)
    if _is_scaled(obj):
        return _of_scaled(obj, scope, world)
    if group_of(obj).startswith("bootstrap.") and condition(obj, "Ready").get("status") != "True":
        name = labels(obj).get(LABEL_CLUSTER_NAME, "")
        return [Ref(CLUSTER.group, CLUSTER.kind, obj["metadata"]["namespace"], name, CONTROL_PLANE)] if name else []
    return addresses.waited_for(obj, world) if _is_infrastructure_machine(obj) else []


def _pausing(obj: Object) -> list[Ref]:
    """The Cluster with which an object is paused."""
    name = labels(obj).get(LABEL_CLUSTER_NAME, "")
    by_itself = ANNOTATION_PAUSED in (obj["metadata"].get("annotations") or {})
    if not name or by_itself or condition(obj, "Paused").get("status") != "True":
        return []
    return [Ref(CLUSTER.group, CLUSTER.kind, obj["metadata"].get("namespace", ""), name, CONTROL_PLANE)]


def hardware_events(obj: Object, world: World) -> tuple[Object, ...]:
    """The events about a Hardware."""
    kept = (event for query in queries(obj) for event in world.listed(query))
    return tuple(event for event in kept if event.get("involvedObject", {}).get("kind") == HARDWARE.kind)


def is_up(machine: Object) -> bool:
    """Return whether a Machine of a cluster is available and is not being deleted."""
    return condition(machine, "Available").get("status") == "True" and not is_deleting(machine)


def is_settled(obj: Object) -> bool:
    """Return whether a control plane or a set of workers has all its Machines, up to date and available, and no
    others."""
    status, spec = obj.get("status", {}), obj.get("spec", {})
    if status.get("observedGeneration", 0) < obj["metadata"].get("generation", 0):
        return False
    if any(condition(obj, name).get("status") == "True" for name in CHANGES):
        return False
    desired = spec.get("replicas", 1)
    return all((status.get(name) or 0) == desired for name in _COUNTED)


def hardware_of(obj: Object) -> Ref | None:
    """The server of a TinkerbellMachine, or None if it has none."""
    name = obj.get("spec", {}).get("hardwareName")
    return Ref(HARDWARE.group, HARDWARE.kind, _target_namespace(obj), name) if name else None


def hardware_of_workflow(obj: Object) -> Ref | None:
    """The server of a Workflow, or None if it names none."""
    name = obj.get("spec", {}).get("hardwareRef")
    return Ref(HARDWARE.group, HARDWARE.kind, obj["metadata"]["namespace"], name) if name else None


def _kind(obj: Object) -> tuple[str, str]:
    return group_of(obj), obj["kind"]


def _is_scaled(obj: Object) -> bool:
    """Return whether the object is a control plane or a set of workers."""
    group, kind = _kind(obj)
    workers = {MACHINE_DEPLOYMENT.kind, MACHINE_SET.kind}
    return group.startswith("controlplane.") or (group == _CAPI and kind in workers)


def _is_infrastructure_machine(obj: Object) -> bool:
    group, kind = _kind(obj)
    return group.startswith("infrastructure.") and kind.endswith("Machine")


def _machines(obj: Object) -> Query:
    meta, owner = obj["metadata"], labels(obj).get(LABEL_CLUSTER_NAME) or obj.get("spec", {}).get("clusterName", "")
    chosen = [f"{LABEL_CLUSTER_NAME}={owner}"] if owner else []
    if group_of(obj).startswith("controlplane."):
        chosen.append(LABEL_CONTROL_PLANE)
    elif obj["kind"] == MACHINE_DEPLOYMENT.kind:
        chosen.append(f"{LABEL_DEPLOYMENT_NAME}={meta['name']}")
    return Query(CLUSTER_MACHINE.group, CLUSTER_MACHINE.kind, meta.get("namespace", ""), ",".join(chosen))


def _of_cluster(obj: Object, scope: str, world: World) -> list[Ref]:
    spec, namespace = obj.get("spec", {}), obj["metadata"].get("namespace", "")
    deployments, pools, sets, machines = (world.listed(query) for query in queries(obj))
    refs = _references(namespace, spec.get("infrastructureRef"), spec.get("controlPlaneRef"))
    class_ = spec.get("topology", {}).get("classRef") or {}
    if class_.get("name") and condition(obj, "TopologyReconciled").get("status") == "False":
        where = class_.get("namespace") or namespace
        refs.append(Ref(CLUSTER_CLASS.group, CLUSTER_CLASS.kind, where, class_["name"]))
    planes = [machine for machine in machines if LABEL_CONTROL_PLANE in labels(machine)]
    if condition(obj, "RemoteConnectionProbe").get("status") == "False":
        refs += [ref_of(machine) for machine in planes[:FOLLOWED_MACHINES]]
    if scope == CONTROL_PLANE:
        return refs
    refs += [ref_of(workers) for workers in (*deployments, *pools) if not is_settled(workers)][:FOLLOWED_SETS]
    if is_deleting(obj):
        refs += [ref_of(obj) for obj in (*sets, *_likely(machines))]
    return refs


def _of_scaled(obj: Object, scope: str, world: World) -> list[Ref]:
    uid, (query, *of_sets) = obj["metadata"].get("uid"), queries(obj)
    machines: Iterable[Object] = world.listed(query)
    sets = [member for below in of_sets for member in world.listed(below) if not is_settled(member)]
    if obj["kind"] == MACHINE_SET.kind:
        machines = [machine for machine in machines if uid in {owner.get("uid") for owner in owners(machine)}]
    return [*(ref_of(machine) for machine in (*_likely(machines), *sets)), *_templates(obj)]


def _templates(obj: Object) -> list[Ref]:
    """Templates without which no further Machine can be created; none while no Machine is missing."""
    if condition(obj, "ScalingUp").get("status") != "True":
        return []
    spec = obj.get("spec", {})
    of_workers, of_plane = spec.get("template", {}).get("spec", {}), spec.get("machineTemplate", {})
    references = (
        of_workers.get("infrastructureRef"),
        of_workers.get("bootstrap", {}).get("configRef"),
        of_plane.get("spec", {}).get("infrastructureRef") or of_plane.get("infrastructureRef"),
    )
    return _references(obj["metadata"].get("namespace", ""), *references)


def _likely(machines: Iterable[Object]) -> list[Object]:
    """Machines to follow, out of those that are not up."""
    waiting = sorted((machine for machine in machines if not is_up(machine)), key=_likelihood)
    ways: dict[tuple[str, ...], Object] = {}
    for machine in waiting:
        ways.setdefault(_way(machine), machine)
    rest = [machine for machine in waiting if machine not in ways.values()]
    return [*ways.values(), *rest][:FOLLOWED_MACHINES]


def _likelihood(machine: Object) -> tuple[int, str, str]:
    meta = machine["metadata"]
    return -max(weight_of(reason) for reason in _reasons(machine)), meta.get("creationTimestamp", ""), meta["name"]


def _way(machine: Object) -> tuple[str, ...]:
    return (*_reasons(machine), str(is_deleting(machine)))


def _reasons(machine: Object) -> list[str]:
    """Reasons that a Machine's providers report, and the one of its server's power."""
    return [condition(machine, name).get("reason", "") for name in _OF_PROVIDERS]


def _of_machine(obj: Object, scope: str, world: World) -> list[Ref]:
    spec, namespace = obj.get("spec", {}), obj["metadata"].get("namespace", "")
    is_bootstrapped = condition(obj, "BootstrapConfigReady").get("status") == "True"
    config = None if is_bootstrapped and not is_deleting(obj) else spec.get("bootstrap", {}).get("configRef")
    refs = _references(namespace, spec.get("infrastructureRef"), config)
    cluster = spec.get("clusterName", "")
    if cluster and not is_up(obj) and not is_deleting(obj):
        refs.append(Ref(CLUSTER.group, CLUSTER.kind, namespace, cluster, CONTROL_PLANE))
    return refs


def _of_tinkerbell_machine(obj: Object, scope: str, world: World) -> list[Ref]:
    namespace, typed = _target_namespace(obj), TINKERBELL_MACHINE.convert(obj)
    server, ready = hardware_of(obj), condition(obj, "Ready")
    if is_deleting(obj):
        refs = [Ref(WORKFLOW.group, WORKFLOW.kind, namespace, wipe_name(typed))]
        refs.append(Ref(JOB.group, JOB.kind, namespace, power_off_name(typed)))
        return [*refs, *([replace(server, scope=WITHOUT_BMC)] if server else [])]
    if server is None:
        return addresses.waited_for(obj, world)
    if ready.get("status") == "True":
        return []
    server = server if ready.get("reason") == "BMCNotContactable" else replace(server, scope=WITHOUT_BMC)
    return [server, Ref(WORKFLOW.group, WORKFLOW.kind, namespace, typed.metadata.name)]


def _of_workflow(obj: Object, scope: str, world: World) -> list[Ref]:
    namespace, spec, status = obj["metadata"]["namespace"], obj.get("spec", {}), obj.get("status", {})
    refs, reason = [], condition(obj, "Succeeded").get("reason", "")
    if reason in _OF_TEMPLATE and spec.get("templateRef"):
        refs.append(Ref(TEMPLATE.group, TEMPLATE.kind, namespace, spec["templateRef"]))
    # the Workflow's message has the failure of its Job, and creating the Job again would end nothing
    if reason in _BEFORE_ACTIONS - {Reason.BOOT_JOB_FAILED}:
        jobs = sorted(status.get("bootOptions", {}).get("jobs", {}))
        refs += [Ref(JOB.group, JOB.kind, namespace, job) for job in jobs]
    server = hardware_of_workflow(obj)
    if server is not None and reason in _OF_HARDWARE | _BEFORE_ACTIONS:
        refs.append(server)
    return refs


def _of_hardware(obj: Object, scope: str, world: World) -> list[Ref]:
    name = (obj.get("spec", {}).get("bmcRef") or {}).get("name")
    claim = addresses.claim_of_hardware(obj)
    refs = [claim] if claim is not None else []
    if scope == WITHOUT_BMC:
        return refs
    owner, kind = claim_of(HARDWARE.convert(obj)) if scope == ROOT else None, TINKERBELL_MACHINE
    if owner is not None and owner.kind in {"", kind.kind}:
        refs.append(Ref(kind.group, kind.kind, owner.namespace, owner.name, OPTIONAL))
    return [*refs, Ref(MACHINE.group, MACHINE.kind, obj["metadata"]["namespace"], name)] if name else refs


def _of_claim(obj: Object, scope: str, world: World) -> list[Ref]:
    pool = addresses.pool_of(obj)
    return [pool] if pool is not None else []


def _of_job(obj: Object, scope: str, world: World) -> list[Ref]:
    if condition(obj, "Completed").get("status") == "True":
        return []
    reference = obj.get("spec", {}).get("machineRef", {})
    namespace = obj["metadata"]["namespace"]
    refs = [Ref(MACHINE.group, MACHINE.kind, reference.get("namespace") or namespace, reference["name"])]
    tasks = [task for query in queries(obj) for task in world.listed(query)]
    open_ = [task for task in tasks if condition(task, "Completed").get("status") != "True"]
    return [*(ref_of(task) for task in open_[:1]), *refs]


def _target_namespace(obj: Object) -> str:
    return str(obj.get("status", {}).get("targetNamespace") or obj["metadata"]["namespace"])


def _references(namespace: str, *references: Object | None) -> list[Ref]:
    return [
        Ref(_group_named(reference), reference.get("kind", ""), namespace, reference["name"])
        for reference in references
        if reference and reference.get("name")
    ]


def _group_named(reference: Object) -> str:
    """The group that a reference names; older objects name an apiVersion."""
    return str(reference.get("apiGroup") or str(reference.get("apiVersion", "")).rpartition("/")[0])


_FOLLOWED: Final[dict[tuple[str, str], Callable[[Object, str, World], list[Ref]]]] = {
    (CLUSTER.group, CLUSTER.kind): _of_cluster,
    (CLUSTER_MACHINE.group, CLUSTER_MACHINE.kind): _of_machine,
    (TINKERBELL_MACHINE.group, TINKERBELL_MACHINE.kind): _of_tinkerbell_machine,
    (WORKFLOW.group, WORKFLOW.kind): _of_workflow,
    (HARDWARE.group, HARDWARE.kind): _of_hardware,
    (JOB.group, JOB.kind): _of_job,
    (IP_ADDRESS_CLAIM.group, IP_ADDRESS_CLAIM.kind): _of_claim,
}
