"""The fields of objects that each process for machines may write: one table, as data.

Roles apply to whole objects. A process that reads packets from strangers may be taken over, so the API compares each of
its writes with this table as well: the embedded API by `app.site.wire_limits`, others by the policy that
`app.install.policies` derives from it. `docs/reference/writes.md` is printed from it. A process that is split, or a new
one, is a row of `COMPONENTS_OF`; further writes of a component are a row of `TABLE`.

The names of a path are those of the object's JSON; `[]` stands for each item of a list, and a name that ends in `*` for
every name with that prefix.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from ironbell.api.kind import Collection
from ironbell.api.tinkerbell import HARDWARE, WORKFLOW
from ironbell.api.tinkerbell.names import ANNOTATION_AGENT_ATTRIBUTES
from ironbell.api.tinkerbell.workflow import WorkflowState
from ironbell.app.wire.config import (
    BOOT_PROCESS,
    BOOT_SERVERS,
    SERVERS,
    SMEE,
    TINK_SERVER,
    TOOTLES,
    WORKFLOW_PROCESS,
    WORKFLOW_SERVERS,
)
from ironbell.contract.servers.boot_progress import LOG_PREFIX
from ironbell.contract.servers.boot_progress import PROGRESS as WORKFLOW_PROGRESS
from ironbell.contract.servers.boot_token import BOOT_TOKEN
from ironbell.contract.servers.claim import INSTALLED_SYSTEM_FAILED, INSTALLED_SYSTEM_UP
from ironbell.contract.servers.identity import KNOWN_BY
from ironbell.controllers.tink.states import TRANSITIONS, Mover
from ironbell.services.workflow import names
from ironbell.services.workflow.reboot import RESTART

FieldPath: TypeAlias = tuple[str, ...]
Object: TypeAlias = Mapping[str, Any]

EVENTS: Final = Collection("", "v1", "events", namespaced=True)
EVENT_SOURCE: Final = "ironbell-wire"
"""The component that Events of these processes name."""

COMPONENTS_OF: Final[Mapping[str, tuple[str, ...]]] = {
    "wire": SERVERS,
    BOOT_PROCESS: BOOT_SERVERS,
    WORKFLOW_PROCESS: WORKFLOW_SERVERS,
    SMEE: (SMEE,),
    TOOTLES: (TOOTLES,),
    TINK_SERVER: (TINK_SERVER,),
}
"""Components by account, without its `ironbell-`: below `ironbell up` that of their process, on a cluster that of their
Deployment."""


@dataclass(frozen=True, slots=True)
class Limit:
    """A rule beyond the fields: as text, for the embedded API, and as an expression of an admission policy."""

    text: str
    fault: Callable[[Object, Object], str]
    """Returns the problem of a write, from the old and the new object; empty if there is none."""
    expression: str
    """True if there is no problem; in terms of `object` and `oldObject`."""


@dataclass(frozen=True, slots=True)
class Writes:
    """The writes that components may do to objects of one kind with one verb."""

    components: tuple[str, ...]
    where: Collection
    fields: tuple[FieldPath, ...]
    reason: str
    verb: str = "patch"
    subresource: str = ""
    limit: Limit | None = None

    @property
    def resource(self) -> str:
        """The plural with the subresource, as roles name it."""
        return f"{self.where.plural}/{self.subresource}" if self.subresource else self.where.plural


def _annotations(*keys: str) -> tuple[FieldPath, ...]:
    return tuple(("metadata", "annotations", key) for key in keys)


def _state(obj: Object) -> str:
    return str((obj.get("status") or {}).get("state") or "")


def _in(obj: Object, *path: str) -> Any:
    for name in path:
        obj = obj.get(name) or {}
    return obj


EDGES: Final = tuple(edge for edge, (movers, _when) in TRANSITIONS.items() if Mover.SERVICE in movers)
"""The transitions of a Workflow that the workflow service may make."""
OPEN: Final = tuple(dict.fromkeys(start for start, _end in EDGES))
"""States of a Workflow that the workflow service works on; in any other, it may not change the status."""
_BEGIN_AGAIN: Final = (WorkflowState.RUNNING.value, WorkflowState.PENDING.value)


def _progress_fault(old: Object, new: Object) -> str:
    old_state, new_state = _state(old), _state(new)
    if old_state not in OPEN:
        return (
            f'its state is "{old_state}", and only that of a Workflow in state {" or ".join(OPEN)} is open to reports'
        )
    if old_state != new_state and (old_state, new_state) not in EDGES:
        return f'a report does not move a Workflow from "{old_state}" to "{new_state}"'
    if (old_state, new_state) == _BEGIN_AGAIN and _policy(old) != RESTART:
        return f"only a Workflow with annotation {names.ON_REBOOT}: {RESTART} begins again"
    agent, tasks = _agent(new), _in(old, "status").get("tasks") or []
    if agent != _agent(old) and agent != (tasks[0].get("agentID") if tasks else ""):
        return f'"{agent}" is not the agent of its first task'
    return ""


def _agent(workflow: Object) -> str:
    return str(_in(workflow, "status").get("agentID") or "")


def _policy(workflow: Object) -> str:
    return str(_in(workflow, "metadata", "annotations").get(names.ON_REBOOT, "")).strip().lower()


def _texts(values: tuple[str, ...]) -> str:
    return "[" + ", ".join(f"'{value}'" for value in values) + "]"


_OLD_STATE, _NEW_STATE = "oldObject.status.state", "object.status.state"
_MOVES = " || ".join(f"({_OLD_STATE} == '{start}' && {_NEW_STATE} == '{end}')" for start, end in EDGES)
_IS_TO_RESTART = (
    f"has(oldObject.metadata.annotations) && '{names.ON_REBOOT}' in oldObject.metadata.annotations && "
    f"oldObject.metadata.annotations['{names.ON_REBOOT}'].trim().lowerAscii() == '{RESTART}'"
)
_AGENT = "(has({0}.status.agentID) ? {0}.status.agentID : '')"
_IS_FIRST_AGENT = (
    f"has(oldObject.status.tasks) && oldObject.status.tasks.size() > 0 && {_AGENT.format('object')} == "
    "oldObject.status.tasks[0].agentID"
)
_PROGRESS_EXPRESSION = " && ".join(
    (
        f"has(oldObject.status) && has({_OLD_STATE}) && {_OLD_STATE} in {_texts(OPEN)}",
        f"has(object.status) && has({_NEW_STATE}) && ({_NEW_STATE} == {_OLD_STATE} || {_MOVES})",
        f"({_OLD_STATE} != '{_BEGIN_AGAIN[0]}' || {_NEW_STATE} != '{_BEGIN_AGAIN[1]}' || ({_IS_TO_RESTART}))",
        f"({_AGENT.format('object')} == {_AGENT.format('oldObject')} || ({_IS_FIRST_AGENT}))",
    )
)
PROGRESS: Final = Limit(
    "Only of a Workflow in state PENDING or RUNNING, which it leaves for RUNNING, POST, FAILED or TIMEOUT; from "
    f"RUNNING back to PENDING only with annotation `{names.ON_REBOOT}: {RESTART}`. `agentID` stays, or becomes that "
    "of the first task.",
    _progress_fault,
    _PROGRESS_EXPRESSION,
)


def _event_fault(_old: Object, new: Object) -> str:
    about, source = _in(new, "involvedObject"), _in(new, "source")
    if (about.get("kind"), about.get("apiVersion")) != (HARDWARE.kind, HARDWARE.api_version):
        return f"it is about a {about.get('kind')}, and not about Hardware"
    if {source.get("component"), new.get("reportingComponent")} != {EVENT_SOURCE}:
        return f"it does not name {EVENT_SOURCE} as its source"
    return ""


def _own_event_fault(old: Object, _new: Object) -> str:
    source = _in(old, "source").get("component")
    return "" if source == EVENT_SOURCE else f'it is one of "{source}"'


EVENT: Final = Limit(
    f"About Hardware, with `{EVENT_SOURCE}` as source.",
    _event_fault,
    f"object.involvedObject.kind == '{HARDWARE.kind}' && object.involvedObject.apiVersion == '{HARDWARE.api_version}' "
    f"&& has(object.source) && has(object.source.component) && object.source.component == '{EVENT_SOURCE}' && "
    f"has(object.reportingComponent) && object.reportingComponent == '{EVENT_SOURCE}'",
)
OWN_EVENT: Final = Limit(
    f"Of Events with `{EVENT_SOURCE}` as source.",
    _own_event_fault,
    f"has(oldObject.source) && has(oldObject.source.component) && oldObject.source.component == '{EVENT_SOURCE}'",
)

_ACTION = ("status", "tasks", "[]", "actions", "[]")
TABLE: Final = (
    Writes(
        (SMEE,),
        HARDWARE.collection,
        _annotations(BOOT_TOKEN),
        "The digest of the token that a boot was given.",
    ),
    Writes(
        (SMEE, TOOTLES),
        HARDWARE.collection,
        _annotations(INSTALLED_SYSTEM_UP, INSTALLED_SYSTEM_FAILED),
        "Reports of an installed system; removed when its machine boots the in-memory OS again.",
    ),
    Writes(
        (TINK_SERVER,),
        HARDWARE.collection,
        _annotations(ANNOTATION_AGENT_ATTRIBUTES, KNOWN_BY),
        "Hardware attributes that the agent detected, and how it was identified.",
    ),
    Writes(
        (TINK_SERVER,),
        WORKFLOW.collection,
        _annotations(
            names.BOOT_IDS,
            names.RESTARTS,
            names.HEARTBEATS,
            WORKFLOW_PROGRESS,
            names.LOG_REPLICA,
            names.MACHINE_REPORT,
            names.REJECTED_AGENT,
            f"{LOG_PREFIX}*",
        ),
        "Reports of agents beside the state of actions.",
    ),
    Writes(
        (TINK_SERVER,),
        WORKFLOW.collection,
        (
            ("status", "state"),
            ("status", "agentID"),
            ("status", "currentState"),
            (*_ACTION, "state"),
            (*_ACTION, "executionStart"),
            (*_ACTION, "executionStop"),
            (*_ACTION, "executionDuration"),
            (*_ACTION, "message"),
        ),
        "Progress of the actions.",
        subresource="status",
        limit=PROGRESS,
    ),
    Writes((SMEE, TOOTLES), EVENTS, ((),), "Steps of a boot.", verb="create", limit=EVENT),
    Writes((SMEE, TOOTLES), EVENTS, (("count",), ("lastTimestamp",)), "Repetitions of a step.", limit=OWN_EVENT),
)
"""Everything that these components write. The path `()` is the whole object."""


def writes_of(process: str) -> tuple[Writes, ...]:
    """The rows of a process."""
    components = set(COMPONENTS_OF[process])
    return tuple(row for row in TABLE if components & set(row.components))


def path_text(path: FieldPath) -> str:
    """A path as text, such as `metadata.annotations[ironbell.dev/boot-token]`."""
    text = ""
    for name in path:
        if name == "[]":
            text += "[]"
        elif "/" in name or "." in name:
            text += f"[{name}]"
        else:
            text += f".{name}" if text else name
    return text
