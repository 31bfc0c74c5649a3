"""Failure domains of a cluster: the values of a label of Hardware, and whether each has a server for a control plane.

A control plane sets the domain of each Machine when it creates it, and a machine is placed only there. A domain without
an available server is therefore reported as unsuitable for control planes (`controlPlane: false`): the next Machine is
placed in another domain or, if none is suitable, without a domain on the first available server. A rollout deletes
Machines in a full domain first, and the next Machine gets their servers.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from ironbell.api.bmc.machine import Machine
from ironbell.api.capt import TINKERBELL_CLUSTER, TINKERBELL_MACHINE_TEMPLATE
from ironbell.api.capt.names import LABEL_OWNER_NAME, LABEL_OWNER_NAMESPACE
from ironbell.api.capt.tinkerbellcluster import FailureDomain, TinkerbellCluster
from ironbell.api.capt.tinkerbellmachine import TinkerbellMachineSpec
from ironbell.api.cluster.cluster import Cluster
from ironbell.api.core import Namespace
from ironbell.api.tinkerbell.hardware import HARDWARE, Hardware, HardwareState
from ironbell.base.labels import SelectorError
from ironbell.contract.clusters.external import State, read_reference
from ironbell.contract.fields import text_at
from ironbell.contract.servers.claim import HELD
from ironbell.contract.servers.inventory_labels import SWITCH_PORT
from ironbell.controllers.capt.host import wish
from ironbell.kube.decision import Fields, Key
from ironbell.kube.finalizers import is_deleting
from ironbell.kube.reconciler import Cache, Index
from ironbell.provisioner.claims_from import cached_rules
from ironbell.provisioner.deferral import identity
from ironbell.provisioner.lifecycle.bmc_health import BY_BMC
from ironbell.provisioner.lifecycle.observe import silent_bmcs
from ironbell.provisioner.lifecycle.reserving import is_available_to_somebody
from ironbell.provisioner.lifecycle.selection import Wish, unusable, verdict

MAX_DOMAINS = 100
"""Maximum number of domains that Cluster API accepts."""
_NOT_ABOUT_PLACE = (LABEL_OWNER_NAME, LABEL_OWNER_NAMESPACE, SWITCH_PORT)

BY_FAILURE_DOMAIN_LABEL: Index[TinkerbellCluster] = Index(
    TINKERBELL_CLUSTER,
    "capt-failure-domain-label",
    lambda obj: [obj.spec.failure_domain_label] if obj.spec.failure_domain_label else [],
)
WITH_DOMAINS: Index[TinkerbellCluster] = Index(
    TINKERBELL_CLUSTER,
    "capt-with-domains",
    lambda obj: ["any"] if obj.spec.failure_domain_label else [],
)
BY_LABEL_NAME: Index[Hardware] = Index(HARDWARE, "capt-label-name", lambda hardware: list(hardware.metadata.labels))


def domains(cache: Cache, obj: TinkerbellCluster, cluster: Cluster | None) -> tuple[FailureDomain, ...] | None:
    """Return the domains by name, each with whether it has an available server for the control plane; None until the
    control plane's requirements are known."""
    label = obj.spec.failure_domain_label
    if not label:
        return ()
    requirements = _control_plane_wish(cache, cluster)
    if requirements is None:
        return None
    suitable: dict[str, bool] = {}
    bmcs, rules = {bmc.key: bmc for bmc in silent_bmcs(cache)}, cached_rules(cache)
    requirements = dataclasses.replace(
        requirements, cluster=identity(cluster), namespace=obj.metadata.namespace, claims=rules
    )
    for server in cache.indexed(BY_LABEL_NAME, label):
        name = server.metadata.labels[label]
        if name:
            fits = _is_available(server) and verdict(requirements, server, bmcs).fits
            suitable[name] = suitable.get(name, False) or fits
    listed = (FailureDomain(name=name, control_plane=fits) for name, fits in sorted(suitable.items()))
    return tuple(listed)[:MAX_DOMAINS]


