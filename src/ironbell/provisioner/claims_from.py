"""Rules for claims of the servers of a namespace. Pure.

Servers are selected by label, in any namespace. An annotation on the Namespace of the Hardware lists the other
namespaces that may claim its servers; every front door checks it before a claim. While no Namespace has it, every claim
is allowed, as upstream.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from ironbell.api.core import NAMESPACE, Namespace
from ironbell.kube.reconciler import Cache, Index

CLAIMS_FROM: Final = "ironbell.dev/claims-from"
"""Annotation on a Namespace: other namespaces that may claim the servers in it, separated by commas; `*` is all."""
EVERYBODY: Final = "*"

ANNOTATED: Final[Index[Namespace]] = Index(
    NAMESPACE,
    "claims-from",
    lambda namespace: ["set"] if CLAIMS_FROM in namespace.metadata.annotations else [],
)
"""Namespaces with rules for claims of their servers."""


@dataclass(frozen=True, slots=True)
class ClaimRules:
    """The rules of all Namespaces."""

    allowed: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Namespaces with rules, and the namespaces that they name."""

    @property
    def are_set(self) -> bool:
        """Return whether any Namespace has rules; otherwise every claim is allowed."""
        return bool(self.allowed)

    def allow(self, owner: str, claimant: str) -> bool:
        """Return whether servers in the namespace `owner` may be claimed from the namespace `claimant`."""
        if owner == claimant or not self.are_set:
            return True
        named = self.allowed.get(owner, frozenset())
        return claimant in named or EVERYBODY in named

    def problem(self, owner: str, claimant: str) -> str:
        """The reason why a server in `owner` cannot be claimed from `claimant`; empty if it can."""
        if self.allow(owner, claimant):
            return ""
        return f'Namespace "{owner}" allows no claims from namespace "{claimant}" ({CLAIMS_FROM})'


UNSET: Final = ClaimRules()


def claim_rules(namespaces: Iterable[Namespace]) -> ClaimRules:
    """Read the rules of Namespaces."""
    texts = {namespace.metadata.name: text for namespace in namespaces if (text := _text(namespace)) is not None}
    return ClaimRules({name: frozenset(filter(None, map(str.strip, text.split(",")))) for name, text in texts.items()})


def cached_rules(cache: Cache) -> ClaimRules:
    """The rules as a cache knows them; it needs the index `ANNOTATED`."""
    return claim_rules(cache.indexed(ANNOTATED, "set"))


def rules_changed(old: Namespace | None, new: Namespace | None) -> bool:
    """Return whether the rules of a Namespace changed."""
    return _text(old) != _text(new)


def remedy(owner: str, claimant: str) -> str:
    """The remedy that allows claims of a namespace."""
    return f'add "{claimant}" to annotation {CLAIMS_FROM} of Namespace "{owner}"'


def unrestricted(owner: str, claimant: str) -> str:
    """The message about a claim that no rule allows or forbids."""
    return (
        f'Namespace "{claimant}" claimed a server of namespace "{owner}", and no Namespace restricts claims of its'
        f" servers. To allow only this: kubectl annotate namespace {owner} {CLAIMS_FROM}={claimant}"
    )


def _text(namespace: Namespace | None) -> str | None:
    return namespace.metadata.annotations.get(CLAIMS_FROM) if namespace is not None else None
