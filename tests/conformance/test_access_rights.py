"""Who may do what: roles, bindings, escalation, reviews, impersonation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from support.api.kubeapi import Answer, KubeApi
from support.waiting import eventually

RBAC = "/apis/rbac.authorization.k8s.io/v1"
GROUP = "rbac.authorization.k8s.io"
AUTHORIZATION = "/apis/authorization.k8s.io/v1"
GET_PODS = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}


@pytest.fixture
def user() -> str:
    """The name of somebody who has no rights of their own."""
    return f"user-{uuid4().hex[:8]}"


@pytest.fixture
def someone(api: KubeApi, user: str) -> KubeApi:
    """The API as that user sees it."""
    return api.with_headers(Impersonate_User=user)


@pytest.fixture
def roles(namespace: str) -> str:
    return f"{RBAC}/namespaces/{namespace}/roles"


@pytest.fixture
def bindings(namespace: str) -> str:
    return f"{RBAC}/namespaces/{namespace}/rolebindings"


@pytest.fixture
def cluster_role(api: KubeApi) -> Iterator[str]:
    """The name of a ClusterRole that is deleted in the end, with its binding."""
    name = f"test-{uuid4().hex[:8]}"
    yield name
    api.delete(f"{RBAC}/clusterroles/{name}")
    api.delete(f"{RBAC}/clusterrolebindings/{name}")


def role(name: str, *rules: dict[str, Any], kind: str = "Role", **more: Any) -> dict[str, Any]:
    return {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": {"name": name}, "rules": list(rules), **more}


def binding(name: str, role_kind: str, role_name: str, *users: str, kind: str = "RoleBinding") -> dict[str, Any]:
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": kind,
        "metadata": {"name": name},
        "roleRef": {"apiGroup": GROUP, "kind": role_kind, "name": role_name},
        "subjects": [{"kind": "User", "name": one} for one in users],
    }


def allow(api: KubeApi, roles: str, user: str, *rules: dict[str, Any]) -> None:
    """Let a user do something in the roles' namespace, and wait until it counts."""
    name = f"r-{uuid4().hex[:8]}"
    api.made(roles, role(name, *rules))
    api.made(roles.removesuffix("roles") + "rolebindings", binding(name, "Role", name, user))
    namespace = roles.split("/")[-2]
    first = rules[0]
    wanted = {
        "namespace": namespace, "verb": first["verbs"][0], "group": first["apiGroups"][0],
        "resource": first["resources"][0], "name": first.get("resourceNames", [""])[0],
    }  # fmt: skip
    eventually(lambda: ask(api, "subjectaccessreviews", user=user, resourceAttributes=wanted)["allowed"])


def review(api: KubeApi, plural: str, **spec: Any) -> Answer:
    kinds = {
        "selfsubjectaccessreviews": "SelfSubjectAccessReview",
        "subjectaccessreviews": "SubjectAccessReview",
        "selfsubjectrulesreviews": "SelfSubjectRulesReview",
    }
    return api.post(
        f"{AUTHORIZATION}/{plural}", {"apiVersion": "authorization.k8s.io/v1", "kind": kinds[plural], "spec": spec}
    )


def ask(api: KubeApi, plural: str, **spec: Any) -> dict[str, Any]:
    answer = review(api, plural, **spec)
    assert answer.status == 201, answer.body
    status: dict[str, Any] = answer.json["status"]
    return status


# Roles and bindings


def test_bound_role_counts_in_its_namespace_alone(
    api: KubeApi, someone: KubeApi, user: str, namespace: str, roles: str
) -> None:
    assert someone.get(f"/api/v1/namespaces/{namespace}/configmaps").status == 403
    allow(api, roles, user, {"verbs": ["list"], "apiGroups": [""], "resources": ["configmaps"]})
    eventually(lambda: someone.get(f"/api/v1/namespaces/{namespace}/configmaps").status == 200)
    assert someone.get("/api/v1/namespaces/default/configmaps").status == 403
    assert someone.get("/api/v1/configmaps").status == 403


