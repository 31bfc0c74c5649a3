"""The rules of the roles `view` and `edit`, for users of a namespace.

Source: kubernetes/kubernetes: plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go (viewRules, editRules).
"""

from __future__ import annotations

from ironbell.apiserver.access.roles import Rule

_READ = ("get", "list", "watch")
_WRITE = ("create", "update", "patch", "delete", "deletecollection")
_READ_WRITE = (*_READ, *_WRITE)

_CORE, _EVENTS, _APPS, _BATCH = ("",), ("", "events.k8s.io"), ("apps",), ("batch",)
_SCALING, _EXTENSIONS, _POLICY = ("autoscaling",), ("extensions",), ("policy",)
_NETWORKING, _RESOURCE, _DISCOVERY = ("networking.k8s.io",), ("resource.k8s.io",), ("discovery.k8s.io",)


def _with(name: str, *subresources: str) -> tuple[str, ...]:
    return (name, *(f"{name}/{subresource}" for subresource in subresources))


VIEW = (
    Rule(
        _READ,
        (
            "pods", *_with("replicationcontrollers", "scale"), "serviceaccounts", *_with("services", "status"),
            "endpoints", *_with("persistentvolumeclaims", "status"), "configmaps",
        ),
        _CORE,
    ),
    Rule(
        _READ,
        (
            "limitranges", "resourcequotas", "bindings", "pods/status", "resourcequotas/status", "namespaces/status",
            "replicationcontrollers/status", "pods/log",
        ),
        _CORE,
    ),
    Rule(_READ, ("namespaces",), _CORE),
    Rule(_READ, ("events",), _EVENTS),
    Rule(_READ, ("endpointslices",), _DISCOVERY),
    Rule(
        _READ,
        (
            "controllerrevisions", *_with("statefulsets", "status", "scale"), *_with("daemonsets", "status"),
            *_with("deployments", "status", "scale"), *_with("replicasets", "status", "scale"),
        ),
        _APPS,
    ),
    Rule(_READ, _with("horizontalpodautoscalers", "status"), _SCALING),
    Rule(_READ, ("jobs", "cronjobs", "cronjobs/status", "jobs/status"), _BATCH),
    Rule(
        _READ,
        (
            *_with("daemonsets", "status"), *_with("deployments", "scale", "status"), *_with("ingresses", "status"),
            *_with("replicasets", "scale", "status"), "replicationcontrollers/scale", "networkpolicies",
        ),
        _EXTENSIONS,
    ),
    Rule(_READ, _with("poddisruptionbudgets", "status"), _POLICY),
    Rule(_READ, ("networkpolicies", *_with("ingresses", "status")), _NETWORKING),
    Rule(_READ, (*_with("resourceclaims", "status"), "resourceclaimtemplates"), _RESOURCE),
)  # fmt: skip
"""Rules for reading, except credentials."""

EDIT = (
    Rule(
        _READ,
        ("pods/attach", "pods/proxy", "pods/exec", "pods/portforward", "secrets", "services/proxy"),
        _CORE,
    ),
    Rule(("impersonate",), ("serviceaccounts",), _CORE),
    Rule(_WRITE, _with("pods", "attach", "proxy", "exec", "portforward"), _CORE),
    Rule(("create",), ("pods/eviction",), _CORE),
    Rule(
        _WRITE,
        (
            *_with("replicationcontrollers", "scale"), "serviceaccounts", *_with("services", "proxy"),
            "persistentvolumeclaims", "configmaps", "secrets",
        ),
        _CORE,
    ),
    Rule(("create",), ("serviceaccounts/token",), _CORE),
    Rule(_WRITE, ("events",), _EVENTS),
    Rule(
        _WRITE,
        (
            *_with("statefulsets", "scale"), "daemonsets", *_with("deployments", "scale", "rollback"),
            *_with("replicasets", "scale"),
        ),
        _APPS,
    ),
    Rule(_WRITE, ("horizontalpodautoscalers",), _SCALING),
    Rule(_WRITE, ("jobs", "cronjobs"), _BATCH),
    Rule(
        _WRITE,
        (
            "daemonsets", *_with("deployments", "scale", "rollback"), "ingresses", *_with("replicasets", "scale"),
            "replicationcontrollers/scale", "networkpolicies",
        ),
        _EXTENSIONS,
    ),
    Rule(_WRITE, ("poddisruptionbudgets",), _POLICY),
    Rule(_WRITE, ("networkpolicies", "ingresses"), _NETWORKING),
    Rule(_READ_WRITE, ("leases",), ("coordination.k8s.io",)),
    Rule(_WRITE, ("resourceclaims", "resourceclaimtemplates"), _RESOURCE),
)  # fmt: skip
"""Rules for writing, and for reading credentials."""
