"""Decisions by the stored roles, after the roles that the program itself grants.

Source: kubernetes/kubernetes: plugin/pkg/auth/authorizer/rbac/rbac.go, pkg/registry/rbac/validation/rule.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ironbell.apiserver.access.identity import MASTERS, Identity
from ironbell.apiserver.access.roles import Attributes, Binding, Decision, Role, RoleAuthorizer, Rule
from ironbell.apiserver.rbac.index import RoleIndex
from ironbell.apiserver.rbac.objects import RoleRef


class RbacAuthorizer:
    """`roles.Authorizer` by RBAC objects and by grants in memory."""

    def __init__(self, granted: RoleAuthorizer | None = None) -> None:
        self.index = RoleIndex()
        self.granted = granted or RoleAuthorizer()

    def grant(self, role: Role, bindings: Iterable[Binding]) -> None:
        """Add a role in memory with its bindings."""
        self.granted.grant(role, bindings)

    def decide(self, identity: Identity, attributes: Attributes) -> Decision:
        decision = self.granted.decide(identity, attributes)
        if decision.allowed:
            return decision
        missing: list[str] = []
        for grant in self.index.grants(identity, attributes.namespace):
            rules = self.index.rules(grant.role, grant.namespace)
            if rules is None:
                missing.append(_missing_role(grant.role))
                continue
            for rule in rules:
                if rule.allows(attributes):
                    return Decision(True, f"RBAC: allowed by {grant.source}")
        return Decision(False, _reason(missing))

    def rules(self, identity: Identity, namespace: str) -> Iterator[Rule]:
        yield from self.granted.rules(identity, namespace)
        for grant in self.index.grants(identity, namespace):
            yield from self.index.rules(grant.role, grant.namespace) or ()

    def is_master(self, identity: Identity) -> bool:
        """Return whether an identity may do everything, regardless of roles."""
        return MASTERS in identity.groups


def _missing_role(role: RoleRef) -> str:
    return f'{role.kind.lower()}.rbac.authorization.k8s.io "{role.name}" not found'


def _reason(missing: list[str]) -> str:
    if not missing:
        return ""
    texts = list(dict.fromkeys(missing))
    return f"RBAC: {texts[0]}" if len(texts) == 1 else f"RBAC: [{', '.join(texts)}]"
