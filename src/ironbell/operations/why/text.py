"""Answers as text: one line with cause and remedy, the chain that leads there, and the stored state of an object.

Nothing here queries a process: every user who can read the objects gets the same answer, also after a restart or from
a copy. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from ironbell.api.tinkerbell.names import ANNOTATION_DISABLED
from ironbell.base.printable import printable
from ironbell.base.wording import human_duration, spoken_duration
from ironbell.contract.clusters.paused import ANNOTATION_PIVOT_PAUSED
from ironbell.contract.servers.boot_progress import PROGRESS
from ironbell.contract.servers.claim import HELD, INSTALLED_SYSTEM_UP
from ironbell.contract.servers.directory import ERROR
from ironbell.operations.why.findings import GOOD_WHEN_FALSE as OF_CLUSTERS
from ironbell.operations.why.findings import one_line
from ironbell.operations.why.model import Diagnosis, Link, Object
from ironbell.operations.why.world import actions, annotation_object, group_of, seconds_since, since
from ironbell.provisioner.deletion import DELETION_WAITS_FOR

TERMINAL = {"SUCCESS", "FAILED", "TIMEOUT"}
GOOD_WHEN_FALSE = {"Failed", "BootJobFailed", "BootJobSetupFailed"} | OF_CLUSTERS
EVENTS_SHOWN = 5
_OF_CONDITION = ("type", "status", "reason", "message")


def first_line(answer: Diagnosis, now: datetime) -> str:
    """The cause, its age, when it ends, and the remedy, in one line."""
    age = _age(answer.since, now)
    message = f"{answer.blocking.title}: {answer.message}".rstrip(". ")
    parts = [f"{message} (for {age})." if age and not answer.is_good else f"{message}."]
    if answer.ends_when:
        parts.append(f"This ends when {answer.ends_when}.")
    if answer.remedy:
        parts.append(f"{answer.remedy}.")
    return " ".join(" ".join(part.split()) for part in parts)


def lines(answer: Diagnosis, now: datetime) -> list[str]:
    """The first line, and the chain from the object in question to the one that blocks it."""
    facts = [fact for fact in answer.facts if not answer.is_good]
    chain = (
        [_link(link, depth, now) for depth, link in enumerate(answer.chain)]
        if len(answer.chain) > 1 or answer.reason
        else []
    )
    return [first_line(answer, now), *facts, *answer.remarks, *answer.left_out, *chain]


def _age(time: str, now: datetime) -> str:
    """The spoken age of a time; empty if it is unknown."""
    age_s = seconds_since(time, now)
    return spoken_duration(int(age_s)) if age_s is not None else ""


def _link(link: Link, depth: int, now: datetime) -> str:
    age = _age(link.time, now)
    state = ", ".join(part for part in (link.reason, age) if part)
    return f"  {'  ' * depth}{link.title}" + (f": {state}" if state else "")


@dataclass(frozen=True)
class Explanation:
    """The stored state of one object, for `--wide` answers."""

    about: str
    state: str
    lines: tuple[str, ...] = ()
    events: tuple[str, ...] = field(default=())
    values: Object = field(default_factory=dict)
    """The same content for JSON."""

    def plain(self) -> Object:
        """Kind, group, namespace, name and state, the conditions that are not good, and the events."""
        return self.values

    def text(self) -> str:
        head = f"{self.about}: {self.state}" if self.state else self.about
        body = [*(f"  {line}" for line in self.lines)]
        if self.events:
            body += ["  Events:", *(f"    {event}" for event in self.events)]
        return printable("\n".join([head, *body]))


def explain(obj: Object, events: Sequence[Object], now: datetime, *, with_group: bool = False) -> Explanation:
    """One object, with the events about it (of any object; others are left out).

    `with_group` names the group of its kind, where a kind of another group has the same name.
    """
    uid, name = obj["metadata"].get("uid"), obj["metadata"]["name"]
    own = [e for e in events if _is_about(e, obj["kind"], name, uid)]
    group = group_of(obj) if with_group else ""
    about = f"{obj['kind']}{'.' * bool(group)}{group} {obj['metadata'].get('namespace', '')}/{name}"
    lines = [*_special(obj), *_conditions(obj), *_annotations(obj)]
    if obj["metadata"].get("deletionTimestamp"):
        lines.append(f"is being deleted; waits for finalizers: {', '.join(obj['metadata'].get('finalizers', []))}")
    latest = _latest(own)
    return Explanation(about, _state(obj), tuple(lines), tuple(_event(e, now) for e in latest), _values(obj, latest))


def _values(obj: Object, events: Sequence[Object]) -> Object:
    return {
        "kind": obj["kind"],
        "group": group_of(obj),
        "namespace": obj["metadata"].get("namespace", ""),
        "name": obj["metadata"]["name"],
        "state": _state(obj),
        "conditions": [
            {**{name: condition.get(name, "") for name in _OF_CONDITION}, "time": since(condition)}
            for condition in obj.get("status", {}).get("conditions", [])
            if _is_bad(condition)
        ],
        "events": [
            {
                **{name: event.get(name, "") for name in ("type", "reason", "message")},
                "count": event.get("count", 1),
                "time": event.get("lastTimestamp") or "",
            }
            for event in events
        ],
    }


def _is_about(event: Object, kind: str, name: str, uid: str | None) -> bool:
    regarding = event.get("involvedObject", {})
    if regarding.get("kind") != kind or regarding.get("name") != name:
        return False
    return not regarding.get("uid") or regarding["uid"] == uid


def _state(obj: Object) -> str:
    status = obj.get("status", {})
    if status.get("state"):
        return str(status["state"])
    if status.get("phase"):
        return str(status["phase"])
    if obj["kind"] == "Machine" and not _is_of_clusters(obj):
        return f"power {status.get('powerState', 'unknown')}"
    done = {c["type"] for c in status.get("conditions", []) if c["status"] == "True"}
    if _is_of_clusters(obj):
        return "" if done & {"Available", "Ready"} else "waits"
    return next((state for state in ("Failed", "Completed", "Running") if state in done), "")


def _is_of_clusters(obj: Object) -> bool:
    return group_of(obj).endswith("cluster.x-k8s.io")


def _special(obj: Object) -> list[str]:
    if obj["kind"] == "Workflow":
        return _workflow(obj)
    if obj["kind"] == "Hardware":
        return [
            f"interface {nic.get('dhcp', {}).get('mac', '?')}: netboot "
            + ("allowed" if nic.get("netboot", {}).get("allowPXE") else "not allowed")
            for nic in obj.get("spec", {}).get("interfaces", [])
        ]
    return []


def _workflow(obj: Object) -> list[str]:
    status, all_actions = obj.get("status", {}), actions(obj)
    lines = []
    for number, action in enumerate(all_actions, 1):
        state = action.get("state", "")
        if state in {"RUNNING", "FAILED", "TIMEOUT"}:
            message = f": {action['message']}" if action.get("message") else ""
            lines.append(f"action {number} of {len(all_actions)}, {action.get('name')}, is {state}{message}")
    current = status.get("currentState", {})
    if not lines and current.get("actionName") and status.get("state") not in TERMINAL:
        lines.append(f"next action: {current['actionName']} ({current.get('state')}), agent {status.get('agentID')}")
    return lines


def _conditions(obj: Object) -> list[str]:
    return [
        ": ".join(filter(None, (f"{entry['type']} is {entry['status']}", entry.get("reason"), _message(entry))))
        for entry in obj.get("status", {}).get("conditions", [])
        if _is_bad(entry)
    ]


def _message(condition: Object) -> str:
    return one_line(condition.get("message", ""))


def _is_bad(condition: Object) -> bool:
    wrong = "True" if condition["type"] in GOOD_WHEN_FALSE else "False"
    return condition["status"] in (wrong, "Unknown")


_LABELLED_ANNOTATIONS = (
    (ERROR, "error"),
    (ANNOTATION_DISABLED, "disabled"),
    (HELD, "held"),
    (DELETION_WAITS_FOR, "deletion waits for"),
)


def _annotations(obj: Object) -> list[str]:
    annotations = obj["metadata"].get("annotations", {})
    lines = [_progress(annotation_object(obj, PROGRESS))]
    for name, label in _LABELLED_ANNOTATIONS:
        if name in annotations:
            lines.append(f"{label}: {annotations[name]}")
    if ANNOTATION_PIVOT_PAUSED in annotations:
        lines.append("paused for a pivot that is under way: `ironbell pivot` continues it, --abort undoes it")
    if INSTALLED_SYSTEM_UP in annotations:
        lines.append(f"the installed system reported at {annotations[INSTALLED_SYSTEM_UP]} that it is up")
    return [line for line in lines if line]


def _progress(progress: Object) -> str:
    percent, speed = progress.get("percent"), progress.get("bytesPerSecond")
    parts = [f"{percent} %"] if percent is not None else []
    parts += [f"{speed / 1e6:.0f} MB/s"] if speed else []
    return f"progress: {', '.join(parts)}" if parts else ""


def _latest(events: Sequence[Object]) -> list[Object]:
    return sorted(events, key=_moment)[-EVENTS_SHOWN:]


def _moment(event: Object) -> tuple[str, int]:
    """Sort key: times are whole seconds, and the version orders events within a second."""
    version = str(event["metadata"].get("resourceVersion", ""))
    return event.get("lastTimestamp") or "", int(version) if version.isdecimal() else 0


def _event(event: Object, now: datetime) -> str:
    count = event.get("count", 1)
    times = f" ({count} times)" if count and count > 1 else ""
    mark = "! " if event.get("type") == "Warning" else ""
    age_s = seconds_since(event.get("lastTimestamp") or "", now)
    age = human_duration(max(0.0, age_s)) if age_s is not None else "?"
    return f"{age:>6} ago  {mark}{event.get('reason')}: {event.get('message')}{times}"