def test_names_limit_a_rule(api: KubeApi, someone: KubeApi, user: str, namespace: str, roles: str) -> None:
    rule = {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["a"]}
    allow(api, roles, user, GET_PODS, rule)
    base = f"/api/v1/namespaces/{namespace}/configmaps"
    eventually(lambda: someone.get(f"{base}/a").status == 404)
    assert someone.get(f"{base}/b").status == 403
    assert someone.get(base).status == 403
    assert someone.get(base, fieldSelector="metadata.name=a").status == 200


def test_subresources_are_named(api: KubeApi, someone: KubeApi, user: str, namespace: str, roles: str) -> None:
    allow(api, roles, user, {"verbs": ["get"], "apiGroups": [""], "resources": ["pods/status"]}, GET_PODS)
    assert ask(
        someone, "selfsubjectaccessreviews",
        resourceAttributes={"namespace": namespace, "verb": "get", "resource": "pods", "subresource": "log"},
    )["allowed"] is False  # fmt: skip


def test_refusal_tells_who_wanted_what(someone: KubeApi, user: str, namespace: str) -> None:
    answer = someone.delete(f"/apis/apps/v1/namespaces/{namespace}/deployments/web")
    assert (answer.status, answer.reason) == (403, "Forbidden")
    assert answer.message == (
        f'deployments.apps "web" is forbidden: User "{user}" cannot delete resource "deployments" in API group "apps" '
        f'in the namespace "{namespace}"'
    )
    assert answer.json["details"] == {"name": "web", "group": "apps", "kind": "deployments"}


def test_refusal_comes_before_not_found(someone: KubeApi, user: str) -> None:
    answer = someone.get("/apis/nothing.example.org/v1/things")
    assert answer.status == 403
    assert answer.message == (
        f'things.nothing.example.org is forbidden: User "{user}" cannot list resource "things" in API group '
        '"nothing.example.org" at the cluster scope'
    )


def test_paths_are_guarded_too(someone: KubeApi, user: str) -> None:
    answer = someone.get("/metrics")
    assert (answer.status, answer.message) == (403, f'forbidden: User "{user}" cannot get path "/metrics"')
    assert someone.get("/api").status == 200
    assert someone.get("/openapi/v2", headers={"Accept": "application/json"}).status == 200


def test_cluster_role_for_paths(api: KubeApi, someone: KubeApi, user: str, cluster_role: str) -> None:
    rule = {"verbs": ["get"], "nonResourceURLs": ["/metrics"]}
    api.made(f"{RBAC}/clusterroles", role(cluster_role, rule, kind="ClusterRole"))
    made = binding(cluster_role, "ClusterRole", cluster_role, user, kind="ClusterRoleBinding")
    api.made(f"{RBAC}/clusterrolebindings", made)
    eventually(lambda: someone.get("/metrics").status == 200)


def test_group_of_a_binding_is_filled_in(api: KubeApi, bindings: str) -> None:
    made = binding("b", "ClusterRole", "view", "a")
    del made["roleRef"]["apiGroup"]
    found = api.made(bindings, made)
    assert found["roleRef"]["apiGroup"] == GROUP
    assert found["subjects"][0]["apiGroup"] == GROUP


def test_bound_role_never_changes(api: KubeApi, bindings: str) -> None:
    api.made(bindings, binding("b", "ClusterRole", "view", "a"))
    answer = api.patch(f"{bindings}/b", {"roleRef": {"name": "edit"}})
    assert answer.status == 422
    assert answer.causes[0]["field"] == "roleRef"
    assert "cannot change roleRef" in answer.message


INVALID_RULES = [
    ({"verbs": ["get"]}, ["rules[0].apiGroups", "rules[0].resources"]),
    ({"apiGroups": [""], "resources": ["pods"]}, ["rules[0].verbs"]),
    ({"verbs": ["get"], "nonResourceURLs": ["/x"]}, ["rules[0].nonResourceURLs"]),
]


@pytest.mark.parametrize(("rule", "fields"), INVALID_RULES)
def test_impossible_rules(api: KubeApi, roles: str, rule: dict[str, Any], fields: list[str]) -> None:
    answer = api.post(roles, role("r", rule) | {"rules": [{"verbs": None, **rule}]})
    assert answer.status == 422
    assert sorted(cause["field"] for cause in answer.causes) == fields


