"""The desired state of a MachineDeployment's MachineSets: at their creation, and while they exist.

Source: kubernetes-sigs/cluster-api: core/reconcilers/machinedeployment/machinedeployment_rollout_planner.go,
mdutil/util.go (annotations).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from ironbell.api.cluster import MACHINE_DEPLOYMENT, MACHINE_SET
from ironbell.api.cluster.machinedeployment import MachineDeployment
from ironbell.api.cluster.machineset import MachineSet
from ironbell.api.cluster.names import (
    ANNOTATION_CONVERSION_DATA,
    ANNOTATION_DESIRED_REPLICAS,
    ANNOTATION_DISABLE_MACHINE_CREATE,
    ANNOTATION_MAX_REPLICAS,
    ANNOTATION_REVISION,
    ANNOTATION_REVISION_HISTORY,
    FINALIZER_MACHINE_SET,
    LABEL_CLUSTER_NAME,
    LABEL_DEPLOYMENT_NAME,
    LABEL_MACHINE_TEMPLATE_HASH,
)
from ironbell.api.meta import to_builtin
from ironbell.base.quantities import decimal
from ironbell.contract.clusters.name_templates import generated_name, suffix
from ironbell.contract.clusters.propagation import handed_over, metadata_change
from ironbell.contract.owners import owner_reference
from ironbell.controllers.capi.machinedeployment.limits import ON_DELETE, Limits
from ironbell.controllers.capi.machinedeployment.template import FOLLOWED_IN_PLACE, template_hash
from ironbell.controllers.capi.topology.changes import ANNOTATION_APPLIED
from ironbell.kube.decision import Fields, MergePatch, patch
from ironbell.kube.patches import diff

_NOT_HANDED_ON: Final = frozenset(
    {
        "kubectl.kubernetes.io/last-applied-configuration",
        ANNOTATION_CONVERSION_DATA,
        ANNOTATION_REVISION,
        ANNOTATION_REVISION_HISTORY,
        ANNOTATION_DESIRED_REPLICAS,
        ANNOTATION_MAX_REPLICAS,
        ANNOTATION_APPLIED,
    }
)
_TEMPLATE_FIELDS: Final = tuple(name for name in FOLLOWED_IN_PLACE if name not in ("clusterName", "providerID"))


@dataclass(frozen=True, slots=True)
class Revision:
    """The number of a rollout, and the annotations with it."""

    number: str
    annotations: Mapping[str, str]


def revision(new: MachineSet | None, old: Iterable[MachineSet]) -> Revision:
    """The revision of the new MachineSet: above all others. Its earlier revisions are kept in its history."""
    number = max((_number(machine_set) for machine_set in old), default=0) + 1
    if new is None:
        return Revision(str(number), {ANNOTATION_REVISION: str(number)})
    previous = new.metadata.annotations.get(ANNOTATION_REVISION, "")
    history = new.metadata.annotations.get(ANNOTATION_REVISION_HISTORY, "")
    number = max(number, _number(new))
    if previous and previous != str(number):
        history = f"{history},{previous}" if history else previous
    annotations = {ANNOTATION_REVISION: str(number)}
    return Revision(str(number), annotations | ({ANNOTATION_REVISION_HISTORY: history} if history else {}))


def held_revision(old: MachineSet) -> dict[str, str]:
    """The revisions that an old MachineSet keeps."""
    names = (ANNOTATION_REVISION, ANNOTATION_REVISION_HISTORY)
    return {name: old.metadata.annotations[name] for name in names if name in old.metadata.annotations}


def own_annotations(deployment: MachineDeployment, limits: Limits, *, is_new: bool) -> dict[str, str]:
    """Annotations that a MachineSet gets from its MachineDeployment."""
    copied = {name: value for name, value in deployment.metadata.annotations.items() if name not in _NOT_HANDED_ON}
    stopped = not is_new and limits.strategy == ON_DELETE
    return {
        **copied,
        ANNOTATION_DESIRED_REPLICAS: str(limits.replicas),
        ANNOTATION_MAX_REPLICAS: str(limits.replicas + limits.max_surge),
        ANNOTATION_DISABLE_MACHINE_CREATE: "true" if stopped else "false",
    }


def labels(deployment: MachineDeployment, identity: str) -> dict[str, str]:
    """Labels of a MachineSet and of its template."""
    return {
        **deployment.spec.template.metadata.labels,
        LABEL_CLUSTER_NAME: deployment.spec.cluster_name,
        LABEL_DEPLOYMENT_NAME: deployment.metadata.name,
        LABEL_MACHINE_TEMPLATE_HASH: identity,
    }


def new_set(deployment: MachineDeployment, limits: Limits, number: Revision, replicas: int) -> Fields:
    """A MachineSet to create. Its name follows from the template and the revision."""
    name = deployment.metadata.name
    seed = (deployment.metadata.uid, template_hash(deployment), number.number, deployment.spec.rollout.after or "")
    identity = f"{template_hash(deployment)}-{suffix(*seed)}"
    own_labels = labels(deployment, identity)
    annotations = own_annotations(deployment, limits, is_new=True) | dict(number.annotations)
    set_labels, set_annotations = handed_over(own_labels, annotations)
    template_spec: Fields = to_builtin(deployment.spec.template.spec)
    spec: Fields = {
        "clusterName": deployment.spec.cluster_name,
        "replicas": replicas,
        "template": {"metadata": _template_metadata(deployment, own_labels), "spec": template_spec},
        **_followed(to_builtin(deployment.spec)),
        "selector": _selector(deployment, identity),
    }
    return {
        "metadata": {
            "name": generated_name(f"{name}-", *seed),
            "namespace": deployment.metadata.namespace,
            "labels": set_labels,
            "annotations": set_annotations,
            "ownerReferences": [to_builtin(owner_reference(MACHINE_DEPLOYMENT, deployment, controller=True))],
            "finalizers": [FINALIZER_MACHINE_SET],
        },
        "spec": spec,
    }


def set_change(
    deployment: MachineDeployment, machine_set: MachineSet, annotations: Mapping[str, str], replicas: int | None
) -> MergePatch | None:
    """The patch that brings a MachineSet in line with its MachineDeployment; None if nothing changes.

    Args:
        deployment: the owner.
        machine_set: the MachineSet as observed.
        annotations: all annotations that come from the owner.
        replicas: its next size, or None to leave it unchanged.
    """
    meta = machine_set.metadata
    own_labels = labels(deployment, meta.labels.get(LABEL_MACHINE_TEMPLATE_HASH, ""))
    current: Fields = to_builtin(machine_set.spec)
    desired = _followed(to_builtin(deployment.spec))
    desired_template = _template_fields(to_builtin(deployment.spec.template.spec))
    spec = diff(_followed(current), desired)
    template: Fields = {}
    if inner := diff(_template_fields(current["template"].get("spec") or {}), desired_template):
        template["spec"] = inner
    if inner := diff(current["template"].get("metadata") or {}, _template_metadata(deployment, own_labels)):
        template["metadata"] = inner
    if template:
        spec["template"] = template
    if replicas is not None and replicas != machine_set.spec.replicas:
        spec["replicas"] = replicas
    change: Fields = {"spec": spec} if spec else {}
    if metadata := metadata_change(meta.labels, meta.annotations, own_labels, annotations):
        change["metadata"] = metadata
    return patch(MACHINE_SET, machine_set, change, locked=True) if change else None


def _template_metadata(deployment: MachineDeployment, own_labels: Mapping[str, str]) -> Fields:
    """Metadata of the Machines' template. The MachineSet itself adds the label with the deployment's name."""
    template = deployment.spec.template.metadata
    left_out = {LABEL_DEPLOYMENT_NAME} - template.labels.keys()
    labels = {name: value for name, value in own_labels.items() if name not in left_out}
    return {"labels": labels, **({"annotations": dict(template.annotations)} if template.annotations else {})}


def _selector(deployment: MachineDeployment, identity: str) -> Fields:
    selector: Fields = to_builtin(deployment.spec.selector)
    return {**selector, "matchLabels": {**(selector.get("matchLabels") or {}), LABEL_MACHINE_TEMPLATE_HASH: identity}}


def _followed(spec: Fields) -> Fields:
    return {name: spec[name] for name in ("deletion", "machineNaming") if spec.get(name)}


def _template_fields(spec: Fields) -> Fields:
    return {name: spec[name] for name in _TEMPLATE_FIELDS if spec.get(name) not in (None, {}, [])}


def _number(machine_set: MachineSet) -> int:
    text = machine_set.metadata.annotations.get(ANNOTATION_REVISION, "")
    return decimal(text) or 0
