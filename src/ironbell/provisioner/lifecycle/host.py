"""The nouns of a server's life: what an owner wants (`HostWish`), what is known (`HostState`), what is next (`Step`).

A front door translates its own objects into a `HostWish`, has `observe.Lifecycle` gather the `HostState`, and calls
`stages.next_step`; it turns the `Step` into its own conditions and status. The stages are pure functions over a
`Draft`, which holds wish and state and collects what is to be reported for the length of one decision.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final, TypeAlias

from ironbell.api.bmc.job import Job
from ironbell.api.bmc.machine import Machine as BmcMachine
from ironbell.api.core.secret import SecretMetadata
from ironbell.api.meta import Condition
from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.api.tinkerbell.template import Template
from ironbell.api.tinkerbell.workflow import Workflow
from ironbell.contract.servers.racks import INSTALLS_PER_RACK
from ironbell.kube.conditions import find_condition
from ironbell.kube.decision import Action, Fact, Fields, Key, MergePatch, Need, Waiting
from ironbell.provisioner.claims_from import UNSET, ClaimRules
from ironbell.provisioner.lifecycle.created import NETBOOT, Boot
from ironbell.provisioner.lifecycle.owner import Owner
from ironbell.provisioner.lifecycle.selection import ANY_SERVER, Wish
from ironbell.provisioner.lifecycle.waves import NO_WAVE, Wave
from ironbell.workload.clusterkey import ClusterKey
from ironbell.workload.nodes import NodeNow
from ironbell.workload.queries import NodeByName, NodeByProviderId, NodeView

NodeQuery: TypeAlias = NodeByProviderId | NodeByName
NodeFact: TypeAlias = Fact[tuple[NodeView, ...]] | Fact[NodeView | None] | None
MakeTemplate: TypeAlias = Callable[[Fields, Fields], Fields]
"""From the Template's metadata and the Workflow's boot options to the Template that installs the server.

Raises `UnusableError`, or `ImagePendingError` while its image cannot be installed yet."""

READY: Final = "Ready"
"""Type of the condition that says what an owner waits for."""


@dataclass(frozen=True, slots=True)
class NodeWish:
    """The Node that is to run on the server."""

    cluster: ClusterKey
    machine: str
    """Name of the Machine that the Node belongs to; the Node may have the same."""
    name: str = ""
    """The Node that was found by its provider ID; empty while there is none."""
    is_ready: bool = False
    is_awaited: bool = True
    """Whether the cluster's control plane runs, so that the Node can come."""
    awaited_since: str = ""
    """Since when the control plane runs; empty if that is not known."""
    is_first: bool = False
    """Whether the cluster's API is to run on this very server, so that nobody else can be asked for the Node."""


@dataclass(frozen=True, slots=True)
class HostWish:
    """What an owner wants of a server."""

    releases: bool = False
    """Whether the owner gives its server back, and wants nothing else."""
    waits_for: Waiting | None = None
    """What has to come about before a server may be claimed or installed."""
    servers: Wish = ANY_SERVER
    """Which servers qualify; needed while `HostState.is_searching`."""
    servers_problem: str = ""
    """Why it is not known which servers qualify."""
    failure_domain: str = ""
    """`LABEL=VALUE` that the server must have, recorded when the owner begins to wait for one."""
    record: MergePatch | None = None
    """The write with which the owner names the server that it has; None once it does."""
    bootstrap: SecretMetadata | None = None
    """The Secret with the server's user data."""
    template: MakeTemplate | None = None
    boot: Boot = NETBOOT
    installs_per_rack: int = INSTALLS_PER_RACK
    """How many servers of a rack are powered on at the same time; 0 is no bound."""
    node: NodeWish | None = None
    """None for an owner whose server becomes no Node."""
    cluster: ClusterKey | None = None
    """The Cluster for which a server is reserved whose complete wipe is deferred; without one, no wipe is deferred."""
    replaced_by: str = ""
    """Whoever replaces the owner, as `KIND NAMESPACE/NAME`; empty if nobody does."""
    replacement: str | None = None
    """What is known of the replacement that was asked for; None if none was."""


