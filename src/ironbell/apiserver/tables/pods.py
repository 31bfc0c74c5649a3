"""The table of pods, whose status depends on their containers.

Source: kubernetes/kubernetes: pkg/printers/internalversion/printers.go (printPod).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ironbell.apiserver.tables.cells import (
    AGE,
    NAME,
    NONE,
    Printer,
    age,
    age_of,
    column,
    entries,
    has_condition,
    name_of,
    nested,
    number,
)


@dataclass
class _Restarts:
    count: int = 0
    dates: list[str] = field(default_factory=list)

    def add(self, container: dict[str, Any]) -> None:
        self.count += number(container, "restartCount")
        finished = nested(container, "lastState", "terminated").get("finishedAt")
        if isinstance(finished, str):
            self.dates.append(finished)

    def text(self, now: datetime) -> str:
        if self.count and self.dates:
            return f"{self.count} ({age(max(self.dates), now)} ago)"
        return str(self.count)


def _row(item: dict[str, Any], now: datetime) -> list[Any]:
    spec, status = nested(item, "spec"), nested(item, "status")
    sidecars = {
        entry.get("name") for entry in entries(spec, "initContainers") if entry.get("restartPolicy") == "Always"
    }
    all_starts, side_starts = _Restarts(), _Restarts()
    reason, ready, is_starting = _initial(item, sidecars, all_starts, side_starts)
    restarts = all_starts
    if not is_starting or has_condition(item, "Initialized"):
        restarts = side_starts
        reason, running = _running(item, reason, restarts)
        ready += running
    total = len(entries(spec, "containers")) + len(sidecars)
    addresses = entries(status, "podIPs")
    return [
        name_of(item), f"{ready}/{total}", _ending(item, reason), restarts.text(now), age_of(item, now),
        (addresses[0].get("ip") if addresses else None) or NONE, spec.get("nodeName") or NONE,
        status.get("nominatedNodeName") or NONE, _gates(item),
    ]  # fmt: skip


def _initial(
    item: dict[str, Any], sidecars: set[Any], all_starts: _Restarts, side_starts: _Restarts
) -> tuple[str, int, bool]:
    """The state of the init containers: a reason, how many sidecars are ready, whether initialisation still runs."""
    status = nested(item, "status")
    reason, ready = str(status.get("reason") or status.get("phase") or ""), 0
    if any(entry.get("reason") == "SchedulingGated" for entry in entries(status, "conditions")):
        reason = "SchedulingGated"
    for index, container in enumerate(entries(status, "initContainerStatuses")):
        is_sidecar = container.get("name") in sidecars
        all_starts.add(container)
        if is_sidecar:
            side_starts.add(container)
        state = nested(container, "state")
        terminated = nested(state, "terminated")
        if "terminated" in state and not number(terminated, "exitCode"):
            continue
        if is_sidecar and container.get("started"):
            ready += bool(container.get("ready"))
            continue
        waiting = nested(state, "waiting").get("reason")
        if "terminated" in state:
            return f"Init:{_termination_reason(terminated)}", ready, True
        if waiting and waiting != "PodInitializing":
            return f"Init:{waiting}", ready, True
        return f"Init:{index}/{len(entries(nested(item, 'spec'), 'initContainers'))}", ready, True
    return reason, ready, False


def _running(item: dict[str, Any], reason: str, restarts: _Restarts) -> tuple[str, int]:
    """The state of the containers: a reason, and how many are ready."""
    ready, failure = 0, ""
    for container in reversed(entries(nested(item, "status"), "containerStatuses")):
        restarts.add(container)
        state = nested(container, "state")
        if nested(state, "waiting").get("reason"):
            reason = str(nested(state, "waiting")["reason"])
        elif "terminated" in state:
            reason = _termination_reason(nested(state, "terminated"))
            failure = reason if number(nested(state, "terminated"), "exitCode") else failure
        elif container.get("ready") and "running" in state:
            ready += 1
    if reason == "Completed":
        if ready and has_condition(item, "Ready"):
            return "Running", ready
        return failure or ("NotReady" if ready else reason), ready
    return reason, ready


def _termination_reason(terminated: dict[str, Any]) -> str:
    if terminated.get("reason"):
        return str(terminated["reason"])
    signal = number(terminated, "signal")
    return f"Signal:{signal}" if signal else f"ExitCode:{number(terminated, 'exitCode')}"


def _ending(item: dict[str, Any], reason: str) -> str:
    status = nested(item, "status")
    if not nested(item, "metadata").get("deletionTimestamp"):
        return reason
    if status.get("reason") == "NodeLost":
        return "Unknown"
    return reason if status.get("phase") in {"Failed", "Succeeded"} else "Terminating"


def _gates(item: dict[str, Any]) -> str:
    gates = entries(nested(item, "spec"), "readinessGates")
    passed = sum(has_condition(item, str(gate.get("conditionType"))) for gate in gates)
    return f"{passed}/{len(gates)}" if gates else NONE


POD = Printer(
    (
        NAME, column("Ready", "Ready containers, of all containers."), column("Status", "Phase or reason of the pod."),
        column("Restarts", "Restarts of its containers, and the time of the last one."), AGE,
        column("IP", "Address of the pod.", wide=True), column("Node", "Node that it runs on.", wide=True),
        column("Nominated Node", "Where room is made for it.", wide=True),
        column("Readiness Gates", "How many further conditions of readiness hold, of how many.", wide=True),
    ),
    _row,
)  # fmt: skip
