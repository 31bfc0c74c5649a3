"""Objects from one version of their kind to another.

Source: kubernetes-sigs/cluster-api: util/conversion/conversion.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import msgspec

from ironbell.api.cluster.names import ANNOTATION_CONVERSION_DATA
from ironbell.api.conversion.filling import filled
from ironbell.api.conversion.paths import Body, ConversionError
from ironbell.api.conversion.pruning import pruned
from ironbell.api.conversion.rules import ApiVersionOf, Rule, Target, apply_down, apply_up
from ironbell.api.crd.older_versions import older_versions
from ironbell.api.kind import Kind


@dataclass(frozen=True, slots=True)
class Versions:
    """A kind's stored version, and the rules of each older one."""

    kind: Kind[Any]
    rules: Mapping[str, tuple[Rule, ...]]
    annotated: frozenset[str] = frozenset()
    """Older versions that carry what they cannot say in an annotation."""


def convert(body: Body, api_version: str, api_version_of: ApiVersionOf) -> Body:
    """The object in another version of its kind; `body` is not changed.

    Raises:
        ConversionError: kind or version are not known, or a reference or duration in the object makes no sense.
    """
    given: str = body.get("apiVersion", "")
    if given == api_version:
        return body
    group, _, version = given.rpartition("/")
    new_group, _, new_version = api_version.rpartition("/")
    known = _by_kind().get((group, body.get("kind", "")))
    versions = {} if known is None else {known.kind.version: (), **known.rules}
    if known is None or new_group != group or version not in versions or new_version not in versions:
        raise ConversionError(f"{body.get('kind', '')} of {given} cannot be converted to {api_version}")
    stored = body if version == known.kind.version else _up(body, known, version)
    return stored if new_version == known.kind.version else _down(stored, known, new_version, api_version_of)


def _up(body: Body, known: Versions, version: str) -> Body:
    converted = _copy(body)
    kept = _take_annotation(converted)
    converted["apiVersion"] = known.kind.api_version
    apply_up(known.rules[version], converted, kept)
    return pruned(converted, known.kind.model)


def _down(stored: Body, known: Versions, version: str, api_version_of: ApiVersionOf) -> Body:
    converted = pruned(_copy(stored), known.kind.model)
    metadata = converted.setdefault("metadata", {})
    if version in known.annotated:
        hidden = {name: value for name, value in converted.items() if name != "metadata"}
        data = msgspec.json.encode(hidden).decode()
    else:
        data = ""
    converted["apiVersion"] = f"{known.kind.group}/{version}"
    apply_down(known.rules[version], converted, Target(metadata.get("namespace", ""), api_version_of))
    filled(converted, _schema(known.kind, version))
    if data:
        metadata["annotations"] = {**(metadata.get("annotations") or {}), ANNOTATION_CONVERSION_DATA: data}
    return converted


@cache
def _schema(kind: Kind[Any], version: str) -> Body:
    older = next(entry for entry in older_versions(kind) if entry["name"] == version)
    schema: Body = older["schema"]["openAPIV3Schema"]
    return schema


def _take_annotation(body: Body) -> Body | None:
    """Take the annotation away and give what it holds, if there is one.

    Raises:
        ConversionError: it is no JSON object.
    """
    metadata = body.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    if not isinstance(annotations, dict) or ANNOTATION_CONVERSION_DATA not in annotations:
        return None
    data = annotations.pop(ANNOTATION_CONVERSION_DATA)
    if not annotations:
        del body["metadata"]["annotations"]
    try:
        kept: Body = msgspec.json.decode(data, type=dict[str, Any])
    except (msgspec.DecodeError, TypeError) as error:
        raise ConversionError(f"annotation {ANNOTATION_CONVERSION_DATA} holds no object: {error}") from error
    return kept


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copy(entry) for key, entry in value.items()}
    return [_copy(entry) for entry in value] if isinstance(value, list) else value


@cache
def _by_kind() -> dict[tuple[str, str], Versions]:
    from ironbell.api.conversion.kinds import VERSIONS

    return {(known.kind.group, known.kind.kind): known for known in VERSIONS}
