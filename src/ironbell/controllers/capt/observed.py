"""What a decision on a TinkerbellMachine depends on, gathered from the cache. No I/O."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ironbell.api.bmc import MACHINE as BMC_MACHINE
from ironbell.api.bmc.job import JOB, Job
from ironbell.api.bmc.machine import Machine as BmcMachine
from ironbell.api.capt import TINKERBELL_CLUSTER, TINKERBELL_MACHINE
from ironbell.api.capt.names import ANNOTATION_TEMPLATE_OVERRIDE, LABEL_OWNER_NAME
from ironbell.api.capt.tinkerbellcluster import TinkerbellCluster
from ironbell.api.capt.tinkerbellmachine import TinkerbellMachine
from ironbell.api.cluster import CLUSTER, MACHINE
from ironbell.api.cluster.cluster import Cluster
from ironbell.api.cluster.machine import Machine
from ironbell.api.cluster.names import ANNOTATION_CLONED_FROM_NAME, LABEL_CLUSTER_NAME
from ironbell.api.core.secret import SECRET_METADATA, SecretMetadata
from ironbell.api.tinkerbell import HARDWARE, TEMPLATE, WORKFLOW
from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.api.tinkerbell.template import Template
from ironbell.api.tinkerbell.workflow import Workflow
from ironbell.contract.hardware_claim import HELD, Claimant, claim_of
from ironbell.contract.node_images import NodeImages
from ironbell.contract.owners import controller_of
from ironbell.contract.restored import restored
from ironbell.controllers.capt import confirming, installed_node, node_identity
from ironbell.controllers.capt.health import bmc_of
from ironbell.controllers.capt.installed_node import NodeFact, NodeQuestion
from ironbell.controllers.capt.made import FAILED, is_ours
from ironbell.controllers.capt.queue import place_of
from ironbell.controllers.capt.reserving import MACHINES_OF, reserved_servers
from ironbell.controllers.capt.waves import NOTHING, Wave, wave_of
from ironbell.kube.conditions import find_condition
from ironbell.kube.decision import Fact, Key
from ironbell.kube.reconciler import Cache, Index
from ironbell.provisioner.claims_from import UNSET, ClaimRules, cached_rules
from ironbell.provisioner.health import Severity, install_failures, is_silent, own_severity
from ironbell.provisioner.lifecycle.names import (
    HARDWARE_READY,
    INSTALL_ATTEMPT,
    MOVE_AFTER,
    NO_HARDWARE,
    WANTED_IN,
    WIPE_TEMPLATE,
    hardware_key,
    number,
)
from ironbell.provisioner.node_images import LOOK_S, NodeImageIndex
from ironbell.workload.nodes import NodeNow
from ironbell.workload.questions import NodeView

BY_OWNER: Index[Hardware] = Index(
    HARDWARE,
    "capt-owner",
    lambda hardware: [f"{claim.namespace}/{claim.name}"] if (claim := claim_of(hardware)) is not None else [],
)
FREE: Index[Hardware] = Index(
    HARDWARE,
    "capt-free",
    lambda hardware: [] if LABEL_OWNER_NAME in hardware.metadata.labels else [own_severity(hardware).name],
)
"""Servers that nobody has claimed, by what their records say against them: a claim begins with the best."""
SILENT: Index[BmcMachine] = Index(BMC_MACHINE, "capt-silent", lambda bmc: ["silent"] if is_silent(bmc) else [])
"""BMCs that do not answer: a few of many."""
FAILED_FOR: Index[Hardware] = Index(
    HARDWARE,
    "capt-failed-for",
    lambda hardware: [failed.owner] if (failed := install_failures(hardware)) is not None and failed.owner else [],
)
"""Servers on which installations failed, by who replaces the Machines."""
TAKEN: Index[Hardware] = Index(
    HARDWARE,
    "capt-taken",
    lambda hardware: ["taken"] if (claim := claim_of(hardware)) is not None and not claim.is_reservation else [],
)


@dataclass(frozen=True, slots=True)
class Observed:
    """A TinkerbellMachine and everything around it."""

    obj: TinkerbellMachine
    machine: Machine | None = None
    machine_name: str = ""
    """Name in the owner reference, also of a Machine that is gone."""
    cluster: Cluster | None = None
    infrastructure: TinkerbellCluster | None = None
    secret: SecretMetadata | None = None
    hardware: Hardware | None = None
    """The server that it has."""
    too_many: tuple[Hardware, ...] = ()
    """Others that were taken for it: by a process that did not know yet that it has one."""
    bmc: BmcMachine | None = None
    """That of its server."""
    servers: tuple[Hardware, ...] = ()
    """Free ones as `free_servers` has them, as long as it has none, or looks for another."""
    reserved: tuple[Hardware, ...] = ()
    """Those that are reserved for its Cluster, as long as it has none; once it is known that there is no server for it,
    also those that are reserved for others."""
    own_place: int = 0
    """How many of its Cluster wait before it for the same."""
    claims: ClaimRules = UNSET
    """Who may claim servers of other namespaces."""
    silent_bmcs: Mapping[Key, BmcMachine] = field(default_factory=dict)
    """BMCs that do not answer, as long as it looks for a server."""
    wanted_in: str = ""
    """The failure domain that its server must be in, as `LABEL=VALUE`."""
    failed_servers: tuple[Hardware, ...] = ()
    """Other servers on which installations failed for Machines of the same owner, if it looks for another."""
    taken: int = 0
    """How many servers others have, once it is known that there is no server for it."""
    siblings: tuple[tuple[Machine, str], ...] = ()
    """The cluster's Machines and the templates of their hosts, once it is known that there is no server for it."""
    place: int = 0
    """How many wait before it for the same."""
    wave: Wave = NOTHING
    """What goes on in its rack, as long as it has not begun to be installed."""
    override: Template | None = None
    """The Template that the Hardware's annotation or the cluster's reference names."""
    template: Template | None = None
    workflow: Workflow | None = None
    wipe_override: Template | None = None
    """The Template that an annotation names for giving the server back."""
    wipe_template: Template | None = None
    wipe_workflow: Workflow | None = None
    power_off: Job | None = None
    power_cycle: Job | None = None
    """Of a remediation."""
    node: Fact[NodeView | None] | None = None
    """What its cluster says of its Node, while the record of its server is not confirmed."""
    namesakes: tuple[tuple[NodeNow, Fact[NodeView | None]], ...] = ()
    """What its cluster says of Nodes that may be its, while the Machine has found none."""
    node_images: Fact[NodeImages] | None = None
    """Which images of nodes the site serves, as long as its installation has not begun."""
    new_nodes: tuple[tuple[NodeQuestion, NodeFact], ...] = ()
    """What its cluster says of Nodes that would prove that its system is up, while that boots."""

    @property
    def claimant(self) -> Claimant:
        """The machine as the owner of a server."""
        metadata = self.obj.metadata
        return Claimant(TINKERBELL_MACHINE.kind, metadata.namespace, metadata.name, metadata.uid)


