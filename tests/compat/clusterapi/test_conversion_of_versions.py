"""Conversion between versions gives what upstream's own functions give: up, down, the annotation, and up again.

Objects are generated from the definitions' schemas, or are upstream's manifests. Where both differ on purpose: zero
values that mean nothing; `layout: false` of a disk that has a list of partitions, which upstream writes and its own
definition then refuses; template references without a template.
"""

import re
from collections.abc import Iterator
from random import Random
from typing import Any

import msgspec
import pytest

from ironbell.api.cluster.names import ANNOTATION_CONVERSION_DATA
from ironbell.api.conversion.convert import convert
from ironbell.api.conversion.kinds import VERSIONS
from ironbell.api.crd.document import crd_document
from ironbell.codec import goyaml
from support.api.schemaobjects import random_object
from support.capi.conversionoracle import Answer, Oracle, Question
from support.programs.upstream import manifests

CASES = [(known, version) for known in VERSIONS for version in known.rules]
IDS = [f"{known.kind.kind}-{version}" for known, version in CASES]
_VARIABLE = re.compile(r"\$\{(\w+)(?::?=([^}]*))?\}")

Body = dict[str, Any]


def _contract_version(group: str, _kind: str) -> str:
    return f"{group}/v1beta1"


def _without(value: Any) -> Any:
    """Without what differs on purpose, and is no value of a field."""
    if isinstance(value, list):
        return [_without(entry) for entry in value]
    if not isinstance(value, dict):
        return value
    left = {key: _without(entry) for key, entry in value.items()}
    if left.get("layout") is False and left.get("diskLayout"):
        del left["layout"]
    if left.get("divisor") == "0":
        del left["divisor"]
    if left.get("metadata") == {}:
        del left["metadata"]
    if "creationTimestamp" in left and left["creationTimestamp"] is None:
        del left["creationTimestamp"]
    return left


def _stored(body: Body) -> Body:
    """An object in the stored version, fit for an exact comparison."""
    left: Body = _without(body)
    older = left.get("status", {}).get("deprecated", {}).get("v1beta1")
    if isinstance(older, dict):
        for name in [name for name, value in older.items() if value == 0]:
            del older[name]
    return left


def _meant(value: Any) -> Any:
    """An object in an older version without zero values, which mean nothing there."""
    if isinstance(value, list):
        return [_meant(entry) for entry in value]
    if not isinstance(value, dict):
        return value
    left = {key: _meant(entry) for key, entry in value.items()}
    return {
        key: entry
        for key, entry in left.items()
        if not (entry in (None, "", 0, {}, []) or (key == "ref" and set(entry) == {"namespace"}))
        and not (key == "retryPeriod" and entry == "0s")
    }


def _split(body: Body) -> tuple[Body, Body]:
    """An object in an older version and what its annotation holds."""
    copy: Body = msgspec.json.decode(msgspec.json.encode(body))
    annotations = copy["metadata"].get("annotations") or {}
    data = annotations.pop(ANNOTATION_CONVERSION_DATA, "{}")
    return _meant(_without(copy)), _stored(msgspec.json.decode(data))


def _object(answer: Answer, *, api_version: str, kind: str) -> Body:
    assert answer.object is not None, answer.error
    return {**answer.object, "apiVersion": api_version, "kind": kind}


def _compare(oracle: Oracle, known: Any, version: str, older: list[Body], stored: list[Body]) -> None:
    kind, old = known.kind, f"{known.kind.group}/{version}"

    def ask(bodies: list[Body], *, up: bool) -> list[Body]:
        answers = oracle([Question(up, kind.kind, version, body) for body in bodies])
        return [_object(one, api_version=kind.api_version if up else old, kind=kind.kind) for one in answers]

    raised = [convert(body, kind.api_version, _contract_version) for body in older]
    for ours, theirs in zip(raised, ask(older, up=True), strict=True):
        assert _stored(ours) == _stored(theirs)
    hubs = stored + raised
    lowered = [convert(body, old, _contract_version) for body in hubs]
    for ours, theirs in zip(lowered, ask(hubs, up=False), strict=True):
        assert _split(ours) == _split(theirs)
    again = [convert(body, kind.api_version, _contract_version) for body in lowered]
    for ours, theirs in zip(again, ask(lowered, up=True), strict=True):
        assert _stored(ours) == _stored(theirs)


@pytest.mark.parametrize(("known", "version"), CASES, ids=IDS)
def test_generated_objects(oracle: Oracle, known: Any, version: str) -> None:
    _compare_generated(oracle, known, version, seeds=range(15))


@pytest.mark.soak
@pytest.mark.parametrize(("known", "version"), CASES, ids=IDS)
def test_many_generated_objects(oracle: Oracle, known: Any, version: str) -> None:
    _compare_generated(oracle, known, version, seeds=range(15, 1000))


def _compare_generated(oracle: Oracle, known: Any, version: str, *, seeds: range) -> None:
    kind = known.kind
    versions = crd_document(kind)["spec"]["versions"]
    schemas = {one["name"]: one["schema"]["openAPIV3Schema"] for one in versions}

    def made(wanted: str, seed: int) -> Body:
        random = Random(f"{kind}-{wanted}-{seed}")
        return random_object(schemas[wanted], random, api_version=f"{kind.group}/{wanted}", kind=kind.kind)

    older = [made(version, seed) for seed in seeds]
    _compare(oracle, known, version, older, [made(kind.version, seed) for seed in seeds])


def _manifests() -> Iterator[Body]:
    for path in manifests("cluster-api"):
        text = _VARIABLE.sub(
            lambda found: found[2] or ("3" if "COUNT" in found[1] else found[1].lower()), path.read_text()
        )
        for body in goyaml.load_all(text):
            if body:
                yield {**body, "metadata": {"namespace": "place", **body["metadata"]}}


def test_manifests(oracle: Oracle) -> None:
    bodies = list(_manifests())
    compared = 0
    for known, version in CASES:
        ours = [body for body in bodies if body["kind"] == known.kind.kind]
        older = [body for body in ours if body["apiVersion"] == f"{known.kind.group}/{version}"]
        stored = [body for body in ours if body["apiVersion"] == known.kind.api_version]
        _compare(oracle, known, version, older, stored)
        compared += len(older) + len(stored)
    assert compared
