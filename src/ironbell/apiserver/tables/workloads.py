"""Tables of the kinds that run containers.

Source: kubernetes/kubernetes: pkg/printers/internalversion/printers.go.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ironbell.api.kind import Column
from ironbell.apiserver.tables.cells import (
    AGE,
    NAME,
    NONE,
    UNSET,
    Printer,
    age,
    age_of,
    column,
    entries,
    has_condition,
    labels_text,
    name_of,
    named,
    nested,
    number,
    span,
)
from ironbell.apiserver.tables.pods import POD
from ironbell.apiserver.verbs.scale import selector_text

_CONTAINERS = column("Containers", "Names of each container in the template.", wide=True)
_IMAGES = column("Images", "Images that the template's containers use.", wide=True)
_SELECTOR = column("Selector", "Selector of its pods.", wide=True)
_WIDE = (_CONTAINERS, _IMAGES, _SELECTOR)


def _count(name: str, description: str) -> Column:
    return column(name, description, type="integer")


def _containers(template: dict[str, Any]) -> list[Any]:
    containers = entries(nested(template, "spec"), "containers")
    return [",".join(str(entry.get(key, "")) for entry in containers) for key in ("name", "image")]


def _wide(item: dict[str, Any]) -> list[Any]:
    spec = nested(item, "spec")
    return [*_containers(nested(spec, "template")), _selector(spec)]


def _selector(spec: dict[str, Any]) -> str:
    """The selector's text; empty for a Job before its selector is created."""
    selector = nested(spec, "selector")
    return (selector_text(selector) or NONE) if selector else NONE


def _replicas(item: dict[str, Any]) -> list[Any]:
    spec, status = nested(item, "spec"), nested(item, "status")
    return [number(spec, "replicas"), number(status, "replicas"), number(status, "readyReplicas")]


def _ready(item: dict[str, Any]) -> str:
    return f"{number(nested(item, 'status'), 'readyReplicas')}/{number(nested(item, 'spec'), 'replicas')}"


def _deployment(item: dict[str, Any]) -> list[Any]:
    status = nested(item, "status")
    return [_ready(item), number(status, "updatedReplicas"), number(status, "availableReplicas")]


def _daemon_set(item: dict[str, Any]) -> list[Any]:
    status = nested(item, "status")
    counts = (
        "desiredNumberScheduled", "currentNumberScheduled", "numberReady", "updatedNumberScheduled", "numberAvailable",
    )  # fmt: skip
    nodes = nested(item, "spec", "template", "spec", "nodeSelector")
    return [*(number(status, name) for name in counts), labels_text(nodes)]


def _job_row(item: dict[str, Any], now: datetime) -> list[Any]:
    spec, status = nested(item, "spec"), nested(item, "status")
    parallel = number(spec, "parallelism")
    desired = str(spec.get("completions")) if spec.get("completions") is not None else "1"
    if spec.get("completions") is None and parallel > 1:
        desired = f"1 of {parallel}"
    duration = span(status.get("startTime"), status.get("completionTime"), now)
    done = f"{number(status, 'succeeded')}/{desired}"
    return [name_of(item), _job_status(item), done, duration, age_of(item, now), *_wide(item)]


def _job_status(item: dict[str, Any]) -> str:
    if has_condition(item, "Complete") or has_condition(item, "Failed"):
        return "Complete" if has_condition(item, "Complete") else "Failed"
    if nested(item, "metadata").get("deletionTimestamp"):
        return "Terminating"
    states = {"Suspended": "Suspended", "FailureTarget": "FailureTarget", "SuccessCriteriaMet": "SuccessCriteriaMet"}
    return next((text for kind, text in states.items() if has_condition(item, kind)), "Running")


def _cron_job_row(item: dict[str, Any], now: datetime) -> list[Any]:
    spec, status = nested(item, "spec"), nested(item, "status")
    suspend, last = spec.get("suspend"), status.get("lastScheduleTime")
    job = nested(spec, "jobTemplate", "spec")
    return [
        name_of(item), spec.get("schedule", ""), spec.get("timeZone") or NONE,
        UNSET if suspend is None else str(bool(suspend)), len(entries(status, "active")),
        age(last, now) if last else NONE, age_of(item, now), *_containers(nested(job, "template")), _selector(job),
    ]  # fmt: skip


def _revision(item: dict[str, Any]) -> list[Any]:
    owners = entries(nested(item, "metadata"), "ownerReferences")
    owner = next((entry for entry in owners if entry.get("controller")), None)
    return [_owner_text(owner) if owner else NONE, number(item, "revision")]


def _owner_text(owner: dict[str, Any]) -> str:
    group = str(owner.get("apiVersion", "")).rpartition("/")[0]
    kind = str(owner.get("kind", "")).lower()
    return f"{kind}.{group}/{owner.get('name', '')}" if group else f"{kind}/{owner.get('name', '')}"


_REPLICAS = named(
    _count("Desired", "Desired number of replicas."), _count("Current", "Current number of replicas."),
    _count("Ready", "How many are ready."), cells=_replicas, more=_WIDE, more_cells=_wide,
)  # fmt: skip
PRINTERS: dict[tuple[str, str], Printer] = {
    ("", "Pod"): POD,
    ("", "ReplicationController"): _REPLICAS,
    ("apps", "ReplicaSet"): _REPLICAS,
    ("apps", "Deployment"): named(
        column("Ready", "How many replicas are ready, of how many."),
        column("Up-to-date", "How many replicas have the current template."),
        column("Available", "How many replicas have been ready for long enough."),
        cells=_deployment, more=_WIDE, more_cells=_wide,
    ),
    ("apps", "StatefulSet"): named(
        column("Ready", "How many replicas are ready, of how many."), cells=lambda item: [_ready(item)],
        more=(_CONTAINERS, _IMAGES), more_cells=lambda item: _containers(nested(item, "spec", "template")),
    ),
    ("apps", "DaemonSet"): named(
        _count("Desired", "How many nodes should run it."), _count("Current", "How many nodes run it."),
        _count("Ready", "How many nodes run it ready."),
        _count("Up-to-date", "How many nodes run the current template."),
        _count("Available", "How many nodes have run it ready for long enough."),
        column("Node Selector", "Selector of its nodes."),
        cells=_daemon_set, more=_WIDE, more_cells=_wide,
    ),
    ("apps", "ControllerRevision"): named(
        column("Controller", "The object whose state this is."), column("Revision", "Number of the state."),
        cells=_revision,
    ),
    ("batch", "Job"): Printer(
        (
            NAME, column("Status", "State of the job."),
            column("Completions", "How often it succeeded, of how often."),
            column("Duration", "How long it has run, or ran."), AGE, *_WIDE,
        ),
        _job_row,
    ),
    ("batch", "CronJob"): Printer(
        (
            NAME, column("Schedule", "When it runs."), column("Timezone", "By which clock."),
            column("Suspend", "Whether it is held back.", type="boolean"), _count("Active", "How many Jobs run now."),
            column("Last Schedule", "Time since it last ran."), AGE, *_WIDE,
        ),
        _cron_job_row,
    ),
    ("", "PodTemplate"): Printer(
        (
            NAME, column("Containers", "Names of each container in the template."),
            column("Images", "Images that the template's containers use."), column("Pod Labels", "Labels of its pods."),
        ),
        lambda item, _now: [
            name_of(item), *_containers(nested(item, "template")),
            labels_text(nested(item, "template", "metadata", "labels")),
        ],
    ),
}  # fmt: skip
