"""Authorisation: the attributes of a request, the rules that allow it, and roles that a program holds in memory.

Roles that are objects of the API are in `rbac`; this module needs no store.

Source: kubernetes/kubernetes: pkg/apis/rbac/v1/evaluation_helpers.go (how rules match);
kubernetes/apiserver: pkg/endpoints/handlers/responsewriters/errors.go (the message of a rejection).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

import msgspec

from ironbell.api.client import Forbidden
from ironbell.apiserver.access.identity import MASTERS, Identity


class Attributes(msgspec.Struct, frozen=True):
    """Attributes of a request: the verb, and its resource or path."""

    verb: str
    group: str = ""
    resource: str = ""
    """The plural."""
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    path: str = ""
    """A URL outside the resources; then everything but the verb is empty."""

    @property
    def full_resource(self) -> str:
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


class Decision(msgspec.Struct, frozen=True):
    """Decision about a request: the binding that allows it, or the error of unresolved roles."""

    allowed: bool
    reason: str = ""

    def __bool__(self) -> bool:
        return self.allowed


_ALLOWED = Decision(True)


class Rule(msgspec.Struct, frozen=True):
    """One `PolicyRule`; `*` stands for all groups, resources or verbs."""

    verbs: tuple[str, ...]
    resources: tuple[str, ...] = ()
    api_groups: tuple[str, ...] = ("",)
    resource_names: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()
    """Paths outside the resources; a path that ends in `*` stands for all paths with that prefix."""

    def allows(self, attributes: Attributes) -> bool:
        if attributes.verb not in self.verbs and "*" not in self.verbs:
            return False
        if attributes.path:
            return any(url_covers(url, attributes.path) for url in self.urls)
        return (
            (attributes.group in self.api_groups or "*" in self.api_groups)
            and self._covers(attributes)
            and (not self.resource_names or attributes.name in self.resource_names)
        )

    def _covers(self, attributes: Attributes) -> bool:
        if "*" in self.resources or attributes.full_resource in self.resources:
            return True
        return bool(attributes.subresource) and f"*/{attributes.subresource}" in self.resources


EVERYTHING = (Rule(("*",), ("*",), ("*",)), Rule(("*",), (), (), (), ("*",)))
"""Rules that allow everything."""


def url_covers(pattern: str, path: str) -> bool:
    """Return whether a rule's path stands for `path`."""
    return pattern == path or (pattern.endswith("*") and path.startswith(pattern.rstrip("*")))


class Authorizer(Protocol):
    """Decides whether an identity may send a request."""

    def decide(self, identity: Identity, attributes: Attributes) -> Decision: ...

    def rules(self, identity: Identity, namespace: str) -> Iterator[Rule]:
        """All rules that an identity holds in a namespace, or everywhere if that is empty."""
        ...


class Role(msgspec.Struct, frozen=True):
    """A named set of rules."""

    name: str
    rules: tuple[Rule, ...]


class Binding(msgspec.Struct, frozen=True):
    """Users and groups that hold a role; in one namespace, or everywhere if that is empty."""

    role: str
    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    namespace: str = ""


@dataclass
class RoleAuthorizer:
    """Roles and bindings held in memory; members of `system:masters` may do everything."""

    roles: dict[str, Role] = field(default_factory=dict)
    bindings: list[Binding] = field(default_factory=list)
    _by_subject: dict[str, list[Binding]] = field(default_factory=dict)

    def grant(self, role: Role, bindings: Iterable[Binding]) -> None:
        """Add a role and its bindings."""
        self.roles[role.name] = role
        for binding in bindings:
            self.bindings.append(binding)
            for subject in (*(f"u:{user}" for user in binding.users), *(f"g:{group}" for group in binding.groups)):
                self._by_subject.setdefault(subject, []).append(binding)

    def decide(self, identity: Identity, attributes: Attributes) -> Decision:
        if MASTERS in identity.groups:
            return _ALLOWED
        for binding in self._held(identity, attributes.namespace):
            if any(rule.allows(attributes) for rule in self.roles[binding.role].rules):
                return Decision(True, f'RBAC: allowed by role "{binding.role}" of this server\'s own processes')
        return Decision(False)

    def rules(self, identity: Identity, namespace: str) -> Iterator[Rule]:
        for binding in self._held(identity, namespace):
            yield from self.roles[binding.role].rules

    def _held(self, identity: Identity, namespace: str) -> Iterator[Binding]:
        for subject in (f"u:{identity.user}", *(f"g:{group}" for group in identity.groups)):
            for binding in self._by_subject.get(subject, ()):
                if binding.namespace in ("", namespace) and binding.role in self.roles:
                    yield binding


def forbidden_error(identity: Identity, attributes: Attributes, *, reason: str = "") -> Forbidden:
    """Return the error for a request that is not allowed."""
    if attributes.path:
        target = f'path "{attributes.path}"'
    else:
        scope = f'in the namespace "{attributes.namespace}"' if attributes.namespace else "at the cluster scope"
        target = f'resource "{attributes.full_resource}" in API group "{attributes.group}" {scope}'
    detail = _without_markup(f'User "{identity.user}" cannot {attributes.verb} {target}')
    if reason:
        detail = f"{detail}: {reason}"
    resource = f"{attributes.resource}.{attributes.group}" if attributes.group else attributes.resource
    subject = f'{resource} "{attributes.name}"' if attributes.name else resource
    details = {"name": attributes.name, "group": attributes.group, "kind": attributes.resource}
    message = f"{subject} is forbidden: {detail}" if resource else f"forbidden: {detail}"
    return Forbidden(message, details={key: value for key, value in details.items() if value})


def _without_markup(text: str) -> str:
    """Escape a client's text, so that no browser takes it for HTML."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
