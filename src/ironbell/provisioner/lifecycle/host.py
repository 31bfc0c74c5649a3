"""The nouns of a server's life: desired state (`HostWish`), observed state (`HostState`), and the next `Step`.

A front door translates its own objects into a `HostWish`, has `observe.Lifecycle` gather the `HostState`, and calls
`stages.next_step`; it turns the `Step` into its own conditions and status. The stages are pure functions over a
`Draft`, which holds wish and state, and collects the owner's report during one decision.
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
TemplateFactory: TypeAlias = Callable[[Fields, Fields], Fields]
"""Creates the Template that installs the server from its metadata and the Workflow's boot options.

Raises `UnusableError`, or `ImagePendingError` while its image cannot be installed yet."""

READY: Final = "Ready"
"""Type of the condition with the reason for which an owner waits."""


@dataclass(frozen=True, slots=True)
class NodeWish:
    """The Node that should run on the server."""

    cluster: ClusterKey
    machine: str
    """Name of the Machine that the Node belongs to; the Node may have the same."""
    name: str = ""
    """The Node that was found by its provider ID; empty while there is none."""
    is_ready: bool = False
    is_awaited: bool = True
    """Whether the cluster's control plane runs, so that the Node can come."""
    awaited_since: str = ""
    """Time since which the control plane runs; empty if it is unknown."""
    is_first: bool = False
    """Whether the cluster's API will run on this server, so that the Node cannot be queried without it."""


@dataclass(frozen=True, slots=True)
class HostWish:
    """The state that an owner desires for its server."""

    releases: bool = False
    """Whether the owner releases its server."""
    waits_for: Waiting | None = None
    """The prerequisite for which the owner waits before it claims or installs a server."""
    servers: Wish = ANY_SERVER
    """Requirements for a server; needed while `HostState.is_searching`."""
    servers_problem: str = ""
    """The error in the requirements; empty if they are valid."""
    failure_domain: str = ""
    """`LABEL=VALUE` that the server must have, recorded when the owner is queued."""
    record: MergePatch | None = None
    """The write with which the owner names the server that it has; None once it does."""
    bootstrap: SecretMetadata | None = None
    """The Secret with the server's user data."""
    template: TemplateFactory | None = None
    boot: Boot = NETBOOT
    installs_per_rack: int = INSTALLS_PER_RACK
    """Limit of servers of a rack that are powered on at the same time; 0 for no limit."""
    node: NodeWish | None = None
    """None for an owner whose server does not become a Node."""
    cluster: ClusterKey | None = None
    """The Cluster for which a server is reserved until its complete wipe; None if wipes are not deferred."""
    replaced_by: str = ""
    """The object that replaces the owner, as `KIND NAMESPACE/NAME`; empty if there is none."""
    replacement: str | None = None
    """The progress of the requested replacement; None if none was requested."""


@dataclass(frozen=True, slots=True)
class HostState:
    """The observed state of an owner's server, and of the servers that it may claim."""

    hardware: Hardware | None = None
    """The server of the owner."""
    surplus: tuple[Hardware, ...] = ()
    """Further servers that were claimed for it, by a process that had not yet observed the first claim."""
    bmc: BmcMachine | None = None
    """The bmc Machine of its server."""
    servers: tuple[Hardware, ...] = ()
    """Unclaimed servers, in the order of `observe.free_servers`, while the owner searches for one."""
    reserved: tuple[Hardware, ...] = ()
    """Servers that are reserved for its Cluster, while it has none; after a shortage, all reserved servers."""
    place: int = 0
    """Number of owners that wait before it for the same servers."""
    own_place: int = 0
    """Number of these owners that belong to its Cluster."""
    claims: ClaimRules = UNSET
    """Rules for claims of servers in other namespaces."""
    silent_bmcs: Mapping[Key, BmcMachine] = field(default_factory=dict)
    """BMCs that do not respond, while the owner searches for a server."""
    failed_servers: tuple[Hardware, ...] = ()
    """Other servers on which installations failed for the same replacing object, while it searches for another."""
    claimed: int = 0
    """Number of servers that others have claimed, after a shortage."""
    is_searching: bool = False
    """Whether the owner needs a server, or another one."""
    wave: Wave = NO_WAVE
    """The work in its rack, until the owner has started its own there."""
    template: Template | None = None
    workflow: Workflow | None = None
    wipe_override: Template | None = None
    """The Template that an annotation names for the wipe."""
    wipe_template: Template | None = None
    wipe_workflow: Workflow | None = None
    power_off: Job | None = None
    power_cycle: Job | None = None
    """The Job of a remediation."""
    node: Fact[NodeView | None] | None = None
    """Its Node, while the record of its server is not confirmed."""
    namesakes: tuple[tuple[NodeNow, Fact[NodeView | None]], ...] = ()
    """Nodes that may be its own, while none was found by provider ID."""
    new_nodes: tuple[tuple[NodeQuery, NodeFact], ...] = ()
    """Nodes that would prove that its system is up, while the system boots."""


@dataclass(frozen=True, slots=True)
class Step:
    """The next actions for a server, in order, and the report of its owner."""

    actions: tuple[Action, ...] = ()
    waiting: Waiting | None = None
    needs: tuple[Need[Any], ...] = ()
    after_s: float | None = None
    """Delay until the next reconciliation, unless a watch causes one earlier."""
    conditions: tuple[Condition, ...] = ()
    """The report of the owner, with condition types of `lifecycle.names`."""
    phase: str = ""
    """The new phase; empty if it does not change."""
    hardware: Hardware | None = None
    """The server of the owner, for its addresses."""
    is_provisioned: bool = False
    """Whether its operating system is installed and up; never reset."""
    replace_because: str = ""
    """Reason to replace the owner by another one, on another server; that write follows the others."""
    is_reported: bool = True
    """Whether the owner writes its status; otherwise its other writes cause another reconciliation."""

    def explained(self, more: str) -> Step:
        """The same step with a longer message of the reason for waiting."""
        if self.waiting is None or not more:
            return self
        old, new = self.waiting.message, f"{self.waiting.message}{more}"
        conditions = tuple(
            Condition(type=condition.type, status=condition.status, reason=condition.reason, message=new)
            if condition.message == old
            else condition
            for condition in self.conditions
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

    def set_condition(self, type_: str, status: bool | None, reason: str, message: str = "") -> None:
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
        """End with a reason for which the owner waits."""
        self.set_condition(READY, False, reason, message)
        step = self.proceeds(*actions, after_s=after_s, needs=needs)
        return replace(step, waiting=Waiting(reason, message), replace_because=replace_because)

    def proceeds(self, *actions: Action | None, after_s: float | None = None, needs: Sequence[Need[Any]] = ()) -> Step:
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
        """End with writes that cause another reconciliation, before anything is reported."""
        return replace(self.proceeds(*actions), is_reported=False)