def place(hardware: Hardware | None) -> dict[str, str]:
    """Return the labels that describe a server and its location; a claim changes only the owner's."""
    labels = hardware.metadata.labels if hardware is not None else {}
    return {name: value for name, value in labels.items() if name not in _NOT_ABOUT_PLACE}


def has_moved(old: Hardware | None, new: Hardware | None) -> bool:
    """Return whether the labels that describe a server and its location changed."""
    return place(old) != place(new)


def is_claimed_or_released(old: Hardware | None, new: Hardware | None) -> bool:
    """Return whether the server became available, or is no longer available."""
    return old is not None and new is not None and _is_available(old) != _is_available(new)


def clusters_of(hardware: Hardware, cache: Cache) -> Iterable[Key]:
    """Return the clusters whose domains a server's labels name."""
    for label in hardware.metadata.labels:
        for obj in cache.indexed(BY_FAILURE_DOMAIN_LABEL, label):
            yield obj.key


def clusters_with_domains(_namespace: Namespace, cache: Cache) -> Iterable[Key]:
    """Return all clusters that have domains, because the servers that they may claim have changed."""
    return [obj.key for obj in cache.indexed(WITH_DOMAINS, "any")]


def clusters_of_bmc(bmc: Machine, cache: Cache) -> Iterable[Key]:
    """Return the clusters with the domains of a BMC's server."""
    for hardware in cache.indexed(BY_BMC, "/".join(bmc.key)):
        if _is_free(hardware):
            yield from clusters_of(hardware, cache)


def clusters_without_equivalent(hardware: Hardware, cache: Cache) -> Iterable[Key]:
    """Return the clusters whose domain has no equivalent available server: otherwise each of a thousand claims would
    reconcile a thousand clusters."""
    alike = place(hardware)
    for label in alike:
        concerned = [obj.key for obj in cache.indexed(BY_FAILURE_DOMAIN_LABEL, label)]
        if concerned and not any(
            other.key != hardware.key and place(other) == alike and _is_free(other)
            for other in cache.indexed(BY_LABEL_NAME, label)
        ):
            yield from concerned


def _is_free(hardware: Hardware) -> bool:
    return LABEL_OWNER_NAME not in hardware.metadata.labels and _is_available(hardware)


def _is_available(hardware: Hardware) -> bool:
    """Return whether machines of at least one Cluster may claim the server."""
    metadata = hardware.metadata
    return (
        is_available_to_somebody(hardware)
        and HELD not in metadata.annotations
        and hardware.status.state != HardwareState.ERROR
        and not is_deleting(hardware)
        and not unusable(hardware)
    )


def _control_plane_wish(cache: Cache, cluster: Cluster | None) -> Wish | None:
    """Return the requirements of the control plane's machines: none where they cannot be known, None until they are."""
    if cluster is None or not cluster.spec.control_plane_ref.name:
        return Wish()
    plane = read_reference(cache, cluster.spec.control_plane_ref, cluster.metadata.namespace)
    if plane.obj is None:
        return None if plane.state is State.UNKNOWN and not plane.problem else Wish()
    name = _template_name(plane.obj.body)
    template = cache.get(TINKERBELL_MACHINE_TEMPLATE, cluster.metadata.namespace, name) if name else None
    return _wish_of(template.spec.template.spec) if template is not None else Wish()


def _template_name(body: Fields) -> str:
    """Return the name of a control plane's machine template, by either version of the contract."""
    of_spec = text_at(body, "spec", "machineTemplate", "spec", "infrastructureRef", "name")
    return of_spec or text_at(body, "spec", "machineTemplate", "infrastructureRef", "name")


def _wish_of(spec: TinkerbellMachineSpec) -> Wish:
    try:
        return wish(spec)
    except SelectorError:
        return Wish()
