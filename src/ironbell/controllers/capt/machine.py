"""TinkerbellMachine: a Machine of a cluster, on a server; from the queue for servers to a wiped one that is released.

What happens to the server is `provisioner.lifecycle`'s; here Machine, Cluster and TinkerbellMachine become what is
wanted of it, and its steps become the TinkerbellMachine's status.

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
from ironbell.controllers.capt.conditions import OWNER_REMEDIATED
from ironbell.controllers.capt.host import LIFECYCLE, OWNERS, cluster_key, node_wish, owner_text, template_of, wish
from ironbell.controllers.capt.observed import MACHINES_OF, Observed, gather
from ironbell.controllers.capt.status import decision, status_change
from ironbell.controllers.capt.templates import template_for
from ironbell.kube.conditions import find_condition
from ironbell.kube.decision import Decision, Fields, Key, MergePatch, Waiting, wait
from ironbell.kube.finalizers import is_deleting
from ironbell.kube.reconciler import Cache, Declaration, Watch
from ironbell.provisioner.deferral import identity
from ironbell.provisioner.lifecycle.claiming import WAITING_FOR_HARDWARE
from ironbell.provisioner.lifecycle.created import Boot
from ironbell.provisioner.lifecycle.host import HostWish
from ironbell.provisioner.lifecycle.names import RACK, WANTED_IN, provider_id
from ironbell.provisioner.lifecycle.owner import Owner
from ironbell.provisioner.lifecycle.selection import Wish, elsewhere
from ironbell.provisioner.lifecycle.stages import next_step
from ironbell.provisioner.lifecycle.waves import rack_of
from ironbell.provisioner.settings import InstallSettings


def _of_machine(machine: Machine, _cache: Cache) -> Iterable[Key]:
    reference = machine.spec.infrastructure_ref
    if reference.kind == TINKERBELL_MACHINE.kind and reference.api_group == TINKERBELL_MACHINE.group:
        yield machine.metadata.namespace, reference.name


def _of_cluster(cluster: Cluster, cache: Cache) -> Iterable[Key]:
    return _of_name(cluster.metadata.namespace, cluster.metadata.name, cache)


def _of_infrastructure(obj: TinkerbellCluster, cache: Cache) -> Iterable[Key]:
    owners = [owner.name for owner in obj.metadata.owner_references if owner.kind == CLUSTER.kind]
    return [key for name in owners for key in _of_name(obj.metadata.namespace, name, cache)]


def _of_name(namespace: str, cluster: str, cache: Cache) -> list[Key]:
    return [obj.key for obj in cache.indexed(MACHINES_OF, cluster) if obj.metadata.namespace == namespace]


def _cluster_matters(old: Cluster | None, new: Cluster | None) -> bool:
    return old is None or new is None or _facts(old) != _facts(new)


def _facts(cluster: Cluster) -> tuple[Any, ...]:
    return cluster.spec.paused, cluster.spec.infrastructure_ref, cluster.status.initialization


def _infrastructure_matters(old: TinkerbellCluster | None, new: TinkerbellCluster | None) -> bool:
    if old is None or new is None:
        return True
    return (old.spec, old.status.ready, old.metadata.owner_references) != (
        new.spec,
        new.status.ready,
        new.metadata.owner_references,
    )


@dataclass(frozen=True)
class TinkerbellMachineReconciler:
    """Finds a server, has it installed, and releases it."""

    site: str
    """Where machines reach the metadata service, such as `http://192.0.2.1:7080`."""
    name: str = "capt-machine"
    at_once: int = INSTALLS_PER_RACK
    """How many servers of a rack are powered on at the same time; 0 is no bound."""
    images: ImageSource = NO_IMAGES
    """Where machines that name no image get theirs."""
    declaration: ClassVar[Declaration[TinkerbellMachine]] = Declaration(
        TINKERBELL_MACHINE,
        watches=(
            Watch(MACHINE, _of_machine),
            Watch(CLUSTER, _of_cluster, _cluster_matters),
            Watch(TINKERBELL_CLUSTER, _of_infrastructure, _infrastructure_matters),
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
        wanted = host_wish(observed, settings, now)
        step = next_step(Owner(OWNERS, obj), wanted, observed.state, now)
        if step.waiting is not None and step.waiting.reason == WAITING_FOR_HARDWARE:
            step = step.explained(f"{_other_domain(observed, wanted.servers)}{_no_spare(observed)}")
        return decision(observed, step, pause, now)


def host_wish(observed: Observed, settings: InstallSettings, now: datetime) -> HostWish:
    """Return what a TinkerbellMachine wants of a server."""
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
    """Which servers the machine may claim, while it searches for one, and why that is not known."""
    obj, state = observed.obj, observed.state
    if not state.is_searching:
        return Wish(), ""
    label, _, domain = obj.metadata.annotations.get(WANTED_IN, "").partition("=")
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
    """What is known of the replacement of a Machine that was asked for; None if none was."""
    asked = find_condition(machine.status.conditions, OWNER_REMEDIATED)
    if (asked is not None and asked.status == "False") or ANNOTATION_REMEDIATE_MACHINE in machine.metadata.annotations:
        return asked.message if asked is not None else ""
    return None


def _waits_for(observed: Observed) -> Waiting | None:
    """Reason and message, if the machine cannot have a server yet."""
    machine, cluster, infrastructure = observed.machine, observed.cluster, observed.infrastructure
    if machine is None:
        named = observed.machine_name
        missing = f"Machine {named} does not exist" if named else "the Machine has not set its owner reference yet"
        return Waiting("WaitingForOwner", missing)
    if cluster is None:
        return Waiting("WaitingForCluster", f"Cluster {machine.spec.cluster_name} does not exist")
    if infrastructure is None:
        reference = cluster.spec.infrastructure_ref
        message = f"the Cluster's infrastructure {reference.kind} {reference.name} is no TinkerbellCluster that exists"
        return Waiting("WaitingForClusterInfrastructure", message)
    if not (infrastructure.status.ready or infrastructure.status.initialization.provisioned):
        message = f"TinkerbellCluster {infrastructure.metadata.name} is not ready yet"
        return Waiting("WaitingForClusterInfrastructure", message)
    if not machine.spec.bootstrap.data_secret_name:
        return Waiting("WaitingForBootstrapData", "the bootstrap provider has not made its data yet")
    if observed.secret is None and not observed.obj.status.ready:
        message = f"Secret {machine.spec.bootstrap.data_secret_name} does not exist"
        return Waiting("WaitingForBootstrapData", message)
    if not machine.spec.version and not observed.obj.status.ready:
        return Waiting("WaitingForVersion", "the Machine's spec.version is empty; set it")
    return None


def _record(
    obj: TinkerbellMachine, machine: Machine, hardware: Hardware, infrastructure: TinkerbellCluster
) -> MergePatch | None:
    """The machine names the server that it has: from here on that is fixed, whoever else has claimed one for it.

    A control plane spreads its Machines by the domain that they name: one that named none gets that of its server.
    """
    found = provider_id(hardware)
    if obj.spec.provider_id == found and obj.spec.hardware_name == hardware.metadata.name:
        return None
    names = {"hardwareName": hardware.metadata.name, "providerID": found}
    label = infrastructure.spec.failure_domain_label
    domain = hardware.metadata.labels.get(label, "")
    if domain and not machine.spec.failure_domain and LABEL_CONTROL_PLANE in machine.metadata.labels:
        names["failureDomain"] = domain
    body: Fields = {"spec": names}
    if rack := rack_of(hardware, label):
        body["metadata"] = {"annotations": {RACK: rack}}
    return Owner(OWNERS, obj).patch(body)


def _other_domain(observed: Observed, wished: Wish) -> str:
    """What to do about a control plane's machine that was put into a domain which can take none any more."""
    machine, others = observed.machine, elsewhere(wished, observed.state.servers, observed.state.silent_bmcs)
    if machine is None or not others or LABEL_CONTROL_PLANE not in machine.metadata.labels:
        return ""
    named = ", ".join(others[:3]) + (", ..." if len(others) > 3 else "")
    return f"; failure domain {named} has one: delete Machine {machine.metadata.name}, and another is made for there"


def _no_spare(observed: Observed) -> str:
    """What to do about a rollout for which there is no spare server."""
    machine = observed.machine
    if machine is None:
        return ""
    rolled, mine = _rolled(machine), (machine.spec.version, template_of(observed.obj))
    others = [one for owner, one in observed.siblings if _rolled(owner) == rolled and (owner.spec.version, one) != mine]
    if not rolled or not others:
        return ""
    return f"; {rolled} is being rolled out: with maxSurge 0 it needs no spare server"


def _rolled(machine: Machine) -> str:
    """Who rolls this Machine out."""
    labels = machine.metadata.labels
    if LABEL_CONTROL_PLANE in labels:
        return f"control plane {labels.get(LABEL_CONTROL_PLANE_NAME) or machine.spec.cluster_name}"
    name = labels.get(LABEL_DEPLOYMENT_NAME)
    return f"MachineDeployment {name}" if name else ""
