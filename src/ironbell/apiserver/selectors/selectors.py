"""Label and field selectors: parsed once, evaluated for every object.

Source: kubernetes/apimachinery: pkg/labels/selector.go, pkg/fields/selector.go.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from ironbell.api.client import BadRequest, Selector
from ironbell.apiserver.resources import ResourceInfo
from ironbell.apiserver.selectors.syntax import parse_labels
from ironbell.apiserver.store.entry import Entry

Match = Callable[[Entry], bool]

_NO_LABELS: dict[str, str] = {}


def parse_fields(text: str) -> list[tuple[str, bool, str]]:
    """A field selector as (label, whether equal, value) parts.

    Raises:
        BadRequest: the text is not a field selector.
    """
    parts: list[tuple[str, bool, str]] = []
    if not text:
        return parts
    for term in filter(None, re.split(r"(?<!\\),", text)):
        matched = re.fullmatch(r"([^=!]+?)(!=|==|=)(.*)", term, re.DOTALL)
        if matched is None:
            raise BadRequest(f"invalid selector: '{text}'; can't understand '{term}'")
        value = re.sub(r"\\([\\,=])", r"\1", matched[3])
        parts.append((matched[1].strip(), matched[2] != "!=", value))
    return parts


def compile_selector(selector: Selector, info: ResourceInfo) -> Match | None:
    """Both selectors as a predicate over entries; None if everything matches.

    Raises:
        BadRequest: a selector cannot be parsed, or names a field that cannot be selected by.
    """
    labels = parse_labels(selector.labels)
    fields = [_field(part, info) for part in parse_fields(selector.fields)]
    if labels is None and not fields:
        return None

    def match(entry: Entry) -> bool:
        if labels is not None and not labels(entry.labels or _NO_LABELS):
            return False
        return all(field(entry) for field in fields)

    return match


def _field(part: tuple[str, bool, str], info: ResourceInfo) -> Match:
    label, equal, value = part
    if label == "metadata.name":
        return lambda entry: (entry.name == value) is equal
    if label == "metadata.namespace" and info.namespaced:
        return lambda entry: (entry.namespace == value) is equal
    path = dict(info.field_labels).get(label)
    if path is None and not info.custom and not info.field_labels:
        known = '"metadata.name", "metadata.namespace"'
        raise BadRequest(f'"{label}" is not a known field selector: only {known}')
    if path is None:
        raise BadRequest(_unknown_label(label, info))
    return lambda entry: (_at(entry.decode(), path) == value) is equal


def _unknown_label(label: str, info: ResourceInfo) -> str:
    if info.custom or info.field_labels:
        return f"field label not supported: {label}"
    known = '"metadata.name", "metadata.namespace"' if info.namespaced else '"metadata.name"'
    return f'"{label}" is not a known field selector: only {known}'


def _at(value: Any, path: tuple[str, ...]) -> str:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def selected_name(selector: Selector) -> str:
    """The one name that a selector allows, or empty: for authorisation by name."""
    return next(
        (value for label, equal, value in parse_fields(selector.fields) if label == "metadata.name" and equal), ""
    )
