"""Creation of a Machine with its infrastructure machine and KubeadmConfig, without duplicates after a crash. Pure.

The name is derived from the control plane and from the number of Machines that it has created, which an annotation
records. The infrastructure machine and the KubeadmConfig are created first, then the Machine, and then the number is
incremented. After a crash the existing objects of this name are completed. If no Machine is needed any longer, or the
objects are outdated, they are deleted and the number is incremented, so that no name is used twice.

Source: kubernetes-sigs/cluster-api: controlplane/kubeadm/reconcilers/kubeadmcontrolplane
(cloneConfigsAndGenerateMachine).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ironbell.api.bootstrap.kubeadmconfig import KUBEADM_CONFIG, KubeadmConfig
from ironbell.api.cluster.machine import MACHINE, Machine
from ironbell.api.cluster.names import ANNOTATION_REMEDIATION_IN_PROGRESS
from ironbell.api.controlplane.kubeadmcontrolplane import KUBEADM_CONTROL_PLANE, KubeadmControlPlane
from ironbell.api.kind import Kind
from ironbell.api.meta import to_builtin
from ironbell.api.unstructured import Unstructured
from ironbell.base.quantities import decimal
from ironbell.contract.clusters.external import External, State, read_reference
from ironbell.contract.clusters.name_templates import render_name, suffix
from ironbell.contract.clusters.propagation import MACHINES_CREATED, handed_over
from ironbell.contract.clusters.references import ObjectReference
from ironbell.contract.owners import owner_reference
from ironbell.contract.templates import SUFFIX, clone, cloned_kind, is_cloned_from
from ironbell.controllers.kubeadm.controlplane.machines import desired
from ironbell.controllers.kubeadm.controlplane.machines.configspec import desired_spec, is_up_to_date
from ironbell.kube.decision import Action, Create, Fields, create, delete, patch
from ironbell.kube.manager.failures import Failure
from ironbell.kube.reconciler import Cache

NAME_TEMPLATE: Final = "{{ .kubeadmControlPlane.name }}-{{ .random }}"


@dataclass(frozen=True, slots=True)
class Slot:
    """The name of the next Machine, and the existing objects of this name."""

    name: str
    infra_kind: Kind[Unstructured] | None = None
    """None until the kind of infrastructure machines is known."""
    infra: Unstructured | None = None
    infra_known: bool = True
    """Whether it is known if the infrastructure machine exists."""
    config: KubeadmConfig | None = None
    machine: Machine | None = None


@dataclass(frozen=True, slots=True)
class NewMachine:
    """The desired next Machine."""

    joins: bool
    failure_domain: str
    spec: Fields
    """`spec.kubeadmConfigSpec` as plain data."""
    version: tuple[int, int, int]
    etcd_managed: bool


@dataclass(frozen=True, slots=True)
class Failed:
    """The failure of the last attempt to create a Machine."""

    reason: str
    """Reason of the v1beta1 condition `MachinesCreated`."""
    message: str
    title: str
    """Kind and name of the object."""

    @property
    def summary(self) -> str:
        """Object and message in one line."""
        return f"{self.title} could not be created: {self.message}"


def failed(failure: Failure | None) -> Failed | None:
    """Return the failure if it was one of the creation of a Machine or its objects."""
    if failure is None or not isinstance(failure.write, Create):
        return None
    kind, body = failure.write.kind, failure.write.body
    reasons = {
        MACHINE.collection: "MachineGenerationFailed",
        KUBEADM_CONFIG.collection: "BootstrapTemplateCloningFailed",
    }
    reason = reasons.get(kind.collection, "InfrastructureTemplateCloningFailed")
    return Failed(reason, failure.message, f"{kind.kind} {body['metadata']['name']}")


def slot(cache: Cache, kcp: KubeadmControlPlane, cluster: str, template: External) -> Slot:
    """Return the slot of the next Machine.

    Raises:
        NameTemplateError: `spec.machineNaming.template` is not valid.
    """
    naming = kcp.spec.machine_naming.template or NAME_TEMPLATE
    random = suffix(kcp.metadata.uid, _created_count(kcp))
    name = render_name(naming, cluster, random, {"kubeadmControlPlane": {"name": kcp.metadata.name}})
    namespace = kcp.metadata.namespace
    template_reference = template.reference
    reference = ObjectReference(template_reference.api_group, template_reference.kind.removesuffix(SUFFIX), name)
    infra = read_reference(cache, reference, namespace)
    return Slot(
        name,
        cloned_kind(cache, template),
        infra.obj,
        infra.state in (State.EXISTS, State.MISSING),
        cache.get(KUBEADM_CONFIG, namespace, name),
        cache.get(MACHINE, namespace, name),
    )


def settle(kcp: KubeadmControlPlane, place: Slot) -> list[Action]:
    """Clear the slot: delete objects that no Machine uses, and increment the number; nothing if the slot is empty."""
    if place.machine is not None:
        return [_increment(kcp, is_created=True)]
    leftovers: list[Action] = []
    if place.infra is not None and place.infra_kind is not None:
        leftovers.append(delete(place.infra_kind, place.infra))
    if place.config is not None:
        leftovers.append(delete(KUBEADM_CONFIG, place.config))
    return [*leftovers, _increment(kcp, is_created=False)] if leftovers else []


def creation_actions(
    kcp: KubeadmControlPlane, cluster: str, template: External, place: Slot, new: NewMachine
) -> list[Action]:
    """Return the actions that create the Machine, or complete its creation; empty if this is not possible now."""
    if place.infra_kind is None or not place.infra_known or not template.exists:
        return []
    if place.machine is not None or not _usable(template, place, new):
        return settle(kcp, place)
    owner = owner_reference(KUBEADM_CONTROL_PLANE, kcp)
    actions: list[Action] = []
    if place.infra is None:
        labels, annotations = handed_over(desired.labels_of(kcp, cluster), desired.annotations_of(kcp))
        actions.append(
            clone(
                template,
                place.infra_kind,
                name=place.name,
                cluster=cluster,
                labels=labels,
                annotations=annotations,
                owners=[owner],
            )
        )
    if place.config is None:
        spec = desired_spec(new.spec, new.version, joins=new.joins)
        actions.append(create(KUBEADM_CONFIG, desired.config_body(kcp, cluster, name=place.name, spec=spec)))
    reference = {"apiGroup": place.infra_kind.group, "kind": place.infra_kind.kind, "name": place.name}
    body = desired.machine_body(
        kcp,
        cluster,
        name=place.name,
        failure_domain=new.failure_domain,
        infrastructure=reference,
        remediation_for=kcp.metadata.annotations.get(ANNOTATION_REMEDIATION_IN_PROGRESS, ""),
        etcd_managed=new.etcd_managed,
    )
    return [*actions, create(MACHINE, body), _increment(kcp, is_created=True)]


def _usable(template: External, place: Slot, new: NewMachine) -> bool:
    """Return whether the existing objects match the desired Machine."""
    if place.infra is not None and (
        place.infra.metadata.deletion_timestamp is not None or not is_cloned_from(place.infra, template)
    ):
        return False
    if place.config is None:
        return True
    spec: Fields = to_builtin(place.config.spec)
    joins = spec.get("joinConfiguration", {}).get("controlPlane") is not None
    same = is_up_to_date(spec, new.spec, new.version)
    return place.config.metadata.deletion_timestamp is None and joins == new.joins and same


def _created_count(kcp: KubeadmControlPlane) -> int:
    text = kcp.metadata.annotations.get(MACHINES_CREATED, "")
    return decimal(text) or 0


def _increment(kcp: KubeadmControlPlane, *, is_created: bool) -> Action:
    """Increment the number; if a Machine was created, a remediation that waited for this replacement has completed."""
    changed: dict[str, str | None] = {MACHINES_CREATED: str(_created_count(kcp) + 1)}
    if is_created and ANNOTATION_REMEDIATION_IN_PROGRESS in kcp.metadata.annotations:
        changed[ANNOTATION_REMEDIATION_IN_PROGRESS] = None
    return patch(KUBEADM_CONTROL_PLANE, kcp, {"metadata": {"annotations": changed}}, locked=True)
