"""Object metadata: normalisation and validation.

Source: kubernetes/apimachinery: pkg/api/validation/objectmeta.go, pkg/util/validation/validation.go.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec

from ironbell.api.client import BadRequest
from ironbell.apiserver.fielderrors import FieldError, forbidden, invalid, required, too_long

MAX_ANNOTATION_BYTES = 256 << 10
MAX_GENERATED_BASE = 58
STANDARD_FINALIZERS = frozenset({"kubernetes", "orphan", "foregroundDeletion"})
_NEVER_OWNERS = frozenset({("v1", "Event")})

NameRule = Callable[[str], str]
"""Returns why a name is not valid, or empty."""

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = re.compile(rf"{_LABEL}(\.{_LABEL})*")
_DNS_LABEL = re.compile(_LABEL)
_QUALIFIED = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?")

_SUBDOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "
    "and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_DNS_LABEL_TEXT = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end "
    "with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_QUALIFIED_TEXT = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_SLASHES_TEXT = (
    "a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' "
    "(e.g. 'example.com/MyName')"
)
_LABEL_VALUE_TEXT = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start "
    "and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation "
    "is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


class _Owner(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class _Meta(msgspec.Struct, frozen=True, rename="camel"):
    """The types that metadata must have."""

    name: str | None = None
    generate_name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    generation: int | None = None
    self_link: str | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str | None] | None = None
    annotations: dict[str, str | None] | None = None
    finalizers: list[str] | None = None
    owner_references: list[_Owner] | None = None
    managed_fields: list[dict[str, Any]] | None = None


_KNOWN = frozenset(_Meta.__struct_encode_fields__)
_OWNER_KNOWN = frozenset(_Owner.__struct_encode_fields__)


def clean(value: dict[str, Any]) -> list[str]:
    """Check the types in an object's metadata, drop empty and unknown fields, and return the unknown paths.

    Raises:
        BadRequest: a field has another type.
    """
    meta = value.get("metadata")
    if meta is None:
        meta = value["metadata"] = {}
    try:
        msgspec.convert(meta, _Meta)
    except msgspec.ValidationError as error:
        raise BadRequest(f"metadata is malformed: {error}") from error
    unknown = [f"metadata.{name}" for name in meta if name not in _KNOWN]
    for name in [name for name, part in meta.items() if name not in _KNOWN or part in (None, "", {}, [])]:
        if name != "managedFields" or meta[name] is None:  # an empty record is a request to remove the existing one
            del meta[name]
    meta.pop("selfLink", None)
    for name in ("labels", "annotations"):
        if name in meta and None in meta[name].values():
            meta[name] = {key: text or "" for key, text in meta[name].items()}
    for index, owner in enumerate(meta.get("ownerReferences", ())):
        for name in [name for name in owner if name not in _OWNER_KNOWN]:
            unknown.append(f"metadata.ownerReferences[{index}].{name}")
            del owner[name]
    return unknown


_DNS_1035 = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_DNS_1035_TEXT = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
)


def label_1035_fault(name: str) -> str:
    """Return why a name is not a DNS-1035 label, or empty."""
    if len(name) > 63:
        return "must be no more than 63 bytes"
    return "" if _DNS_1035.fullmatch(name) else _DNS_1035_TEXT


def embedded_metadata_faults(meta: dict[str, Any], path: str) -> list[FieldError]:
    """Errors in the metadata of an object within another."""
    errors: list[FieldError] = []
    for name, check in (("labels", _check_labels), ("annotations", _check_annotations)):
        values = meta.get(name)
        if isinstance(values, dict) and all(isinstance(value, str) for value in values.values()):
            check(values, errors)
    return [FieldError(fault.kind, path + fault.field.removeprefix("metadata"), fault.body) for fault in errors]


def name_fault(name: str, *, is_label: bool = False) -> str:
    """Return why a name is not valid, or empty."""
    longest, pattern, text = (63, _DNS_LABEL, _DNS_LABEL_TEXT) if is_label else (253, _SUBDOMAIN, _SUBDOMAIN_TEXT)
    if len(name) > longest:
        return f"must be no more than {longest} {'bytes' if is_label else 'characters'}"
    return "" if pattern.fullmatch(name) else text


def label_name_fault(name: str) -> str:
    """Return why a name is not a DNS label, or empty."""
    return "must not contain dots" if "." in name else name_fault(name, is_label=True)


def path_segment_fault(name: str) -> str:
    """Return why a name cannot be part of a path, or empty.

    Source: kubernetes/apimachinery: pkg/api/validate/content/path.go.
    """
    if name in (".", ".."):
        return f"may not be '{name}'"
    characters = [part for part in ("/", "%") if part in name]
    return f"may not contain '{characters[0]}'" if characters else ""


def qualified_fault(key: str) -> str:
    """Return why a label key (or finalizer) is not valid, or empty."""
    if key.count("/") > 1:
        return _SLASHES_TEXT
    prefix, slash, name = key.rpartition("/")
    if slash and (not prefix or name_fault(prefix)):
        return f"prefix part {name_fault(prefix) if prefix else 'must be non-empty'}"
    if not name:
        return "name part must be non-empty"
    if len(name) > 63:
        return "name part must be no more than 63 bytes"
    return "" if _QUALIFIED.fullmatch(name) else _QUALIFIED_TEXT


def label_value_fault(value: str) -> str:
    """Return why a label's value is not valid, or empty."""
    if len(value) > 63:
        return "must be no more than 63 bytes"
    return "" if _LABEL_VALUE.fullmatch(value) else _LABEL_VALUE_TEXT


