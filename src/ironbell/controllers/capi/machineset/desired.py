"""The desired state of a MachineSet's Machines: at their creation, and while they exist.

Version, failure domain and references never change after creation; everything else follows the template in place.

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
from ironbell.api.meta import Resource, to_builtin
from ironbell.contract.clusters.propagation import Handed, handed_over
from ironbell.contract.hashing import label_value
from ironbell.contract.owners import owner_reference
from ironbell.controllers.capi.machineset.spread import ANNOTATION_SPREAD
from ironbell.kube.decision import Fields, MergePatch, patch
from ironbell.kube.finalizers import is_deleting
from ironbell.kube.patches import diff

IN_PLACE: Final = ("readinessGates", "minReadySeconds", "taints")
NODE_DELETION_TIMEOUT_S: Final = 10
"""Default that admission sets on a Machine without a timeout."""


def labels(machine_set: MachineSet) -> dict[str, str]:
    """Labels of Machines and of the objects that they refer to."""
    template = machine_set.spec.template.metadata.labels
    result = {
        **template,
        LABEL_CLUSTER_NAME: machine_set.spec.cluster_name,
        LABEL_SET_NAME: label_value(machine_set.metadata.name),
    }
    deployment = machine_set.metadata.labels.get(LABEL_DEPLOYMENT_NAME)
    return {**result, LABEL_DEPLOYMENT_NAME: deployment} if deployment else result


def handed_annotations(machine_set: MachineSet) -> dict[str, str]:
    """Annotations of Machines and of the objects that they refer to."""
    return dict(machine_set.spec.template.metadata.annotations)


def new_machine(
    machine_set: MachineSet, name: str, failure_domain: str, infrastructure: Fields, bootstrap: Fields | None
) -> Fields:
    """A Machine to be created, with references to the objects that were cloned for it."""
    machine_labels, machine_annotations = handed_over(labels(machine_set), handed_annotations(machine_set))
    spec: Fields = to_builtin(machine_set.spec.template.spec)
    spec["clusterName"] = machine_set.spec.cluster_name
    spec["infrastructureRef"] = infrastructure
    if bootstrap is not None:
        spec["bootstrap"] = {"configRef": bootstrap}
    if failure_domain:
        spec["failureDomain"] = failure_domain
        machine_annotations[ANNOTATION_SPREAD] = "true"
    return {
        "metadata": {
            "name": name,
            "namespace": machine_set.metadata.namespace,
            "labels": machine_labels,
            "annotations": machine_annotations,
            "ownerReferences": [to_builtin(owner_reference(MACHINE_SET, machine_set, controller=True))],
            "finalizers": [FINALIZER_MACHINE],
        },
        "spec": spec,
    }


@dataclass(frozen=True, slots=True)
class Followed:
    """The values that Machines follow while they exist, for comparison with many of them."""

    template: MachineSpec
    handed: Handed

    @staticmethod
    def of(machine_set: MachineSet) -> Followed:
        """The values that the Machines of a MachineSet follow."""
        handed = Handed.of(labels(machine_set), handed_annotations(machine_set))
        return Followed(machine_set.spec.template.spec, handed)

    def metadata(self, obj: Resource) -> dict[str, Any]:
        """The change of labels and annotations of a Machine or of an object that it refers to; empty if none."""
        return self.handed.change(obj.metadata.labels, obj.metadata.annotations)

    def change(self, machine: Machine, *, metadata: bool = True) -> MergePatch | None:
        """The patch that brings a Machine in line with the template; None if nothing changes.

        A Machine that is being deleted gets only changes that concern its deletion. Without `metadata`, labels and
        annotations are known to be in line.
        """
        change: Fields = {}
        if not self._is_like(machine.spec):
            spec = diff(_followed(machine.spec), _followed(self._desired(machine.spec)))
            if spec:
                change["spec"] = spec
        if metadata and not is_deleting(machine) and (handed := self.metadata(machine)):
            change["metadata"] = handed
        return patch(MACHINE, machine, change) if change else None

    def _is_like(self, spec: MachineSpec) -> bool:
        desired = self._desired(spec)
        return (
            spec.deletion == desired.deletion
            and spec.min_ready_seconds == desired.min_ready_seconds
            and spec.readiness_gates == desired.readiness_gates
            and spec.taints == desired.taints
        )

    def _desired(self, spec: MachineSpec) -> MachineSpec:
        """The template, with the default that admission has set on the Machine."""
        deletion, held = self.template.deletion, spec.deletion.node_deletion_timeout_seconds
        if deletion.node_deletion_timeout_seconds is not None or held != NODE_DELETION_TIMEOUT_S:
            return self.template
        filled = msgspec.structs.replace(deletion, node_deletion_timeout_seconds=NODE_DELETION_TIMEOUT_S)
        return msgspec.structs.replace(self.template, deletion=filled)


def _followed(spec: MachineSpec) -> Fields:
    fields: Fields = to_builtin(spec)
    return {name: fields[name] for name in IN_PLACE if name in fields} | {"deletion": fields.get("deletion") or {}}
