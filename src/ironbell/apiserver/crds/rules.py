"""Validation of CustomResourceDefinitions, and their status.

Conditions are set in the write itself: once the client has its response, the definition is served.

Source: kubernetes/apiextensions-apiserver: pkg/apis/apiextensions/validation/validation.go,
pkg/controller/status/naming_controller.go (names, conditions).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ironbell.apiserver.crds.schemas import schema_faults
from ironbell.apiserver.crds.served import is_established
from ironbell.apiserver.crds.versions import (
    column_faults,
    conversion_faults,
    deprecation_faults,
    group_faults,
    places,
    selectable_faults,
    subresource_faults,
    version_list_faults,
)
from ironbell.apiserver.fielderrors import FieldError, invalid, not_supported, required
from ironbell.apiserver.metadata import label_1035_fault
from ironbell.apiserver.resources import Resources
from ironbell.apiserver.schema.compiled import compile_schema
from ironbell.apiserver.schema.rules import CompileRule
from ironbell.base.clock import Clock, rfc3339
from ironbell.base.errors import IronbellError

CLEANUP_FINALIZER = "customresourcecleanup.apiextensions.k8s.io"
_SCOPES = ("Cluster", "Namespaced")
_OWN_CONDITIONS = ("NamesAccepted", "Established")
_PRESERVE = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
_APPROVAL = "api-approved.kubernetes.io"
_APPROVAL_TEXT = "https://github.com/kubernetes/enhancements/pull/1111"
_TERMINATING = {
    "type": "Terminating",
    "status": "True",
    "reason": "InstanceDeletionInProgress",
    "message": "CustomResource deletion is in progress",
}


class CrdRules:
    """The strategy of the definitions."""

    def __init__(self, resources: Resources, clock: Clock, *, compile_rule: CompileRule | None = None) -> None:
        self._resources = resources
        self._clock = clock
        self._compile_rule = compile_rule

    def prepare_create(self, new: dict[str, Any]) -> None:
        new.pop("status", None)
        _fill_in(new)
        self._accept(new, None)

    def prepare_update(self, new: dict[str, Any], old: dict[str, Any]) -> None:
        _fill_in(new)
        self._accept(new, old)

    def prepare_delete(self, value: dict[str, Any]) -> None:
        finalizers = value["metadata"].setdefault("finalizers", [])
        if CLEANUP_FINALIZER not in finalizers:
            finalizers.append(CLEANUP_FINALIZER)
        conditions = value.setdefault("status", {}).setdefault("conditions", [])
        if not any(condition.get("type") == "Terminating" for condition in conditions):
            conditions.append({**_TERMINATING, "lastTransitionTime": rfc3339(self._clock.now())})

    def _accept(self, new: dict[str, Any], old: dict[str, Any] | None) -> None:
        spec = new.get("spec")
        if not isinstance(spec, dict) or not isinstance(spec.get("versions"), list):
            return
        old_status = (old or {}).get("status") or {}
        clash = self._clash(spec)
        stored = list(old_status.get("storedVersions", ()))
        current = [entry.get("name") for entry in spec["versions"] if isinstance(entry, dict) and entry.get("storage")]
        stored += [name for name in current[:1] if name not in stored]
        accepted = old_status.get("acceptedNames", {"plural": "", "kind": ""}) if clash else spec.get("names", {})
        now = rfc3339(self._clock.now())
        conditions = _conditions(clash)
        others = [entry for entry in old_status.get("conditions") or () if entry.get("type") not in _OWN_CONDITIONS]
        new["status"] = {
            "conditions": [*(_dated(entry, old_status.get("conditions", ()), now) for entry in conditions), *others],
            "acceptedNames": accepted,
            "storedVersions": stored,
        }

    def _clash(self, spec: dict[str, Any]) -> str:
        """Return the message of a name that another definition of the group uses already; empty if there is none."""
        group, names = spec.get("group"), spec.get("names") or {}
        own = names.get("plural")
        for info in self._resources.all():
            if info.group != group or info.plural == own:
                continue
            for field, taken in (("kind", info.kind), ("listKind", info.list_kind), ("singular", info.singular)):
                if names.get(field) and names.get(field) == taken:
                    return f'"{taken}" is already in use'
            for word in names.get("shortNames", ()):
                if word in info.short_names:
                    return f'"{word}" is already in use'
        return ""

    def validate(self, new: dict[str, Any], old: dict[str, Any] | None) -> list[FieldError]:
        spec = new.get("spec") or {}
        errors = _spec_faults(spec, new["metadata"].get("name", ""))
        errors += self._schema_faults(spec.get("versions") or [], (old or {}).get("spec") or {})
        errors += conversion_faults(spec.get("conversion") or {})
        errors += _stored_faults((new.get("status") or {}).get("storedVersions") or [], spec.get("versions") or [])
        errors += _approval_faults(new)
        if old is not None:
            errors += _immutable_faults(spec, old)
        return errors

    def _schema_faults(self, versions: list[dict[str, Any]], old_status: dict[str, Any]) -> list[FieldError]:
        """Problems of the schemas, reported once if all versions share one schema."""
        errors: list[FieldError] = []
        old = {version.get("name"): version.get("schema") for version in old_status.get("versions") or ()}
        for path, version in places(versions, "schema", "validation"):
            schema = (version.get("schema") or {}).get("openAPIV3Schema")
            if not isinstance(schema, dict):
                continue
            where = f"{path}.openAPIV3Schema"
            # The cost of a rule that was stored already is not judged again.
            is_new = version.get("name") not in old or old[version.get("name")] != version.get("schema")
            problems = schema_faults(schema, where, compile_rule=self._compile_rule, judge_each=is_new)
            errors += problems or self._compile_faults(schema, where)
        return errors

    def _compile_faults(self, schema: dict[str, Any], where: str) -> list[FieldError]:
        try:
            compile_schema(schema, compile_rule=self._compile_rule)
        except (IronbellError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            return [invalid(where, "", f"cannot be compiled: {error}")]
        return []


def _fill_in(new: dict[str, Any]) -> None:
    spec = new.setdefault("spec", {})
    names = spec.setdefault("names", {})
    if isinstance(names, dict) and isinstance(names.get("kind"), str):
        names.setdefault("singular", names["kind"].lower())
        names.setdefault("listKind", names["kind"] + "List")
    spec.setdefault("conversion", {"strategy": "None"})
    for version in spec.get("versions") or ():
        if isinstance(version, dict):
            version.setdefault("name", "")
            version.setdefault("served", False)
            version.setdefault("storage", False)


def _spec_faults(spec: dict[str, Any], name: str) -> list[FieldError]:
    names, versions = spec.get("names") or {}, spec.get("versions") or []
    errors: list[FieldError] = []
    if name and name != f"{names.get('plural', '')}.{spec.get('group', '')}":
        errors.append(invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group'))
    errors += group_faults(spec.get("group", ""))
    scope = spec.get("scope", "")
    if not scope:
        errors.append(required("spec.scope"))
    elif scope not in _SCOPES:
        errors.append(not_supported("spec.scope", scope, _SCOPES))
    for index, version in enumerate(versions):
        if not isinstance((version.get("schema") or {}).get("openAPIV3Schema"), dict):
            errors.append(required(f"spec.versions[{index}].schema.openAPIV3Schema"))
    for index, version in enumerate(versions):
        if fault := label_1035_fault(version.get("name", "")):
            errors.append(invalid(f"spec.versions[{index}].name", version.get("name", ""), fault))
    errors += deprecation_faults(versions)
    errors += version_list_faults(versions)
    errors += _names_faults(names, "spec.names")
    errors += subresource_faults(versions)
    errors += column_faults(versions)
    errors += selectable_faults(versions)
    if spec.get("preserveUnknownFields"):
        errors.append(invalid("spec.preserveUnknownFields", True, _PRESERVE))
    return errors


def _stored_faults(stored: list[str], versions: list[dict[str, Any]]) -> list[FieldError]:
    where = "status.storedVersions"
    if not stored:
        return [invalid(where, None, "must have at least one stored version")]
    names = [version.get("name") for version in versions]
    errors = [
        invalid(where, stored, f"must have the storage version {version.get('name')}")
        for version in versions
        if version.get("storage") and version.get("name") not in stored
    ]
    for index, name in enumerate(stored):
        if name not in names:
            detail = (
                f"missing from spec.versions; {name} was previously a storage version, and must remain in "
                f"spec.versions until a storage migration ensures no data remains persisted in {name} and removes "
                f"{name} from status.storedVersions"
            )
            errors.append(invalid(f"{where}[{index}]", name, detail))
    return errors


def _approval_faults(new: dict[str, Any]) -> list[FieldError]:
    group = (new.get("spec") or {}).get("group", "")
    if not group.endswith((".k8s.io", ".kubernetes.io")) and group not in ("k8s.io", "kubernetes.io"):
        return []
    if (new["metadata"].get("annotations") or {}).get(_APPROVAL):
        return []
    detail = f'protected groups must have approval annotation "{_APPROVAL}", see {_APPROVAL_TEXT}'
    return [required(f"metadata.annotations[{_APPROVAL}]", detail)]


def _immutable_faults(spec: dict[str, Any], old: dict[str, Any]) -> list[FieldError]:
    old_spec = old.get("spec") or {}
    names, old_names = spec.get("names") or {}, old_spec.get("names") or {}
    pairs = [
        ("spec.group", spec.get("group"), old_spec.get("group")),
        ("spec.names.plural", names.get("plural"), old_names.get("plural")),
    ]
    if is_established(old):
        pairs = [
            ("spec.scope", spec.get("scope"), old_spec.get("scope")),
            ("spec.names.kind", names.get("kind"), old_names.get("kind")),
            *pairs,
        ]
    return [invalid(path, value, "field is immutable") for path, value, known in pairs if value != known]


def _conditions(clash: str) -> list[dict[str, str]]:
    if clash:
        return [
            {"type": "NamesAccepted", "status": "False", "reason": "NameConflict", "message": clash},
            {
                "type": "Established",
                "status": "False",
                "reason": "NotAccepted",
                "message": "not all names are accepted",
            },
        ]
    return [
        {"type": "NamesAccepted", "status": "True", "reason": "NoConflicts", "message": "no conflicts found"},
        {
            "type": "Established", "status": "True", "reason": "InitialNamesAccepted",
            "message": "the initial names have been accepted",
        },
    ]  # fmt: skip


def _dated(condition: dict[str, str], old_conditions: Any, now: str) -> dict[str, str]:
    same: dict[str, str] = next((known for known in old_conditions if known.get("type") == condition["type"]), {})
    unchanged = same.get("status") == condition["status"]
    return {**condition, "lastTransitionTime": same.get("lastTransitionTime", now) if unchanged else now}


def _names_faults(names: dict[str, Any], path: str) -> Iterator[FieldError]:
    """Faults of the names of a kind."""
    for field in ("plural", "singular", "kind", "listKind"):
        if not names.get(field):
            yield required(f"{path}.{field}")
    for field in ("plural", "singular"):
        name = names.get(field)
        if name and (fault := label_1035_fault(name)):
            yield invalid(f"{path}.{field}", name, fault)
    for field in ("kind", "listKind"):
        name = names.get(field)
        if name and (fault := label_1035_fault(name.lower())):
            yield invalid(f"{path}.{field}", name, f"may have mixed case, but should otherwise match: {fault}")
    yield from _word_faults(names, path, "shortNames")
    if names.get("kind") and names["kind"] == names.get("listKind"):
        yield invalid(f"{path}.listKind", names["listKind"], "kind and listKind may not be the same")
    yield from _word_faults(names, path, "categories")


def _word_faults(names: dict[str, Any], path: str, field: str) -> Iterator[FieldError]:
    for index, word in enumerate(names.get(field) or ()):
        if fault := label_1035_fault(word):
            yield invalid(f"{path}.{field}[{index}]", word, fault)