def gather(cache: Cache, key: Key) -> Observed | None:
    """Everything; None if there is no such machine."""
    obj = cache.get(TINKERBELL_MACHINE, *key)
    if obj is None:
        return None
    namespace = key[0]
    owner = next((one for one in obj.metadata.owner_references if one.kind == MACHINE.kind), None)
    machine = cache.get(MACHINE, namespace, owner.name) if owner is not None else None
    name = machine.spec.cluster_name if machine is not None else obj.metadata.labels.get(LABEL_CLUSTER_NAME, "")
    cluster = cache.get(CLUSTER, namespace, name) if name else None
    infrastructure = None
    if cluster is not None and cluster.spec.infrastructure_ref.kind == TINKERBELL_CLUSTER.kind:
        infrastructure = cache.get(TINKERBELL_CLUSTER, namespace, cluster.spec.infrastructure_ref.name)
    secret_name = machine.spec.bootstrap.data_secret_name if machine is not None else None
    hardware = its_hardware(cache, obj)
    waits = hardware is None and not obj.spec.hardware_name
    place = hardware.metadata.namespace if hardware is not None else obj.status.target_namespace or namespace
    wipe = wipe_name(obj)
    workflow = cache.get(WORKFLOW, place, obj.metadata.name)
    new_nodes = installed_node.questions(obj, cluster, machine, hardware, workflow)
    moves = hardware is not None and _keeps_failing(obj, workflow)
    looks = waits or moves
    return Observed(
        obj=obj,
        machine=machine,
        machine_name=owner.name if owner is not None else "",
        cluster=cluster,
        infrastructure=infrastructure,
        secret=cache.get(SECRET_METADATA, namespace, secret_name) if secret_name else None,
        hardware=hardware,
        bmc=bmc_of(cache, hardware),
        too_many=_too_many(cache, obj),
        servers=tuple(free_servers(cache)) if looks else (),
        reserved=reserved_servers(cache, cluster, of_all=_is_short(obj)) if waits else (),
        own_place=place_of(cache, obj, of_cluster=True) if waits else 0,
        claims=cached_rules(cache),
        silent_bmcs=silent_bmcs(cache) if looks else {},
        wanted_in=obj.metadata.annotations.get(WANTED_IN, ""),
        failed_servers=_failed_servers(cache, machine, hardware) if moves else (),
        taken=len(cache.indexed(TAKEN, "taken")) if waits and _is_short(obj) else 0,
        siblings=_siblings(cache, obj) if waits and _is_short(obj) else (),
        place=place_of(cache, obj) if waits else 0,
        wave=wave_of(cache, obj) if hardware is not None else NOTHING,
        override=_override(cache, hardware, infrastructure),
        template=cache.get(TEMPLATE, place, obj.metadata.name),
        workflow=workflow,
        wipe_override=cache.get(TEMPLATE, place, own) if (own := own_wipe(obj, hardware)) else None,
        wipe_template=cache.get(TEMPLATE, place, wipe),
        wipe_workflow=cache.get(WORKFLOW, place, wipe),
        power_off=cache.get(JOB, place, power_off_name(obj)),
        power_cycle=cache.get(JOB, place, power_cycle_name(obj)),
        node=_node(cache, cluster, machine, hardware),
        namesakes=_namesakes(cache, obj, cluster, machine, hardware),
        node_images=cache.fact(NodeImageIndex(), LOOK_S) if hardware is not None and workflow is None else None,
        new_nodes=tuple((question, installed_node.known(cache, question)) for question in new_nodes),
    )