INVALID_BINDINGS: list[tuple[dict[str, Any], str]] = [
    ({"roleRef": {"apiGroup": GROUP, "kind": "Pod", "name": "x"}}, "roleRef.kind"),
    ({"roleRef": {"apiGroup": GROUP, "kind": "Role", "name": ""}}, "roleRef.name"),
    ({"roleRef": {"apiGroup": "other", "kind": "Role", "name": "x"}}, "roleRef.apiGroup"),
    ({"subjects": [{"kind": "Pod", "name": "x"}]}, "subjects[0].kind"),
    ({"subjects": [{"kind": "User"}]}, "subjects[0].name"),
]


@pytest.mark.parametrize(("part", "field"), INVALID_BINDINGS)
def test_impossible_bindings(api: KubeApi, bindings: str, part: dict[str, Any], field: str) -> None:
    answer = api.post(bindings, binding("b", "ClusterRole", "view", "a") | part)
    assert answer.status == 422
    assert field in {cause["field"] for cause in answer.causes}


# Escalation


def test_nobody_gives_what_they_do_not_hold(api: KubeApi, someone: KubeApi, user: str, roles: str) -> None:
    allow(api, roles, user, {"verbs": ["create", "patch"], "apiGroups": [GROUP], "resources": ["roles"]}, GET_PODS)
    eventually(lambda: someone.post(roles, role("held", GET_PODS)).status == 201)
    wanted = {"verbs": ["get", "delete"], "apiGroups": [""], "resources": ["pods", "secrets"]}
    answer = someone.post(roles, role("more", wanted))
    assert (answer.status, answer.reason) == (403, "Forbidden")
    assert answer.message == (
        f'roles.rbac.authorization.k8s.io "more" is forbidden: user "{user}" (groups=["system:authenticated"]) is '
        "attempting to grant RBAC permissions not currently held:\n"
        '{APIGroups:[""], Resources:["pods"], Verbs:["delete"]}\n'
        '{APIGroups:[""], Resources:["secrets"], Verbs:["get" "delete"]}'
    )
    assert someone.patch(f"{roles}/held", {"rules": [wanted]}).status == 403


def test_verb_escalate_lifts_that(api: KubeApi, someone: KubeApi, user: str, roles: str) -> None:
    rule = {"verbs": ["create", "escalate"], "apiGroups": [GROUP], "resources": ["roles"]}
    allow(api, roles, user, rule)
    wanted = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
    eventually(lambda: someone.post(roles, role(f"all-{uuid4().hex[:5]}", wanted)).status == 201)


def test_binding_needs_the_rights_or_the_verb_bind(
    api: KubeApi, someone: KubeApi, user: str, roles: str, bindings: str
) -> None:
    allow(api, roles, user, {"verbs": ["create"], "apiGroups": [GROUP], "resources": ["rolebindings"]})
    made = binding("b", "ClusterRole", "cluster-admin", user)
    answer = eventually(lambda: (found := someone.post(bindings, made)).status == 403 and found)
    assert "is attempting to grant RBAC permissions not currently held" in answer.message
    rule = {"verbs": ["bind"], "apiGroups": [GROUP], "resources": ["clusterroles"], "resourceNames": ["cluster-admin"]}
    allow(api, roles, user, rule)
    eventually(lambda: someone.post(bindings, made).status in {201, 409})


def test_unknown_roles_can_be_bound_by_masters_only(
    api: KubeApi, someone: KubeApi, user: str, roles: str, bindings: str
) -> None:
    allow(api, roles, user, {"verbs": ["create"], "apiGroups": [GROUP], "resources": ["rolebindings"]})
    answer = someone.post(bindings, binding("b", "Role", "gone", user))
    assert answer.status == 404
    assert answer.message == 'rolebindings.rbac.authorization.k8s.io "gone" not found'
    api.made(bindings, binding("b", "Role", "gone", user))


