"""Roles and bindings in memory, by what a request needs: the bindings of a subject, the rules of a role.

Fed by the store, change by change; a request costs the bindings of its user and groups and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import msgspec

from ironbell.apiserver.access.identity import Identity
from ironbell.apiserver.access.roles import Rule
from ironbell.apiserver.rbac.objects import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    ROLE_BINDINGS,
    ROLES,
    RoleRef,
    Subject,
    read_binding,
    read_role,
)
from ironbell.apiserver.store.entry import Change, Entry, Key
from ironbell.apiserver.store.store import Store

_Subject = tuple[str, str]
_USER, _GROUP = "User", "Group"


class Grant(msgspec.Struct, frozen=True):
    """One binding of one subject."""

    namespace: str
    """Namespace of the grant; empty: everywhere."""
    name: str
    role: RoleRef
    subject: Subject

    @property
    def source(self) -> str:
        """The reason of a decision."""
        kind = "RoleBinding" if self.namespace else "ClusterRoleBinding"
        place = f"{self.name}/{self.namespace}" if self.namespace else self.name
        held = self.subject.name
        if self.subject.kind == "ServiceAccount":
            held = f"{held}/{self.subject.namespace or self.namespace}"
        return f'{kind} "{place}" of {self.role.kind} "{self.role.name}" to {self.subject.kind} "{held}"'


class RoleIndex:
    """Index of a store's RBAC objects."""

    def __init__(self) -> None:
        self._rules: dict[tuple[str, Key], tuple[Rule, ...]] = {}
        self._grants: dict[_Subject, dict[str, dict[str, Grant]]] = {}
        """By subject, namespace (empty: everywhere) and name of the binding."""
        self._subjects: dict[tuple[str, Key], list[_Subject]] = {}

    def follow(self, store: Store) -> None:
        """Read the stored objects, and follow changes."""
        for resource in (ROLES, CLUSTER_ROLES, ROLE_BINDINGS, CLUSTER_ROLE_BINDINGS):
            for entry in store.objects(resource).entries():
                self._put(entry)
        store.listen(self.apply)

    def apply(self, change: Change) -> None:
        """Apply one change."""
        entry = change.entry
        if not entry.resource.endswith(".rbac.authorization.k8s.io"):
            return
        if change.deleted:
            self._drop(entry)
        else:
            self._put(entry)

    def rules(self, role: RoleRef, namespace: str) -> tuple[Rule, ...] | None:
        """The rules of a role that is bound in `namespace`; None if there is no such role."""
        if role.kind == "Role":
            return self._rules.get((ROLES, (namespace, role.name)))
        return self._rules.get((CLUSTER_ROLES, ("", role.name)))

    def grants(self, identity: Identity, namespace: str) -> Iterator[Grant]:
        """The bindings of an identity that apply in a namespace: those for everywhere first."""
        subjects = [(_USER, identity.user), *((_GROUP, group) for group in identity.groups)]
        held = [grants for subject in subjects if (grants := self._grants.get(subject))]
        for place in ("", namespace) if namespace else ("",):
            for by_place in held:
                yield from by_place.get(place, {}).values()

    def _put(self, entry: Entry) -> None:
        if entry.resource in (ROLES, CLUSTER_ROLES):
            self._rules[entry.resource, entry.key] = _rules(entry.body)
        elif entry.resource in (ROLE_BINDINGS, CLUSTER_ROLE_BINDINGS):
            self._drop(entry)
            self._put_binding(entry)

    def _put_binding(self, entry: Entry) -> None:
        binding = read_binding(entry.body)
        subjects: list[_Subject] = []
        for subject in binding.subjects or ():
            key = _subject_key(subject, entry.namespace)
            if key is None or key in subjects:
                continue
            subjects.append(key)
            places = self._grants.setdefault(key, {}).setdefault(entry.namespace, {})
            places[entry.name] = Grant(entry.namespace, entry.name, binding.roleRef, subject)
        self._subjects[entry.resource, entry.key] = subjects

    def _drop(self, entry: Entry) -> None:
        place = (entry.resource, entry.key)
        self._rules.pop(place, None)
        for subject in self._subjects.pop(place, ()):
            by_place = self._grants[subject]
            by_place[entry.namespace].pop(entry.name, None)
            if not by_place[entry.namespace]:
                del by_place[entry.namespace]
            if not by_place:
                del self._grants[subject]


@lru_cache(maxsize=512)
def _rules(body: bytes) -> tuple[Rule, ...]:
    """The rules of a stored role. Cached: all servers of a simulation begin with the same roles."""
    return tuple(rule.rule for rule in read_role(body).rules or ())


def _subject_key(subject: Subject, namespace: str) -> _Subject | None:
    if subject.kind in (_USER, _GROUP):
        return (subject.kind, subject.name)
    place = subject.namespace or namespace
    if subject.kind == "ServiceAccount" and place:
        return (_USER, f"system:serviceaccount:{place}:{subject.name}")
    return None