@dataclass(frozen=True, slots=True)
class HostState:
    """What is known about the server of an owner, and about those that it may claim."""

    hardware: Hardware | None = None
    """The server that it has."""
    surplus: tuple[Hardware, ...] = ()
    """Others that were claimed for it, by a process that did not know yet that it has one."""
    bmc: BmcMachine | None = None
    """That of its server."""
    servers: tuple[Hardware, ...] = ()
    """Servers that nobody has claimed, in the order of `observe.free_servers`, while it searches for one."""
    reserved: tuple[Hardware, ...] = ()
    """Those that are reserved for its Cluster, as long as it has none; once it is known that there is no server for it,
    also those that are reserved for others."""
    place: int = 0
    """How many owners wait before it for the same."""
    own_place: int = 0
    """How many of these are of its Cluster."""
    claims: ClaimRules = UNSET
    """Who may claim servers of other namespaces."""
    silent_bmcs: Mapping[Key, BmcMachine] = field(default_factory=dict)
    """BMCs that do not answer, while it searches for a server."""
    failed_servers: tuple[Hardware, ...] = ()
    """Other servers on which installations failed for owners that the same object replaces, if it looks for another."""
    taken: int = 0
    """How many servers others have, once it is known that there is no server for it."""
    is_searching: bool = False
    """Whether it needs a server, or another one."""
    wave: Wave = NO_WAVE
    """What goes on in its rack, as long as it has not begun there what it is to begin next."""
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
    """What its cluster says of Nodes that may be its, while none was found by provider ID."""
    new_nodes: tuple[tuple[NodeQuery, NodeFact], ...] = ()
    """What its cluster says of Nodes that would prove that its system is up, while that boots."""


@dataclass(frozen=True, slots=True)
class Step:
    """What is to be done next for a server, in order, and what its owner reports."""

    actions: tuple[Action, ...] = ()
    waiting: Waiting | None = None
    needs: tuple[Need[Any], ...] = ()
    after_s: float | None = None
    """When to look again, besides when something watched changes."""
    conditions: tuple[Condition, ...] = ()
    """What the owner reports, by the condition types of `lifecycle.names`."""
    phase: str = ""
    """The new phase; empty leaves it."""
    hardware: Hardware | None = None
    """The server that the owner has, for its addresses."""
    is_provisioned: bool = False
    """Whether its operating system is installed and up; that is never taken back."""
    replace_because: str = ""
    """Why the owner is to be replaced by another one, on another server; that write comes after the others."""
    is_reported: bool = True
    """Whether the owner writes its status: where it does not, what is written brings it back."""

    def explained(self, more: str) -> Step:
        """The same step with more in the message of what it waits for."""
        if self.waiting is None or not more:
            return self
        old, new = self.waiting.message, f"{self.waiting.message}{more}"
        conditions = tuple(
            Condition(type=each.type, status=each.status, reason=each.reason, message=new)
            if each.message == old
            else each
            for each in self.conditions
        )
        return replace(self, waiting=Waiting(self.waiting.reason, new), conditions=conditions)


@dataclass
class Draft:
    """A step while it is decided."""

    owner: Owner
    wish: HostWish
    state: HostState
    now: datetime
    phase: str = ""
    conditions: list[Condition] = field(default_factory=list)
    hardware: Hardware | None = None
    is_provisioned: bool = False

    def note(self, type_: str, status: bool | None, reason: str, message: str = "") -> None:
        """Set a condition; None is the status Unknown."""
        text = {True: "True", False: "False", None: "Unknown"}[status]
        self.conditions.append(Condition(type=type_, status=text, reason=reason, message=message))

    def known(self, type_: str) -> Condition | None:
        """The condition that the owner has reported so far."""
        return find_condition(self.owner.status.conditions, type_)

    def waits(
        self,
        reason: str,
        message: str,
        *actions: Action | None,
        after_s: float | None = None,
        needs: Sequence[Need[Any]] = (),
        replace_because: str = "",
    ) -> Step:
        """End with what the owner waits for."""
        self.note(READY, False, reason, message)
        step = self.goes_on(*actions, after_s=after_s, needs=needs)
        return replace(step, waiting=Waiting(reason, message), replace_because=replace_because)

    def goes_on(self, *actions: Action | None, after_s: float | None = None, needs: Sequence[Need[Any]] = ()) -> Step:
        """End without a new reason to wait."""
        return Step(
            actions=tuple(action for action in actions if action is not None),
            needs=tuple(needs),
            after_s=after_s,
            conditions=tuple(self.conditions),
            phase=self.phase,
            hardware=self.hardware,
            is_provisioned=self.is_provisioned,
        )

    def writes(self, *actions: Action | None) -> Step:
        """End with writes that bring the owner back, before anything is reported."""
        return replace(self.goes_on(*actions), is_reported=False)