def test_collecting_roles_need_everything(api: KubeApi, someone: KubeApi, user: str, cluster_role: str) -> None:
    rule = {"verbs": ["create"], "apiGroups": [GROUP], "resources": ["clusterroles"]}
    api.made(f"{RBAC}/clusterroles", role(cluster_role, rule, kind="ClusterRole"))
    made = binding(cluster_role, "ClusterRole", cluster_role, user, kind="ClusterRoleBinding")
    api.made(f"{RBAC}/clusterrolebindings", made)
    selector = {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}
    collecting = role("collecting", kind="ClusterRole", aggregationRule=selector)

    def refused() -> bool:
        answer = someone.post(f"{RBAC}/clusterroles", collecting)
        return "must have cluster-admin privileges to use the aggregationRule" in answer.message

    eventually(refused)


# Default roles


def test_default_roles_are_there(api: KubeApi) -> None:
    names = {one["metadata"]["name"] for one in api.get(f"{RBAC}/clusterroles").json["items"]}
    assert names >= {
        "cluster-admin", "admin", "edit", "view", "system:discovery", "system:basic-user", "system:monitoring",
        "system:public-info-viewer", "system:auth-delegator", "system:service-account-issuer-discovery",
        "system:aggregate-to-admin", "system:aggregate-to-edit", "system:aggregate-to-view",
    }  # fmt: skip


@pytest.mark.parametrize(
    "name",
    ["cluster-admin", "system:discovery", "system:basic-user", "system:public-info-viewer", "system:auth-delegator"],
)
def test_default_roles_are_marked(api: KubeApi, name: str) -> None:
    meta = api.get(f"{RBAC}/clusterroles/{name}").json["metadata"]
    assert meta["labels"]["kubernetes.io/bootstrapping"] == "rbac-defaults"
    assert meta["annotations"]["rbac.authorization.kubernetes.io/autoupdate"] == "true"


def test_default_roles_collect_by_label(api: KubeApi, cluster_role: str) -> None:
    rule = {"verbs": ["get"], "apiGroups": [f"{cluster_role}.example.org"], "resources": ["gadgets"]}
    value = role(cluster_role, rule, kind="ClusterRole")
    value["metadata"]["labels"] = {"rbac.authorization.k8s.io/aggregate-to-view": "true"}
    api.made(f"{RBAC}/clusterroles", value)

    def sorted_rules(name: str) -> list[dict[str, Any]]:
        return list(api.get(f"{RBAC}/clusterroles/{name}").json["rules"])

    for name in ("view", "edit", "admin"):
        eventually(lambda name=name: rule in sorted_rules(name))
    api.delete(f"{RBAC}/clusterroles/{cluster_role}")
    eventually(lambda: rule not in sorted_rules("view"))


@pytest.mark.parametrize("verb", ["get", "create", "delete"])
@pytest.mark.parametrize("name", ["view", "edit", "admin"])
def test_what_default_roles_allow(api: KubeApi, user: str, namespace: str, bindings: str, name: str, verb: str) -> None:
    api.made(bindings, binding("b", "ClusterRole", name, user))
    expected = {
        "configmaps": name != "view" or verb == "get",
        "secrets": name != "view",
        "roles": name == "admin",
        "nodes": False,
    }

    def found() -> dict[str, bool]:
        wanted = {"namespace": namespace, "verb": verb}
        groups = {"roles": GROUP}
        return {
            resource: ask(
                api, "subjectaccessreviews",
                user=user, resourceAttributes=wanted | {"group": groups.get(resource, ""), "resource": resource},
            )["allowed"]
            for resource in expected
        }  # fmt: skip

    eventually(lambda: found() == expected)


# Reviews


def test_review_of_oneself(api: KubeApi, someone: KubeApi, user: str, namespace: str, roles: str) -> None:
    allow(api, roles, user, GET_PODS)
    wanted = {"namespace": namespace, "verb": "get", "resource": "pods"}
    status = ask(someone, "selfsubjectaccessreviews", resourceAttributes=wanted)
    assert status["allowed"] is True
    assert status["reason"].startswith('RBAC: allowed by RoleBinding "r-')
    assert status["reason"].endswith(f'to User "{user}"')
    status = ask(someone, "selfsubjectaccessreviews", resourceAttributes=wanted | {"verb": "list"})
    assert status == {"allowed": False}


