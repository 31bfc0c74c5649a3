"""The schemas and levels that every server begins with.

Mandatory ones always have the specification that is here; the others have it unless their annotation leaves them to an
administrator.

Source: kubernetes/apiserver: pkg/apis/flowcontrol/bootstrap/default.go.
"""

from __future__ import annotations

from typing import Any

from ironbell.apiserver.access.identity import AUTHENTICATED, MASTERS, UNAUTHENTICATED
from ironbell.apiserver.flowcontrol.spec import AUTOUPDATE, BY_NAMESPACE, BY_USER, CATCH_ALL, EXEMPT, GROUP

Object = dict[str, Any]

_NODES = "system:nodes"
_ACCOUNTS = "system:serviceaccounts"
_CONTROLLERS, _SCHEDULER = "system:kube-controller-manager", "system:kube-scheduler"
_EVERY_URL: Object = {"verbs": ["*"], "nonResourceURLs": ["*"]}


def _object(kind: str, name: str, spec: Object) -> Object:
    meta = {"name": name, "annotations": {AUTOUPDATE: "true"}}
    return {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": meta, "spec": spec}


def _limited(name: str, shares: int, *, lendable: int, queuing: tuple[int, int] | None) -> Object:
    response: Object = {"type": "Reject"}
    if queuing is not None:
        queues, hand = queuing
        response = {"type": "Queue", "queuing": {"queues": queues, "handSize": hand, "queueLengthLimit": 50}}
    limited = {"nominalConcurrencyShares": shares, "lendablePercent": lendable, "limitResponse": response}
    return _object("PriorityLevelConfiguration", name, {"type": "Limited", "limited": limited})


def _resources(verbs: list[str], groups: list[str], resources: list[str], *, cluster: bool) -> Object:
    rule: Object = {"verbs": verbs, "apiGroups": groups, "resources": resources, "namespaces": ["*"]}
    return {**rule, "clusterScope": True} if cluster else rule


_EVERY_RESOURCE = _resources(["*"], ["*"], ["*"], cluster=True)


def _groups(*names: str) -> list[Object]:
    return [{"kind": "Group", "group": {"name": name}} for name in names]


def _users(*names: str) -> list[Object]:
    return [{"kind": "User", "user": {"name": name}} for name in names]


_SYSTEM_ACCOUNTS = [{"kind": "ServiceAccount", "serviceAccount": {"namespace": "kube-system", "name": "*"}}]
_EVERYBODY = _groups(UNAUTHENTICATED, AUTHENTICATED)


def _schema(
    name: str,
    level: str,
    precedence: int,
    method: str,
    subjects: list[Object],
    *,
    resources: tuple[Object, ...] = (_EVERY_RESOURCE,),
    urls: tuple[Object, ...] = (_EVERY_URL,),
) -> Object:
    rules: Object = {"subjects": subjects}
    if resources:
        rules["resourceRules"] = list(resources)
    if urls:
        rules["nonResourceRules"] = list(urls)
    spec: Object = {
        "priorityLevelConfiguration": {"name": level}, "matchingPrecedence": precedence, "rules": [rules],
    }  # fmt: skip
    if method:
        spec["distinguisherMethod"] = {"type": method}
    return _object("FlowSchema", name, spec)


_LEASES = _resources(["*"], ["coordination.k8s.io"], ["leases"], cluster=False)

MANDATORY_LEVELS = (
    _limited(CATCH_ALL, 5, lendable=0, queuing=None),
    _object(
        "PriorityLevelConfiguration",
        EXEMPT,
        {"type": "Exempt", "exempt": {"nominalConcurrencyShares": 0, "lendablePercent": 0}},
    ),
)
MANDATORY_SCHEMAS = (
    _schema(EXEMPT, EXEMPT, 1, "", _groups(MASTERS)),
    _schema(CATCH_ALL, CATCH_ALL, 10000, BY_USER, _EVERYBODY),
)
SUGGESTED_LEVELS = (
    _limited("system", 30, lendable=33, queuing=(64, 6)),
    _limited("node-high", 40, lendable=25, queuing=(64, 6)),
    _limited("leader-election", 10, lendable=0, queuing=(16, 4)),
    _limited("workload-high", 40, lendable=50, queuing=(128, 6)),
    _limited("workload-low", 100, lendable=90, queuing=(128, 6)),
    _limited("global-default", 20, lendable=50, queuing=(128, 6)),
)
SUGGESTED_SCHEMAS = (
    _schema(
        "probes", EXEMPT, 2, "", _EVERYBODY, resources=(),
        urls=({"verbs": ["get"], "nonResourceURLs": ["/healthz", "/readyz", "/livez"]},),
    ),
    _schema(
        "system-leader-election", "leader-election", 100, BY_USER,
        [*_users(_CONTROLLERS, _SCHEDULER), *_SYSTEM_ACCOUNTS],
        resources=(
            _resources(["get", "create", "update"], ["coordination.k8s.io"], ["leases"], cluster=False),
        ),
        urls=(),
    ),
    _schema(
        "system-node-high", "node-high", 400, BY_USER, _groups(_NODES),
        resources=(_resources(["*"], [""], ["nodes", "nodes/status"], cluster=True), _LEASES), urls=(),
    ),
    _schema("system-nodes", "system", 500, BY_USER, _groups(_NODES)),
    _schema("kube-controller-manager", "workload-high", 800, BY_NAMESPACE, _users(_CONTROLLERS)),
    _schema("kube-scheduler", "workload-high", 800, BY_NAMESPACE, _users(_SCHEDULER)),
    _schema("kube-system-service-accounts", "workload-high", 900, BY_NAMESPACE, _SYSTEM_ACCOUNTS),
    _schema("service-accounts", "workload-low", 9000, BY_USER, _groups(_ACCOUNTS)),
    _schema("global-default", "global-default", 9900, BY_USER, _EVERYBODY),
)  # fmt: skip

LEVELS: dict[str, Object] = {value["metadata"]["name"]: value for value in (*MANDATORY_LEVELS, *SUGGESTED_LEVELS)}
SCHEMAS: dict[str, Object] = {value["metadata"]["name"]: value for value in (*MANDATORY_SCHEMAS, *SUGGESTED_SCHEMAS)}


def is_mandatory(name: str) -> bool:
    """Return whether the schema or level of this name is mandatory."""
    return name in (EXEMPT, CATCH_ALL)
