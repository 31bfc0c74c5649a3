"""Validation of RBAC objects.

Source: kubernetes/kubernetes: pkg/apis/rbac/validation/validation.go, pkg/apis/rbac/v1/defaults.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ironbell.apiserver.fielderrors import FieldError, invalid, not_supported, required
from ironbell.apiserver.metadata import path_segment_fault
from ironbell.apiserver.rbac.objects import GROUP
from ironbell.apiserver.selectors.labels import selector_faults
from ironbell.apiserver.strategy import Plain

_NOT_BOTH = "rules cannot apply to both regular resources and non-resource URLs"


_ROLE_REF = (("APIGroup", "apiGroup"), ("Kind", "kind"), ("Name", "name"))
"""The names of a reference's fields in messages, and in objects."""


class RoleRules(Plain):
    """Role and ClusterRole."""

    def __init__(self, *, namespaced: bool) -> None:
        self._namespaced = namespaced

    def validate(self, new: dict[str, Any], old: dict[str, Any] | None) -> list[FieldError]:
        errors = [
            error
            for index, rule in enumerate(new.get("rules") or ())
            for error in _rule_faults(rule, f"rules[{index}]", namespaced=self._namespaced)
        ]
        aggregation = new.get("aggregationRule")
        if aggregation is not None and not aggregation.get("clusterRoleSelectors"):
            path = "aggregationRule.clusterRoleSelectors"
            errors.append(required(path, "at least one clusterRoleSelector required if aggregationRule is non-nil"))
        for index, selector in enumerate((aggregation or {}).get("clusterRoleSelectors") or ()):
            errors += selector_faults(selector, f"aggregationRule.clusterRoleSelectors[{index}]")
        return errors


class BindingRules(Plain):
    """RoleBinding and ClusterRoleBinding."""

    def __init__(self, *, namespaced: bool) -> None:
        self._namespaced = namespaced
        self._kinds = ("Role", "ClusterRole") if namespaced else ("ClusterRole",)

    def prepare_create(self, new: dict[str, Any]) -> None:
        _fill_in(new)

    def prepare_update(self, new: dict[str, Any], old: dict[str, Any]) -> None:
        _fill_in(new)

    def validate(self, new: dict[str, Any], old: dict[str, Any] | None) -> list[FieldError]:
        role = new.get("roleRef") or {}
        errors: list[FieldError] = []
        if role.get("apiGroup") != GROUP:
            errors.append(not_supported("roleRef.apiGroup", role.get("apiGroup", ""), [GROUP]))
        if role.get("kind") not in self._kinds:
            errors.append(not_supported("roleRef.kind", role.get("kind", ""), self._kinds))
        errors += _role_name_faults(role.get("name", ""))
        for index, subject in enumerate(new.get("subjects") or ()):
            errors += _subject_faults(subject, f"subjects[{index}]", namespaced=self._namespaced)
        if old is not None and role != (old.get("roleRef") or {}):
            shown = {go: role.get(name, "") for go, name in _ROLE_REF} if isinstance(role, dict) else role
            errors.append(invalid("roleRef", shown, "cannot change roleRef"))
        return errors


def _fill_in(new: dict[str, Any]) -> None:
    """The defaults; the URL's object may leave out the group of what it names."""
    role = new.get("roleRef")
    if isinstance(role, dict) and not role.get("apiGroup"):
        role["apiGroup"] = GROUP
    for subject in new.get("subjects") or ():
        if isinstance(subject, dict) and not subject.get("apiGroup") and subject.get("kind") in ("User", "Group"):
            subject["apiGroup"] = GROUP


def _rule_faults(rule: dict[str, Any], path: str, *, namespaced: bool) -> Iterator[FieldError]:
    if not rule.get("verbs"):
        yield required(f"{path}.verbs", "verbs must contain at least one value")
    urls = rule.get("nonResourceURLs")
    if urls:
        where = f"{path}.nonResourceURLs"
        if namespaced:
            yield invalid(where, urls, "namespaced rules cannot apply to non-resource URLs")
        if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
            yield invalid(where, urls, _NOT_BOTH)
        return
    if not rule.get("apiGroups"):
        yield required(f"{path}.apiGroups", "resource rules must supply at least one api group")
    if not rule.get("resources"):
        yield required(f"{path}.resources", "resource rules must supply at least one resource")


def _role_name_faults(name: str) -> Iterator[FieldError]:
    fault = path_segment_fault(name)
    if not name:
        yield required("roleRef.name")
    elif fault:
        yield invalid("roleRef.name", name, fault)


def _subject_faults(subject: dict[str, Any], path: str, *, namespaced: bool) -> Iterator[FieldError]:
    if not subject.get("name"):
        yield required(f"{path}.name")
    kind, group = subject.get("kind", ""), subject.get("apiGroup", "")
    if kind == "ServiceAccount":
        if group:
            yield not_supported(f"{path}.apiGroup", group, [""])
        if not namespaced and not subject.get("namespace"):
            yield required(f"{path}.namespace")
    elif kind in ("User", "Group"):
        if group != GROUP:
            yield not_supported(f"{path}.apiGroup", group, [GROUP])
    else:
        yield not_supported(f"{path}.kind", kind, ["ServiceAccount", "User", "Group"])
