"""Accounts and roles: for each Deployment, the permissions that its components need, and nothing more.

The rules are the ones that controllers and servers state themselves and that the embedded API enforces. Infrastructure
and other providers state their own: one role aggregates their ClusterRoles by Cluster API's label, and every account
that reads providers' objects holds it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ironbell.api.cluster.names import LABEL_AGGREGATE_TO_MANAGER
from ironbell.app.components import Role, rules_of
from ironbell.app.install import cluster_webhooks
from ironbell.app.install.options import InstallOptions, Object, Unit, new_object
from ironbell.app.install.webhooks import configuration_rules, secret_rules

_GROUP = "rbac.authorization.k8s.io"
_API = f"{_GROUP}/v1"
PROVIDERS = "ironbell-providers"


def access(options: InstallOptions) -> Iterator[Object]:
    """ServiceAccounts, roles and bindings of all Deployments."""
    readers = [unit for unit in options.units if reads_providers(unit)]
    if readers:
        yield from _providers([subject for unit in readers for subject in _subjects(unit, options)])
    for unit in options.units:
        where = {"namespace": options.namespace, "component": unit.word}
        yield new_object("v1", "ServiceAccount", unit.name, **where)
        everywhere = [
            *_plain(rules_of(unit.components)),
            *configuration_rules(unit),
            *cluster_webhooks.configuration_rules(unit),
        ]
        yield new_object(_API, "ClusterRole", unit.name, component=unit.word, rules=everywhere)
        yield new_object(
            _API,
            "ClusterRoleBinding",
            unit.name,
            component=unit.word,
            roleRef=_role("ClusterRole", unit),
            subjects=_subjects(unit, options),
        )
        rules = [*lease_rules(unit), *secret_rules(unit)]
        if rules:
            yield new_object(_API, "Role", unit.name, rules=rules, **where)
            yield new_object(
                _API,
                "RoleBinding",
                unit.name,
                roleRef=_role("Role", unit),
                subjects=_subjects(unit, options),
                **where,
            )


def reads_providers(unit: Unit) -> bool:
    """Return whether its components look up objects of kinds that only users' objects name."""
    return any(
        "*" in rule["resources"] and "infrastructure.cluster.x-k8s.io" in rule["apiGroups"]
        for rule in rules_of(unit.components)
    )


def _providers(subjects: list[Object]) -> Iterator[Object]:
    labelled = {"clusterRoleSelectors": [{"matchLabels": {LABEL_AGGREGATE_TO_MANAGER: "true"}}]}
    yield new_object(_API, "ClusterRole", PROVIDERS, aggregationRule=labelled)
    role = {"apiGroup": _GROUP, "kind": "ClusterRole", "name": PROVIDERS}
    yield new_object(_API, "ClusterRoleBinding", PROVIDERS, roleRef=role, subjects=subjects)


def lease_rules(unit: Unit) -> list[Object]:
    """Rules for leader election: the component's own Leases, by name."""
    names = [f"ironbell-{component.name}" for component in unit.components if component.role is Role.CONTROLLERS]
    if not names:
        return []
    leases = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"]}
    return [
        {**leases, "verbs": ["create"]},
        {**leases, "resourceNames": names, "verbs": ["get", "watch", "update"]},
    ]


def _role(kind: str, unit: Unit) -> Object:
    return {"apiGroup": _GROUP, "kind": kind, "name": unit.name}


def _subjects(unit: Unit, options: InstallOptions) -> list[Object]:
    return [{"kind": "ServiceAccount", "name": unit.name, "namespace": options.namespace}]


def _plain(rules: Sequence[Mapping[str, Sequence[str]]]) -> list[dict[str, Any]]:
    return [{name: list(values) for name, values in rule.items()} for rule in rules]
