"""Roles as objects: what they allow, and what nobody may give away."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ironbell.api.client import Forbidden, Invalid, NotFound
from ironbell.api.kind import Collection
from ironbell.apiserver.access.identity import Identity
from ironbell.apiserver.access.roles import Attributes, Binding, Role, RoleAuthorizer, Rule
from ironbell.apiserver.core import ApiServer
from ironbell.base.clock import ManualClock
from ironbell.base.randomness import SeededRandomness

RBAC = "rbac.authorization.k8s.io"
ROLES = Collection(RBAC, "v1", "roles", namespaced=True)
ROLE_BINDINGS = Collection(RBAC, "v1", "rolebindings", namespaced=True)
CLUSTER_ROLES = Collection(RBAC, "v1", "clusterroles", namespaced=False)
CLUSTER_ROLE_BINDINGS = Collection(RBAC, "v1", "clusterrolebindings", namespaced=False)

ALICE = Identity("alice", ("team", "system:authenticated"))
BOB = Identity("bob", ("system:authenticated",))
GET_PODS = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}

As = Callable[[Identity], Any]


def role(name: str, *rules: dict[str, Any], kind: str = "Role", **more: Any) -> dict[str, Any]:
    return {"apiVersion": f"{RBAC}/v1", "kind": kind, "metadata": {"name": name}, "rules": list(rules), **more}


def binding(name: str, role_kind: str, role_name: str, *users: str, kind: str = "RoleBinding") -> dict[str, Any]:
    subjects = [{"kind": "User", "name": user} for user in users]
    ref = {"apiGroup": RBAC, "kind": role_kind, "name": role_name}
    meta = {"name": name}
    return {"apiVersion": f"{RBAC}/v1", "kind": kind, "metadata": meta, "roleRef": ref, "subjects": subjects}


async def test_a_bound_role_allows_at_once(admin: Any, as_user: As, config_maps: Collection) -> None:
    alice = as_user(ALICE)
    with pytest.raises(Forbidden):
        await alice.names(config_maps, "default")
    await admin.create(ROLE_BINDINGS, binding("b", "ClusterRole", "view", "alice"))
    await admin.settle()
    assert await alice.names(config_maps, "default") == []
    with pytest.raises(Forbidden):
        await alice.names(config_maps, "kube-system")
    await admin.delete(ROLE_BINDINGS, "b")
    with pytest.raises(Forbidden):
        await alice.names(config_maps, "default")


async def test_default_roles_are_there_and_collect(admin: Any) -> None:
    await admin.settle()
    names = await admin.names(CLUSTER_ROLES)
    assert {"cluster-admin", "admin", "edit", "view", "system:discovery", "system:basic-user"} <= set(names)
    admin_role = await admin.get(CLUSTER_ROLES, "admin", namespace="")
    resources = {resource for rule in admin_role["rules"] for resource in rule["resources"]}
    assert {"pods", "secrets", "roles", "pods/exec", "pods/log"} <= resources
    managers = {(entry["manager"], entry["operation"]) for entry in admin_role["metadata"]["managedFields"]}
    assert ("clusterrole-aggregation-controller", "Apply") in managers


async def test_a_labelled_role_joins_the_collecting_ones(admin: Any) -> None:
    more = role("more", {"verbs": ["get"], "apiGroups": ["x"], "resources": ["gadgets"]}, kind="ClusterRole")
    more["metadata"]["labels"] = {"rbac.authorization.k8s.io/aggregate-to-view": "true"}
    await admin.create(CLUSTER_ROLES, more, namespace="")
    await admin.settle()
    for name in ("view", "edit", "admin"):
        result = await admin.get(CLUSTER_ROLES, name, namespace="")
        assert more["rules"][0] in result["rules"]
    await admin.delete(CLUSTER_ROLES, "more", namespace="")
    await admin.settle()
    assert more["rules"][0] not in (await admin.get(CLUSTER_ROLES, "view", namespace=""))["rules"]


@pytest.fixture
async def alice(admin: Any, as_user: As) -> Any:
    """Somebody who may write roles and bindings everywhere, read pods, and nothing else."""
    rules = (
        {"verbs": ["*"], "apiGroups": [RBAC], "resources": ["*"], "resourceNames": []},
        GET_PODS,
    )
    await admin.create(CLUSTER_ROLES, role("writer", *rules, kind="ClusterRole"), namespace="")
    created = binding("writer", "ClusterRole", "writer", "alice", kind="ClusterRoleBinding")
    await admin.create(CLUSTER_ROLE_BINDINGS, created, namespace="")
    return as_user(ALICE)


async def test_nobody_gives_what_they_do_not_hold(admin: Any, as_user: As) -> None:
    rules = [{"verbs": ["create", "update", "patch"], "apiGroups": [RBAC], "resources": ["roles"]}, GET_PODS]
    await admin.create(CLUSTER_ROLES, role("writer", *rules, kind="ClusterRole"), namespace="")
    created = binding("writer", "ClusterRole", "writer", "alice", kind="ClusterRoleBinding")
    await admin.create(CLUSTER_ROLE_BINDINGS, created, namespace="")
    alice = as_user(ALICE)
    await alice.create(ROLES, role("held", GET_PODS))
    expected = {"verbs": ["get", "delete"], "apiGroups": [""], "resources": ["pods", "secrets"]}
    with pytest.raises(Forbidden) as raised:
        await alice.create(ROLES, role("more", expected))
    assert raised.value.message == (
        'roles.rbac.authorization.k8s.io "more" is forbidden: user "alice" (groups=["team" "system:authenticated"]) '
        "is attempting to grant RBAC permissions not currently held:\n"
        '{APIGroups:[""], Resources:["pods"], Verbs:["delete"]}\n'
        '{APIGroups:[""], Resources:["secrets"], Verbs:["get" "delete"]}'
    )
    with pytest.raises(Forbidden, match="not currently held"):
        await alice.patch(ROLES, "held", {"rules": [expected]})


async def test_who_may_escalate_does(alice: Any) -> None:
    await alice.create(ROLES, role("all", {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}))


async def test_collecting_roles_need_everything(admin: Any, as_user: As) -> None:
    rules = [{"verbs": ["create"], "apiGroups": [RBAC], "resources": ["clusterroles"]}]
    await admin.create(CLUSTER_ROLES, role("writer", *rules, kind="ClusterRole"), namespace="")
    created = binding("writer", "ClusterRole", "writer", "alice", kind="ClusterRoleBinding")
    await admin.create(CLUSTER_ROLE_BINDINGS, created, namespace="")
    collecting = role("c", kind="ClusterRole", aggregationRule={"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]})
    with pytest.raises(Forbidden, match="must have cluster-admin privileges to use the aggregationRule"):
        await as_user(ALICE).create(CLUSTER_ROLES, collecting, namespace="")


async def test_binding_needs_the_role_or_the_verb_bind(admin: Any, as_user: As) -> None:
    rules = [{"verbs": ["create"], "apiGroups": [RBAC], "resources": ["rolebindings"]}]
    await admin.create(ROLES, role("binder", *rules))
    await admin.create(ROLE_BINDINGS, binding("binder", "Role", "binder", "alice"))
    alice = as_user(ALICE)
    with pytest.raises(Forbidden, match="not currently held"):
        await alice.create(ROLE_BINDINGS, binding("b", "ClusterRole", "cluster-admin", "bob"))
    with pytest.raises(NotFound, match=r'rolebindings.* "gone" not found'):
        await alice.create(ROLE_BINDINGS, binding("b", "ClusterRole", "gone", "bob"))
    bind = {"verbs": ["bind"], "apiGroups": [RBAC], "resources": ["clusterroles"], "resourceNames": ["cluster-admin"]}
    await admin.patch(ROLES, "binder", {"rules": [*rules, bind]})
    await alice.create(ROLE_BINDINGS, binding("b", "ClusterRole", "cluster-admin", "bob"))


async def test_what_is_bound_stays(admin: Any) -> None:
    await admin.create(ROLE_BINDINGS, binding("b", "ClusterRole", "view", "alice"))
    with pytest.raises(Invalid, match="cannot change roleRef"):
        await admin.patch(ROLE_BINDINGS, "b", {"roleRef": {"name": "edit"}})


async def test_an_impossible_role_is_refused(admin: Any) -> None:
    with pytest.raises(Invalid) as raised:
        await admin.create(ROLES, role("r", {"verbs": ["get"]}))
    assert raised.value.message == (
        'Role.rbac.authorization.k8s.io "r" is invalid: [rules[0].apiGroups: Required value: resource rules must '
        "supply at least one api group, rules[0].resources: Required value: resource rules must supply at least one "
        "resource]"
    )


async def _open(path: Path, authorizer: RoleAuthorizer | None = None) -> Any:
    return ApiServer.open(path, clock=ManualClock(), randomness=SeededRandomness(1), authorizer=authorizer)


async def test_default_roles_are_put_back_at_start(tmp_path: Path, as_user: As) -> None:
    caller = type(as_user(ALICE))
    async with await _open(tmp_path / "api.db") as server:
        admin = caller(server)
        await admin.settle()
        await admin.patch(CLUSTER_ROLES, "system:discovery", {"rules": [GET_PODS]}, namespace="")
        await admin.delete(CLUSTER_ROLE_BINDINGS, "system:basic-user", namespace="")
        kept = {"metadata": {"annotations": {"rbac.authorization.kubernetes.io/autoupdate": "false"}}, "rules": []}
        await admin.patch(CLUSTER_ROLES, "system:monitoring", kept, namespace="")
    async with await _open(tmp_path / "api.db") as server:
        admin = caller(server)
        rules = (await admin.get(CLUSTER_ROLES, "system:discovery", namespace=""))["rules"]
        assert rules[0] == GET_PODS
        assert len(rules) > 1
        assert (await admin.get(CLUSTER_ROLES, "system:monitoring", namespace="")).get("rules") is None
        assert await admin.get(CLUSTER_ROLE_BINDINGS, "system:basic-user", namespace="")
        version = server.resource_version
    async with await _open(tmp_path / "api.db") as server:
        assert server.resource_version == version


async def test_roles_of_the_program_are_shown_and_count_without_their_objects(tmp_path: Path, as_user: As) -> None:
    caller, authorizer = type(as_user(ALICE)), RoleAuthorizer()
    worker = Identity("system:serviceaccount:ns:worker")
    authorizer.grant(Role("worker", (Rule(("get",), ("pods",)),)), [Binding("worker", users=(worker.user,))])
    async with await _open(tmp_path / "api.db", authorizer) as server:
        admin = caller(server)
        assert (await admin.get(CLUSTER_ROLES, "worker", namespace=""))["rules"] == [GET_PODS]
        subjects = (await admin.get(CLUSTER_ROLE_BINDINGS, "worker", namespace=""))["subjects"]
        assert subjects == [{"kind": "ServiceAccount", "name": "worker", "namespace": "ns"}]
        await admin.delete(CLUSTER_ROLES, "worker", namespace="")
        assert server.authorizer.decide(worker, Attributes("get", "", "pods")).allowed
