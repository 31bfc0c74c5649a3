"""Authorisation: roles in the shape of RBAC rules, bound to users and groups.

Source: kubernetes/kubernetes: pkg/apis/rbac/v1/evaluation_helpers.go (how rules match);
kubernetes/apiserver: pkg/endpoints/handlers/responsewriters/errors.go (the refusal's message).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

from ironbell.api.client import Forbidden
from ironbell.apiserver.identity import MASTERS, Identity


@dataclass(frozen=True, slots=True)
class Attributes:
    """What somebody wants to do."""

    verb: str
    group: str
    resource: str
    """The plural."""
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @property
    def full_resource(self) -> str:
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


class Authorizer(Protocol):
    """Says whether an identity may do something."""

    def allows(self, identity: Identity, wanted: Attributes) -> bool: ...


@dataclass(frozen=True, slots=True)
class Rule:
    """One `PolicyRule`; `*` stands for all groups, resources or verbs."""

    verbs: tuple[str, ...]
    resources: tuple[str, ...]
    api_groups: tuple[str, ...] = ("",)
    resource_names: tuple[str, ...] = ()

    def allows(self, wanted: Attributes) -> bool:
        return (
            (wanted.verb in self.verbs or "*" in self.verbs)
            and (wanted.group in self.api_groups or "*" in self.api_groups)
            and self._covers(wanted)
            and (not self.resource_names or wanted.name in self.resource_names)
        )

    def _covers(self, wanted: Attributes) -> bool:
        if "*" in self.resources or wanted.full_resource in self.resources:
            return True
        return bool(wanted.subresource) and f"*/{wanted.subresource}" in self.resources


@dataclass(frozen=True, slots=True)
class Role:
    """A named set of rules."""

    name: str
    rules: tuple[Rule, ...]


@dataclass(frozen=True, slots=True)
class Binding:
    """Who holds a role; in one namespace, or everywhere if that is empty."""

    role: str
    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    namespace: str = ""

    def holds(self, identity: Identity) -> bool:
        return identity.user in self.users or any(group in self.groups for group in identity.groups)


@dataclass
class RoleAuthorizer:
    """Roles and bindings held in memory; members of `system:masters` may do everything."""

    roles: dict[str, Role] = field(default_factory=dict)
    bindings: list[Binding] = field(default_factory=list)

    def grant(self, role: Role, bindings: Iterable[Binding]) -> None:
        """Add a role with those who hold it."""
        self.roles[role.name] = role
        self.bindings.extend(bindings)

    def allows(self, identity: Identity, wanted: Attributes) -> bool:
        if MASTERS in identity.groups:
            return True
        for binding in self.bindings:
            if binding.namespace and binding.namespace != wanted.namespace:
                continue
            role = self.roles.get(binding.role)
            if role is not None and binding.holds(identity) and any(rule.allows(wanted) for rule in role.rules):
                return True
        return False


def refusal(identity: Identity, wanted: Attributes) -> Forbidden:
    """The error for what is not allowed."""
    resource = f"{wanted.resource}.{wanted.group}" if wanted.group else wanted.resource
    subject = f'{resource} "{wanted.name}"' if wanted.name else resource
    scope = f'in the namespace "{wanted.namespace}"' if wanted.namespace else "at the cluster scope"
    details = {"name": wanted.name, "group": wanted.group, "kind": wanted.resource}
    return Forbidden(
        f'{subject} is forbidden: User "{identity.user}" cannot {wanted.verb} resource "{wanted.full_resource}" '
        f'in API group "{wanted.group}" {scope}',
        details={key: value for key, value in details.items() if value},
    )
