"""The controller of TinkerbellMachines: it claims a server for a Machine, has it installed, and releases it wiped.

`provisioner.lifecycle` decides what happens to the server. This module translates Machine, Cluster and
TinkerbellMachine into the desired state of the server, and the lifecycle's steps into the TinkerbellMachine's status.

Source: tinkerbell/cluster-api-provider-tinkerbell: controller/machine/{tinkerbellmachine,scope,hardware,workflow}.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any, ClassVar

from ironbell.api.capt import TINKERBELL_CLUSTER, TINKERBELL_MACHINE
from ironbell.api.capt.tinkerbellcluster import TinkerbellCluster
from ironbell.api.capt.tinkerbellmachine import TinkerbellMachine
from ironbell.api.cluster import CLUSTER, MACHINE
from ironbell.api.cluster.cluster import Cluster
from ironbell.api.cluster.machine import Machine
from ironbell.api.cluster.names import (
    ANNOTATION_REMEDIATE_MACHINE,
    LABEL_CONTROL_PLANE,
    LABEL_CONTROL_PLANE_NAME,
    LABEL_DEPLOYMENT_NAME,
)
from ironbell.api.meta import to_builtin
from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.base.labels import SelectorError
from ironbell.contract.clusters.paused import is_paused, paused_condition
from ironbell.contract.servers.node_images import NO_IMAGES, ImageSource
from ironbell.contract.servers.racks import INSTALLS_PER_RACK
from ironbell.controllers.capt.host import LIFECYCLE, OWNERS, cluster_key, node_wish, owner_text, template_of, wish
from ironbell.controllers.capt.observed import MACHINES_OF, Observed, gather
from ironbell.controllers.capt.status import OWNER_REMEDIATED, decision, status_change
from ironbell.controllers.capt.templates import template_for
from ironbell.kube.conditions import find_condition
from ironbell.kube.decision import Decision, Fields, Key, MergePatch, Waiting, wait
from ironbell.kube.finalizers import is_deleting
from ironbell.kube.reconciler import Cache, Declaration, Watch
from ironbell.provisioner.deferral import identity
from ironbell.provisioner.lifecycle.claiming import WAITING_FOR_HARDWARE
from ironbell.provisioner.lifecycle.created import Boot
from ironbell.provisioner.lifecycle.host import HostWish
from ironbell.provisioner.lifecycle.names import QUEUED_IN, RACK, provider_id
from ironbell.provisioner.lifecycle.owner import Owner
from ironbell.provisioner.lifecycle.selection import Wish, elsewhere
from ironbell.provisioner.lifecycle.stages import next_step
from ironbell.provisioner.lifecycle.waves import rack_of
from ironbell.provisioner.node_images import InstallSettings


def _referenced_machine(machine: Machine, _cache: Cache) -> Iterable[Key]:
    reference = machine.spec.infrastructure_ref
    if reference.kind == TINKERBELL_MACHINE.kind and reference.api_group == TINKERBELL_MACHINE.group:
        yield machine.metadata.namespace, reference.name


def _machines_of_cluster(cluster: Cluster, cache: Cache) -> Iterable[Key]:
    return _machines_named_for(cluster.metadata.namespace, cluster.metadata.name, cache)


def _machines_of_infrastructure(obj: TinkerbellCluster, cache: Cache) -> Iterable[Key]:
    owners = [owner.name for owner in obj.metadata.owner_references if owner.kind == CLUSTER.kind]
    return [key for name in owners for key in _machines_named_for(obj.metadata.namespace, name, cache)]


def _machines_named_for(namespace: str, cluster: str, cache: Cache) -> list[Key]:
    return [obj.key for obj in cache.indexed(MACHINES_OF, cluster) if obj.metadata.namespace == namespace]


def _cluster_changed(old: Cluster | None, new: Cluster | None) -> bool:
    return old is None or new is None or _relevant_fields(old) != _relevant_fields(new)


def _relevant_fields(cluster: Cluster) -> tuple[Any, ...]:
    return cluster.spec.paused, cluster.spec.infrastructure_ref, cluster.status.initialization


def _infrastructure_changed(old: TinkerbellCluster | None, new: TinkerbellCluster | None) -> bool:
    if old is None or new is None:
        return True
    return (old.spec, old.status.ready, old.metadata.owner_references) != (
        new.spec,
        new.status.ready,
        new.metadata.owner_references,
    )


@dataclass(frozen=True)
class TinkerbellMachineReconciler:
    """Claims a server, has it installed, and releases it."""

    site: str
    """Address at which machines reach the metadata service, such as `http://192.0.2.1:7080`."""
    name: str = "capt-machine"
    at_once: int = INSTALLS_PER_RACK
    """Maximum number of servers in a rack that are powered on at the same time; 0 means no limit."""
    images: ImageSource = NO_IMAGES
    """Source of images for machines that name none."""
    declaration: ClassVar[Declaration[TinkerbellMachine]] = Declaration(
        TINKERBELL_MACHINE,
        watches=(
            Watch(MACHINE, _referenced_machine),
            Watch(CLUSTER, _machines_of_cluster, _cluster_changed),
            Watch(TINKERBELL_CLUSTER, _machines_of_infrastructure, _infrastructure_changed),
            *LIFECYCLE.watches,
        ),
        indexes=(MACHINES_OF, *LIFECYCLE.indexes),
    )

    def observe(self, cache: Cache, key: Key) -> Observed | None:
        return gather(cache, key)

    def decide(self, observed: Observed, now: datetime) -> Decision:
        obj, cluster = observed.obj, observed.cluster
        paused = bool(cluster.spec.paused) if cluster is not None else False
        pause = paused_condition(TINKERBELL_MACHINE.kind, obj, cluster_paused=paused)
        if is_paused(obj, cluster_paused=paused):
            return wait("Paused", pause.message, status_change(obj, [pause], now))
        settings = InstallSettings(metadata_url=self.site, per_rack=self.at_once, images=self.images)
        desired = host_wish(observed, settings, now)
        step = next_step(Owner(OWNERS, obj), desired, observed.state, now)
        if step.waiting is not None and step.waiting.reason == WAITING_FOR_HARDWARE:
            advice = [text for text in (_other_domain(observed, desired.servers), _no_spare(observed)) if text]
            end = "" if step.waiting.message.endswith(".") else "."
            step = step.explained(" ".join((end, *advice)) if advice else "")
        return decision(observed, step, pause, now)


def host_wish(observed: Observed, settings: InstallSettings, now: datetime) -> HostWish:
    """Return the state of a server that a TinkerbellMachine asks for."""
    obj, machine, cluster, hardware = observed.obj, observed.machine, observed.cluster, observed.state.hardware
    servers, problem = _servers(observed)
    boot = obj.spec.boot_options
    common = HostWish(
        releases=is_deleting(obj),
        servers=servers,
        servers_problem=problem,
        bootstrap=observed.secret,
        boot=Boot(boot.boot_mode, boot.iso_url, to_builtin(boot.customboot_config) if boot.customboot_config else {}),
        installs_per_rack=settings.per_rack,
        node=node_wish(machine, cluster),
        cluster=cluster_key(obj, cluster),
        replaced_by=owner_text(machine),
    )
    infrastructure, waits_for = observed.infrastructure, _waits_for(observed)
    if machine is None or infrastructure is None or waits_for is not None:
        return replace(common, waits_for=waits_for)
    label, domain = infrastructure.spec.failure_domain_label, machine.spec.failure_domain
    return replace(
        common,
        failure_domain=f"{label}={domain}" if label and domain else "",
        record=_record(obj, machine, hardware, infrastructure) if hardware is not None else None,
        template=partial(template_for, observed, machine, hardware, settings, now) if hardware is not None else None,
        replacement=_replacement(machine),
    )


def _servers(observed: Observed) -> tuple[Wish, str]:
    """Return the servers that the machine may claim while it searches for one, or the problem in its spec."""
    obj, state = observed.obj, observed.state
    if not state.is_searching:
        return Wish(), ""
    label, _, domain = obj.metadata.annotations.get(QUEUED_IN, "").partition("=")
    try:
        servers = wish(
            obj.spec,
            failure_domain_label=label,
            failure_domain=domain,
            cluster=identity(observed.cluster),
            namespace=obj.metadata.namespace,
            claims=state.claims,
        )
    except SelectorError as error:
        return Wish(), f"spec.hardwareAffinity: {error}"
    return servers, ""


def _replacement(machine: Machine) -> str | None:
    """Return the message about the Machine's requested replacement; None if no replacement was requested."""
    request = find_condition(machine.status.conditions, OWNER_REMEDIATED)
    is_requested = request is not None and request.status == "False"
    if is_requested or ANNOTATION_REMEDIATE_MACHINE in machine.metadata.annotations:
        return request.message if request is not None else ""
    return None


