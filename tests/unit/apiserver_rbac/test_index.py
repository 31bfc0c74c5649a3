"""Roles and bindings in memory follow the store."""

from __future__ import annotations

from typing import Any

import msgspec

from ironbell.apiserver.access.identity import Identity
from ironbell.apiserver.access.roles import Attributes, Rule
from ironbell.apiserver.rbac.authorizer import RbacAuthorizer
from ironbell.apiserver.rbac.objects import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, ROLE_BINDINGS, ROLES
from ironbell.apiserver.store.entry import Change, Entry

ALICE = Identity("alice", ("team", "system:authenticated"))
READ_PODS = Attributes("get", "", "pods", "a", "p")


class Objects:
    """Puts objects into an index as the store does."""

    def __init__(self) -> None:
        self.authorizer = RbacAuthorizer()
        self.version = 0

    def put(self, resource: str, name: str, namespace: str = "", **value: Any) -> None:
        self.authorizer.index.apply(Change(self._entry(resource, name, namespace, value), None))

    def drop(self, resource: str, name: str, namespace: str = "") -> None:
        self.authorizer.index.apply(Change(self._entry(resource, name, namespace, {}), None, deleted=True))

    def _entry(self, resource: str, name: str, namespace: str, value: dict[str, Any]) -> Entry:
        self.version += 1
        return Entry(resource, (namespace, name), self.version, "u", msgspec.json.encode(value))

    def allows(self, identity: Identity = ALICE, wanted: Attributes = READ_PODS) -> bool:
        return self.authorizer.decide(identity, wanted).allowed


TEAM = [{"kind": "Group", "name": "team"}]
RULES = [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]


def _ref(kind: str, name: str) -> dict[str, str]:
    return {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}


def test_a_role_binding_counts_in_its_namespace() -> None:
    objects = Objects()
    objects.put(ROLES, "reader", "a", rules=RULES)
    objects.put(ROLE_BINDINGS, "b", "a", roleRef=_ref("Role", "reader"), subjects=[{"kind": "User", "name": "alice"}])
    assert objects.allows()
    assert not objects.allows(wanted=Attributes("get", "", "pods", "b", "p"))
    assert not objects.allows(wanted=Attributes("get", "", "pods"))
    assert not objects.allows(Identity("bob"))


def test_a_role_binding_may_give_a_cluster_role_in_its_namespace() -> None:
    objects = Objects()
    objects.put(CLUSTER_ROLES, "reader", rules=RULES)
    objects.put(ROLE_BINDINGS, "b", "a", roleRef=_ref("ClusterRole", "reader"), subjects=TEAM)
    assert objects.allows()
    assert not objects.allows(wanted=Attributes("get", "", "pods", "b"))


def test_a_cluster_role_binding_counts_everywhere() -> None:
    objects = Objects()
    objects.put(CLUSTER_ROLES, "reader", rules=RULES)
    subjects = [{"kind": "ServiceAccount", "name": "sa", "namespace": "ns"}, {"kind": "ServiceAccount", "name": "x"}]
    objects.put(CLUSTER_ROLE_BINDINGS, "b", roleRef=_ref("ClusterRole", "reader"), subjects=subjects)
    assert objects.allows(Identity("system:serviceaccount:ns:sa"))
    assert objects.allows(Identity("system:serviceaccount:ns:sa"), Attributes("get", "", "pods"))
    assert not objects.allows(Identity("system:serviceaccount::x"))


def test_a_service_account_without_namespace_is_that_of_the_binding() -> None:
    objects = Objects()
    objects.put(ROLES, "reader", "a", rules=RULES)
    subjects = [{"kind": "ServiceAccount", "name": "sa"}]
    objects.put(ROLE_BINDINGS, "b", "a", roleRef=_ref("Role", "reader"), subjects=subjects)
    assert objects.allows(Identity("system:serviceaccount:a:sa"))


def test_changes_and_deletions_count_at_once() -> None:
    objects = Objects()
    subjects = [{"kind": "User", "name": "alice"}]
    objects.put(CLUSTER_ROLE_BINDINGS, "b", roleRef=_ref("ClusterRole", "reader"), subjects=subjects)
    assert objects.authorizer.decide(ALICE, READ_PODS).reason == (
        'RBAC: clusterrole.rbac.authorization.k8s.io "reader" not found'
    )
    objects.put(CLUSTER_ROLES, "reader", rules=RULES)
    assert objects.allows()
    objects.put(CLUSTER_ROLE_BINDINGS, "b", roleRef=_ref("ClusterRole", "reader"), subjects=[])
    assert not objects.allows()
    objects.put(CLUSTER_ROLE_BINDINGS, "b", roleRef=_ref("ClusterRole", "reader"), subjects=subjects)
    objects.drop(CLUSTER_ROLES, "reader")
    assert not objects.allows()
    objects.drop(CLUSTER_ROLE_BINDINGS, "b")
    assert objects.authorizer.decide(ALICE, READ_PODS).reason == ""
    assert list(objects.authorizer.index.grants(ALICE, "a")) == []


def test_the_reason_names_binding_role_and_subject() -> None:
    objects = Objects()
    objects.put(CLUSTER_ROLES, "reader", rules=RULES)
    objects.put(ROLE_BINDINGS, "b", "a", roleRef=_ref("ClusterRole", "reader"), subjects=TEAM)
    assert objects.authorizer.decide(ALICE, READ_PODS).reason == (
        'RBAC: allowed by RoleBinding "b/a" of ClusterRole "reader" to Group "team"'
    )


def test_what_is_held_is_listed() -> None:
    objects = Objects()
    objects.put(CLUSTER_ROLES, "reader", rules=RULES)
    objects.put(ROLE_BINDINGS, "b", "a", roleRef=_ref("ClusterRole", "reader"), subjects=TEAM)
    assert list(objects.authorizer.rules(ALICE, "a")) == [Rule(("get",), ("pods",), ("",))]
    assert list(objects.authorizer.rules(ALICE, "")) == []


def test_objects_of_another_shape_give_nothing() -> None:
    objects = Objects()
    objects.put(CLUSTER_ROLES, "reader", rules={"verbs": 3})
    objects.put(CLUSTER_ROLE_BINDINGS, "b", roleRef="reader", subjects=7)
    assert not objects.allows()


def test_a_request_costs_the_bindings_of_its_subject_only() -> None:
    objects = Objects()
    objects.put(CLUSTER_ROLES, "reader", rules=RULES)
    for number in range(2000):
        subjects = [{"kind": "User", "name": f"u{number}"}]
        objects.put(ROLE_BINDINGS, f"b{number}", "a", roleRef=_ref("ClusterRole", "reader"), subjects=subjects)
    assert len(list(objects.authorizer.index.grants(Identity("u7"), "a"))) == 1
    assert objects.allows(Identity("u7"))
