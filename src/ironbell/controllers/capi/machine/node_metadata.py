"""What a Machine puts on its Node: labels, annotations, taints. Pure: one patch, or none when nothing is to change.

Only what was put there by the Machine is ever taken away again: annotations on the Node remember which keys those are.

Source: kubernetes-sigs/cluster-api: core/reconcilers/machine/machine_controller_noderef.go (patchNode), util/labels,
util/annotations.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ironbell.api.cluster import names
from ironbell.api.cluster.common import MachineTaint
from ironbell.api.cluster.machine import Machine
from ironbell.api.core.node import Taint
from ironbell.base.errors import IronbellError, Retry
from ironbell.workload.queries import NodeView

ALWAYS: Final = "Always"
ON_INITIALIZATION: Final = "OnInitialization"
UNINITIALIZED: Final = Taint(key=names.TAINT_UNINITIALIZED, effect="NoSchedule")
"""On workers until their labels are there, so that nothing is scheduled by labels that are not."""
OUTDATED: Final = Taint(key=names.TAINT_OUTDATED_REVISION, effect="PreferNoSchedule")
"""While the Machine is to be replaced, so that pods move once rather than twice."""

_OWN_ANNOTATIONS: Final = frozenset(
    {
        names.ANNOTATION_CLUSTER_NAME,
        names.ANNOTATION_CLUSTER_NAMESPACE,
        names.ANNOTATION_MACHINE,
        names.ANNOTATION_OWNER_KIND,
        names.ANNOTATION_OWNER_NAME,
    }
)


@dataclass(frozen=True, slots=True)
class Synced:
    """Which further labels and annotations of a Machine go to its Node; none by default."""

    labels: tuple[re.Pattern[str], ...] = ()
    annotations: tuple[re.Pattern[str], ...] = ()


class PatternError(IronbellError):
    """A text is no regular expression."""

    reason = "InvalidOptions"
    retry = Retry.NEVER


def read_synced(labels: Iterable[str], annotations: Iterable[str]) -> Synced:
    """Regular expressions for keys, several in one text separated by commas.

    Raises:
        PatternError: one is none.
    """
    return Synced(tuple(_patterns(labels)), tuple(_patterns(annotations)))


def read_settings(options: Mapping[str, Any]) -> tuple[object, ...]:
    """Read the system's options of `ironbell run`.

    Raises:
        PatternError: a text is not a regular expression.
    """
    return (read_synced(options["sync_labels"], options["sync_annotations"]),)


def _patterns(texts: Iterable[str]) -> Iterator[re.Pattern[str]]:
    for text in filter(None, (part.strip() for one in texts for part in one.split(","))):
        try:
            yield re.compile(text)
        except re.error as error:
            raise PatternError(f"{text!r} is no regular expression for labels or annotations: {error}") from error


def managed_labels(machine: Machine, synced: Synced = Synced(), *, interruptible: bool = False) -> dict[str, str]:
    """The labels that a Machine gives its Node."""
    found = {
        key: value
        for key, value in machine.metadata.labels.items()
        if _is_managed_label(key) or any(pattern.search(key) for pattern in synced.labels)
    }
    return found | {names.LABEL_INTERRUPTIBLE: ""} if interruptible else found


def managed_annotations(machine: Machine, synced: Synced = Synced()) -> dict[str, str]:
    """The annotations that a Machine gives its Node."""
    meta = machine.metadata
    found = {
        names.ANNOTATION_CLUSTER_NAME: machine.spec.cluster_name,
        names.ANNOTATION_CLUSTER_NAMESPACE: meta.namespace,
        names.ANNOTATION_MACHINE: meta.name,
    }
    owner = next((one for one in meta.owner_references if one.controller), None)
    if owner is not None:
        found |= {names.ANNOTATION_OWNER_KIND: owner.kind, names.ANNOTATION_OWNER_NAME: owner.name}
    return found | {
        key: value
        for key, value in meta.annotations.items()
        if _in_domain(key, names.MANAGED_NODE_DOMAIN) or any(pattern.search(key) for pattern in synced.annotations)
    }


def node_patch(
    node: NodeView,
    labels: Mapping[str, str],
    annotations: Mapping[str, str],
    taints: Sequence[MachineTaint],
    *,
    outdated: bool,
) -> dict[str, Any] | None:
    """The merge patch that gives a Node what its Machine says; None if it has it. Taints are replaced as a whole."""
    new_annotations = _annotations(node, labels, annotations, taints)
    new_taints = _taints(node, taints, outdated=outdated)
    metadata = {
        "labels": _change(node.labels, labels, _listed(node, names.ANNOTATION_LABELS_FROM_MACHINE)),
        "annotations": _change(node.annotations, new_annotations, _owned_annotations(node)),
    }
    changed: dict[str, Any] = {field: change for field, change in metadata.items() if change}
    patch: dict[str, Any] = {"metadata": changed} if changed else {}
    if new_taints != list(node.taints):
        patch["spec"] = {"taints": [_plain(taint) for taint in new_taints] or None}
    return patch or None


def _annotations(
    node: NodeView, labels: Mapping[str, str], annotations: Mapping[str, str], taints: Sequence[MachineTaint]
) -> dict[str, str]:
    return {
        **annotations,
        names.ANNOTATION_LABELS_FROM_MACHINE: ",".join(sorted(labels)),
        names.ANNOTATION_ANNOTATIONS_FROM_MACHINE: ",".join(sorted(set(annotations) - _OWN_ANNOTATIONS)),
        names.ANNOTATION_TAINTS_FROM_MACHINE: ",".join(sorted(_mark(t) for t in taints if t.propagation == ALWAYS)),
    }


def _owned_annotations(node: NodeView) -> set[str]:
    return _listed(node, names.ANNOTATION_ANNOTATIONS_FROM_MACHINE) | _OWN_ANNOTATIONS


def _change(old: Mapping[str, str], wanted: Mapping[str, str], owned: Iterable[str]) -> dict[str, str | None]:
    """What differs from what is wanted, and None for what we had put there and is wanted no more."""
    gone: dict[str, str | None] = {key: None for key in owned if key in old and key not in wanted}
    return {key: value for key, value in wanted.items() if old.get(key) != value} | gone


def _taints(node: NodeView, wanted: Sequence[MachineTaint], *, outdated: bool) -> list[Taint]:
    taints = [taint for taint in node.taints if not _same(taint, UNINITIALIZED)]
    initialized = names.ANNOTATION_TAINTS_FROM_MACHINE in node.annotations
    for taint in wanted:
        if taint.propagation == ALWAYS or not initialized:
            taints = _with(taints, Taint(key=taint.key, value=taint.value, effect=taint.effect))
    lost = _listed(node, names.ANNOTATION_TAINTS_FROM_MACHINE) - {_mark(taint) for taint in wanted}
    taints = [taint for taint in taints if f"{taint.key}:{taint.effect}" not in lost]
    if not outdated:
        return [taint for taint in taints if not _same(taint, OUTDATED)]
    return taints if any(_same(taint, OUTDATED) for taint in taints) else [*taints, OUTDATED]


def _with(taints: list[Taint], new: Taint) -> list[Taint]:
    """The taints with this one; one that is there stays as it is, unless its value differs."""
    if not any(_same(taint, new) for taint in taints):
        return [*taints, new]
    return [new if _same(taint, new) and taint.value != new.value else taint for taint in taints]


def _same(one: Taint, other: Taint) -> bool:
    return (one.key, one.effect) == (other.key, other.effect)


def _mark(taint: MachineTaint) -> str:
    return f"{taint.key}:{taint.effect}"


def _listed(node: NodeView, annotation: str) -> set[str]:
    return set(filter(None, node.annotations.get(annotation, "").split(",")))


def _plain(taint: Taint) -> dict[str, str]:
    fields = {"key": taint.key, "value": taint.value, "effect": taint.effect, "timeAdded": taint.time_added}
    return {name: value for name, value in fields.items() if value}


def _is_managed_label(key: str) -> bool:
    domain = key.split("/", 1)[0]
    return domain == names.NODE_ROLE_LABEL_PREFIX or any(
        _in_domain(key, one) for one in (names.NODE_RESTRICTION_LABEL_DOMAIN, names.MANAGED_NODE_DOMAIN)
    )


def _in_domain(key: str, domain: str) -> bool:
    prefix = key.split("/", 1)[0]
    return prefix == domain or prefix.endswith(f".{domain}")