def test_review_of_a_path(api: KubeApi, user: str) -> None:
    allowed = {"path": "/version", "verb": "get"}
    spec = {"user": user, "groups": ["system:authenticated"]}
    assert ask(api, "subjectaccessreviews", nonResourceAttributes=allowed, **spec)["allowed"] is True
    status = ask(api, "subjectaccessreviews", nonResourceAttributes=allowed | {"path": "/metrics"}, **spec)
    assert status["allowed"] is False


def test_masters_may_do_everything(api: KubeApi) -> None:
    wanted = {"verb": "whatever", "group": "nothing", "resource": "things"}
    assert ask(api, "selfsubjectaccessreviews", resourceAttributes=wanted)["allowed"] is True
    spec = {"user": "x", "groups": ["system:masters"]}
    assert ask(api, "subjectaccessreviews", resourceAttributes=wanted, **spec)["allowed"] is True


INVALID_REVIEWS: list[tuple[str, dict[str, Any], str, str]] = [
    ("selfsubjectaccessreviews", {}, "spec.resourceAttributes", "exactly one of"),
    (
        "selfsubjectaccessreviews",
        {"resourceAttributes": {"verb": "get"}, "nonResourceAttributes": {"verb": "get", "path": "/"}},
        "spec.nonResourceAttributes",
        "cannot be specified in combination with resourceAttributes",
    ),
    (
        "subjectaccessreviews",
        {"resourceAttributes": {"verb": "get", "resource": "pods"}},
        "spec.user",
        "at least one of user or group must be specified",
    ),
]


@pytest.mark.parametrize(("plural", "spec", "field", "why"), INVALID_REVIEWS)
def test_reviews_must_ask_something(api: KubeApi, plural: str, spec: dict[str, Any], field: str, why: str) -> None:
    answer = review(api, plural, **spec)
    assert (answer.status, answer.reason) == (422, "Invalid")
    assert answer.causes[0]["field"] == field
    assert why in answer.message


def test_review_of_others_needs_the_right(someone: KubeApi, user: str) -> None:
    answer = review(someone, "subjectaccessreviews", user="x", resourceAttributes={"verb": "get", "resource": "pods"})
    assert answer.status == 403
    assert answer.message == (
        f'subjectaccessreviews.authorization.k8s.io is forbidden: User "{user}" cannot create resource '
        '"subjectaccessreviews" in API group "authorization.k8s.io" at the cluster scope'
    )


def local_review(api: KubeApi, namespace: str, wanted_namespace: str, user: str) -> Answer:
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "LocalSubjectAccessReview",
        "metadata": {"namespace": namespace},
        "spec": {
            "user": user,
            "resourceAttributes": {"namespace": wanted_namespace, "verb": "get", "resource": "pods"},
        },
    }
    return api.post(f"{AUTHORIZATION}/namespaces/{namespace}/localsubjectaccessreviews", body)


def test_review_in_a_namespace(api: KubeApi, user: str, namespace: str, roles: str) -> None:
    allow(api, roles, user, GET_PODS)
    assert local_review(api, namespace, namespace, user).json["status"]["allowed"] is True
    answer = local_review(api, namespace, "default", user)
    assert answer.status == 422
    assert answer.causes[0]["field"] == "spec.resourceAttributes.namespace"


def test_rules_of_oneself(api: KubeApi, someone: KubeApi, user: str, namespace: str, roles: str) -> None:
    allow(api, roles, user, GET_PODS)
    status = ask(someone, "selfsubjectrulesreviews", namespace=namespace)
    assert GET_PODS in status["resourceRules"]
    assert status["incomplete"] is False
    paths = {path for rule in status["nonResourceRules"] for path in rule["nonResourceURLs"]}
    assert "/version" in paths
    answer = review(someone, "selfsubjectrulesreviews")
    assert (answer.status, answer.message) == (400, "no namespace on request")


# Impersonation


def whoami(api: KubeApi) -> dict[str, Any]:
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    answer = api.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", body)
    assert answer.status == 201, answer.body
    found: dict[str, Any] = answer.json["status"]["userInfo"]
    return found


def test_acting_as_a_user(api: KubeApi, someone: KubeApi, user: str) -> None:
    assert whoami(someone) == {"username": user, "groups": ["system:authenticated"]}


