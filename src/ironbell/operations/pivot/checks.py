"""What speaks against a pivot, each with what can be done. Pure.

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

_ENDED = frozenset({"SUCCESS", "FAILED", "TIMEOUT"})
_SHOWN = 20


class RefusedError(IronbellError):
    """A pivot that cannot begin, or go on; nothing was lost."""

    reason, retry = "PivotRefused", Retry.NEVER

    def __init__(self, message: str, problems: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.details: Mapping[str, Any] = {"problems": list(problems or [message])}
        """What `-o json` adds to the error: all of them."""


def refuse(problems: Iterable[str]) -> None:
    """
    Raises:
        RefusedError: there are problems; all are named, of many the first.
    """
    found = list(dict.fromkeys(problems))
    if not found:
        return
    more = [f"and {len(found) - _SHOWN} more"] if len(found) > _SHOWN else []
    lines = [*found[:_SHOWN], *more]
    if len(lines) == 1:
        raise RefusedError(lines[0], found)
    heading = f"{counted(len(found), 'problem')} must be solved before anything is moved:"
    raise RefusedError("\n  ".join([heading, *lines]), found)


def unfinished(plan: Plan, *, adopts: bool = False) -> Iterator[str]:
    """Objects in the middle of something that must not be cut in two. `adopts`: what clusterctl deletes for a move is
    complete on the target."""
    for item in plan.items:
        if adopts and ANNOTATION_DELETE_FOR_MOVE in item.annotations:
            continue
        if item.is_deleting:
            yield f"{item.title} is being deleted; wait until it is gone"
        elif item.kind.name == kinds.CLUSTER:
            started = item.status.get("initialization") or {}
            if not started.get("infrastructureProvisioned"):
                yield f"{item.title}: its infrastructure is not provisioned yet; wait for it"
            elif not started.get("controlPlaneInitialized"):
                yield f"{item.title}: its control plane is not initialised yet; wait for it"
        elif item.kind.name == kinds.MACHINE and not (item.status.get("nodeRef") or {}).get("name"):
            yield f"{item.title} has no Node yet; wait for it, or delete the Machine"


def torn(plan: Plan) -> Iterator[str]:
    """Objects that would leave what they belong to."""
    for item, owner in plan.torn:
        yield (
            f"{item.title} belongs to {owner.title}, which does not move; let it move, too: by --all-namespaces, or "
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
    for one in target:
        name = (str(one.get("type")), str(one.get("providerName")))
        newest[name] = max(newest.get(name, ()), _version(one))
    for one in source:
        name = (str(one.get("type")), str(one.get("providerName")))
        if name in newest and newest[name] < _version(one):
            ours, theirs = one.get("version"), ".".join(map(str, newest[name]))
            yield f"{name[0]} {name[1]} is {ours} on the source and only {theirs} on the target; upgrade it there"


def _version(provider: Object) -> tuple[int, ...]:
    found = re.match(r"v?(\d+)\.(\d+)\.(\d+)", str(provider.get("version", "")))
    return tuple(int(part) for part in found.groups()) if found else ()


def _is_of_clusterctl(item: Item, found: Item) -> bool:
    """Whether an object on the target can be what clusterctl made of this one: it pauses Clusters and their classes."""
    if item.kind.name in (kinds.CLUSTER, kinds.CLUSTER_CLASS):
        return is_paused(found)
    return is_paused(found) or not difference(found, {"spec": item.spec})


def strangers(plan: Plan, there: Mapping[Key, Item], pivot: str, *, adopts: bool = False) -> Iterator[str]:
    """Objects of the same name on the target that are none of our copies. `adopts`: clusterctl's are as good, as long
    as they are paused, or are of kinds that it does not pause and say the same."""
    if adopts:
        for item in plan.items:
            found = there.get(item.key)
            if found is not None and item.uid in plan.paused and not _is_of_clusterctl(item, found):
                yield f"{item.title} is not paused on the target: that is no copy of an interrupted `clusterctl move`"
        return
    for item in plan.items:
        found = there.get(item.key)
        if found is None or is_marked(found, pivot) or item.is_global:
            continue
        if item.uid in plan.kept and not differs(item, found):
            continue
        yield f"{item.title} is on the target already, and is no copy of this pivot; delete or rename one of them"


def differs(item: Item, found: Item) -> str:
    """In which field a shared object is another one on the target."""
    return difference(found, {name: value for name, value in item.body.items() if name not in ("metadata", "status")})


def running(plan: Plan, workflows: Iterable[Object], jobs: Iterable[Object]) -> Iterator[str]:
    """Workflows and BMC Jobs that work on Hardware which moves."""
    hardware = {(item.namespace, item.name) for item in plan.items if item.kind.name == kinds.HARDWARE}
    bmcs = {(item.namespace, item.name) for item in plan.items if item.kind.name == kinds.BMC_MACHINE}
    for one in workflows:
        meta, state = one["metadata"], (one.get("status") or {}).get("state", "")
        named = (one.get("spec") or {}).get("hardwareRef", "")
        if (meta["namespace"], named) in hardware and state not in _ENDED:
            title = f"Workflow {meta['namespace']}/{meta['name']}"
            yield f"{title} runs on Hardware {named}; wait until it ends, or delete it"
    for one in jobs:
        meta, reference = one["metadata"], (one.get("spec") or {}).get("machineRef") or {}
        key = (reference.get("namespace", ""), reference.get("name", ""))
        if key in bmcs and not any(_is_true(one, name) for name in ("Completed", "Failed")):
            yield f"Job {meta['namespace']}/{meta['name']} runs on BMC {key[1]}; wait until it ends, or delete it"


def _is_true(obj: Object, condition: str) -> bool:
    found: Iterable[Mapping[str, Any]] = (obj.get("status") or {}).get("conditions") or ()
    return any(one.get("type") == condition and one.get("status") == "True" for one in found)