def _keeps_failing(obj: TinkerbellMachine, workflow: Workflow | None) -> bool:
    if workflow is None or not is_ours(workflow, obj) or workflow.status.state not in FAILED:
        return False
    return number(obj, INSTALL_ATTEMPT, 0) >= MOVE_AFTER


def _failed_servers(cache: Cache, machine: Machine | None, hardware: Hardware | None) -> tuple[Hardware, ...]:
    owner = owner_text(machine)
    found = cache.indexed(FAILED_FOR, owner) if owner else ()
    return tuple(one for one in found if hardware is None or one.key != hardware.key)


def owner_text(machine: Machine | None) -> str:
    """Who replaces a Machine, as `KIND NAMESPACE/NAME`; empty if nobody does."""
    owner = controller_of(machine) if machine is not None else None
    return f"{owner.kind} {machine.metadata.namespace}/{owner.name}" if machine is not None and owner else ""


def free_servers(cache: Cache) -> Iterator[Hardware]:
    """Servers that nobody has claimed, those without concerns first, then by namespace and name."""
    for severity in Severity:
        yield from cache.indexed(FREE, severity.name)


def silent_bmcs(cache: Cache) -> dict[Key, BmcMachine]:
    """BMCs that do not answer, by namespace and name."""
    return {bmc.key: bmc for bmc in cache.indexed(SILENT, "silent")}


def _node(
    cache: Cache, cluster: Cluster | None, machine: Machine | None, hardware: Hardware | None
) -> Fact[NodeView | None] | None:
    asked = confirming.question(machine, cluster) if hardware is not None and restored(hardware) is not None else None
    return cache.fact(asked, confirming.ASK_AGAIN_S) if asked is not None else None


def _namesakes(
    cache: Cache,
    obj: TinkerbellMachine,
    cluster: Cluster | None,
    machine: Machine | None,
    hardware: Hardware | None,
) -> tuple[tuple[NodeNow, Fact[NodeView | None]], ...]:
    asked = node_identity.questions(obj, cluster, machine, hardware)
    return tuple((one, fact) for one in asked if (fact := cache.fact(one, node_identity.SELDOM_S)) is not None)


def wipe_name(obj: TinkerbellMachine) -> str:
    """Name of the Template and Workflow that wipe its server."""
    return f"{obj.metadata.name}-wipe"


def own_wipe(obj: TinkerbellMachine, hardware: Hardware | None) -> str:
    """Which Template is run when the server is given back; empty for the built-in wipe."""
    of_server = hardware.metadata.annotations.get(WIPE_TEMPLATE, "") if hardware is not None else ""
    return obj.metadata.annotations.get(WIPE_TEMPLATE) or of_server