def test_acting_with_groups_uid_and_facts(someone: KubeApi, user: str) -> None:
    acting = someone.with_headers(
        Impersonate_Group="one", Impersonate_Uid="42", **{"Impersonate-Extra-example.org%2Fscope": "all"}
    )
    assert whoami(acting) == {
        "username": user,
        "uid": "42",
        "groups": ["one", "system:authenticated"],
        "extra": {"example.org/scope": ["all"]},
    }


def test_acting_as_an_account(api: KubeApi) -> None:
    acting = api.with_headers(Impersonate_User="system:serviceaccount:default:default")
    assert whoami(acting)["groups"] == [
        "system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated",
    ]  # fmt: skip


def test_groups_need_a_user(api: KubeApi) -> None:
    answer = api.with_headers(Impersonate_Group="one").get("/api")
    assert (answer.status, answer.reason) == (400, "BadRequest")
    assert "without impersonating a user" in answer.message


@pytest.fixture
def robot(api: KubeApi, namespace: str) -> KubeApi:
    """A ServiceAccount with no rights, asked with its token."""
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    api.made(path, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}})
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    return api.with_token(api.post(f"{path}/robot/token", body).json["status"]["token"])


def test_acting_as_others_needs_the_right(robot: KubeApi, namespace: str) -> None:
    answer = robot.with_headers(Impersonate_User="admin").get(f"/api/v1/namespaces/{namespace}/pods")
    assert (answer.status, answer.reason) == (403, "Forbidden")
    assert f'User "system:serviceaccount:{namespace}:robot" cannot impersonate' in answer.message


def test_verb_impersonate_gives_it(api: KubeApi, robot: KubeApi, namespace: str, cluster_role: str) -> None:
    rule = {"verbs": ["impersonate"], "apiGroups": [""], "resources": ["users"], "resourceNames": ["jane"]}
    api.made(f"{RBAC}/clusterroles", role(cluster_role, rule, kind="ClusterRole"))
    made = binding(cluster_role, "ClusterRole", cluster_role, kind="ClusterRoleBinding")
    made["subjects"] = [{"kind": "ServiceAccount", "name": "robot", "namespace": namespace}]
    api.made(f"{RBAC}/clusterrolebindings", made)
    eventually(lambda: robot.with_headers(Impersonate_User="jane").get("/api").status == 200)
    assert robot.with_headers(Impersonate_User="john").get("/api").status == 403
    grouped = robot.with_headers(Impersonate_User="jane", Impersonate_Group="system:masters")
    assert grouped.get("/api").status == 403


def test_narrow_impersonation_counts_for_what_is_done(
    api: KubeApi, robot: KubeApi, namespace: str, cluster_role: str, roles: str
) -> None:
    rules = (
        {"verbs": ["impersonate:user-info"], "apiGroups": ["authentication.k8s.io"], "resources": ["users"]},
        {"verbs": ["impersonate-on:user-info:list"], "apiGroups": [""], "resources": ["pods"]},
    )
    api.made(f"{RBAC}/clusterroles", role(cluster_role, *rules, kind="ClusterRole"))
    made = binding(cluster_role, "ClusterRole", cluster_role, kind="ClusterRoleBinding")
    made["subjects"] = [{"kind": "ServiceAccount", "name": "robot", "namespace": namespace}]
    api.made(f"{RBAC}/clusterrolebindings", made)
    allow(api, roles, "jane", {"verbs": ["list", "get"], "apiGroups": [""], "resources": ["pods", "secrets"]})
    jane = robot.with_headers(Impersonate_User="jane")
    eventually(lambda: jane.get(f"/api/v1/namespaces/{namespace}/pods").status == 200)
    answer = jane.get(f"/api/v1/namespaces/{namespace}/secrets")
    assert answer.status == 403
    assert 'cannot impersonate-on:user-info:list resource "secrets"' in answer.message


# Who does not say who they are


def test_health_and_version_are_open(api: KubeApi) -> None:
    nobody = api.with_token("")
    for path in ("/version", "/livez", "/readyz", "/healthz"):
        assert nobody.get(path).status == 200


def test_wrong_token_is_not_anonymous(api: KubeApi) -> None:
    answer = api.with_token("wrong").get("/version")
    assert (answer.status, answer.reason) == (401, "Unauthorized")
