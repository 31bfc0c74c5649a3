"""The observed state of an owner's server, gathered from the cache, and the watches that wake the owner. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import msgspec

from ironbell.api.bmc import MACHINE as BMC_MACHINE
from ironbell.api.bmc.job import JOB
from ironbell.api.bmc.machine import Machine as BmcMachine
from ironbell.api.capt.names import LABEL_OWNER_NAME
from ironbell.api.core import NAMESPACE, Namespace
from ironbell.api.core.secret import SECRET_METADATA
from ironbell.api.meta import Resource
from ironbell.api.tinkerbell import HARDWARE, TEMPLATE, WORKFLOW
from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.api.tinkerbell.names import ANNOTATION_AGENT_ATTRIBUTES
from ironbell.api.tinkerbell.workflow import Workflow
from ironbell.contract.servers.boot_token import BOOT_FOR
from ironbell.contract.servers.claim import HELD, claim_of
from ironbell.contract.servers.identity import KNOWN_BY, SUPERSEDED
from ironbell.contract.servers.restored import restored
from ironbell.kube.conditions import find_condition
from ironbell.kube.decision import Key
from ironbell.kube.reconciler import Cache, Index, Watch, read_by
from ironbell.provisioner.claims_from import ANNOTATED, cached_rules, rules_changed
from ironbell.provisioner.deferral import reservation_of
from ironbell.provisioner.health import Severity, install_failures, is_silent, own_severity
from ironbell.provisioner.lifecycle import nodes
from ironbell.provisioner.lifecycle.bmc_health import BY_BMC, answers_again, bmc_of, health_changed
from ironbell.provisioner.lifecycle.created import FAILED, TERMINAL, power_cycle_name, power_off_name, wipe_name
from ironbell.provisioner.lifecycle.host import HostState, NodeWish
from ironbell.provisioner.lifecycle.installing import progress_of
from ironbell.provisioner.lifecycle.names import HARDWARE_READY, INSTALL_ATTEMPT, MOVE_AFTER, NO_HARDWARE, QUEUED_SINCE
from ironbell.provisioner.lifecycle.owner import Owner, OwnerKind
from ironbell.provisioner.lifecycle.queue import Queue
from ironbell.provisioner.lifecycle.reserving import RESERVED, RESERVED_FOR, became_reserved, reserved_servers
from ironbell.provisioner.lifecycle.selection import SHOWN, became_claimable, is_claimable
from ironbell.provisioner.lifecycle.waves import IN_RACK, NO_WAVE, Waves, work_finished
from ironbell.provisioner.lifecycle.wiping import own_wipe
from ironbell.workload.clusterkey import ClusterKey

PROGRESS_S: Final = 3.0
"""Minimum interval between updates of an installation's progress; each update is a write of its owner, too."""
_IGNORED: Final = SHOWN | {ANNOTATION_AGENT_ATTRIBUTES, BOOT_FOR, KNOWN_BY, SUPERSEDED}
"""Annotations of a Hardware that do not matter to its owner."""

BY_OWNER: Final[Index[Hardware]] = Index(
    HARDWARE,
    "owner",
    lambda hardware: [f"{claim.namespace}/{claim.name}"] if (claim := claim_of(hardware)) is not None else [],
)
FREE: Final[Index[Hardware]] = Index(
    HARDWARE,
    "free",
    lambda hardware: [] if LABEL_OWNER_NAME in hardware.metadata.labels else [own_severity(hardware).name],
)
"""Unclaimed servers, by the severity of their own concerns: a claim begins with the best."""
SILENT: Final[Index[BmcMachine]] = Index(BMC_MACHINE, "silent", lambda bmc: ["silent"] if is_silent(bmc) else [])
"""BMCs that do not respond: a few of many."""
FAILED_FOR: Final[Index[Hardware]] = Index(
    HARDWARE,
    "failed-for",
    lambda hardware: [failed.owner] if (failed := install_failures(hardware)) is not None and failed.owner else [],
)
"""Servers on which installations failed, by the object that replaces the owners."""
CLAIMED: Final[Index[Hardware]] = Index(
    HARDWARE,
    "taken",
    lambda hardware: ["taken"] if (claim := claim_of(hardware)) is not None and not claim.is_reservation else [],
)


