"""Problems of one version of a definition: subresources, columns, selectable fields, conversion.

Problems of a field that all versions share are reported once, at the path beside the versions, as upstream does.

Source: kubernetes/apiextensions-apiserver: pkg/apis/apiextensions/validation/validation.go,
pkg/apis/apiextensions/v1/conversion.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ironbell.apiserver.fielderrors import (
    FieldError,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
    too_many,
)
from ironbell.apiserver.metadata import label_1035_fault, name_fault
from ironbell.apiserver.webhooks.addresses import client_faults

Value = dict[str, Any]

_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_SELECTABLE = (
    "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed."
)
_MOST_SELECTABLE = 8
_REVIEWS = ("v1", "v1beta1")
_STRATEGIES = ("None", "Webhook")
_WEBHOOK = "should not be set when strategy is not set to Webhook"


def shared(versions: Sequence[Value], field: str) -> bool:
    """Return whether all versions have the same value in a field."""
    return bool(versions) and all(version.get(field) == versions[0].get(field) for version in versions)


def places(versions: Sequence[Value], field: str, name: str) -> Iterator[tuple[str, Value]]:
    """The paths where problems of a field are reported, with the version that has it."""
    if shared(versions, field):
        yield f"spec.{name}", versions[0]
    else:
        for index, version in enumerate(versions):
            yield f"spec.versions[{index}].{field}", version


def subresource_faults(versions: Sequence[Value]) -> Iterator[FieldError]:
    for path, version in places(versions, "subresources", "subresources"):
        scale = (version.get("subresources") or {}).get("scale")
        if scale is None:
            continue
        where = f"{path}.scale"
        yield from _replicas_faults(f"{where}.specReplicasPath", scale.get("specReplicasPath", ""), "spec")
        yield from _replicas_faults(f"{where}.statusReplicasPath", scale.get("statusReplicasPath", ""), "status")
        selector = scale.get("labelSelectorPath") or ""
        if selector:
            yield from _path_faults(f"{where}.labelSelectorPath", selector)
            if not selector.startswith((".spec.", ".status.")) and selector.startswith("."):
                detail = "should be a json path under either .spec or .status"
                yield invalid(f"{where}.labelSelectorPath", selector, detail)


def _replicas_faults(where: str, text: str, root: str) -> Iterator[FieldError]:
    if not text:
        yield required(where)
        return
    errors = list(_path_faults(where, text))
    yield from errors
    if not errors and not text.startswith(f".{root}."):
        yield invalid(where, text, f"should be a json path under .{root}")


def _path_faults(where: str, text: str) -> Iterator[FieldError]:
    if not text.startswith("."):
        yield invalid(where, text, "must be a simple json path starting with .")


def column_faults(versions: Sequence[Value]) -> Iterator[FieldError]:
    field = "additionalPrinterColumns"
    for path, version in places(versions, field, field):
        for index, column in enumerate(version.get(field) or ()):
            where = f"{path}[{index}]"
            if not column.get("name"):
                yield required(f"{where}.name")
            kind, listed = column.get("type", ""), f"must be one of {','.join(_COLUMN_TYPES)}"
            if not kind:
                yield required(f"{where}.type", listed)
            elif kind not in _COLUMN_TYPES:
                yield invalid(f"{where}.type", kind, listed)
            form = column.get("format", "")
            if form and form not in _COLUMN_FORMATS:
                yield invalid(f"{where}.format", form, f"must be one of {','.join(_COLUMN_FORMATS)}")
            text = column.get("jsonPath", "")
            if not text:
                yield required(f"{where}.JSONPath")
            else:
                yield from _path_faults(f"{where}.JSONPath", text)


def selectable_faults(versions: Sequence[Value]) -> Iterator[FieldError]:
    field = "selectableFields"
    for path, version in places(versions, field, field):
        schema = (version.get("schema") or {}).get("openAPIV3Schema") or {}
        seen: set[str] = set()
        for index, selectable in enumerate(version.get(field) or ()):
            text, where = selectable.get("jsonPath", ""), f"{path}[{index}].jsonPath"
            if not text:
                yield required(where)
                continue
            field_schema = _schema_at(schema, text)
            if field_schema is None:
                yield invalid(where, text, "is an invalid path: does not refer to a valid field")
                continue
            if field_schema.get("type") not in ("string", "boolean", "integer"):
                yield invalid(where, text, _SELECTABLE)
            if text in seen:
                yield duplicate(where, text)
            seen.add(text)
        if len(seen) > _MOST_SELECTABLE:
            yield too_many(path, len(seen), _MOST_SELECTABLE)


def _schema_at(schema: Mapping[str, Any], text: str) -> Mapping[str, Any] | None:
    if not text.startswith("."):
        return None
    for name in text[1:].split("."):
        property_schema = (schema.get("properties") or {}).get(name)
        if not isinstance(property_schema, Mapping):
            return None
        schema = property_schema
    return schema


def deprecation_faults(versions: Sequence[Value]) -> Iterator[FieldError]:
    for index, version in enumerate(versions):
        warning, where = version.get("deprecationWarning"), f"spec.versions[{index}].deprecationWarning"
        if warning is None:
            continue
        if not version.get("deprecated"):
            yield invalid(where, warning, "can only be set for deprecated versions")
            continue
        if len(warning) > 256:
            yield invalid(where, warning, "must be <= 256 characters long")
        if not warning:
            yield invalid(where, warning, "must not be an empty string")


def conversion_faults(conversion: Value) -> Iterator[FieldError]:
    strategy = conversion.get("strategy", "")
    where = "spec.conversion"
    if not strategy:
        yield required(f"{where}.strategy")
    elif strategy not in _STRATEGIES:
        yield not_supported(f"{where}.strategy", strategy, _STRATEGIES)
    webhook = conversion.get("webhook") or {}
    config, reviews = webhook.get("clientConfig"), webhook.get("conversionReviewVersions") or ()
    if strategy != "Webhook":
        if config is not None:
            yield forbidden(f"{where}.webhookClientConfig", _WEBHOOK)
        if reviews:
            yield forbidden(f"{where}.conversionReviewVersions", _WEBHOOK)
        return
    if config is None:
        yield required(f"{where}.webhookClientConfig", "required when strategy is set to Webhook")
    else:
        yield from client_faults(config, f"{where}.webhookClientConfig")
    yield from _review_faults(reviews, f"{where}.conversionReviewVersions")


def _review_faults(reviews: Any, where: str) -> Iterator[FieldError]:
    if not reviews:
        yield required(where)
        return
    for index, version in enumerate(reviews):
        if version in reviews[:index]:
            yield invalid(f"{where}[{index}]", version, "duplicate version")
        elif fault := label_1035_fault(version):
            yield invalid(f"{where}[{index}]", version, fault)
    if not set(reviews) & set(_REVIEWS):
        yield invalid(where, list(reviews), f"must include at least one of {', '.join(_REVIEWS)}")


def version_list_faults(versions: Sequence[Value]) -> Iterator[FieldError]:
    """Names must be unique, and one version stored."""
    names = [version.get("name", "") for version in versions]
    shown = [_without_shared_fields(version, versions) for version in versions] if versions else None
    if len(set(names)) != len(names):
        yield invalid("spec.versions", shown, "must contain unique version names")
    if sum(bool(version.get("storage")) for version in versions) != 1:
        yield invalid("spec.versions", shown or [], "must have exactly one version marked as storage version")
    if names and names[0] and (fault := label_1035_fault(names[0])):
        yield invalid("spec.version", names[0], fault)


def _without_shared_fields(version: Value, versions: Sequence[Value]) -> Value:
    """A version as messages show it, without what all versions share."""
    fields = {
        "Schema": "schema", "Subresources": "subresources", "AdditionalPrinterColumns": "additionalPrinterColumns",
        "SelectableFields": "selectableFields",
    }  # fmt: skip
    own = {name: None if shared(versions, field) else version.get(field) for name, field in fields.items()}
    return {
        "Name": version.get("name", ""), "Served": bool(version.get("served")), "Storage": bool(version.get("storage")),
        "Deprecated": bool(version.get("deprecated")), "DeprecationWarning": version.get("deprecationWarning"), **own,
    }  # fmt: skip


def group_faults(group: str) -> Iterator[FieldError]:
    if not group:
        yield required("spec.group")
    elif fault := name_fault(group):
        yield invalid("spec.group", group, fault)
    elif "." not in group:
        yield invalid("spec.group", group, "should be a domain with at least one dot")
