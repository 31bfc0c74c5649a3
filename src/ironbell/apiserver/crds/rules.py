"""What a CustomResourceDefinition must be, and what the server makes of it.

Conditions are set with the write itself, so that a definition that was answered is served.

Source: kubernetes/apiextensions-apiserver: pkg/apis/apiextensions/validation/validation.go,
pkg/controller/status/naming_controller.go (names, conditions).
"""

from __future__ import annotations

from typing import Any

from ironbell.apiserver.crds.structural import structural_faults
from ironbell.apiserver.fielderrors import FieldError, invalid, not_supported, required
from ironbell.apiserver.metadata import name_fault
from ironbell.apiserver.resources import Resources
from ironbell.apiserver.schema.compiled import compile_schema
from ironbell.apiserver.schema.rules import CompileRule
from ironbell.base.clock import Clock, rfc3339
from ironbell.base.errors import IronbellError

CLEANUP_FINALIZER = "customresourcecleanup.apiextensions.k8s.io"
_SCOPES = ("Cluster", "Namespaced")
_STRATEGIES = ("None", "Webhook")


class CrdRules:
    """The strategy of the definitions."""

    def __init__(self, resources: Resources, clock: Clock, *, compile_rule: CompileRule | None = None) -> None:
        self._resources = resources
        self._clock = clock
        self._compile_rule = compile_rule

    def prepare_create(self, new: dict[str, Any]) -> None:
        new.pop("status", None)
        _fill_in(new)
        _hold(new)
        self._accept(new, None)

    def prepare_update(self, new: dict[str, Any], old: dict[str, Any]) -> None:
        _fill_in(new)
        if "deletionTimestamp" not in new["metadata"]:
            _hold(new)
        self._accept(new, old)

    def _accept(self, new: dict[str, Any], old: dict[str, Any] | None) -> None:
        spec = new.get("spec")
        if not isinstance(spec, dict) or not isinstance(spec.get("versions"), list):
            return
        before = (old or {}).get("status") or {}
        clash = self._clash(spec)
        stored = list(before.get("storedVersions", ()))
        current = [one.get("name") for one in spec["versions"] if isinstance(one, dict) and one.get("storage")]
        stored += [name for name in current if name not in stored]
        accepted = before.get("acceptedNames", {"plural": "", "kind": ""}) if clash else spec.get("names", {})
        now = rfc3339(self._clock.now())
        conditions = _conditions(clash)
        new["status"] = {
            "conditions": [_dated(one, before.get("conditions", ()), now) for one in conditions],
            "acceptedNames": accepted,
            "storedVersions": stored,
        }

    def _clash(self, spec: dict[str, Any]) -> str:
        """Who else of the group has one of the names, as a message; empty if nobody has."""
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
        names = spec.get("names") or {}
        errors = _name_faults(new["metadata"].get("name", ""), spec, names)
        if old is not None:
            errors += _immutable_faults(spec, old.get("spec") or {})
        errors += self._version_faults(spec.get("versions") or ())
        conversion = (spec.get("conversion") or {}).get("strategy", "None")
        if conversion not in _STRATEGIES:
            errors.append(not_supported("spec.conversion.strategy", conversion, _STRATEGIES))
        return errors

    def _version_faults(self, versions: Any) -> list[FieldError]:
        errors: list[FieldError] = []
        if sum(bool(one.get("storage")) for one in versions) != 1:
            errors.append(
                invalid("spec.versions", [one.get("name", "") for one in versions],
                        "must have exactly one version marked as storage version")
            )  # fmt: skip
        for index, one in enumerate(versions):
            path = f"spec.versions[{index}]"
            if fault := name_fault(one.get("name", ""), is_label=True):
                errors.append(invalid(f"{path}.name", one.get("name", ""), fault))
            schema = (one.get("schema") or {}).get("openAPIV3Schema")
            where = f"{path}.schema.openAPIV3Schema"
            errors += self._schema_faults(schema, where)
        return errors

    def _schema_faults(self, schema: Any, where: str) -> list[FieldError]:
        try:
            faults = structural_faults(schema, where)
            if not faults:
                compile_schema(schema, compile_rule=self._compile_rule)
        except (IronbellError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            # A rule that does not compile, or a keyword whose value nobody can use.
            return [invalid(where, "", f"cannot be compiled: {error}")]
        return faults


def _hold(new: dict[str, Any]) -> None:
    finalizers = new["metadata"].setdefault("finalizers", [])
    if CLEANUP_FINALIZER not in finalizers:
        finalizers.append(CLEANUP_FINALIZER)


def _fill_in(new: dict[str, Any]) -> None:
    spec = new.setdefault("spec", {})
    names = spec.setdefault("names", {})
    if isinstance(names, dict) and isinstance(names.get("kind"), str):
        names.setdefault("singular", names["kind"].lower())
        names.setdefault("listKind", names["kind"] + "List")
    spec.setdefault("conversion", {"strategy": "None"})
    for version in spec.get("versions") or ():
        if isinstance(version, dict):
            version.setdefault("served", False)
            version.setdefault("storage", False)


def _name_faults(name: str, spec: dict[str, Any], names: dict[str, Any]) -> list[FieldError]:
    errors = [
        required(f"spec.{field}") for field in ("group", "scope") if not spec.get(field)
    ]  # fmt: skip
    errors += [required(f"spec.names.{field}") for field in ("plural", "kind") if not names.get(field)]
    if not errors and name != f"{names['plural']}.{spec['group']}":
        errors.append(invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group'))
    if spec.get("scope") and spec["scope"] not in _SCOPES:
        errors.append(not_supported("spec.scope", spec["scope"], _SCOPES))
    if spec.get("group") and (name_fault(spec["group"]) or "." not in spec["group"]):
        errors.append(invalid("spec.group", spec["group"], "should be a domain with at least one dot"))
    return errors


def _immutable_faults(spec: dict[str, Any], old: dict[str, Any]) -> list[FieldError]:
    pairs = (
        ("spec.group", spec.get("group"), old.get("group")),
        ("spec.scope", spec.get("scope"), old.get("scope")),
        ("spec.names.kind", (spec.get("names") or {}).get("kind"), (old.get("names") or {}).get("kind")),
        ("spec.names.plural", (spec.get("names") or {}).get("plural"), (old.get("names") or {}).get("plural")),
    )
    return [invalid(path, new, "field is immutable") for path, new, before in pairs if before and new != before]


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


def _dated(condition: dict[str, str], before: Any, now: str) -> dict[str, str]:
    same: dict[str, str] = next((one for one in before if one.get("type") == condition["type"]), {})
    unchanged = same.get("status") == condition["status"]
    return {**condition, "lastTransitionTime": same.get("lastTransitionTime", now) if unchanged else now}
