"""RBAC objects as values, read leniently: objects of another release must not stop the server.

Source: kubernetes/api: rbac/v1/types.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ironbell.apiserver.access.roles import Rule
from ironbell.apiserver.selectors.labels import LabelSelector

GROUP = "rbac.authorization.k8s.io"
ROLES = f"roles.{GROUP}"
CLUSTER_ROLES = f"clusterroles.{GROUP}"
ROLE_BINDINGS = f"rolebindings.{GROUP}"
CLUSTER_ROLE_BINDINGS = f"clusterrolebindings.{GROUP}"


class PolicyRule(msgspec.Struct, frozen=True, gc=False):
    """`PolicyRule` as it is written in an object."""

    verbs: tuple[str, ...] | None = None
    apiGroups: tuple[str, ...] | None = None  # noqa: N815 - as in the object
    resources: tuple[str, ...] | None = None
    resourceNames: tuple[str, ...] | None = None  # noqa: N815
    nonResourceURLs: tuple[str, ...] | None = None  # noqa: N815

    @property
    def rule(self) -> Rule:
        return Rule(
            self.verbs or (),
            self.resources or (),
            self.apiGroups or (),
            self.resourceNames or (),
            self.nonResourceURLs or (),
        )


class RoleRef(msgspec.Struct, frozen=True, gc=False):
    """The role of a binding."""

    kind: str = ""
    name: str = ""
    apiGroup: str = ""  # noqa: N815


class Subject(msgspec.Struct, frozen=True, gc=False):
    """A user, group or ServiceAccount that a binding grants its role to."""

    kind: str = ""
    name: str = ""
    namespace: str = ""
    apiGroup: str = ""  # noqa: N815


class AggregationRule(msgspec.Struct, frozen=True, gc=False):
    """Selectors of the ClusterRoles that a ClusterRole collects."""

    clusterRoleSelectors: tuple[LabelSelector, ...] | None = None  # noqa: N815


class StoredRole(msgspec.Struct, frozen=True, gc=False):
    """Role and ClusterRole."""

    rules: tuple[PolicyRule, ...] | None = None
    aggregationRule: AggregationRule | None = None  # noqa: N815


class StoredBinding(msgspec.Struct, frozen=True, gc=False):
    """RoleBinding and ClusterRoleBinding."""

    roleRef: RoleRef = RoleRef()  # noqa: N815
    subjects: tuple[Subject, ...] | None = None


_ROLES = msgspec.json.Decoder(StoredRole)
_BINDINGS = msgspec.json.Decoder(StoredBinding)


def read_role(body: bytes) -> StoredRole:
    """A role from its encoded form; an unreadable one grants nothing."""
    try:
        return _ROLES.decode(body)
    except msgspec.MsgspecError:
        return StoredRole()


def read_binding(body: bytes) -> StoredBinding:
    """A binding from its encoded form; an unreadable one grants nothing."""
    try:
        return _BINDINGS.decode(body)
    except msgspec.MsgspecError:
        return StoredBinding()


def rules_of(value: Mapping[str, Any]) -> list[Rule]:
    """The rules of a decoded Role or ClusterRole.

    Raises:
        msgspec.ValidationError: the rules have another shape.
    """
    return [rule.rule for rule in msgspec.convert(value.get("rules") or [], list[PolicyRule])]


def as_data(rule: Rule) -> dict[str, list[str]]:
    """A rule as it is written in an object."""
    data = {
        "verbs": rule.verbs,
        "apiGroups": rule.api_groups,
        "resources": rule.resources,
        "resourceNames": rule.resource_names,
        "nonResourceURLs": rule.urls,
    }
    return {name: list(values) for name, values in data.items() if values}