def _waits_for(observed: Observed) -> Waiting | None:
    """Return the first missing prerequisite of a server, or None."""
    machine, cluster, infrastructure = observed.machine, observed.cluster, observed.infrastructure
    if machine is None:
        named = observed.machine_name
        missing = f"Machine {named} does not exist." if named else "No owner reference to a Machine is set yet."
        return Waiting("WaitingForOwner", missing)
    if cluster is None:
        return Waiting("WaitingForCluster", f"Cluster {machine.spec.cluster_name} does not exist.")
    if infrastructure is None:
        reference = cluster.spec.infrastructure_ref
        message = (
            f"The Cluster's infrastructure {reference.kind} {reference.name} is not an existing TinkerbellCluster."
        )
        return Waiting("WaitingForClusterInfrastructure", message)
    if not (infrastructure.status.ready or infrastructure.status.initialization.provisioned):
        message = f"TinkerbellCluster {infrastructure.metadata.name} is not ready yet."
        return Waiting("WaitingForClusterInfrastructure", message)
    if not machine.spec.bootstrap.data_secret_name:
        return Waiting("WaitingForBootstrapData", "The bootstrap provider has not created the bootstrap data yet.")
    if observed.secret is None and not observed.obj.status.ready:
        message = f"Secret {machine.spec.bootstrap.data_secret_name} with the bootstrap data does not exist."
        return Waiting("WaitingForBootstrapData", message)
    if not machine.spec.version and not observed.obj.status.ready:
        return Waiting("WaitingForVersion", "The Machine's spec.version is empty. Set it.")
    return None


