"""Schemas of a ClusterClass's variables, and values for them, made from a seed."""

from __future__ import annotations

import random
from typing import Any

Schema = dict[str, Any]

WORDS = ["", "a", "size", "large", "x-1", "Größe", "true", "10", "null", "a.b"]
NAMES = ["a", "b", "size", "zone", "x-y"]
RULES: dict[str, list[dict[str, Any]]] = {
    "string": [
        {"rule": "self.size() < 5"},
        {"rule": "self != 'size'", "message": "not that"},
        {"rule": "self.startsWith('a') || self == oldSelf", "messageExpression": "'was ' + self"},
    ],
    "integer": [
        {"rule": "self > 2"},
        {"rule": "self >= oldSelf", "message": "never less"},
        {"rule": "self < 100", "reason": "FieldValueForbidden"},
    ],
    "number": [{"rule": "self < 2.5"}],
    "boolean": [{"rule": "self"}],
    "array": [{"rule": "self.size() > 1", "messageExpression": "'has ' + string(self.size())"}],
}


def schema(rng: random.Random, depth: int = 2, *, old_self: bool = True) -> Schema:
    """A schema that a class may have."""
    kinds = ["string", "string", "integer", "number", "boolean"]
    if depth:
        kinds += ["object", "object", "object", "map", "array", "any"]
    kind = rng.choice(kinds)
    made: Schema = _of(rng, kind, depth, old_self=old_self)
    # a rule about a text does not compile for one that is a time
    rules = RULES.get(kind, []) if "format" not in made else []
    if kind == "array" and "type" not in made["items"]:
        rules = []
    if rules and rng.random() < 0.2:
        rule = rng.choice(rules)
        if old_self or "oldSelf" not in rule["rule"]:
            made["x-kubernetes-validations"] = [rule]
    if rng.random() < 0.05:
        made["x-metadata"] = {"labels": {"a": "b"}}
    return made


def _of(rng: random.Random, kind: str, depth: int, *, old_self: bool) -> Schema:
    if kind == "string":
        return _string(rng)
    if kind in ("integer", "number"):
        return _number(rng, kind)
    if kind == "boolean":
        return {"type": "boolean", **({"default": rng.random() < 0.5} if rng.random() < 0.3 else {})}
    if kind == "array":
        # what is in a list has no old value of its own
        made: Schema = {"type": "array", "items": schema(rng, depth - 1, old_self=False)}
        for name in ("minItems", "maxItems"):
            if rng.random() < 0.3:
                made[name] = 1 if name == "minItems" else 2
        return made
    if kind == "map":
        made = {"type": "object", "additionalProperties": schema(rng, depth - 1, old_self=old_self)}
        if rng.random() < 0.3:
            made["maxProperties"] = 2
        return made
    if kind == "any":
        return rng.choice(
            [
                {"x-kubernetes-int-or-string": True},
                {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                {"x-kubernetes-preserve-unknown-fields": True},
                {"type": "integer", "oneOf": [{"minimum": 5}, {"maximum": 3}]},
                {"type": "integer", "anyOf": [{"minimum": 5}, {"maximum": 3}], "not": {"minimum": 8}},
                {"type": "string", "allOf": [{"minLength": 1}, {"maxLength": 3}]},
            ]
        )
    return _object(rng, depth, old_self=old_self)


def _string(rng: random.Random) -> Schema:
    made: Schema = {"type": "string"}
    choice = rng.random()
    if choice < 0.2:
        made["enum"] = ["a", "size", "large"]
    elif choice < 0.3:
        made["pattern"] = "^[a-z]+$"
    elif choice < 0.4:
        made["format"] = rng.choice(["ipv4", "date-time", "unheard-of", "cidr", "uuid"])
    if rng.random() < 0.2:
        made["maxLength"] = rng.randint(0, 6)
    if rng.random() < 0.1:
        made["minLength"] = rng.randint(0, 3)
    if rng.random() < 0.3 and not made.keys() & {"format", "maxLength", "minLength"}:
        made["default"] = rng.choice(["a", "size", "large"])
    return made


def _number(rng: random.Random, kind: str) -> Schema:
    made: Schema = {"type": kind}
    if rng.random() < 0.3:
        made["minimum"] = rng.randint(-2, 3)
        if rng.random() < 0.3:
            made["exclusiveMinimum"] = True
    if rng.random() < 0.3:
        made["maximum"] = rng.randint(4, 50)
        if rng.random() < 0.3:
            made["exclusiveMaximum"] = True
    if rng.random() < 0.2:
        made["enum"] = [4, 7, 12]
    if rng.random() < 0.3:
        made["default"] = 4
        made.pop("exclusiveMinimum", None)
        made.pop("exclusiveMaximum", None)
        made.pop("x-kubernetes-validations", None)
    if rng.random() < 0.1:
        made["format"] = "int32" if kind == "integer" else "double"
    return made


def _object(rng: random.Random, depth: int, *, old_self: bool) -> Schema:
    names = rng.sample(NAMES, rng.randint(1, 3))
    made: Schema = {
        "type": "object",
        "properties": {name: schema(rng, depth - 1, old_self=old_self) for name in names},
    }
    if rng.random() < 0.3:
        made["required"] = rng.sample(names, 1)
    if rng.random() < 0.1:
        made["x-kubernetes-preserve-unknown-fields"] = True
    if rng.random() < 0.25 and "required" not in made:
        made["default"] = {}
    if rng.random() < 0.15 and made["properties"].get("a", {}).get("type") not in (None, "object"):
        made["x-kubernetes-validations"] = [{"rule": "has(self.a)", "message": "needs a", "fieldPath": ".a"}]
        made.pop("default", None)
    return made


def value(rng: random.Random, of: Schema, *, faulty: float = 0.12) -> Any:
    """A value that mostly fits."""
    if rng.random() < faulty and "format" not in of:
        return rng.choice([None, "a", "size", 3, -7, 2.5, True, [], ["a"], {}, {"a": 1}, {"other": {"a": "b"}}])
    kind = of.get("type")
    if "enum" in of and rng.random() < 0.8:
        return rng.choice(of["enum"])
    if kind == "string":
        return rng.choice([*WORDS, "10.0.0.1", "2026-01-01T00:00:00Z"])
    if kind == "integer":
        return rng.randint(-3, 60)
    if kind == "number":
        return rng.choice([0, 1, 4, 2.5, 3.75, -1, 60, 5.0])
    if kind == "boolean":
        return rng.random() < 0.5
    if kind == "array":
        return [value(rng, of["items"], faulty=faulty / 2) for _ in range(rng.randint(0, 3))]
    if "additionalProperties" in of:
        inner = of["additionalProperties"]
        return {name: value(rng, inner, faulty=faulty / 2) for name in rng.sample(NAMES, rng.randint(0, 3))}
    if "properties" in of:
        made = {
            name: value(rng, inner, faulty=faulty / 2)
            for name, inner in of["properties"].items()
            if rng.random() < 0.75
        }
        if rng.random() < 0.06:
            made["unheard"] = {"of": 1}
        return made
    return rng.choice(["a", 5, {"x": {"y": [1]}}])
