"""The roles and bindings that every server has, as administrators and charts expect them.

Roles for parts of a cluster that never talk to this server (nodes, schedulers, their controllers) are left out.

Source: kubernetes/kubernetes: plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go, namespace_policy.go.
"""

from __future__ import annotations

import msgspec

from ironbell.apiserver.access.identity import AUTHENTICATED, MASTERS, UNAUTHENTICATED
from ironbell.apiserver.access.roles import EVERYTHING, Rule
from ironbell.apiserver.rbac.policy_users import EDIT, VIEW

READ = ("get", "list", "watch")
READ_WRITE = (*READ, "create", "update", "patch", "delete", "deletecollection")
AGGREGATE_TO = "rbac.authorization.k8s.io/aggregate-to-"
SERVICE_ACCOUNTS = "system:serviceaccounts"

_HEALTH = ("/livez", "/readyz", "/healthz")
_ABOUT = (*_HEALTH, "/version", "/version/")
_AUTHENTICATION, _AUTHORIZATION = ("authentication.k8s.io",), ("authorization.k8s.io",)
_CERTIFICATES = ("certificates.k8s.io",)


class DefaultRole(msgspec.Struct, frozen=True):
    """A ClusterRole (or, with a namespace, a Role) that the server creates and maintains."""

    name: str
    rules: tuple[Rule, ...] = ()
    aggregates: str = ""
    """The suffix of the label `aggregate-to-` of the roles that it collects; such a role has no rules of its own."""
    aggregated_to: str = ""
    namespace: str = ""


class DefaultBinding(msgspec.Struct, frozen=True):
    """A ClusterRoleBinding, by the name of its role, that the server creates and maintains."""

    role: str
    groups: tuple[str, ...] = ()
    users: tuple[str, ...] = ()


def _urls(*urls: str) -> Rule:
    return Rule(("get",), (), (), (), urls)


def _approver(signer: str) -> DefaultRole:
    rule = Rule(("approve",), ("signers",), _CERTIFICATES, (f"kubernetes.io/{signer}",))
    return DefaultRole(f"system:certificates.k8s.io:{signer}-approver", (rule,))


ROLES = (
    DefaultRole("cluster-admin", EVERYTHING),
    DefaultRole("admin", aggregates="admin"),
    DefaultRole("edit", aggregates="edit", aggregated_to="admin"),
    DefaultRole("view", aggregates="view", aggregated_to="edit"),
    DefaultRole(
        "system:aggregate-to-admin",
        (
            Rule(("create",), ("localsubjectaccessreviews",), _AUTHORIZATION),
            Rule(READ_WRITE, ("roles", "rolebindings"), ("rbac.authorization.k8s.io",)),
        ),
        aggregated_to="admin",
    ),
    DefaultRole("system:aggregate-to-edit", EDIT, aggregated_to="edit"),
    DefaultRole("system:aggregate-to-view", VIEW, aggregated_to="view"),
    DefaultRole(
        "system:discovery",
        (_urls(*_ABOUT, "/openapi", "/openapi/*", "/api", "/api/*", "/apis", "/apis/*"),),
    ),
    DefaultRole("system:public-info-viewer", (_urls(*_ABOUT),)),
    DefaultRole(
        "system:monitoring",
        (
            _urls("/metrics", "/metrics/slis", *_HEALTH, *(f"{path}/*" for path in _HEALTH)),
            Rule(("get",), ("nodes/metrics",), ("",)),
        ),
    ),
    DefaultRole(
        "system:basic-user",
        (
            Rule(("create",), ("selfsubjectaccessreviews", "selfsubjectrulesreviews"), _AUTHORIZATION),
            Rule(("create",), ("selfsubjectreviews",), _AUTHENTICATION),
        ),
    ),
    DefaultRole(
        "system:auth-delegator",
        (
            Rule(("create",), ("tokenreviews",), _AUTHENTICATION),
            Rule(("create",), ("subjectaccessreviews",), _AUTHORIZATION),
        ),
    ),
    DefaultRole(
        "system:service-account-issuer-discovery",
        (
            _urls(
                "/.well-known/openid-configuration",
                "/.well-known/openid-configuration/",
                "/openid/v1/jwks",
                "/openid/v1/jwks/",
            ),
        ),
    ),
    _approver("kube-apiserver-client"),
    _approver("kube-apiserver-client-kubelet"),
    _approver("kubelet-serving"),
    _approver("legacy-unknown"),
    DefaultRole(
        "extension-apiserver-authentication-reader",
        (Rule(READ, ("configmaps",), ("",), ("extension-apiserver-authentication",)),),
        namespace="kube-system",
    ),
)

BINDINGS = (
    DefaultBinding("cluster-admin", (MASTERS,)),
    DefaultBinding("system:monitoring", ("system:monitoring",)),
    DefaultBinding("system:discovery", (AUTHENTICATED,)),
    DefaultBinding("system:basic-user", (AUTHENTICATED,)),
    DefaultBinding("system:public-info-viewer", (AUTHENTICATED, UNAUTHENTICATED)),
    DefaultBinding("system:service-account-issuer-discovery", (SERVICE_ACCOUNTS,)),
)
