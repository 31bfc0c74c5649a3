"""What makes RBAC objects valid."""

from __future__ import annotations

from typing import Any

import pytest

from ironbell.apiserver.rbac.strategies import BindingRules, RoleRules

GROUP = "rbac.authorization.k8s.io"
META = {"metadata": {"name": "x"}}
ROLE_REF = {"apiGroup": GROUP, "kind": "ClusterRole", "name": "r"}

_NO_VERBS = "rules[0].verbs: Required value: verbs must contain at least one value"
_NO_GROUP = "rules[0].apiGroups: Required value: resource rules must supply at least one api group"
_NO_RESOURCE = "rules[0].resources: Required value: resource rules must supply at least one resource"
_BOTH = "rules cannot apply to both regular resources and non-resource URLs"
_KINDS = '"ServiceAccount", "User", "Group"'

ROLE_FAULTS: list[tuple[dict[str, Any], bool, list[str]]] = [
    ({"apiGroups": [""], "resources": ["pods"]}, True, [_NO_VERBS]),
    ({"verbs": ["get"], "resources": ["pods"]}, True, [_NO_GROUP]),
    ({"verbs": ["get"], "apiGroups": [""]}, True, [_NO_RESOURCE]),
    (
        {"verbs": ["get"], "nonResourceURLs": ["/a"]}, True,
        ['rules[0].nonResourceURLs: Invalid value: ["/a"]: namespaced rules cannot apply to non-resource URLs'],
    ),
    ({"verbs": ["get"], "nonResourceURLs": ["/a"]}, False, []),
    (
        {"verbs": ["get"], "nonResourceURLs": ["/a"], "apiGroups": [""]}, False,
        [f'rules[0].nonResourceURLs: Invalid value: ["/a"]: {_BOTH}'],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "namespaced", "faults"), ROLE_FAULTS)
def test_rules(rule: dict[str, Any], namespaced: bool, faults: list[str]) -> None:
    result = RoleRules(namespaced=namespaced).validate({**META, "rules": [rule]}, None)
    assert [str(error) for error in result] == faults


SUBJECT_FAULTS: list[tuple[dict[str, Any], bool, list[str]]] = [
    ({"kind": "User", "name": "a"}, False, []),
    ({"kind": "ServiceAccount", "name": "a"}, True, []),
    ({"kind": "ServiceAccount", "name": "a"}, False, ["subjects[0].namespace: Required value"]),
    (
        {"kind": "ServiceAccount", "name": "a", "apiGroup": "x"},
        True,
        ['subjects[0].apiGroup: Unsupported value: "x": supported values: ""'],
    ),
    ({"kind": "Group"}, True, ["subjects[0].name: Required value"]),
    ({"kind": "Pod", "name": "a"}, True, [f'subjects[0].kind: Unsupported value: "Pod": supported values: {_KINDS}']),
]  # fmt: skip


@pytest.mark.parametrize(("subject", "namespaced", "faults"), SUBJECT_FAULTS)
def test_subjects(subject: dict[str, Any], namespaced: bool, faults: list[str]) -> None:
    rules, value = BindingRules(namespaced=namespaced), {**META, "roleRef": dict(ROLE_REF), "subjects": [subject]}
    rules.prepare_create(value)
    assert [str(error) for error in rules.validate(value, None)] == faults


def test_the_group_is_filled_in() -> None:
    value: dict[str, Any] = {
        "roleRef": {"kind": "Role", "name": "r"},
        "subjects": [{"kind": "User", "name": "a"}, {"kind": "ServiceAccount", "name": "b"}],
    }
    BindingRules(namespaced=True).prepare_create(value)
    assert value["roleRef"]["apiGroup"] == GROUP
    assert [subject.get("apiGroup") for subject in value["subjects"]] == [GROUP, None]


def test_a_cluster_role_binding_names_a_cluster_role() -> None:
    value = {**META, "roleRef": {**ROLE_REF, "kind": "Role", "name": "a/b"}}
    assert [str(error) for error in BindingRules(namespaced=False).validate(value, None)] == [
        'roleRef.kind: Unsupported value: "Role": supported values: "ClusterRole"',
        "roleRef.name: Invalid value: \"a/b\": may not contain '/'",
    ]


def test_what_is_bound_never_changes() -> None:
    old, new = {**META, "roleRef": ROLE_REF}, {**META, "roleRef": {**ROLE_REF, "name": "other"}}
    result = BindingRules(namespaced=False).validate(new, old)
    assert [str(error) for error in result] == [
        (
            'roleRef: Invalid value: {"APIGroup":"rbac.authorization.k8s.io","Kind":"ClusterRole","Name":"other"}: '
            "cannot change roleRef"
        )
    ]


def test_an_aggregation_rule_selects() -> None:
    result = RoleRules(namespaced=False).validate({**META, "aggregationRule": {"clusterRoleSelectors": []}}, None)
    assert [error.field for error in result] == ["aggregationRule.clusterRoleSelectors"]
