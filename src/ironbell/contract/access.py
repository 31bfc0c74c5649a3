"""Access rules stated by kind: what a controller may read and write, as the PolicyRules of its role.

    [may(WORKFLOW, "patch", status=True), may(HARDWARE, "patch")]

Source: rbac.authorization.k8s.io/v1 PolicyRule.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeAlias

READ: Final = ("get", "list", "watch")
PolicyRule: TypeAlias = Mapping[str, Sequence[str]]
PolicyRules: TypeAlias = Sequence[PolicyRule]


class Named(Protocol):
    """The part of a `Kind` or `Collection` that names a resource."""

    @property
    def group(self) -> str: ...

    @property
    def plural(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Grant:
    """Verbs on resources of API groups."""

    groups: tuple[str, ...]
    resources: tuple[str, ...]
    verbs: tuple[str, ...]


def may(kind: Named, *verbs: str, status: bool = False, subresource: str = "") -> Grant:
    """Grant verbs on the objects of a kind, with `status` also on their status; or on one subresource alone."""
    resource = f"{kind.plural}/{subresource}" if subresource else kind.plural
    resources = (resource, f"{kind.plural}/status") if status else (resource,)
    return Grant((kind.group,), resources, verbs)


def may_in(groups: Iterable[str], *verbs: str) -> Grant:
    """Grant verbs on the objects of every kind in API groups: of kinds that only the objects of users name."""
    return Grant(tuple(groups), ("*",), verbs)


def may_read(*kinds: Named) -> list[Grant]:
    """Grant the verbs that watching takes."""
    return [may(kind, *READ) for kind in kinds]


def policy_rules(grants: Iterable[Grant]) -> list[dict[str, list[str]]]:
    """PolicyRules of the grants; neighbors that differ in their resources alone become one rule."""
    merged: list[Grant] = []
    for grant in grants:
        last = merged[-1] if merged else None
        if last is not None and (last.groups, last.verbs) == (grant.groups, grant.verbs):
            merged[-1] = Grant(last.groups, (*last.resources, *grant.resources), last.verbs)
        else:
            merged.append(grant)
    return [
        {"apiGroups": list(grant.groups), "resources": list(grant.resources), "verbs": list(grant.verbs)}
        for grant in merged
    ]


@dataclass(frozen=True)
class Permissions:
    """Rights of the controllers of a system."""

    reads: PolicyRules
    """Rights that all of them need to watch; of Secrets and ConfigMaps the metadata only, not the data."""
    writes: Mapping[str, PolicyRules]
    """Rights to write, by controller."""
    reviews: PolicyRules = ()
    """Rights that admission needs in addition."""
    identities: Mapping[str, PolicyRules] = field(default_factory=dict)
    """By further identities: what one part of the system reads, and its controllers do not."""
