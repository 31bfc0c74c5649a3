"""Creates the default roles and bindings at start, and restores missing rules and subjects.

Additions of administrators to a default role stay; a role with the annotation `autoupdate: "false"` stays unchanged.
Roles that the program holds in memory are shown as ClusterRoles of the same names; these are reset at every start,
since changing them has no effect.

Source: kubernetes/component-helpers: auth/rbac/reconciliation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from ironbell.api.client import AlreadyExists, Conflict, NotFound, WriteOptions
from ironbell.apiserver.access.identity import SYSTEM
from ironbell.apiserver.access.roles import Binding, RoleAuthorizer
from ironbell.apiserver.context import Context, Request
from ironbell.apiserver.rbac import policy
from ironbell.apiserver.rbac.cover import missing
from ironbell.apiserver.rbac.objects import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, GROUP, ROLES, as_data, rules_of
from ironbell.apiserver.verbs.create import create_value
from ironbell.apiserver.verbs.update import update

Object = dict[str, Any]

AUTOUPDATE = "rbac.authorization.kubernetes.io/autoupdate"
BOOTSTRAPPING = "kubernetes.io/bootstrapping"
_OPTIONS = WriteOptions(field_manager="ironbell")
_PROCESS_LABELS = {"app.kubernetes.io/managed-by": "ironbell"}
_SERVICE_ACCOUNT = "system:serviceaccount:"


async def bootstrap(context: Context, granted: RoleAuthorizer) -> None:
    """Create the missing objects; all writes go together."""
    expected = [(CLUSTER_ROLE_BINDINGS, _binding(binding), False) for binding in policy.BINDINGS]
    expected += [(ROLES if role.namespace else CLUSTER_ROLES, _role(role), False) for role in policy.ROLES]
    expected += [(CLUSTER_ROLES, value, True) for value in _process_roles(granted)]
    expected += [(CLUSTER_ROLE_BINDINGS, value, True) for value in _process_bindings(granted.bindings)]
    await asyncio.gather(*(_ensure(context, resource, value, exact=exact) for resource, value, exact in expected))


def reconciled(existing: Object, expected: Object, *, exact: bool = False) -> Object | None:
    """The object to write in place of `existing`; None if nothing has to change.

    With `exact` the rules and subjects become the expected ones; otherwise missing ones are added.
    """
    meta = existing["metadata"]
    if (meta.get("annotations") or {}).get(AUTOUPDATE) == "false":
        return None
    after: Object = {**existing, "metadata": dict(meta)}
    for field in ("annotations", "labels"):
        merged = {**(expected["metadata"].get(field) or {}), **(meta.get(field) or {})}
        if merged:
            after["metadata"][field] = merged
    for field in ("rules", "subjects"):
        if field in expected:
            after[field] = expected[field] if exact else _with_missing(field, existing.get(field), expected[field])
    if "aggregationRule" in expected:
        after["aggregationRule"] = _with_missing_selectors(existing.get("aggregationRule"), expected)
        after["rules"] = existing.get("rules") or []
    return None if after == existing else after


def _with_missing(field: str, existing: list[Object] | None, expected: list[Object]) -> list[Object]:
    present = existing or []
    if field == "subjects":
        return [*present, *(subject for subject in expected if subject not in present)]
    lacking = missing(rules_of({"rules": present}), rules_of({"rules": expected}))
    return [*present, *(as_data(rule) for rule in lacking)]


def _with_missing_selectors(existing: Object | None, expected: Object) -> Object:
    present = (existing or {}).get("clusterRoleSelectors") or []
    expected_selectors = expected["aggregationRule"]["clusterRoleSelectors"]
    return {
        "clusterRoleSelectors": [*present, *(selector for selector in expected_selectors if selector not in present)]
    }


async def _ensure(context: Context, resource: str, value: Object, *, exact: bool) -> None:
    info = context.resources.stored(resource)
    if info is None:
        return
    meta = value["metadata"]
    request = Request(SYSTEM, info, meta.get("namespace", ""), meta["name"], "", _OPTIONS)
    entry = context.store.latest(info.store_key, request.key)
    try:
        if entry is None:
            await create_value(context, request, value)
        elif reconciled(entry.decode(), value, exact=exact) is not None:
            await update(context, request, lambda old, scratch: reconciled(scratch, value, exact=exact) or scratch)
    except (AlreadyExists, NotFound, Conflict):
        return  # another writer changed it at this moment


def _role(role: policy.DefaultRole) -> Object:
    labels = {BOOTSTRAPPING: "rbac-defaults"}
    if role.aggregated_to:
        labels[f"{policy.AGGREGATE_TO}{role.aggregated_to}"] = "true"
    value = _object("Role" if role.namespace else "ClusterRole", role.name, labels)
    if role.namespace:
        value["metadata"]["namespace"] = role.namespace
    if role.aggregates:
        selector = {"matchLabels": {f"{policy.AGGREGATE_TO}{role.aggregates}": "true"}}
        value["aggregationRule"] = {"clusterRoleSelectors": [selector]}
    else:
        value["rules"] = [as_data(rule) for rule in role.rules]
    return value


def _binding(binding: policy.DefaultBinding) -> Object:
    value = _object("ClusterRoleBinding", binding.role, {BOOTSTRAPPING: "rbac-defaults"})
    return {**value, **_given(binding.role, binding.users, binding.groups)}


def _object(kind: str, name: str, labels: dict[str, str]) -> Object:
    annotations = {AUTOUPDATE: "true"}
    meta: Object = {"name": name, "labels": dict(labels), "annotations": annotations}
    return {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": meta}


def _process_roles(granted: RoleAuthorizer) -> Iterator[Object]:
    for role in granted.roles.values():
        rules = [as_data(rule) for rule in role.rules]
        yield {**_object("ClusterRole", role.name, _PROCESS_LABELS), "rules": rules}


def _process_bindings(bindings: Iterable[Binding]) -> Iterator[Object]:
    for binding in bindings:
        if not binding.namespace:
            value = _object("ClusterRoleBinding", binding.role, _PROCESS_LABELS)
            yield {**value, **_given(binding.role, binding.users, binding.groups)}


def _given(role: str, users: Iterable[str], groups: Iterable[str]) -> Object:
    subjects = [*(_user(user) for user in users), *(_subject("Group", group) for group in groups)]
    role_ref = {"apiGroup": GROUP, "kind": "ClusterRole", "name": role}
    return msgspec.json.decode(msgspec.json.encode({"roleRef": role_ref, "subjects": subjects}), type=Object)


def _user(name: str) -> Object:
    if name.startswith(_SERVICE_ACCOUNT):
        namespace, _, account = name.removeprefix(_SERVICE_ACCOUNT).partition(":")
        return {"kind": "ServiceAccount", "name": account, "namespace": namespace}
    return _subject("User", name)


def _subject(kind: str, name: str) -> Object:
    return {"apiGroup": GROUP, "kind": kind, "name": name}