def validate_metadata(
    meta: dict[str, Any], *, namespaced: bool, name_rule: NameRule = name_fault, core: bool = False
) -> list[FieldError]:
    """Errors in cleaned metadata; `name_rule` checks the name, and `core` makes the rules of finalizers stricter."""
    errors: list[FieldError] = []
    if meta.get("generateName"):
        # The random part follows a dash, too.
        prefix = re.sub("-$", "a", meta["generateName"])
        if fault := name_rule(prefix):
            errors.append(invalid("metadata.generateName", meta["generateName"], fault))
    name = meta.get("name", "")
    if not name:
        errors.append(required("metadata.name", "name or generateName is required"))
    elif fault := name_rule(name):
        errors.append(invalid("metadata.name", name, fault))
    if not namespaced and meta.get("namespace"):
        errors.append(forbidden("metadata.namespace", "not allowed on this type"))
    if "labels" in meta:
        _check_labels(meta["labels"], errors)
    if "annotations" in meta:
        _check_annotations(meta["annotations"], errors)
    if "finalizers" in meta:
        _check_finalizers(meta["finalizers"], errors, core=core)
    if "ownerReferences" in meta:
        _check_owners(meta["ownerReferences"], errors)
    return errors


def _check_labels(labels: dict[str, str], errors: list[FieldError]) -> None:
    for key, value in labels.items():
        if fault := qualified_fault(key):
            errors.append(invalid("metadata.labels", key, fault))
        if fault := label_value_fault(value):
            errors.append(invalid("metadata.labels", value, fault))


def _check_annotations(annotations: dict[str, str], errors: list[FieldError]) -> None:
    total = 0
    for key, value in annotations.items():
        if fault := qualified_fault(key.lower()):
            errors.append(invalid("metadata.annotations", key, fault))
        total += len(key) + len(value.encode())
    if total > MAX_ANNOTATION_BYTES:
        errors.append(too_long("metadata.annotations", MAX_ANNOTATION_BYTES))


def _check_finalizers(finalizers: list[str], errors: list[FieldError], *, core: bool) -> None:
    errors.extend(
        invalid("metadata.finalizers", name, fault) for name in finalizers if (fault := qualified_fault(name))
    )
    if core:
        detail = "name is neither a standard finalizer name nor is it fully qualified"
        errors.extend(
            invalid(f"metadata.finalizers[{place}]", name, detail)
            for place, name in enumerate(finalizers)
            if "/" not in name and name not in STANDARD_FINALIZERS
        )
    if "orphan" in finalizers and "foregroundDeletion" in finalizers:
        detail = "finalizer orphan and foregroundDeletion cannot be both set"
        errors.append(invalid("metadata.finalizers", finalizers, detail))


def _check_owners(owners: list[dict[str, Any]], errors: list[FieldError]) -> None:
    controllers = [f"{owner.get('kind', '')}/{owner.get('name', '')}" for owner in owners if owner.get("controller")]
    for owner in owners:
        errors.extend(
            invalid(f"metadata.ownerReferences.{name}", "", "must not be empty")
            for name in ("apiVersion", "kind", "name", "uid")
            if not owner.get(name)
        )
        if (owner.get("apiVersion"), owner.get("kind")) in _NEVER_OWNERS:
            shown = f"{'/' if '/' not in owner['apiVersion'] else ''}{owner['apiVersion']}, Kind={owner['kind']}"
            detail = f"{shown} is disallowed from being an owner"
            errors.append(invalid("metadata.ownerReferences", owner, detail))
    if len(controllers) > 1:
        detail = (
            'Only one reference can have Controller set to true. Found "true" in references for '
            f"{controllers[0]} and {controllers[1]}"
        )
        errors.append(invalid("metadata.ownerReferences", owners, detail))