@dataclass(frozen=True)
class Lifecycle:
    """The lifecycle's part of a controller for one kind of owner: `observe`, with its indexes and watches."""

    owners: OwnerKind
    queue: Queue = field(init=False)
    waves: Waves = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "queue", Queue(self.owners))
        object.__setattr__(self, "waves", Waves(self.owners))

    @cached_property
    def indexes(self) -> Sequence[Index[Any]]:
        """The indexes that `observe` and `watches` read."""
        of_kind = (self.queue.by_wish, self.queue.waiting, self.waves.in_rack, *IN_RACK)
        of_servers = (BY_OWNER, FREE, RESERVED, RESERVED_FOR, CLAIMED, BY_BMC, SILENT, FAILED_FOR, ANNOTATED)
        return (*of_kind, *of_servers)

    @cached_property
    def watches(self) -> Sequence[Watch[Any]]:
        """The watches that wake owners, other than those of the front door's own kinds."""
        kind, queue, waves = self.owners.kind, self.queue, self.waves
        return (
            Watch(HARDWARE, self._owner_of, _matters_to_owner),
            Watch(HARDWARE, self._waiting_for, became_claimable),
            Watch(HARDWARE, self._reserved_for, became_reserved),
            Watch(WORKFLOW, self._owner_of_created, _workflow_finished),
            Watch(WORKFLOW, self._owner_of_created, _workflow_progressed, delay_s=PROGRESS_S, reporting=True),
            Watch(TEMPLATE, self._owner_of_created),
            read_by(TEMPLATE),
            Watch(JOB, self._owner_of_created),
            Watch(BMC_MACHINE, self._waiting_for_bmc, answers_again),
            Watch(NAMESPACE, self._waiting_for_namespace, rules_changed),
            Watch(BMC_MACHINE, self._owners_behind_bmc, health_changed, delay_s=PROGRESS_S, reporting=True),
            read_by(SECRET_METADATA),
            Watch(kind, waves.next, waves.left),
            Watch(WORKFLOW, waves.next_after, work_finished),
            Watch(JOB, waves.next_after, work_finished),
            Watch(kind, self._next_in_queue, queue.left),
        )

    def observe(
        self,
        cache: Cache,
        obj: Any,
        *,
        namespace: str,
        node: NodeWish | None = None,
        cluster: ClusterKey | None = None,
        replaced_by: str = "",
    ) -> HostState:
        """Return the observed state of an owner's server.

        Args:
            cache: the controller's cache.
            obj: the owner.
            namespace: the namespace of Template, Workflow and Jobs while the owner has no server.
            node: the Node that should run on the server.
            cluster: the Cluster for which servers may be reserved.
            replaced_by: the object that replaces the owner.
        """
        owner = Owner(self.owners, obj)
        status, hardware = owner.status, self.server_of(cache, obj)
        waits = hardware is None and status.server is None
        place = hardware.metadata.namespace if hardware is not None else namespace
        workflow = cache.get(WORKFLOW, place, owner.name)
        moves = hardware is not None and _keeps_failing(owner, workflow)
        is_short = waits and _is_short(owner)
        own, wipe = own_wipe(obj, hardware), wipe_name(obj)
        namesakes = nodes.namesake_queries(node, hardware) if status.is_ready else []
        new_nodes = nodes.new_node_queries(node, hardware, workflow) if not status.is_ready else []
        restored_node = nodes.confirming_query(node) if hardware is not None and restored(hardware) else None
        return HostState(
            hardware=hardware,
            surplus=self._surplus(cache, owner),
            bmc=bmc_of(cache, hardware),
            servers=tuple(free_servers(cache)) if waits or moves else (),
            reserved=reserved_servers(cache, cluster, of_all=is_short) if waits else (),
            place=self.queue.place_of(cache, obj) if waits else 0,
            own_place=self.queue.place_of(cache, obj, of_cluster=True) if waits else 0,
            claims=cached_rules(cache),
            silent_bmcs={bmc.key: bmc for bmc in silent_bmcs(cache)} if waits or moves else {},
            failed_servers=_failed_servers(cache, replaced_by, hardware) if moves else (),
            claimed=len(cache.indexed(CLAIMED, "taken")) if is_short else 0,
            is_searching=waits or moves,
            wave=self.waves.of(cache, obj) if hardware is not None else NO_WAVE,
            template=cache.get(TEMPLATE, place, owner.name),
            workflow=workflow,
            wipe_override=cache.get(TEMPLATE, place, own) if own else None,
            wipe_template=cache.get(TEMPLATE, place, wipe),
            wipe_workflow=cache.get(WORKFLOW, place, wipe),
            power_off=cache.get(JOB, place, power_off_name(obj)),
            power_cycle=cache.get(JOB, place, power_cycle_name(obj)),
            node=cache.fact(restored_node, nodes.QUERY_INTERVAL_S) if restored_node is not None else None,
            namesakes=tuple(
                (query, fact) for query in namesakes if (fact := cache.fact(query, nodes.SELDOM_S)) is not None
            ),
            new_nodes=tuple((query, nodes.known(cache, query)) for query in new_nodes),
        )

    def server_of(self, cache: Cache, obj: Any) -> Hardware | None:
        """Return the server of an owner: the one that it names, if it still has the claim; else one whose claim names
        the owner, if the process ended before the owner could name it."""
        claimant, named = self.owners.claimant(obj), self.owners.status_of(obj).server
        if named is not None:
            hardware = cache.get(HARDWARE, *named)
            claim = claim_of(hardware) if hardware is not None else None
            return hardware if claim is not None and claim.is_of_name(claimant) else None
        owned = cache.indexed(BY_OWNER, f"{claimant.namespace}/{claimant.name}")
        return next(
            (server for server in owned if (claim := claim_of(server)) is not None and claim.is_of(claimant)), None
        )

    def _surplus(self, cache: Cache, owner: Owner) -> tuple[Hardware, ...]:
        """Servers that were claimed beside the one that an owner names; empty while it names none.

        By uid: an owner that was moved to another API is known by name only, and has claimed nothing more.
        """
        named, claimant = owner.status.server, owner.claimant
        if named is None:
            return ()
        owned = [server for server in cache.indexed(BY_OWNER, owner.path) if server.key != named]
        return tuple(
            server for server in owned if (claim := claim_of(server)) is not None and claim.uid == claimant.uid
        )

    def _owner_of(self, hardware: Hardware, _cache: Cache) -> Iterable[Key]:
        claim = claim_of(hardware)
        return [(claim.namespace, claim.name)] if claim is not None and claim.is_of_kind(self.owners.kind.kind) else []

    def _waiting_for(self, hardware: Hardware, cache: Cache) -> Iterable[Key]:
        return self.queue.heads(cache, hardware.metadata.namespace) if is_claimable(hardware) else []

    def _reserved_for(self, hardware: Hardware, cache: Cache) -> Iterable[Key]:
        """Owners of the Cluster for which a server is reserved."""
        due = reservation_of(hardware)
        return self.queue.of_cluster(cache, (due.namespace, due.cluster)) if due is not None else []

    def _waiting_for_bmc(self, bmc: BmcMachine, cache: Cache) -> Iterable[Key]:
        """The head of each queue, if the server behind this BMC is free."""
        free = any(is_claimable(hardware) for hardware in cache.indexed(BY_BMC, "/".join(bmc.key)))
        return self.queue.heads(cache, bmc.metadata.namespace) if free else []

    def _waiting_for_namespace(self, _namespace: Namespace, cache: Cache) -> Iterable[Key]:
        """The head of each queue, as other servers may be claimed now."""
        return self.queue.heads(cache)

    def _owners_behind_bmc(self, bmc: BmcMachine, cache: Cache) -> Iterable[Key]:
        for hardware in cache.indexed(BY_BMC, "/".join(bmc.key)):
            yield from self._owner_of(hardware, cache)

    def _owner_of_created(self, created: Resource, _cache: Cache) -> Iterable[Key]:
        owner = self.owners.of(created)
        return [owner] if owner is not None else []

    def _next_in_queue(self, obj: Any, cache: Cache) -> Iterable[Key]:
        """The next owner after one that left without a server, or that claimed one of several that became available."""
        waited = QUEUED_SINCE in obj.metadata.annotations
        proceeds = self.owners.status_of(obj).server is None or is_any_free(cache)
        return self.queue.behind(cache, obj) if waited and proceeds else []


