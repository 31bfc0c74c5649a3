"""TinkerbellMachine: a Machine of a cluster, on a server; from the line for servers to a wiped one that is given back.

Source: tinkerbell/cluster-api-provider-tinkerbell: controller/machine/{tinkerbellmachine,scope,hardware,workflow}.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import msgspec

from ironbell.api.bmc import MACHINE as BMC_MACHINE
from ironbell.api.bmc.job import JOB
from ironbell.api.bmc.machine import Machine as BmcMachine
from ironbell.api.capt import TINKERBELL_CLUSTER, TINKERBELL_MACHINE
from ironbell.api.capt.names import FINALIZER, LABEL_MACHINE_NAME, LABEL_MACHINE_NAMESPACE, LEGACY_FINALIZER
from ironbell.api.capt.tinkerbellcluster import TinkerbellCluster
from ironbell.api.capt.tinkerbellmachine import TinkerbellMachine
from ironbell.api.cluster import CLUSTER, MACHINE
from ironbell.api.cluster.cluster import Cluster
from ironbell.api.cluster.machine import Machine
from ironbell.api.cluster.names import LABEL_CONTROL_PLANE
from ironbell.api.core import NAMESPACE, Namespace
from ironbell.api.core.secret import SECRET_METADATA
from ironbell.api.meta import Resource
from ironbell.api.tinkerbell import HARDWARE, TEMPLATE, WORKFLOW
from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.api.tinkerbell.names import ANNOTATION_AGENT_ATTRIBUTES
from ironbell.api.tinkerbell.workflow import Workflow
from ironbell.base.clock import rfc3339_micro
from ironbell.contract.boot_token import BOOT_FOR
from ironbell.contract.hardware_claim import HELD, claim_of, release
from ironbell.contract.identity import KNOWN_BY, SUPERSEDED
from ironbell.contract.node_images import NO_IMAGES, ImageSource
from ironbell.contract.paused import PAUSED, is_paused, paused_condition
from ironbell.contract.racks import INSTALLS_PER_RACK
from ironbell.contract.restored import Restored, restored, why_held
from ironbell.controllers.capt import booting, confirming, reserving
from ironbell.controllers.capt.claiming import claim, note_claim
from ironbell.controllers.capt.conditions import READY
from ironbell.controllers.capt.decommissioning import decommission
from ironbell.controllers.capt.health import BY_BMC, answers_again, machines_of, tell_health, turned
from ironbell.controllers.capt.installing import Settings, how_far, install
from ironbell.controllers.capt.made import ENDED
from ironbell.controllers.capt.node_identity import identify
from ironbell.controllers.capt.observed import (
    BY_OWNER,
    FAILED_FOR,
    FREE,
    SILENT,
    TAKEN,
    Observed,
    gather,
    is_any_free,
)
from ironbell.controllers.capt.progress import Progress
from ironbell.controllers.capt.queue import IN_LINE, WAITING, behind, first_in_line
from ironbell.controllers.capt.reserving import MACHINES_OF, RESERVED, RESERVED_FOR
from ironbell.controllers.capt.waves import IN_RACK, leaves, next_in, rack_of
from ironbell.kube import finalizers
from ironbell.kube.conditions import is_true
from ironbell.kube.decision import Action, AnyKind, Decision, Fields, Key, do, emit, patch, wait
from ironbell.kube.reconciler import Cache, Index, Watch, read_by
from ironbell.provisioner.claims_from import ANNOTATED, rules_changed
from ironbell.provisioner.lifecycle.names import (
    HARDWARE_READY,
    RACK,
    RELEASED,
    WANTED_IN,
    WANTED_SINCE,
    State,
    hardware_key,
    provider_id,
)
from ironbell.provisioner.lifecycle.selection import SHOWN, became_claimable, is_claimable, unusable
from ironbell.provisioner.user_data import withdrawal

PROGRESS_S = 3.0
"""How often at most it is told how far an installation is: whoever tells it on writes, too."""
_NOTED = SHOWN | {ANNOTATION_AGENT_ATTRIBUTES, BOOT_FOR, KNOWN_BY, SUPERSEDED}
"""Annotations of a Hardware that say nothing to who has it."""


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


def _owner_of(hardware: Hardware, _cache: Cache) -> Iterable[Key]:
    claim = claim_of(hardware)
    return [(claim.namespace, claim.name)] if claim is not None else []


def _matters_to_owner(old: Hardware | None, new: Hardware | None) -> bool:
    """Whether more has changed than what others note of a server while it is installed."""
    return old is None or new is None or _of_owner(old) != _of_owner(new)


def _of_owner(hardware: Hardware) -> tuple[Any, ...]:
    metadata, spec = hardware.metadata, hardware.spec
    return (
        (metadata.labels, metadata.finalizers, metadata.deletion_timestamp),
        {name: value for name, value in metadata.annotations.items() if name not in _NOTED},
        msgspec.structs.replace(spec, interfaces=[]),
        [(one.dhcp, one.disable_dhcp, one.isoboot) for one in spec.interfaces],
        hardware.status.state,
    )


def _waiting_for(hardware: Hardware, cache: Cache) -> Iterable[Key]:
    """Those who stand first in line."""
    return first_in_line(cache, hardware.metadata.namespace) if is_claimable(hardware) else []


def _waiting_for_bmc(bmc: BmcMachine, cache: Cache) -> Iterable[Key]:
    """The head of each queue, if the server behind this BMC is free."""
    free = any(is_claimable(hardware) for hardware in cache.indexed(BY_BMC, "/".join(bmc.key)))
    return first_in_line(cache, bmc.metadata.namespace) if free else []


def _waiting_for_namespace(_namespace: Namespace, cache: Cache) -> Iterable[Key]:
    """The head of each queue, as other servers may be claimed now."""
    return first_in_line(cache)


def _of_made(made: Resource, _cache: Cache) -> Iterable[Key]:
    labels = made.metadata.labels
    if LABEL_MACHINE_NAME in labels:
        yield labels.get(LABEL_MACHINE_NAMESPACE, made.metadata.namespace), labels[LABEL_MACHINE_NAME]


def _left_the_line(obj: TinkerbellMachine, cache: Cache) -> Iterable[Key]:
    """Who is next: after one that went without a server, or that took one of several which became free at once."""
    stood = WANTED_SINCE in obj.metadata.annotations and (not obj.spec.hardware_name or is_any_free(cache))
    return behind(cache, obj) if stood else []


def _leaves_the_line(old: TinkerbellMachine | None, new: TinkerbellMachine | None) -> bool:
    if new is None or finalizers.is_deleting(new):
        return True
    if old is None:
        return False
    is_paused_now = not is_true(old.status.conditions, PAUSED) and is_true(new.status.conditions, PAUSED)
    return is_paused_now or bool(not old.spec.hardware_name and new.spec.hardware_name)


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


def _workflow_turned(old: Workflow | None, new: Workflow | None) -> bool:
    """Whether something follows from it: it came, goes, or has ended. The states before that are only told."""
    if old is None or new is None or old.metadata.deletion_timestamp != new.metadata.deletion_timestamp:
        return True
    return old.status.state != new.status.state and new.status.state in ENDED


def _workflow_went_on(old: Workflow | None, new: Workflow | None) -> bool:
    """Whether there is something to tell of it."""
    return old is not None and new is not None and how_far(old) != how_far(new)


@dataclass(frozen=True)
class TinkerbellMachineReconciler:
    """Finds a server, has it installed, and gives it back."""

    site: str
    """Where machines reach the metadata service, such as `http://192.0.2.1:7080`."""
    name: str = "capt-machine"
    at_once: int = INSTALLS_PER_RACK
    """How many servers of a rack are installed at the same time; 0 is no bound."""
    images: ImageSource = NO_IMAGES
    """Where machines that name no image get theirs."""
    kind: AnyKind = TINKERBELL_MACHINE
    watches: Sequence[Watch[Any]] = (
        Watch(MACHINE, _of_machine),
        Watch(CLUSTER, _of_cluster, _cluster_matters),
        Watch(TINKERBELL_CLUSTER, _of_infrastructure, _infrastructure_matters),
        Watch(HARDWARE, _owner_of, _matters_to_owner),
        Watch(HARDWARE, _waiting_for, became_claimable),
        Watch(HARDWARE, reserving.wakes, reserving.became_reserved),
        Watch(WORKFLOW, _of_made, _workflow_turned),
        Watch(WORKFLOW, _of_made, _workflow_went_on, delay_s=PROGRESS_S, tells=True),
        Watch(TEMPLATE, _of_made),
        read_by(TEMPLATE),
        Watch(JOB, _of_made),
        Watch(BMC_MACHINE, _waiting_for_bmc, answers_again),
        Watch(NAMESPACE, _waiting_for_namespace, rules_changed),
        Watch(BMC_MACHINE, machines_of, turned, delay_s=PROGRESS_S, tells=True),
        read_by(SECRET_METADATA),
        Watch(TINKERBELL_MACHINE, next_in, leaves),
        Watch(TINKERBELL_MACHINE, _left_the_line, _leaves_the_line),
    )
    indexes: Sequence[Index[Any]] = (
        IN_LINE,
        WAITING,
        BY_OWNER,
        FREE,
        RESERVED,
        RESERVED_FOR,
        TAKEN,
        MACHINES_OF,
        IN_RACK,
        BY_BMC,
        SILENT,
        FAILED_FOR,
        ANNOTATED,
    )

    def observe(self, cache: Cache, key: Key) -> Observed | None:
        return gather(cache, key)

    def decide(self, observed: Observed, now: datetime) -> Decision:
        obj, cluster = observed.obj, observed.cluster
        progress = Progress(obj, now)
        paused = bool(cluster.spec.paused) if cluster is not None else False
        pause = paused_condition(TINKERBELL_MACHINE.kind, obj, cluster_paused=paused)
        progress.conditions.append(pause)
        if is_paused(obj, cluster_paused=paused):
            return wait("Paused", pause.message, progress.status())
        if observed.hardware is not None:
            tell_health(progress, observed.hardware, observed.bmc)
        if observed.too_many:
            # they have its name, and nothing else was ever done to them
            return do(*(release(hardware) for hardware in observed.too_many))
        if finalizers.is_deleting(obj):
            progress.note(RELEASED, False, "Releasing")
            return decommission(progress, observed)
        waiting = _waits_for(observed)
        if waiting is not None:
            progress.state = progress.obj.status.instance_state or State.WAITING
            return progress.waits(*waiting)
        machine, infrastructure = observed.machine, observed.infrastructure
        if machine is None or infrastructure is None:
            return wait("WaitingForOwner", "what belongs to the machine is not there yet")
        line_up = _line_up(observed, machine, infrastructure, now)
        if line_up is not None:
            return do(line_up)
        if observed.hardware is None:
            return self._without_hardware(progress, observed)
        return self._with_hardware(progress, observed, machine, infrastructure, observed.hardware)

    def _without_hardware(self, progress: Progress, observed: Observed) -> Decision:
        obj = observed.obj
        if obj.spec.hardware_name or obj.status.ready:
            where = "/".join(hardware_key(obj.spec.provider_id) or ("", obj.spec.hardware_name))
            message = f"Hardware {where} is gone, or belongs to somebody else; delete the Machine"
            progress.state = State.FAILED
            progress.note(HARDWARE_READY, False, "HardwareLost", message)
            return progress.waits("HardwareLost", message)
        return claim(progress, observed)

    def _with_hardware(
        self,
        progress: Progress,
        observed: Observed,
        machine: Machine,
        infrastructure: TinkerbellCluster,
        hardware: Hardware,
    ) -> Decision:
        obj = observed.obj
        problems = unusable(hardware)
        if problems and not obj.status.ready:
            message = f"Hardware {hardware.metadata.name} cannot be installed: {'; '.join(problems)}"
            progress.note(HARDWARE_READY, False, "HardwareUnusable", message)
            return progress.waits("HardwareUnusable", message)
        label = infrastructure.spec.failure_domain_label
        progress.has(hardware, hardware.metadata.labels.get(label, "") if label else "")
        progress.note(HARDWARE_READY, True, "HardwareReady", f"Hardware {'/'.join(hardware.key)}")
        note_claim(progress, observed, hardware)
        named = _named(obj, machine, hardware, infrastructure)
        if named is not None:
            return progress.goes_on(named)
        found = restored(hardware)
        if found is not None:
            return _restored(progress, observed, machine, hardware, found)
        if HELD in hardware.metadata.annotations:
            message = f"Hardware {hardware.metadata.name} is held: {hardware.metadata.annotations[HELD]}"
            return _keeps(progress, message) if obj.status.ready else progress.waits("HardwareHeld", message)
        if obj.status.ready:
            failure = booting.failure_of(observed, hardware)
            if failure is not None:
                return booting.failed(progress, hardware, failure)
            progress.note(READY, True, "Ready")
            progress.state = State.RUNNING
            if not machine.status.node_ref.name:
                return identify(progress, observed.cluster or Cluster(), machine, hardware, observed.namesakes)
            return progress.goes_on(withdrawal(hardware) if _is_ready_node(machine) else None)
        settings = Settings(self.site, self.at_once, self.images)
        return install(progress, observed, machine, hardware, settings)


def _restored(
    progress: Progress, observed: Observed, machine: Machine, hardware: Hardware, found: Restored
) -> Decision:
    """Nothing is done to the server before it is known that the machine still has it."""
    obj, asked = observed.obj, confirming.question(machine, observed.cluster)
    message = why_held(hardware) or ""
    if not obj.status.ready:
        return progress.waits("HardwareNotConfirmed", message)
    progress.note(READY, True, "Ready", message)
    if asked is None:
        return progress.goes_on()
    node = observed.node.value if observed.node is not None and observed.node.error is None else None
    if confirming.still_runs(node, machine, hardware, found):
        said = f"{hardware.metadata.name} is as in the backup: Node {asked.name} still runs on it"
        event = emit(TINKERBELL_MACHINE, obj, reason="HardwareConfirmed", message=said)
        return progress.goes_on(confirming.confirmed(hardware), event)
    return replace(progress.goes_on(), needs=(confirming.need(asked),))


def _keeps(progress: Progress, message: str) -> Decision:
    progress.note(READY, True, "Ready", message)
    return progress.goes_on()


def _is_ready_node(machine: Machine) -> bool:
    return bool(machine.status.node_ref.name) and is_true(machine.status.conditions, "NodeReady")


def _waits_for(observed: Observed) -> tuple[str, str] | None:
    """Reason and message, if the machine cannot have a server yet."""
    machine, cluster, infrastructure = observed.machine, observed.cluster, observed.infrastructure
    if machine is None:
        named = observed.machine_name
        gone = f"Machine {named} does not exist" if named else "the Machine has not set its owner reference yet"
        return "WaitingForOwner", gone
    if cluster is None:
        return "WaitingForCluster", f"Cluster {machine.spec.cluster_name} does not exist"
    if infrastructure is None:
        reference = cluster.spec.infrastructure_ref
        message = f"the Cluster's infrastructure {reference.kind} {reference.name} is no TinkerbellCluster that exists"
        return "WaitingForClusterInfrastructure", message
    if not (infrastructure.status.ready or infrastructure.status.initialization.provisioned):
        return "WaitingForClusterInfrastructure", f"TinkerbellCluster {infrastructure.metadata.name} is not ready yet"
    if not machine.spec.bootstrap.data_secret_name:
        return "WaitingForBootstrapData", "the bootstrap provider has not made its data yet"
    if observed.secret is None and not observed.obj.status.ready:
        return "WaitingForBootstrapData", f"Secret {machine.spec.bootstrap.data_secret_name} does not exist"
    if not machine.spec.version and not observed.obj.status.ready:
        return "WaitingForVersion", "the Machine's spec.version is empty; set it"
    return None


def _line_up(observed: Observed, machine: Machine, infrastructure: TinkerbellCluster, now: datetime) -> Any:
    """Before anything is taken: the finalizer, and the machine's place in the line."""
    obj = observed.obj
    metadata: Fields = {}
    if FINALIZER not in obj.metadata.finalizers or LEGACY_FINALIZER in obj.metadata.finalizers:
        others = [one for one in obj.metadata.finalizers if one not in (FINALIZER, LEGACY_FINALIZER)]
        metadata["finalizers"] = [*others, FINALIZER]
    if WANTED_SINCE not in obj.metadata.annotations and not obj.spec.hardware_name:
        label, domain = infrastructure.spec.failure_domain_label, machine.spec.failure_domain
        where = {WANTED_IN: f"{label}={domain}"} if label and domain else {}
        metadata["annotations"] = {WANTED_SINCE: rfc3339_micro(now), **where}
    return patch(TINKERBELL_MACHINE, obj, {"metadata": metadata}, locked=True) if metadata else None


def _named(
    obj: TinkerbellMachine, machine: Machine, hardware: Hardware, infrastructure: TinkerbellCluster
) -> Action | None:
    """The machine says which server it has: from here on that is fixed, whoever else has taken one for it.

    A control plane spreads its Machines by the domain that they name: one that named none gets that of its server.
    """
    found = provider_id(hardware)
    if obj.spec.provider_id == found and obj.spec.hardware_name == hardware.metadata.name:
        return None
    names = {"hardwareName": hardware.metadata.name, "providerID": found}
    domain = hardware.metadata.labels.get(infrastructure.spec.failure_domain_label, "")
    if domain and not machine.spec.failure_domain and LABEL_CONTROL_PLANE in machine.metadata.labels:
        names["failureDomain"] = domain
    body: Fields = {"spec": names}
    rack = rack_of(hardware, infrastructure)
    if rack:
        body["metadata"] = {"annotations": {RACK: rack}}
    return patch(TINKERBELL_MACHINE, obj, body, locked=True)
