"""Prevention of privilege escalation: every write of a role or a binding is checked against the writer's own rights.

A writer that may `escalate` a role, or `bind` one, may grant more than its own rights; so may members of
`system:masters`.

Source: kubernetes/kubernetes: pkg/registry/rbac/escalation_check.go, pkg/registry/rbac/*/policybased/storage.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ironbell.api.client import NotFound
from ironbell.apiserver import status
from ironbell.apiserver.access.identity import Identity
from ironbell.apiserver.access.roles import EVERYTHING, Attributes, Rule
from ironbell.apiserver.admission import AdmissionRequest, Operation
from ironbell.apiserver.rbac.authorizer import RbacAuthorizer
from ironbell.apiserver.rbac.cover import describe, listed, missing
from ironbell.apiserver.rbac.objects import GROUP, RoleRef, rules_of
from ironbell.apiserver.resources import ResourceInfo

_ROLES = ("roles", "clusterroles")
_BINDINGS = ("rolebindings", "clusterrolebindings")
_COLLECTOR_FIELDS = ("ownerReferences", "finalizers", "managedFields")


def is_guarded(info: ResourceInfo) -> bool:
    """Return whether writes to a resource grant rights."""
    return info.group == GROUP and info.plural in (*_ROLES, *_BINDINGS)


class EscalationGuard:
    """An admission plugin that rejects grants of rights that the writer does not have."""

    def __init__(self, authorizer: RbacAuthorizer) -> None:
        self._authorizer = authorizer

    async def __call__(self, request: AdmissionRequest) -> None:
        """Reject an escalation.

        Raises:
            Forbidden: the writer does not have all rights of the role.
            NotFound: the role that is bound does not exist.
        """
        new = request.new
        if new is None or self._authorizer.is_master(request.identity):
            return
        if request.info.plural in _ROLES and self._may_escalate(request):
            return
        if request.old is not None and _is_collectors_work(new, request.old):
            return
        try:
            if request.info.plural in _ROLES:
                self._check_role(request, new)
            else:
                self._check_binding(request, new)
        except msgspec.ValidationError:
            return  # validation rejects it with a better message

    def _may_escalate(self, request: AdmissionRequest) -> bool:
        name = "" if request.operation is Operation.CREATE else request.name
        attributes = Attributes("escalate", GROUP, request.info.plural, request.namespace, name)
        return self._authorizer.decide(request.identity, attributes).allowed

    def _check_role(self, request: AdmissionRequest, new: dict[str, Any]) -> None:
        owned = list(self._authorizer.rules(request.identity, request.namespace))
        self._require(request, owned, rules_of(new))
        if (_aggregates(new) or _aggregates(request.old)) and missing(owned, EVERYTHING):
            detail = "must have cluster-admin privileges to use the aggregationRule"
            raise status.forbidden(request.info, request.name, detail=detail)

    def _check_binding(self, request: AdmissionRequest, new: dict[str, Any]) -> None:
        role = msgspec.convert(new.get("roleRef") or {}, RoleRef)
        plural = {"Role": "roles", "ClusterRole": "clusterroles"}.get(role.kind)
        if plural is None or role.apiGroup not in ("", GROUP):
            return  # validation rejects it
        namespace = request.namespace
        attributes = Attributes("bind", GROUP, plural, namespace, role.name)
        if self._authorizer.decide(request.identity, attributes).allowed:
            return
        rules = self._authorizer.index.rules(role, namespace)
        if rules is None:
            details = {"name": role.name, "group": GROUP, "kind": request.info.plural}
            raise NotFound(f'{request.info.resource} "{role.name}" not found', details=details)
        self._require(request, list(self._authorizer.rules(request.identity, namespace)), rules)

    def _require(self, request: AdmissionRequest, owned: Sequence[Rule], requested: Sequence[Rule]) -> None:
        lacking = missing(owned, requested)
        if lacking:
            raise status.forbidden(request.info, request.name, detail=_message(request.identity, lacking))


def _message(identity: Identity, lacking: Sequence[Rule]) -> str:
    return (
        f'user "{identity.user}" (groups={listed(identity.groups)}) is attempting to grant RBAC permissions not '
        f"currently held:\n{describe(lacking)}"
    )


def _aggregates(value: dict[str, Any] | None) -> bool:
    return bool(((value or {}).get("aggregationRule") or {}).get("clusterRoleSelectors"))


def _is_collectors_work(new: dict[str, Any], old: dict[str, Any]) -> bool:
    """Return whether a write changes only what the garbage collector needs to change."""
    return _without_collector_fields(new) == _without_collector_fields(old)


def _without_collector_fields(value: dict[str, Any]) -> dict[str, Any]:
    meta = {name: part for name, part in value["metadata"].items() if name not in _COLLECTOR_FIELDS}
    return {**value, "metadata": meta}
