"""Making a Machine with its parts, so that a crash at any point leaves nothing doubled and nothing behind. Pure.

The name follows from the control plane and from how many Machines it has made, which it remembers in an annotation.
First the parts are made, then the Machine, then the number grows. Whoever comes back in between finds what is there
under the name and goes on; if no Machine is wanted any more, or the parts are not what is wanted now, they are removed
and the number grows, so that no name is used twice.

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
from ironbell.base.numbers import decimal
from ironbell.contract.clusters.external import External, State, read_reference
from ironbell.contract.clusters.generated_names import suffix
from ironbell.contract.clusters.name_templates import render_name
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
    """The place of the next Machine: its name, and what is there under it."""

    name: str
    infra_kind: Kind[Unstructured] | None = None
    """None while the kind of infrastructure machines is not known."""
    infra: Unstructured | None = None
    infra_known: bool = True
    """Whether it can be told that there is an infrastructure machine of this name."""
    config: KubeadmConfig | None = None
    machine: Machine | None = None


@dataclass(frozen=True, slots=True)
class Wanted:
    """The next Machine."""

    joins: bool
    failure_domain: str
    spec: Fields
    """`spec.kubeadmConfigSpec` in plain data."""
    version: tuple[int, int, int]
    etcd_managed: bool


@dataclass(frozen=True, slots=True)
class Failed:
    """Why the last attempt to make a Machine came to nothing."""

    reason: str
    """Of the older condition `MachinesCreated`."""
    message: str
    what: str

    @property
    def told(self) -> str:
        """All of it in one line."""
        return f"{self.what} could not be created: {self.message}"


def failed(failure: Failure | None) -> Failed | None:
    """Whether it was an attempt to make a Machine that failed, and why."""
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
    """The place of the next Machine, as it is now.

    Raises:
        NameTemplateError: `spec.machineNaming.template` gives no name.
    """
    naming = kcp.spec.machine_naming.template or NAME_TEMPLATE
    random = suffix(kcp.metadata.uid, _made(kcp))
    name = render_name(naming, cluster, random, {"kubeadmControlPlane": {"name": kcp.metadata.name}})
    namespace = kcp.metadata.namespace
    about = template.reference
    reference = ObjectReference(about.api_group, about.kind.removesuffix(SUFFIX), name)
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
    """Leave the place: remove parts that no Machine uses, and let the number grow; nothing if the place is empty."""
    if place.machine is not None:
        return [_grown(kcp, made=True)]
    leftovers: list[Action] = []
    if place.infra is not None and place.infra_kind is not None:
        leftovers.append(delete(place.infra_kind, place.infra))
    if place.config is not None:
        leftovers.append(delete(KUBEADM_CONFIG, place.config))
    return [*leftovers, _grown(kcp, made=False)] if leftovers else []


def make(kcp: KubeadmControlPlane, cluster: str, template: External, place: Slot, wanted: Wanted) -> list[Action]:
    """Make the Machine, or go on making it; empty if that cannot be done now."""
    if place.infra_kind is None or not place.infra_known or not template.exists:
        return []
    if place.machine is not None or not _usable(template, place, wanted):
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
        spec = desired_spec(wanted.spec, wanted.version, joins=wanted.joins)
        actions.append(create(KUBEADM_CONFIG, desired.config_body(kcp, cluster, name=place.name, spec=spec)))
    reference = {"apiGroup": place.infra_kind.group, "kind": place.infra_kind.kind, "name": place.name}
    body = desired.machine_body(
        kcp,
        cluster,
        name=place.name,
        failure_domain=wanted.failure_domain,
        infrastructure=reference,
        remediation_for=kcp.metadata.annotations.get(ANNOTATION_REMEDIATION_IN_PROGRESS, ""),
        etcd_managed=wanted.etcd_managed,
    )
    return [*actions, create(MACHINE, body), _grown(kcp, made=True)]


def _usable(template: External, place: Slot, wanted: Wanted) -> bool:
    """Whether parts that are there already are what the Machine is to have."""
    if place.infra is not None and (
        place.infra.metadata.deletion_timestamp is not None or not is_cloned_from(place.infra, template)
    ):
        return False
    if place.config is None:
        return True
    spec: Fields = to_builtin(place.config.spec)
    joins = spec.get("joinConfiguration", {}).get("controlPlane") is not None
    same = is_up_to_date(spec, wanted.spec, wanted.version)
    return place.config.metadata.deletion_timestamp is None and joins == wanted.joins and same


def _made(kcp: KubeadmControlPlane) -> int:
    text = kcp.metadata.annotations.get(MACHINES_CREATED, "")
    return decimal(text) or 0


def _grown(kcp: KubeadmControlPlane, *, made: bool) -> Action:
    """The number grows; if a Machine was made, a remediation that waited for its replacement is over."""
    changed: dict[str, str | None] = {MACHINES_CREATED: str(_made(kcp) + 1)}
    if made and ANNOTATION_REMEDIATION_IN_PROGRESS in kcp.metadata.annotations:
        changed[ANNOTATION_REMEDIATION_IN_PROGRESS] = None
    return patch(KUBEADM_CONTROL_PLANE, kcp, {"metadata": {"annotations": changed}}, locked=True)
