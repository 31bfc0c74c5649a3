"""The labels, annotations and taints that a Machine sets on its Node. Pure: one patch, or none if nothing changes.

Only keys that the Machine has set are ever removed: annotations on the Node record them.

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
"""On workers until their labels are set, so that nothing is scheduled by missing labels."""
OUTDATED: Final = Taint(key=names.TAINT_OUTDATED_REVISION, effect="PreferNoSchedule")
"""On a Machine that is to be replaced, so that pods move once rather than twice."""

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
    """Patterns of further labels and annotations of a Machine that are copied to its Node; none by default."""

    labels: tuple[re.Pattern[str], ...] = ()
    annotations: tuple[re.Pattern[str], ...] = ()


class PatternError(IronbellError):
    """A text is not a valid regular expression."""

    reason = "InvalidOptions"
    retry = Retry.NEVER


def read_synced(labels: Iterable[str], annotations: Iterable[str]) -> Synced:
    """Read regular expressions for keys; a text may have several, separated by commas.

    Raises:
        PatternError: a text is not a regular expression.
    """
    return Synced(tuple(_patterns(labels)), tuple(_patterns(annotations)))


def read_settings(options: Mapping[str, Any]) -> tuple[object, ...]:
    """Read the system's options of `ironbell run`.

    Raises:
        PatternError: a text is not a regular expression.
    """
    return (read_synced(options["sync_labels"], options["sync_annotations"]),)


def _patterns(texts: Iterable[str]) -> Iterator[re.Pattern[str]]:
    for pattern in filter(None, (part.strip() for text in texts for part in text.split(","))):
        try:
            yield re.compile(pattern)
        except re.error as error:
            raise PatternError(
                f'"{pattern}" is not a valid regular expression for labels or annotations: {error}'
            ) from error


def managed_labels(machine: Machine, synced: Synced = Synced(), *, interruptible: bool = False) -> dict[str, str]:
    """The labels that a Machine sets on its Node."""
    result = {
        key: value
        for key, value in machine.metadata.labels.items()
        if _is_managed_label(key) or any(pattern.search(key) for pattern in synced.labels)
    }
    return result | {names.LABEL_INTERRUPTIBLE: ""} if interruptible else result


def managed_annotations(machine: Machine, synced: Synced = Synced()) -> dict[str, str]:
    """The annotations that a Machine sets on its Node."""
    meta = machine.metadata
    result = {
        names.ANNOTATION_CLUSTER_NAME: machine.spec.cluster_name,
        names.ANNOTATION_CLUSTER_NAMESPACE: meta.namespace,
        names.ANNOTATION_MACHINE: meta.name,
    }
    owner = next((reference for reference in meta.owner_references if reference.controller), None)
    if owner is not None:
        result |= {names.ANNOTATION_OWNER_KIND: owner.kind, names.ANNOTATION_OWNER_NAME: owner.name}
    return result | {
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
    """The merge patch that brings a Node in line with its Machine, with all taints; None if nothing changes."""
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
        names.ANNOTATION_TAINTS_FROM_MACHINE: ",".join(sorted(_key_of(t) for t in taints if t.propagation == ALWAYS)),
    }


def _owned_annotations(node: NodeView) -> set[str]:
    return _listed(node, names.ANNOTATION_ANNOTATIONS_FROM_MACHINE) | _OWN_ANNOTATIONS


def _change(old: Mapping[str, str], desired: Mapping[str, str], owned: Iterable[str]) -> dict[str, str | None]:
    """The differences from the desired values, and None for our earlier keys that are no longer desired."""
    removed: dict[str, str | None] = {key: None for key in owned if key in old and key not in desired}
    return {key: value for key, value in desired.items() if old.get(key) != value} | removed


def _taints(node: NodeView, desired: Sequence[MachineTaint], *, outdated: bool) -> list[Taint]:
    taints = [taint for taint in node.taints if not _is_same_taint(taint, UNINITIALIZED)]
    initialized = names.ANNOTATION_TAINTS_FROM_MACHINE in node.annotations
    for taint in desired:
        if taint.propagation == ALWAYS or not initialized:
            taints = _with(taints, Taint(key=taint.key, value=taint.value, effect=taint.effect))
    lost = _listed(node, names.ANNOTATION_TAINTS_FROM_MACHINE) - {_key_of(taint) for taint in desired}
    taints = [taint for taint in taints if f"{taint.key}:{taint.effect}" not in lost]
    if not outdated:
        return [taint for taint in taints if not _is_same_taint(taint, OUTDATED)]
    return taints if any(_is_same_taint(taint, OUTDATED) for taint in taints) else [*taints, OUTDATED]


def _with(taints: list[Taint], new: Taint) -> list[Taint]:
    """The taints with `new`; an existing taint stays unchanged unless its value differs."""
    if not any(_is_same_taint(taint, new) for taint in taints):
        return [*taints, new]
    return [new if _is_same_taint(taint, new) and taint.value != new.value else taint for taint in taints]


def _is_same_taint(left: Taint, right: Taint) -> bool:
    return (left.key, left.effect) == (right.key, right.effect)


def _key_of(taint: MachineTaint) -> str:
    return f"{taint.key}:{taint.effect}"


def _listed(node: NodeView, annotation: str) -> set[str]:
    return set(filter(None, node.annotations.get(annotation, "").split(",")))


def _plain(taint: Taint) -> dict[str, str]:
    fields = {"key": taint.key, "value": taint.value, "effect": taint.effect, "timeAdded": taint.time_added}
    return {name: value for name, value in fields.items() if value}


def _is_managed_label(key: str) -> bool:
    domain = key.split("/", 1)[0]
    return domain == names.NODE_ROLE_LABEL_PREFIX or any(
        _in_domain(key, domain) for domain in (names.NODE_RESTRICTION_LABEL_DOMAIN, names.MANAGED_NODE_DOMAIN)
    )


def _in_domain(key: str, domain: str) -> bool:
    prefix = key.split("/", 1)[0]
    return prefix == domain or prefix.endswith(f".{domain}")
