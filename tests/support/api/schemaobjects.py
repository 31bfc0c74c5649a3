"""Random objects that fit an OpenAPI v3 schema, from a seed: as many shapes as there are, with few values."""

from __future__ import annotations

from random import Random
from typing import Any

_DURATIONS = ("10s", "1h30m0s", "0s", "5m0s", "1.5s", "90s", "48h0m0s")
_DURATION_NAMES = ("timeout", "ttl", "retryperiod", "minhealthyperiod", "timeoutforcontrolplane")
_TIMES = ("2026-01-02T03:04:05Z", "2025-12-31T23:59:59Z")
_ANY = ("text", 7, True, ["a", 1], {"inner": {"value": False}}, "")


def random_object(schema: dict[str, Any], random: Random, *, api_version: str, kind: str) -> dict[str, Any]:
    """A whole object with a name and a namespace; status included."""
    body: dict[str, Any] = {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": "thing", "namespace": "place", "labels": {"a": "b"}},
    }
    for name, place in schema["properties"].items():
        if name not in body and (name == "spec" or random.random() < 0.8):
            body[name] = _value(place, name, random)
    return body


def _value(schema: dict[str, Any], name: str, random: Random) -> Any:
    if schema.get("x-kubernetes-int-or-string"):
        if "pattern" in schema:
            return "3"
        return random.choice((1, 3, "20%", "1"))
    if "enum" in schema:
        return random.choice([one for one in schema["enum"] if one != ""] or schema["enum"])
    match schema.get("type"):
        case "object":
            return _object(schema, random)
        case "array":
            return _list(schema, name, random)
        case "string":
            return _text(schema, name, random)
        case "integer":
            low = int(schema.get("minimum", 0))
            return random.choice((low, low + 1, min(low + 100, int(schema.get("maximum", low + 100)))))
        case "number":
            return random.choice((1.5, 2.5))
        case "boolean":
            return random.random() < 0.5
        case _:
            return _unknown(name, random)


def _object(schema: dict[str, Any], random: Random) -> dict[str, Any]:
    if "properties" in schema:
        likely = random.choice((0.3, 0.7, 1.0))
        wanted = set(schema.get("required", ()))
        chosen = {key for key in schema["properties"] if key in wanted or random.random() < likely}
        if not chosen and schema.get("minProperties"):
            chosen = {random.choice(sorted(schema["properties"]))}
        return {key: _value(place, key, random) for key, place in schema["properties"].items() if key in chosen}
    entries = schema.get("additionalProperties")
    if isinstance(entries, dict):
        return {key: _value(entries, key, random) for key in random.sample(("a", "b", "c"), random.randint(1, 3))}
    return {"free": random.choice(_ANY)}


def _list(schema: dict[str, Any], name: str, random: Random) -> list[Any]:
    entries = [_value(schema["items"], name, random) for _ in range(random.randint(1, 3))]
    keys = schema.get("x-kubernetes-list-map-keys") or [
        key for key in ("name", "path", "hostPath", "type", "from") if key in schema["items"].get("properties", {})
    ]
    for number, entry in enumerate(entries):
        if isinstance(entry, dict):
            entry |= {key: f"{key}-{number}" for key in keys if "enum" not in schema["items"]["properties"][key]}
    return entries


def _text(schema: dict[str, Any], name: str, random: Random) -> str:
    lowered = name.lower()
    if schema.get("format") == "date-time":
        return random.choice(_TIMES)
    if schema.get("format") == "byte":
        return "YWJj"
    if name == "apiVersion":
        return random.choice(("infrastructure.example.com/v1beta1", "bootstrap.example.com/v1alpha3", "v1"))
    if name == "token":
        return "abcdef.0123456789abcdef"
    if any(lowered.endswith(word) for word in _DURATION_NAMES):
        return random.choice(_DURATIONS)
    return random.choice(("one", "two", "three"))


def _unknown(name: str, random: Random) -> Any:
    """A place without a type: in schemas of variables these are schemas again."""
    leaf = {"type": "string", "uniqueItems": random.random() < 0.5, "x-kubernetes-int-or-string": random.random() < 0.5}
    if name in ("additionalProperties", "items", "not"):
        return leaf
    if name == "properties":
        return {"a": leaf, "b": {"type": "object", "properties": {"c": dict(leaf)}}}
    if name in ("allOf", "oneOf", "anyOf"):
        return [leaf, {"type": "integer", "exclusiveMinimum": random.random() < 0.5}]
    return random.choice(_ANY)
