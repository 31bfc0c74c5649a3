"""Authorisation: what may be asked for, the rules that allow it, and roles that a program holds in memory.

Roles that are objects of the API are in `rbac`; what is here needs no store.

Source: kubernetes/kubernetes: pkg/apis/rbac/v1/evaluation_helpers.go (how rules match);
kubernetes/apiserver: pkg/endpoints/handlers/responsewriters/errors.go (the refusal's message).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

import msgspec

from ironbell.api.client import Forbidden
from ironbell.apiserver.access.identity import MASTERS, Identity


class Attributes(msgspec.Struct, frozen=True):
    """What somebody wants to do."""

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
    """Whether something is allowed, and by which binding; of a refusal, what could not be resolved."""

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
    """Paths outside the resources; one that ends in `*` stands for all that begin so."""

    def allows(self, wanted: Attributes) -> bool:
        if wanted.verb not in self.verbs and "*" not in self.verbs:
            return False
        if wanted.path:
            return any(url_covers(url, wanted.path) for url in self.urls)
        return (
            (wanted.group in self.api_groups or "*" in self.api_groups)
            and self._covers(wanted)
            and (not self.resource_names or wanted.name in self.resource_names)
        )

    def _covers(self, wanted: Attributes) -> bool:
        if "*" in self.resources or wanted.full_resource in self.resources:
            return True
        return bool(wanted.subresource) and f"*/{wanted.subresource}" in self.resources


EVERYTHING = (Rule(("*",), ("*",), ("*",)), Rule(("*",), (), (), (), ("*",)))
"""The rules of those who may do anything."""


def url_covers(pattern: str, path: str) -> bool:
    """Whether a rule's path stands for `path`."""
    return pattern == path or (pattern.endswith("*") and path.startswith(pattern.rstrip("*")))


class Authorizer(Protocol):
    """Says whether an identity may do something."""

    def decide(self, identity: Identity, wanted: Attributes) -> Decision: ...

    def rules(self, identity: Identity, namespace: str) -> Iterator[Rule]:
        """All rules that an identity holds in a namespace, or everywhere if that is empty."""
        ...


class Role(msgspec.Struct, frozen=True):
    """A named set of rules."""

    name: str
    rules: tuple[Rule, ...]


class Binding(msgspec.Struct, frozen=True):
    """Who holds a role; in one namespace, or everywhere if that is empty."""

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
        """Add a role with those who hold it."""
        self.roles[role.name] = role
        for binding in bindings:
            self.bindings.append(binding)
            for subject in (*(f"u:{user}" for user in binding.users), *(f"g:{group}" for group in binding.groups)):
                self._by_subject.setdefault(subject, []).append(binding)

    def decide(self, identity: Identity, wanted: Attributes) -> Decision:
        if MASTERS in identity.groups:
            return _ALLOWED
        for binding in self._held(identity, wanted.namespace):
            if any(rule.allows(wanted) for rule in self.roles[binding.role].rules):
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


def refusal(identity: Identity, wanted: Attributes, *, reason: str = "") -> Forbidden:
    """The error for what is not allowed."""
    if wanted.path:
        what = f'path "{wanted.path}"'
    else:
        scope = f'in the namespace "{wanted.namespace}"' if wanted.namespace else "at the cluster scope"
        what = f'resource "{wanted.full_resource}" in API group "{wanted.group}" {scope}'
    why = _without_markup(f'User "{identity.user}" cannot {wanted.verb} {what}')
    if reason:
        why = f"{why}: {reason}"
    resource = f"{wanted.resource}.{wanted.group}" if wanted.group else wanted.resource
    subject = f'{resource} "{wanted.name}"' if wanted.name else resource
    details = {"name": wanted.name, "group": wanted.group, "kind": wanted.resource}
    message = f"{subject} is forbidden: {why}" if resource else f"forbidden: {why}"
    return Forbidden(message, details={key: value for key, value in details.items() if value})


def _without_markup(text: str) -> str:
    """What a client sent must not come back as something that a browser takes for HTML."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
