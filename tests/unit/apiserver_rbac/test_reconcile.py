"""Default roles are put back, and what administrators added stays."""

from __future__ import annotations

from typing import Any

import msgspec

from ironbell.apiserver.rbac.aggregation import collected
from ironbell.apiserver.rbac.bootstrap import reconciled
from ironbell.apiserver.rbac.objects import read_role
from ironbell.apiserver.store.entry import Entry

GET = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}
LIST = {"verbs": ["list"], "apiGroups": [""], "resources": ["pods"]}


def _role(*rules: dict[str, Any], annotations: dict[str, str] | None = None) -> dict[str, Any]:
    return {"metadata": {"name": "r", "annotations": annotations or {"a": "b"}}, "rules": list(rules)}


def test_a_role_that_allows_enough_is_left_alone() -> None:
    assert reconciled(_role(GET, LIST), _role(GET)) is None


def test_missing_rules_are_added() -> None:
    after = reconciled(_role(LIST), _role(GET))
    assert after is not None
    assert after["rules"] == [LIST, GET]


def test_an_exact_role_loses_what_was_added() -> None:
    after = reconciled(_role(GET, LIST), _role(GET), exact=True)
    assert after is not None
    assert after["rules"] == [GET]


def test_a_protected_role_stays_as_it_is() -> None:
    protected = _role(annotations={"rbac.authorization.kubernetes.io/autoupdate": "false"})
    assert reconciled(protected, _role(GET)) is None


def test_missing_subjects_are_added() -> None:
    a, b = {"kind": "Group", "name": "a"}, {"kind": "Group", "name": "b"}
    existing = {"metadata": {"name": "b"}, "subjects": [a]}
    after = reconciled(existing, {"metadata": {"name": "b"}, "subjects": [b]})
    assert after is not None
    assert after["subjects"] == [a, b]


def test_missing_labels_are_added_and_others_kept() -> None:
    existing = {"metadata": {"name": "r", "labels": {"mine": "1", "x": "theirs"}}, "rules": []}
    after = reconciled(existing, {"metadata": {"name": "r", "labels": {"x": "y", "z": "1"}}, "rules": []})
    assert after is not None
    assert after["metadata"]["labels"] == {"mine": "1", "x": "theirs", "z": "1"}


def test_rules_are_collected_once_by_label() -> None:
    def entry(name: str, labels: dict[str, str], *rules: dict[str, Any]) -> Entry:
        return Entry("clusterroles", ("", name), 1, "u", msgspec.json.encode({"rules": rules}), labels)

    selector = {
        "clusterRoleSelectors": [
            {"matchLabels": {"to": "view"}},
            {"matchExpressions": [{"key": "x", "operator": "Exists"}]},
        ]
    }
    rule = read_role(msgspec.json.encode({"aggregationRule": selector})).aggregationRule
    assert rule is not None
    roles = [
        entry("b", {"to": "view"}, LIST),
        entry("a", {"to": "view"}, GET),
        entry("c", {"x": ""}, GET),
        entry("d", {}),
    ]
    assert [element.verbs for element in collected(rule, roles)] == [("get",), ("list",)]
