"""Labels and annotations of a template follow it; those of others stay."""

from __future__ import annotations

from ironbell.contract.clusters.propagation import (
    ANNOTATIONS_FROM_TEMPLATE,
    LABELS_FROM_TEMPLATE,
    handed_over,
    metadata_change,
)
from ironbell.kube.patches import apply


def test_a_new_object_needs_no_change() -> None:
    labels, annotations = handed_over({"a": "1"}, {"x": "y"})

    assert metadata_change(labels, annotations, {"a": "1"}, {"x": "y"}) == {}


def test_what_the_template_loses_goes_and_what_others_wrote_stays() -> None:
    labels, annotations = handed_over({"a": "1", "b": "2"}, {"x": "y"})
    labels["theirs"] = "kept"
    annotations["theirs"] = "kept"

    change = metadata_change(labels, annotations, {"a": "3"}, {"z": "1"})
    metadata = apply({"labels": labels, "annotations": annotations}, change)

    assert metadata["labels"] == {"a": "3", "theirs": "kept"}
    assert metadata["annotations"] == {
        "theirs": "kept",
        "z": "1",
        LABELS_FROM_TEMPLATE: "a",
        ANNOTATIONS_FROM_TEMPLATE: "z",
    }
    assert metadata_change(metadata["labels"], metadata["annotations"], {"a": "3"}, {"z": "1"}) == {}


def test_an_empty_template_takes_its_record_along() -> None:
    labels, annotations = handed_over({"a": "1"}, {})

    metadata = apply({"labels": labels, "annotations": annotations}, metadata_change(labels, annotations, {}, {}))

    assert metadata == {"labels": {}, "annotations": {}}


def test_an_object_without_record_gets_one_and_loses_nothing() -> None:
    change = metadata_change({"a": "1", "b": "2"}, {}, {"a": "1"}, {})

    assert change == {"annotations": {LABELS_FROM_TEMPLATE: "a"}}
