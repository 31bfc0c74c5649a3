"""What a Machine of a MachineSet is to be like: when it is made, and while it exists.

Version, failure domain and references stay as they were made; everything else follows the template in place.

Source: kubernetes-sigs/cluster-api: core/reconcilers/machineset/machineset_controller.go (computeDesiredMachine,
syncMachines).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import msgspec

from ironbell.api.cluster import MACHINE, MACHINE_SET
from ironbell.api.cluster.machine import Machine, MachineSpec
from ironbell.api.cluster.machineset import MachineSet
from ironbell.api.cluster.names import FINALIZER_MACHINE, LABEL_CLUSTER_NAME, LABEL_DEPLOYMENT_NAME, LABEL_SET_NAME
from ironbell.api.meta import OwnerReference, Resource, to_builtin
from ironbell.contract.clusters.propagation import Handed, handed_over
from ironbell.contract.hashing import label_value
from ironbell.controllers.capi.names import ANNOTATION_SPREAD
from ironbell.kube.decision import Fields, MergePatch, patch
from ironbell.kube.finalizers import is_deleting
from ironbell.kube.patches import diff

IN_PLACE: Final = ("readinessGates", "minReadySeconds", "taints")
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


@dataclass(frozen=True, slots=True)
class Followed:
    """What Machines follow while they exist, compared with many of them."""

    template: MachineSpec
    handed: Handed

    @staticmethod
    def of(machine_set: MachineSet) -> Followed:
        """What the Machines of a MachineSet follow."""
        handed = Handed.of(labels(machine_set), handed_annotations(machine_set))
        return Followed(machine_set.spec.template.spec, handed)

    def metadata(self, obj: Resource) -> dict[str, Any]:
        """The change of labels and annotations of a Machine or of what it refers to; empty if there is none."""
        return self.handed.change(obj.metadata.labels, obj.metadata.annotations)

    def change(self, machine: Machine, *, metadata: bool = True) -> MergePatch | None:
        """The patch that brings a Machine in line with the template; None if it is.

        A Machine that is being deleted gets only what bears on its deletion. Without `metadata`, labels and
        annotations are known to be in line.
        """
        change: Fields = {}
        if not self._is_like(machine.spec):
            spec = diff(_followed(machine.spec), _followed(self._wanted(machine.spec)))
            if spec:
                change["spec"] = spec
        if metadata and not is_deleting(machine) and (handed := self.metadata(machine)):
            change["metadata"] = handed
        return patch(MACHINE, machine, change) if change else None

    def _is_like(self, spec: MachineSpec) -> bool:
        wanted = self._wanted(spec)
        return (
            spec.deletion == wanted.deletion
            and spec.min_ready_seconds == wanted.min_ready_seconds
            and spec.readiness_gates == wanted.readiness_gates
            and spec.taints == wanted.taints
        )

    def _wanted(self, spec: MachineSpec) -> MachineSpec:
        """The template, with what admission has filled in on the Machine."""
        deletion, held = self.template.deletion, spec.deletion.node_deletion_timeout_seconds
        if deletion.node_deletion_timeout_seconds is not None or held != NODE_DELETION_TIMEOUT_S:
            return self.template
        filled = msgspec.structs.replace(deletion, node_deletion_timeout_seconds=NODE_DELETION_TIMEOUT_S)
        return msgspec.structs.replace(self.template, deletion=filled)


def _followed(spec: MachineSpec) -> Fields:
    fields: Fields = to_builtin(spec)
    return {name: fields[name] for name in IN_PLACE if name in fields} | {"deletion": fields.get("deletion") or {}}
