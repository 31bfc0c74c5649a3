"""Conditions add up as upstream's packages add them up, message for message; versions compare alike."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from ironbell.api.cluster.deprecated import LegacyCondition
from ironbell.api.meta import Condition
from ironbell.contract.clusters.versions import api_version_key, compare_builds, find_version
from ironbell.contract.conditions import Owned, aggregate, mirror, set_condition, summary
from ironbell.contract.conditions.legacy import LegacySource, legacy_aggregate, legacy_summary
from ironbell.contract.hashing import label_value

CASES = 1500
TYPES = ["Available", "Ready", "UpToDate", "Deleting", "Paused", "Custom", "NodeHealthy", "ScalingUp"]
MESSAGES = [
    "",
    "",
    "disk is full",
    "waiting",
    "one\ntwo",
    "* Machine m: broken",
    "* A: x\n* B: y",
    "head:\n* A: x",
    "* A: x\n  * inner: y",
    "with a * star",
]
REASONS = ["Good", "Bad", "Waiting"]
SEVERITIES = ["Error", "Warning", "Info"]
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def moment(rng: random.Random) -> str:
    return f"2025-12-{rng.randint(1, 28):02d}T00:00:{rng.randint(0, 9):02d}Z"


def conditions(rng: random.Random, types: Sequence[str]) -> list[dict[str, Any]]:
    return [
        {
            "type": name,
            "status": rng.choice(["True", "False", "Unknown"]),
            "reason": rng.choice(REASONS),
            "message": rng.choice(MESSAGES),
            "lastTransitionTime": moment(rng),
        }
        for name in rng.sample(list(types), rng.randint(0, len(types)))
    ]


def legacy(rng: random.Random, types: Sequence[str]) -> list[dict[str, Any]]:
    made = []
    for name in rng.sample(list(types), rng.randint(0, len(types))):
        status = rng.choice(["True", "False", "Unknown"])
        one = {"type": name, "status": status, "lastTransitionTime": moment(rng)}
        if status != "True":
            one |= {"reason": rng.choice(REASONS), "message": rng.choice(["", "why", "how"])}
        if status == "False":
            one["severity"] = rng.choice(SEVERITIES)
        made.append(one)
    return made


def objects(rng: random.Random, types: Sequence[str]) -> list[dict[str, Any]]:
    names = rng.sample([f"m-{number}" for number in range(30)], rng.randint(1, 14))
    return [
        {
            "kind": (kind := rng.choice(["Machine", "Machine", "Machine", "MachineSet", "MachineDeployment"])),
            "name": name,
            "controlPlane": kind == "Machine" and rng.random() < 0.2,
            "conditions": conditions(rng, types),
            "legacyConditions": legacy(rng, types),
        }
        for name in names
    ]


def read(items: Sequence[dict[str, Any]]) -> list[Condition]:
    return msgspec.convert(items, list[Condition])


def owned(one: dict[str, Any]) -> Owned:
    return Owned(one["kind"], one["name"], read(one["conditions"]), one["controlPlane"])


def told(condition: Condition | LegacyCondition | None) -> dict[str, Any] | None:
    if condition is None:
        return None
    fields = ("type", "status", "severity", "reason", "message")
    return {name: getattr(condition, name) for name in fields if getattr(condition, name, "")}


def theirs(answer: dict[str, Any] | None) -> dict[str, Any] | None:
    if answer is None:
        return None
    return {name: value for name, value in answer.items() if value and name != "lastTransitionTime"}


def test_summaries(oracle: Any) -> None:
    rng, requests = random.Random(1), []
    for _ in range(CASES):
        types = rng.sample(TYPES, rng.randint(1, 5))
        requests.append(
            {
                "operation": "summary",
                "objects": [{"kind": "Machine", "name": "m", "conditions": conditions(rng, TYPES)}],
                "types": types,
                "negative": rng.sample(types, rng.randint(0, len(types))),
                "ignoreIfMissing": rng.sample(types, rng.randint(0, len(types))),
            }
        )
    for asked, answer in zip(requests, oracle(requests), strict=True):
        try:
            made = summary(
                read(asked["objects"][0]["conditions"]),
                "Target",
                asked["types"],
                negative=asked["negative"],
                ignore_if_missing=asked["ignoreIfMissing"],
            )
        except ValueError:
            assert answer["error"], asked
            continue
        assert told(made) == theirs(answer["condition"]), asked


def test_aggregates(oracle: Any) -> None:
    rng, requests = random.Random(2), []
    for _ in range(CASES):
        name = rng.choice(TYPES[:3])
        negative = [name] if rng.random() < 0.3 else []
        found = objects(rng, TYPES[:3])
        requests.append({"operation": "aggregate", "objects": found, "types": [name], "negative": negative})
    for asked, answer in zip(requests, oracle(requests), strict=True):
        made = aggregate(
            [owned(one) for one in asked["objects"]],
            asked["types"][0],
            target="Target",
            negative=bool(asked["negative"]),
        )
        assert told(made) == theirs(answer["condition"]), asked


def test_mirrors_and_order(oracle: Any) -> None:
    rng, requests = random.Random(3), []
    for _ in range(CASES // 5):
        one = {"kind": "Machine", "name": "m", "conditions": conditions(rng, TYPES)}
        requests.append({"operation": "mirror", "objects": [one], "types": ["Ready"]})
        requests.append({"operation": "set", "objects": [one]})
    for asked, answer in zip(requests, oracle(requests), strict=True):
        given = read(asked["objects"][0]["conditions"])
        if asked["operation"] == "mirror":
            made = mirror(given, "Ready", target="Target")
            assert told(made) == theirs(answer["condition"])
            assert made.last_transition_time == answer["condition"]["lastTransitionTime"]
            continue
        held: list[Condition] = []
        for condition in given:
            held = set_condition(held, condition, now=NOW, generation=0)
        assert held == read(answer["conditions"] or []), asked


def test_legacy_summaries(oracle: Any) -> None:
    rng, requests = random.Random(4), []
    for _ in range(CASES):
        types = rng.sample(TYPES, rng.randint(1, 5)) if rng.random() < 0.7 else None
        requests.append(
            {
                "operation": "legacy-summary",
                "objects": [
                    {"kind": "M", "name": "m", "legacyConditions": legacy(rng, [t for t in TYPES if t != "Ready"])}
                ],
                "types": types,
                "negative": None,
                "stepCounter": rng.random() < 0.5,
                "stepCounterIfOnly": rng.sample(TYPES, 3) if rng.random() < 0.3 else None,
            }
        )
    for asked, answer in zip(requests, oracle(requests), strict=True):
        made = legacy_summary(
            msgspec.convert(asked["objects"][0]["legacyConditions"], list[LegacyCondition]),
            types=asked["types"],
            step_counter=asked["stepCounter"],
            step_counter_if_only=asked["stepCounterIfOnly"],
        )
        assert told(made) == theirs(answer["legacy"]), asked


def test_legacy_aggregates(oracle: Any) -> None:
    rng, requests = random.Random(5), []
    for _ in range(CASES):
        found = objects(rng, ["Ready"])
        requests.append({"operation": "legacy-aggregate", "objects": found, "nameSource": rng.random() < 0.5})
    for asked, answer in zip(requests, oracle(requests), strict=True):
        sources = [
            LegacySource(one["kind"], one["name"], msgspec.convert(one["legacyConditions"], list[LegacyCondition]))
            for one in asked["objects"]
        ]
        made = legacy_aggregate(sources, "Target", name_source=asked["nameSource"])
        assert told(made) == theirs(answer["legacy"]), asked


VERSIONS = [
    "v1.34.2", "1.34.2", "v1.34", "1", "v1.34.0-rc.1", "v1.34.0-rc.1.x", "v1.34.0-rc.10", "v1.34.0-alpha", "v1.34.0+1",
    "v1.34.0+10", "v1.34.0+10.a", "v1.34.0+a", "v1.34.0+b", "v1.34.0-rc.1+2", "01.2.3", "v1.2.x", "latest", "", "v",
    "1.2-rc.1", "1.2.3.4", " v1.30.0 ", "v1.34.0-rc..1", "1.34.0+", "V1.2.3", "v1.34.0-0.a", "v1.34.0-01",
]  # fmt: skip


def test_versions_are_read_and_compared_alike(oracle: Any) -> None:
    (answer,) = oracle([{"operation": "versions", "texts": VERSIONS}])
    read_by_us = [find_version(text) for text in VERSIONS]
    assert [str(version) if version else "" for version in read_by_us] == answer["texts"]
    valid = [version for version in read_by_us if version is not None]
    ours = [compare_builds(one, other) for one in valid for other in valid]
    # upstream says 2 where builds differ without an order
    assert [2 if order is None else order for order in ours] == answer["numbers"]


def test_api_versions_are_ordered_alike(oracle: Any) -> None:
    texts = [
        "v1",
        "v2",
        "v10",
        "v1beta1",
        "v1beta2",
        "v2beta1",
        "v1alpha1",
        "v11alpha2",
        "foo",
        "foo1",
        "x",
        "v1gamma1",
    ]
    (answer,) = oracle([{"operation": "api-versions", "texts": texts}])
    keys = [api_version_key(text) for text in texts]
    assert [(one > other) - (one < other) for one in keys for other in keys] == [
        (order > 0) - (order < 0) for order in answer["numbers"]
    ]


@pytest.mark.parametrize("length", [1, 62, 63, 64, 253])
def test_names_become_the_same_values_of_labels(oracle: Any, length: int) -> None:
    rng = random.Random(length)
    texts = ["".join(rng.choice("abcXYZ019-_.") for _ in range(length)) for _ in range(100)]
    (answer,) = oracle([{"operation": "label-values", "texts": texts}])
    assert [label_value(text) for text in texts] == answer["texts"]
