"""What a Machine of a MachineSet is to be like: when it is made, and while it exists.

Version, failure domain and references stay as they were made; everything else follows the template in place.

Source: kubernetes-sigs/cluster-api: core/reconcilers/machineset/machineset_controller.go (computeDesiredMachine,
syncMachines).
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from ironbell.api.cluster import MACHINE, MACHINE_SET
from ironbell.api.cluster.machine import Machine
from ironbell.api.cluster.machineset import MachineSet
from ironbell.api.cluster.names import FINALIZER_MACHINE, LABEL_CLUSTER_NAME, LABEL_DEPLOYMENT_NAME, LABEL_SET_NAME
from ironbell.api.meta import OwnerReference, Resource, to_builtin
from ironbell.contract.hashing import label_value
from ironbell.contract.propagation import handed_over, metadata_change
from ironbell.controllers.capi.names import ANNOTATION_SPREAD
from ironbell.kube.decision import Fields, MergePatch, patch
from ironbell.kube.finalizers import is_deleting
from ironbell.kube.patches import diff

IN_PLACE: Final = ("readinessGates", "minReadySeconds", "taints")
TIMEOUTS: Final = ("nodeDrainTimeoutSeconds", "nodeVolumeDetachTimeoutSeconds", "nodeDeletionTimeoutSeconds")
NODE_DELETION_TIMEOUT_S: Final = 10
"""What admission gives a Machine that says nothing."""


def labels(machine_set: MachineSet) -> dict[str, str]:
    """Labels of Machines and of what they refer to."""
    template = machine_set.spec.template.metadata.labels
    found = {
        **template,
        LABEL_CLUSTER_NAME: machine_set.spec.cluster_name,
        LABEL_SET_NAME: label_value(machine_set.metadata.name),
    }
    deployment = machine_set.metadata.labels.get(LABEL_DEPLOYMENT_NAME)
    return {**found, LABEL_DEPLOYMENT_NAME: deployment} if deployment else found


def handed_annotations(machine_set: MachineSet) -> dict[str, str]:
    """Annotations of Machines and of what they refer to."""
    return dict(machine_set.spec.template.metadata.annotations)


def controlled_by(machine_set: MachineSet) -> OwnerReference:
    """The reference from a Machine."""
    return OwnerReference(
        api_version=MACHINE_SET.api_version,
        kind=MACHINE_SET.kind,
        name=machine_set.metadata.name,
        uid=machine_set.metadata.uid,
        controller=True,
        block_owner_deletion=True,
    )


def cloned_by(machine_set: MachineSet) -> OwnerReference:
    """The reference from a clone that its Machine has not taken over yet."""
    return msgspec.structs.replace(controlled_by(machine_set), controller=None, block_owner_deletion=None)


def new_machine(
    machine_set: MachineSet, name: str, failure_domain: str, infrastructure: Fields, bootstrap: Fields | None
) -> Fields:
    """A Machine to be created, with references to what was cloned for it."""
    own_labels, own_annotations = handed_over(labels(machine_set), handed_annotations(machine_set))
    spec: Fields = to_builtin(machine_set.spec.template.spec)
    spec["clusterName"] = machine_set.spec.cluster_name
    spec["infrastructureRef"] = infrastructure
    if bootstrap is not None:
        spec["bootstrap"] = {"configRef": bootstrap}
    if failure_domain:
        spec["failureDomain"] = failure_domain
        own_annotations[ANNOTATION_SPREAD] = "true"
    return {
        "metadata": {
            "name": name,
            "namespace": machine_set.metadata.namespace,
            "labels": own_labels,
            "annotations": own_annotations,
            "ownerReferences": [to_builtin(controlled_by(machine_set))],
            "finalizers": [FINALIZER_MACHINE],
        },
        "spec": spec,
    }


def machine_change(machine_set: MachineSet, machine: Machine) -> MergePatch | None:
    """The patch that brings a Machine in line with the template; None if it is.

    A Machine that is being deleted gets only what bears on its deletion.
    """
    change: Fields = {}
    spec = diff(_followed(to_builtin(machine.spec)), _wanted(machine_set, machine))
    if spec:
        change["spec"] = spec
    if not is_deleting(machine) and (metadata := propagated(machine_set, machine)):
        change["metadata"] = metadata
    return patch(MACHINE, machine, change) if change else None


def propagated(machine_set: MachineSet, obj: Resource) -> dict[str, Any]:
    """The change of labels and annotations of a Machine or of what it refers to; empty if there is none."""
    meta = obj.metadata
    return metadata_change(meta.labels, meta.annotations, labels(machine_set), handed_annotations(machine_set))


def _followed(spec: Fields) -> Fields:
    found: Fields = {name: spec[name] for name in IN_PLACE if name in spec}
    timeouts = {name: value for name, value in (spec.get("deletion") or {}).items() if name in TIMEOUTS}
    return {**found, "deletion": timeouts}


def _wanted(machine_set: MachineSet, machine: Machine) -> Fields:
    wanted = _followed(to_builtin(machine_set.spec.template.spec))
    if machine.spec.deletion.node_deletion_timeout_seconds == NODE_DELETION_TIMEOUT_S:
        wanted["deletion"].setdefault(TIMEOUTS[2], NODE_DELETION_TIMEOUT_S)
    return wanted
