"""A CustomResourceDefinition as comparable lines: what it accepts and how it is addressed, without prose.

One line per path, so that two definitions of different origin can be compared and a difference read. Descriptions,
annotations and the order of keywords are ignored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

_SETS = frozenset({"required", "enum"})
_CHILDREN = frozenset({"properties", "items", "additionalProperties"})
_COMBINED = frozenset({"allOf", "anyOf", "oneOf"})


def crd_facts(document: Mapping[str, Any]) -> list[str]:
    """The sorted lines of one definition."""
    spec = document["spec"]
    name = document["metadata"]["name"]
    lines = [
        f"{name} labels {_text(document['metadata'].get('labels', {}))}",
        f"{name} names {_text(_named(spec['names']))}",
        f"{name} group {spec['group']} scope {spec['scope']}",
    ]
    for version in spec["versions"]:
        at = f"{name}/{version['name']}"
        lines.append(f"{at} served={_text(version['served'])} storage={_text(version['storage'])}")
        lines.append(f"{at} subresources {_text(version.get('subresources', {}))}")
        for number, column in enumerate(version.get("additionalPrinterColumns", [])):
            lines.append(f"{at} column {number} {_text(_without_description(column))}")
        lines += schema_facts(version["schema"]["openAPIV3Schema"], at=f"{at} ")
    return sorted(lines)


def schema_facts(schema: Mapping[str, Any], *, at: str) -> Iterator[str]:
    """One line for the place `at`, and one for each place below it."""
    keywords = " ".join(f"{key}={_text(value)}" for key, value in sorted(_keywords(schema)))
    yield f"{at}: {keywords}"
    for name, child in schema.get("properties", {}).items():
        yield from schema_facts(child, at=f"{at}.{name}")
    for keyword, suffix in (("items", "[]"), ("additionalProperties", "{}")):
        child = schema.get(keyword)
        if isinstance(child, Mapping):
            yield from schema_facts(child, at=f"{at}{suffix}")


def _keywords(schema: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    for key, value in schema.items():
        if key in _SETS:
            yield key, sorted(value, key=_text)
        elif key in _COMBINED:
            yield key, [list(schema_facts(part, at="")) for part in value]
        elif key == "not":
            yield key, list(schema_facts(value, at=""))
        elif key != "description" and not (key in _CHILDREN and isinstance(value, Mapping)):
            yield key, value


def _named(names: Mapping[str, Any]) -> dict[str, Any]:
    return {key: sorted(value) if isinstance(value, list) else value for key, value in names.items()}


def _without_description(column: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in column.items() if key != "description"}


def _text(value: Any) -> str:
    return msgspec.json.encode(value, order="sorted").decode()