def free_servers(cache: Cache) -> Iterator[Hardware]:
    """Return unclaimed servers, those without concerns first, then by namespace and name."""
    for severity in Severity:
        yield from cache.indexed(FREE, severity.name)


def is_any_free(cache: Cache) -> bool:
    """Return whether there is an unclaimed server that is not held."""
    return any(HELD not in hardware.metadata.annotations for hardware in free_servers(cache))


def silent_bmcs(cache: Cache) -> Sequence[BmcMachine]:
    """Return the BMCs that do not respond."""
    return cache.indexed(SILENT, "silent")


def _keeps_failing(owner: Owner, workflow: Workflow | None) -> bool:
    if workflow is None or not owner.owns(workflow) or workflow.status.state not in FAILED:
        return False
    return owner.number(INSTALL_ATTEMPT, 0) >= MOVE_AFTER


def _failed_servers(cache: Cache, replaced_by: str, hardware: Hardware | None) -> tuple[Hardware, ...]:
    servers = cache.indexed(FAILED_FOR, replaced_by) if replaced_by else ()
    return tuple(server for server in servers if hardware is None or server.key != hardware.key)


def _is_short(owner: Owner) -> bool:
    """Return whether its last search failed. Only then are all servers evaluated, to explain the shortage."""
    ready = find_condition(owner.status.conditions, HARDWARE_READY)
    return ready is not None and ready.reason == NO_HARDWARE


def _matters_to_owner(old: Hardware | None, new: Hardware | None) -> bool:
    """Return whether more has changed than records of other components during an installation."""
    return old is None or new is None or _of_owner(old) != _of_owner(new)


def _of_owner(hardware: Hardware) -> tuple[Any, ...]:
    metadata, spec = hardware.metadata, hardware.spec
    return (
        (metadata.labels, metadata.finalizers, metadata.deletion_timestamp),
        {name: value for name, value in metadata.annotations.items() if name not in _IGNORED},
        msgspec.structs.replace(spec, interfaces=[]),
        [(interface.dhcp, interface.disable_dhcp, interface.isoboot) for interface in spec.interfaces],
        hardware.status.state,
    )


def _workflow_finished(old: Workflow | None, new: Workflow | None) -> bool:
    """Return whether a Workflow was created, is being deleted or has finished. Other states are only reported."""
    if old is None or new is None or old.metadata.deletion_timestamp != new.metadata.deletion_timestamp:
        return True
    return old.status.state != new.status.state and new.status.state in TERMINAL


def _workflow_progressed(old: Workflow | None, new: Workflow | None) -> bool:
    """Return whether the reported progress changed."""
    return old is not None and new is not None and progress_of(old) != progress_of(new)