def power_off_name(obj: TinkerbellMachine) -> str:
    """Name of the Job that switches its server off."""
    return f"{obj.metadata.name}-poweroff"


def power_cycle_name(obj: TinkerbellMachine) -> str:
    """Name of the Job of a remediation that switches its server off and on: there is one at a time."""
    return f"{obj.metadata.name}-power-cycle"


def its_hardware(cache: Cache, obj: TinkerbellMachine) -> Hardware | None:
    """The server that the machine has: the one it names if that is still its, else one that says it is its.

    The second finds what was taken when the process died before the machine could name it.
    """
    claimant = Claimant(TINKERBELL_MACHINE.kind, *obj.key, obj.metadata.uid)
    named = hardware_key(obj.spec.provider_id)
    if named is None and obj.spec.hardware_name:
        named = (obj.status.target_namespace or obj.metadata.namespace, obj.spec.hardware_name)
    if named is not None:
        hardware = cache.get(HARDWARE, *named)
        claim = claim_of(hardware) if hardware is not None else None
        return hardware if claim is not None and claim.is_of_name(claimant) else None
    owned = cache.indexed(BY_OWNER, f"{claimant.namespace}/{claimant.name}")
    return next((one for one in owned if (claim := claim_of(one)) is not None and claim.is_of(claimant)), None)


def _too_many(cache: Cache, obj: TinkerbellMachine) -> tuple[Hardware, ...]:
    """What was taken beside the server that the machine names. As long as it names none, nobody knows which it is."""
    if not obj.spec.hardware_name:
        return ()
    claimant = Claimant(TINKERBELL_MACHINE.kind, *obj.key, obj.metadata.uid)
    named = hardware_key(obj.spec.provider_id)
    owned = [one for one in cache.indexed(BY_OWNER, f"{claimant.namespace}/{claimant.name}") if one.key != named]
    # by uid: a machine that was moved to another API is known by name only, and takes nothing
    return tuple(one for one in owned if (claim := claim_of(one)) is not None and claim.uid == claimant.uid)


def _is_short(obj: TinkerbellMachine) -> bool:
    """Whether it has looked in vain: to look at all its cluster's Machines is too much while many get their servers."""
    told = find_condition(obj.status.conditions, HARDWARE_READY)
    return told is not None and told.reason == NO_HARDWARE


def _siblings(cache: Cache, obj: TinkerbellMachine) -> tuple[tuple[Machine, str], ...]:
    found = [
        (machine, template_of(one))
        for one in cache.indexed(MACHINES_OF, obj.metadata.labels.get(LABEL_CLUSTER_NAME, ""))
        if one.metadata.namespace == obj.metadata.namespace and (machine := _owner(cache, one)) is not None
    ]
    return tuple(found)


def template_of(obj: TinkerbellMachine) -> str:
    """Name of the template that it was made from."""
    return obj.metadata.annotations.get(ANNOTATION_CLONED_FROM_NAME, "")


def _owner(cache: Cache, obj: TinkerbellMachine) -> Machine | None:
    owner = next((one for one in obj.metadata.owner_references if one.kind == MACHINE.kind), None)
    return cache.get(MACHINE, obj.metadata.namespace, owner.name) if owner is not None else None


def _override(cache: Cache, hardware: Hardware | None, infrastructure: TinkerbellCluster | None) -> Template | None:
    """The Template that is meant, if it is there."""
    reference = override_key(hardware, infrastructure)
    return cache.get(TEMPLATE, *reference) if reference is not None else None


def override_key(hardware: Hardware | None, infrastructure: TinkerbellCluster | None) -> Key | None:
    """Which Template the Hardware's annotation names, or else the cluster's reference."""
    if hardware is None:
        return None
    name = hardware.metadata.annotations.get(ANNOTATION_TEMPLATE_OVERRIDE)
    if name:
        return hardware.metadata.namespace, name
    if infrastructure is None or infrastructure.spec.template_override_ref is None:
        return None
    reference = infrastructure.spec.template_override_ref
    return reference.namespace or hardware.metadata.namespace, reference.name


def is_any_free(cache: Cache) -> bool:
    """Whether there is a server that somebody may take."""
    return any(HELD not in hardware.metadata.annotations for hardware in free_servers(cache))