def _record(
    obj: TinkerbellMachine, machine: Machine, hardware: Hardware, infrastructure: TinkerbellCluster
) -> MergePatch | None:
    """Record the claimed server in the machine's spec. From then on it is fixed, even if another one was claimed, too.

    A control plane spreads its Machines by their failure domains. A Machine without one gets that of its server.
    """
    server_id = provider_id(hardware)
    if obj.spec.provider_id == server_id and obj.spec.hardware_name == hardware.metadata.name:
        return None
    names = {"hardwareName": hardware.metadata.name, "providerID": server_id}
    label = infrastructure.spec.failure_domain_label
    domain = hardware.metadata.labels.get(label, "")
    if domain and not machine.spec.failure_domain and LABEL_CONTROL_PLANE in machine.metadata.labels:
        names["failureDomain"] = domain
    body: Fields = {"spec": names}
    if rack := rack_of(hardware, label):
        body["metadata"] = {"annotations": {RACK: rack}}
    return Owner(OWNERS, obj).patch(body)


def _other_domain(observed: Observed, wished: Wish) -> str:
    """Return advice on a machine of a control plane if a server is available only in another failure domain."""
    machine, others = observed.machine, elsewhere(wished, observed.state.servers, observed.state.silent_bmcs)
    if machine is None or not others or LABEL_CONTROL_PLANE not in machine.metadata.labels:
        return ""
    named = ", ".join(others[:3]) + (", ..." if len(others) > 3 else "")
    return f"Failure domain {named} has one: delete Machine {machine.metadata.name} to have it replaced there."


def _no_spare(observed: Observed) -> str:
    """Return advice on a rollout that lacks a spare server."""
    machine = observed.machine
    if machine is None:
        return ""
    rollout, current = _rollout_owner(machine), (machine.spec.version, template_of(observed.obj))
    is_rolling_out = any(
        _rollout_owner(sibling) == rollout and (sibling.spec.version, template) != current
        for sibling, template in observed.siblings
    )
    if not rollout or not is_rolling_out:
        return ""
    return f"{rollout} is being rolled out: with maxSurge 0 it needs no spare server."


def _rollout_owner(machine: Machine) -> str:
    """Return the control plane or MachineDeployment that rolls out a Machine; empty if there is none."""
    labels = machine.metadata.labels
    if LABEL_CONTROL_PLANE in labels:
        return f"control plane {labels.get(LABEL_CONTROL_PLANE_NAME) or machine.spec.cluster_name}"
    name = labels.get(LABEL_DEPLOYMENT_NAME)
    return f"MachineDeployment {name}" if name else ""
