"""The state that a decision on a TinkerbellMachine depends on, gathered from the cache. No I/O."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ironbell.api.capt import TINKERBELL_CLUSTER, TINKERBELL_MACHINE
from ironbell.api.capt.names import ANNOTATION_TEMPLATE_OVERRIDE
from ironbell.api.capt.tinkerbellcluster import TinkerbellCluster
from ironbell.api.capt.tinkerbellmachine import TinkerbellMachine
from ironbell.api.cluster import CLUSTER, MACHINE
from ironbell.api.cluster.cluster import Cluster
from ironbell.api.cluster.machine import Machine
from ironbell.api.cluster.names import LABEL_CLUSTER_NAME
from ironbell.api.core.secret import SECRET_METADATA, SecretMetadata
from ironbell.api.meta import OwnerReference
from ironbell.api.tinkerbell import TEMPLATE
from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.api.tinkerbell.template import Template
from ironbell.contract.servers.node_images import NodeImages
from ironbell.controllers.capt.host import LIFECYCLE, cluster_key, node_wish, owner_text, template_of
from ironbell.kube.conditions import find_condition
from ironbell.kube.decision import Fact, Key
from ironbell.kube.reconciler import Cache, Index
from ironbell.provisioner.lifecycle.host import HostState
from ironbell.provisioner.lifecycle.names import HARDWARE_READY, NO_HARDWARE
from ironbell.provisioner.node_images import MAX_INDEX_AGE_S, NodeImageIndex

MACHINES_OF: Final[Index[TinkerbellMachine]] = Index(
    TINKERBELL_MACHINE,
    "capt-cluster-name",
    lambda obj: [obj.metadata.labels[LABEL_CLUSTER_NAME]] if LABEL_CLUSTER_NAME in obj.metadata.labels else [],
)


@dataclass(frozen=True, slots=True)
class Observed:
    """A TinkerbellMachine and the objects that it depends on."""

    obj: TinkerbellMachine
    state: HostState
    machine: Machine | None = None
    machine_name: str = ""
    """Name in the owner reference, even if that Machine does not exist."""
    cluster: Cluster | None = None
    infrastructure: TinkerbellCluster | None = None
    secret: SecretMetadata | None = None
    siblings: tuple[tuple[Machine, str], ...] = ()
    """The cluster's Machines and the templates of their TinkerbellMachines; empty unless no server was available."""
    override: Template | None = None
    """The Template that the Hardware's annotation or the cluster's reference names."""
    node_images: Fact[NodeImages] | None = None
    """The node images that the site serves; None once the installation has begun."""


def gather(cache: Cache, key: Key) -> Observed | None:
    """Gather the state; None if the TinkerbellMachine does not exist."""
    obj = cache.get(TINKERBELL_MACHINE, *key)
    if obj is None:
        return None
    namespace = key[0]
    owner = _owner_reference(obj)
    machine = cache.get(MACHINE, namespace, owner.name) if owner is not None else None
    name = machine.spec.cluster_name if machine is not None else obj.metadata.labels.get(LABEL_CLUSTER_NAME, "")
    cluster = cache.get(CLUSTER, namespace, name) if name else None
    infrastructure = None
    if cluster is not None and cluster.spec.infrastructure_ref.kind == TINKERBELL_CLUSTER.kind:
        infrastructure = cache.get(TINKERBELL_CLUSTER, namespace, cluster.spec.infrastructure_ref.name)
    secret_name = machine.spec.bootstrap.data_secret_name if machine is not None else None
    state = LIFECYCLE.observe(
        cache,
        obj,
        namespace=obj.status.target_namespace or namespace,
        node=node_wish(machine, cluster),
        cluster=cluster_key(obj, cluster),
        replaced_by=owner_text(machine),
    )
    reference = override_key(state.hardware, infrastructure)
    is_installed_next = state.hardware is not None and state.workflow is None
    return Observed(
        obj=obj,
        state=state,
        machine=machine,
        machine_name=owner.name if owner is not None else "",
        cluster=cluster,
        infrastructure=infrastructure,
        secret=cache.get(SECRET_METADATA, namespace, secret_name) if secret_name else None,
        siblings=_siblings(cache, obj) if state.hardware is None and _is_short(obj) else (),
        override=cache.get(TEMPLATE, *reference) if reference is not None else None,
        node_images=cache.fact(NodeImageIndex(), MAX_INDEX_AGE_S) if is_installed_next else None,
    )


def _is_short(obj: TinkerbellMachine) -> bool:
    ready = find_condition(obj.status.conditions, HARDWARE_READY)
    return ready is not None and ready.reason == NO_HARDWARE


def _siblings(cache: Cache, obj: TinkerbellMachine) -> tuple[tuple[Machine, str], ...]:
    cluster = obj.metadata.labels.get(LABEL_CLUSTER_NAME, "")
    return tuple(
        (machine, template_of(sibling))
        for sibling in cache.indexed(MACHINES_OF, cluster)
        if sibling.metadata.namespace == obj.metadata.namespace and (machine := _owner(cache, sibling)) is not None
    )


def _owner_reference(obj: TinkerbellMachine) -> OwnerReference | None:
    return next((owner for owner in obj.metadata.owner_references if owner.kind == MACHINE.kind), None)


def _owner(cache: Cache, obj: TinkerbellMachine) -> Machine | None:
    owner = _owner_reference(obj)
    return cache.get(MACHINE, obj.metadata.namespace, owner.name) if owner is not None else None


def override_key(hardware: Hardware | None, infrastructure: TinkerbellCluster | None) -> Key | None:
    """Return the key of the Template that the Hardware's annotation names, or else the cluster's reference."""
    if hardware is None:
        return None
    name = hardware.metadata.annotations.get(ANNOTATION_TEMPLATE_OVERRIDE)
    if name:
        return hardware.metadata.namespace, name
    if infrastructure is None or infrastructure.spec.template_override_ref is None:
        return None
    reference = infrastructure.spec.template_override_ref
    return reference.namespace or hardware.metadata.namespace, reference.name
