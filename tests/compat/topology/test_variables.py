"""Variables are filled in and judged as upstream's packages do it."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest

from ironbell.controllers.capi.admission.topology.against_class import variable_problems, with_variables
from ironbell.controllers.capi.topology.variables.compiled import VariableSchemas
from support.capi.variableschemas import schema, value

FEW, MANY = 700, pytest.param(20000, marks=pytest.mark.soak)
SCHEMAS = VariableSchemas()


def definitions(rng: random.Random) -> list[dict[str, Any]]:
    found = []
    for name in rng.sample(["one", "two", "three", "four"], rng.randint(1, 3)):
        held = {"from": "inline", "required": rng.random() < 0.3, "schema": {"openAPIV3Schema": schema(rng)}}
        conflict = {"definitionsConflict": True} if rng.random() < 0.01 else {}
        found.append({"name": name, "definitions": [held], **conflict})
    return found


def values_for(rng: random.Random, known: list[dict[str, Any]], *, most: float, stored: bool) -> list[dict[str, Any]]:
    faulty = 0.0 if stored else 0.12
    made = [
        {"name": one["name"], "value": value(rng, one["definitions"][0]["schema"]["openAPIV3Schema"], faulty=faulty)}
        for one in known
        if rng.random() < most
    ]
    if stored:
        return made
    if rng.random() < 0.03:
        made.append({"name": "unknown", "value": 1})
    if made and rng.random() < 0.03:
        made.append(made[0])
    rng.shuffle(made)
    return made


def cluster(rng: random.Random, known: list[dict[str, Any]], *, stored: bool = False) -> dict[str, Any]:
    def overrides() -> dict[str, Any]:
        held = values_for(rng, known, most=0.4, stored=stored)
        return {"variables": {"overrides": held}} if held else {}

    topology: dict[str, Any] = {
        "classRef": {"name": "small"},
        "version": "v1.34.0",
        "workers": {
            "machineDeployments": [{"class": "w", "name": name, **overrides()} for name in ("md-0", "md-1")],
            "machinePools": [{"class": "p", "name": "mp-0", **overrides()}],
        },
    }
    if plane := overrides():
        topology["controlPlane"] = plane
    if variables := values_for(rng, known, most=0.75, stored=stored):
        topology["variables"] = variables
    return {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Cluster",
        "metadata": {"name": "prod", "namespace": "default"},
        "spec": {"topology": topology},
    }


def asked(seed: int) -> dict[str, Any]:
    rng = random.Random(seed)
    known = definitions(rng)
    class_ = {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "ClusterClass",
        "metadata": {"name": "small", "namespace": "default"},
        "status": {"variables": known},
    }
    request = {"operation": "variables", "cluster": cluster(rng, known), "class": class_}
    if rng.random() < 0.5:
        request["old"] = cluster(rng, known, stored=True)
    return request


_LIST = re.compile(r"(.*[.](?:variables|overrides))(?:\[([^\]]*)\])?(.*)")
_SPOILS = re.compile(r"is set more than once|variable is not defined|definitions in the ClusterClass not valid")
_FOLLOWS = re.compile(r"\((oneOf|anyOf|not)\)|must be of type integer (with|\(default) format")
_WRONG = "FieldValueTypeInvalid"


def told(faults: list[tuple[str, str, str]]) -> dict[str, set[str]]:
    """Reasons by path, as far as they are to be alike.

    A list with a variable twice, or with one that nobody defined, is not filled in by upstream: what else it says of
    that list follows from there. And what is of a wrong type is judged by its limits and alternatives as well.
    """
    spoilt = {_parts(path)[0] for _, path, message in faults if _SPOILS.search(message)}
    mistyped = {_parts(path)[:2] for reason, path, _ in faults if reason == _WRONG}
    reasons: dict[str, set[str]] = {root: {"spoilt"} for root in spoilt}
    for reason, path, message in faults:
        root, name, _ = _parts(path)
        if root not in spoilt and not ((root, name) in mistyped and _FOLLOWS.search(message)):
            # upstream writes `value.[0]` for the first item of a value
            reasons.setdefault(path.replace(".[", "["), set()).add(reason)
    return {path: {_WRONG} if _WRONG in found else found for path, found in reasons.items()}


def _parts(path: str) -> tuple[str, str, str]:
    found = _LIST.fullmatch(path.partition(".value")[0])
    assert found is not None, path
    return found[1], found[2] or "", path[len(found[0]) :]


def variables_of(body: dict[str, Any]) -> list[Any]:
    topology = body["spec"]["topology"]
    workers = topology.get("workers", {})
    parts = [topology.get("controlPlane", {}), *workers.get("machineDeployments", []), *workers.get("machinePools", [])]
    return [
        topology.get("variables") or [],
        *((part.get("variables") or {}).get("overrides") or [] for part in parts),
    ]


@pytest.mark.parametrize("cases", [FEW, MANY])
def test_variables_are_filled_in_and_judged_alike(oracle: Any, cases: int) -> None:
    requests = [asked(seed) for seed in range(cases)]
    judged = 0
    for seed, (request, answer) in enumerate(zip(requests, oracle(requests), strict=True)):
        assert "error" not in answer, (seed, answer)
        filled = with_variables(request["cluster"], request["class"], SCHEMAS)
        found = variable_problems(filled, request.get("old"), request["class"], SCHEMAS)
        ours = told([(one.kind, one.path, one.message) for one in found])
        theirs = told([(one["reason"], one["field"], one["message"]) for one in answer.get("faults", [])])
        assert ours == theirs, (seed, request, found, answer["faults"] if theirs else [])
        if not theirs:
            assert variables_of(filled) == variables_of(answer["cluster"]), (seed, request)
            judged += 1
    assert judged > cases / 10
