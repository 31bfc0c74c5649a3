"""Problems that prevent a pivot, each with its remedy. Pure.

Source: kubernetes-sigs/cluster-api: cmd/clusterctl/client/cluster/mover.go (checkTargetProviders,
checkProvisioningCompleted).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ironbell.api.cluster.names import ANNOTATION_DELETE_FOR_MOVE, LABEL_MOVE
from ironbell.base.errors import IronbellError, Retry
from ironbell.base.wording import counted
from ironbell.operations.pivot import items as kinds
from ironbell.operations.pivot.copies import difference, is_marked, is_paused
from ironbell.operations.pivot.graph import Plan
from ironbell.operations.pivot.items import Item, Key, Object

_COMPLETED = frozenset({"SUCCESS", "FAILED", "TIMEOUT"})
_SHOWN = 20


class PivotRejectedError(IronbellError):
    """A pivot that cannot begin or continue; nothing was lost."""

    reason, retry = "PivotRefused", Retry.NEVER

    def __init__(self, message: str, problems: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.details: Mapping[str, Any] = {"problems": list(problems or [message])}
        """All problems, which `-o json` adds to the error."""


def raise_problems(problems: Iterable[str]) -> None:
    """Raise an error if there are problems.

    Raises:
        PivotRejectedError: there are problems; the message has the first ones.
    """
    all_problems = list(dict.fromkeys(problems))
    if not all_problems:
        return
    more = [f"and {len(all_problems) - _SHOWN} more"] if len(all_problems) > _SHOWN else []
    lines = [*all_problems[:_SHOWN], *more]
    if len(lines) == 1:
        raise PivotRejectedError(lines[0], all_problems)
    heading = f"{counted(len(all_problems), 'problem')} must be solved before anything is moved:"
    raise PivotRejectedError("\n  ".join([heading, *lines]), all_problems)


def unfinished(plan: Plan, *, adopts: bool = False) -> Iterator[str]:
    """Objects in a state that a move must not interrupt. `adopts`: objects that clusterctl deletes for a move are
    complete on the target."""
    for item in plan.items:
        if adopts and ANNOTATION_DELETE_FOR_MOVE in item.annotations:
            continue
        if item.is_deleting:
            yield f"{item.title} is being deleted; wait until it no longer exists"
        elif item.kind.name == kinds.CLUSTER:
            started = item.status.get("initialization") or {}
            if not started.get("infrastructureProvisioned"):
                yield f"{item.title}: its infrastructure is not provisioned yet; wait for it"
            elif not started.get("controlPlaneInitialized"):
                yield f"{item.title}: its control plane is not initialised yet; wait for it"
        elif item.kind.name == kinds.MACHINE and not (item.status.get("nodeRef") or {}).get("name"):
            yield f"{item.title} has no Node yet; wait for it, or delete the Machine"


def torn(plan: Plan) -> Iterator[str]:
    """Objects that would be separated from their owner."""
    for item, owner in plan.torn:
        yield (
            f"{item.title} belongs to {owner.title}, which does not move; move that too, with --all-namespaces or with "
            f"the label {LABEL_MOVE} on it"
        )


def unserved(plan: Plan, target: Mapping[str, Collection[str]]) -> Iterator[str]:
    """Kinds that the target does not have."""
    for kind in {item.kind for item in plan.items if item.kind.is_custom}:
        versions = target.get(kind.name)
        if versions is None:
            yield f"the target has no kind {kind.name}; install its provider there"
        elif kind.version not in versions:
            yield (
                f"the target serves {kind.name} as {', '.join(sorted(versions))} and not as {kind.version}, in which "
                "the source stores it; install the same or a newer version of its provider there"
            )


def outdated(source: Iterable[Object], target: Iterable[Object]) -> Iterator[str]:
    """Providers that the target has in an older version, by both inventories."""
    newest: dict[tuple[str, str], tuple[int, ...]] = {}
    for provider in target:
        name = (str(provider.get("type")), str(provider.get("providerName")))
        newest[name] = max(newest.get(name, ()), _version(provider))
    for provider in source:
        name = (str(provider.get("type")), str(provider.get("providerName")))
        if name in newest and newest[name] < _version(provider):
            old, required = ".".join(map(str, newest[name])), provider.get("version")
            yield f"{name[0]} {name[1]} is {required} on the source and only {old} on the target; upgrade it there"


def _version(provider: Object) -> tuple[int, ...]:
    match = re.match(r"v?(\d+)\.(\d+)\.(\d+)", str(provider.get("version", "")))
    return tuple(int(part) for part in match.groups()) if match else ()


def _is_of_clusterctl(item: Item, copy: Item) -> bool:
    """Return whether an object on the target can be clusterctl's copy of this one: it pauses Clusters and their
    classes."""
    if item.kind.name in (kinds.CLUSTER, kinds.CLUSTER_CLASS):
        return is_paused(copy)
    return is_paused(copy) or not difference(copy, {"spec": item.spec})


def strangers(plan: Plan, on_target: Mapping[Key, Item], pivot: str, *, adopts: bool = False) -> Iterator[str]:
    """Objects on the target that have the same name but are not our copies. `adopts`: clusterctl's copies are accepted
    if they are paused, or are of kinds that it does not pause and have the same content."""
    if adopts:
        for item in plan.items:
            existing = on_target.get(item.key)
            if existing is not None and item.uid in plan.paused and not _is_of_clusterctl(item, existing):
                yield f"{item.title} is not paused on the target: it is not a copy of an interrupted `clusterctl move`"
        return
    for item in plan.items:
        existing = on_target.get(item.key)
        if existing is None or is_marked(existing, pivot) or item.is_global:
            continue
        if item.uid in plan.kept and not differs(item, existing):
            continue
        yield f"{item.title} is already on the target and is not a copy of this pivot; delete or rename one of them"


def differs(item: Item, existing: Item) -> str:
    """The field in which a shared object on the target differs."""
    return difference(
        existing, {name: value for name, value in item.body.items() if name not in ("metadata", "status")}
    )


def running(plan: Plan, workflows: Iterable[Object], jobs: Iterable[Object]) -> Iterator[str]:
    """Workflows and BMC Jobs that work on Hardware which moves."""
    hardware = {(item.namespace, item.name) for item in plan.items if item.kind.name == kinds.HARDWARE}
    bmcs = {(item.namespace, item.name) for item in plan.items if item.kind.name == kinds.BMC_MACHINE}
    for workflow in workflows:
        meta, state = workflow["metadata"], (workflow.get("status") or {}).get("state", "")
        named = (workflow.get("spec") or {}).get("hardwareRef", "")
        if (meta["namespace"], named) in hardware and state not in _COMPLETED:
            title = f"Workflow {meta['namespace']}/{meta['name']}"
            yield f"{title} runs on Hardware {named}; wait until it ends, or delete it"
    for job in jobs:
        meta, reference = job["metadata"], (job.get("spec") or {}).get("machineRef") or {}
        key = (reference.get("namespace", ""), reference.get("name", ""))
        if key in bmcs and not any(_is_true(job, name) for name in ("Completed", "Failed")):
            yield f"Job {meta['namespace']}/{meta['name']} runs on BMC {key[1]}; wait until it ends, or delete it"


def _is_true(obj: Object, condition: str) -> bool:
    conditions: Iterable[Mapping[str, Any]] = (obj.get("status") or {}).get("conditions") or ()
    return any(entry.get("type") == condition and entry.get("status") == "True" for entry in conditions)
