"""Labels and annotations that one object hands to another, kept in step.

Two annotations of the receiver record what was handed over, so that keys which the giver no longer has are removed and
keys that others wrote stay. That needs no field managers, and survives a move to another API server.

Source: kubernetes-sigs/cluster-api: docs/proposals/20221003-In-place-propagation-of-Kubernetes-objects-only-changes.md
(what is propagated); the tracking annotations follow those that upstream's Machine controller writes on Nodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

LABELS_FROM_TEMPLATE: Final = "ironbell.dev/labels-from-template"
"""Keys of labels that came from the owner's template, separated by commas."""
ANNOTATIONS_FROM_TEMPLATE: Final = "ironbell.dev/annotations-from-template"
"""Keys of annotations that came from the owner's template, separated by commas."""
MACHINES_CREATED: Final = "ironbell.dev/machines-made"
"""On a KubeadmControlPlane or MachineSet: how many Machines it has created, so that no name is used twice."""
_RECORDS: Final = (LABELS_FROM_TEMPLATE, ANNOTATIONS_FROM_TEMPLATE)


@dataclass(frozen=True, slots=True)
class Handed:
    """Labels and annotations of a template, ready to be compared with those of many objects."""

    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    """With the record."""

    @staticmethod
    def of(labels: Mapping[str, str], annotations: Mapping[str, str]) -> Handed:
        """Return the labels and annotations that a template hands over."""
        return Handed(dict(labels), {**annotations, **_record(labels, annotations)})

    def is_on(self, labels: Mapping[str, str], annotations: Mapping[str, str]) -> bool:
        """Return whether an object has all of them, and none that came from the template before."""
        return (
            self.labels.items() <= labels.items()
            and self.annotations.items() <= annotations.items()
            and all(annotations.get(name) == self.annotations.get(name) for name in _RECORDS)
        )

    def change(self, labels: Mapping[str, str], annotations: Mapping[str, str]) -> dict[str, Any]:
        """The merge patch for `metadata` that brings an object in line; empty when nothing is to be done."""
        if self.is_on(labels, annotations):
            return {}
        known_labels = _keys(annotations.get(LABELS_FROM_TEMPLATE, ""))
        known_annotations = _keys(annotations.get(ANNOTATIONS_FROM_TEMPLATE, "")).union(_RECORDS)
        change: dict[str, Any] = {}
        if label_change := _change(labels, self.labels, known_labels):
            change["labels"] = label_change
        if annotation_change := _change(annotations, self.annotations, known_annotations):
            change["annotations"] = annotation_change
        return change


def handed_over(labels: Mapping[str, str], annotations: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Labels and annotations of a new object, with the record of where they come from."""
    return dict(labels), {**annotations, **_record(labels, annotations)}


def metadata_change(
    have_labels: Mapping[str, str],
    have_annotations: Mapping[str, str],
    labels: Mapping[str, str],
    annotations: Mapping[str, str],
) -> dict[str, Any]:
    """Return the same as `Handed.change`, for one object."""
    return Handed.of(labels, annotations).change(have_labels, have_annotations)


def _change(have: Mapping[str, str], want: Mapping[str, str], known: set[str]) -> dict[str, str | None]:
    changed: dict[str, str | None] = {name: value for name, value in want.items() if have.get(name) != value}
    removed: dict[str, str | None] = {name: None for name in known if name in have and name not in want}
    return dict(sorted((changed | removed).items()))


def _record(labels: Mapping[str, str], annotations: Mapping[str, str]) -> dict[str, str]:
    record = {LABELS_FROM_TEMPLATE: ",".join(sorted(labels)), ANNOTATIONS_FROM_TEMPLATE: ",".join(sorted(annotations))}
    return {name: value for name, value in record.items() if value}


def _keys(text: str) -> set[str]:
    return {key for key in text.split(",") if key}
