"""Zero values that the older version's schema requires: without them, a client that writes an object back after reading
it would be rejected.

Source: kubernetes-sigs/cluster-api: api/*/v1beta1 (fields without omitempty).
"""

from __future__ import annotations

from typing import Any, Final

from ironbell.api.conversion.paths import Body

_ZEROS: Final[dict[str, Any]] = {"string": "", "integer": 0, "boolean": False}


def filled(body: Body, schema: Body) -> None:
    """Put required plain fields into spec and status where they are missing; it changes `body`."""
    for name in ("spec", "status"):
        if name in body and name in schema["properties"]:
            _fill(body[name], schema["properties"][name])


def _fill(value: Any, schema: Body) -> None:
    if isinstance(value, list):
        items = schema.get("items")
        if isinstance(items, dict):
            for entry in value:
                _fill(entry, items)
    elif isinstance(value, dict):
        properties = schema.get("properties")
        if isinstance(properties, dict):
            for name in schema.get("required", ()):
                place = properties.get(name, {})
                if name not in value and place.get("type") in _ZEROS and place.get("format") != "date-time":
                    value[name] = _ZEROS[place["type"]]
            for name, entry in value.items():
                if name in properties:
                    _fill(entry, properties[name])
        entries = schema.get("additionalProperties")
        if isinstance(entries, dict):
            for entry in value.values():
                _fill(entry, entries)
