"""Whether rules cover others, and how what is missing is told."""

from __future__ import annotations

import pytest

from ironbell.apiserver.access.roles import EVERYTHING, Attributes, Rule, url_covers
from ironbell.apiserver.rbac.cover import describe, listed, missing

PODS = Rule(("get", "list"), ("pods",), ("",))

COVERED = [
    (EVERYTHING, PODS),
    ((PODS,), Rule(("get",), ("pods",), ("",))),
    ((PODS,), Rule(("get",), ("pods",), ("",), ("a",))),
    ((Rule(("*",), ("*/status",), ("apps",)),), Rule(("patch",), ("deployments/status",), ("apps",))),
    ((Rule(("get",), ("pods",), ("",), ("a", "b")),), Rule(("get",), ("pods",), ("",), ("b",))),
    ((Rule(("get",), (), (), (), ("/logs/*",)),), Rule(("get",), (), (), (), ("/logs/today",))),
    ((PODS, Rule(("get", "list"), ("pods",), ("apps",))), Rule(("list",), ("pods",), ("", "apps"))),
]
NOT_COVERED = [
    ((PODS,), Rule(("delete",), ("pods",), ("",))),
    ((PODS,), Rule(("get",), ("pods",), ("apps",))),
    ((PODS,), Rule(("*",), ("pods",), ("",))),
    ((PODS,), Rule(("get",), ("pods/log",), ("",))),
    ((Rule(("get",), ("pods",), ("",), ("a",)),), Rule(("get",), ("pods",), ("",))),
    ((Rule(("*",), ("*",), ("*",)),), Rule(("get",), (), (), (), ("/metrics",))),
    ((), PODS),
]


@pytest.mark.parametrize(("owned", "wanted"), COVERED)
def test_what_is_held_covers(owned: tuple[Rule, ...], wanted: Rule) -> None:
    assert missing(owned, [wanted]) == []


@pytest.mark.parametrize(("owned", "wanted"), NOT_COVERED)
def test_what_is_not_held_is_missing(owned: tuple[Rule, ...], wanted: Rule) -> None:
    assert missing(owned, [wanted])


def test_missing_verbs_of_one_resource_are_told_together() -> None:
    lacking = missing((), [Rule(("get", "list"), ("pods", "secrets"), ("",)), Rule(("get",), (), (), (), ("/x",))])
    assert describe(lacking) == (
        '{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}\n'
        '{APIGroups:[""], Resources:["secrets"], Verbs:["get" "list"]}\n'
        '{NonResourceURLs:["/x"], Verbs:["get"]}'
    )


def test_names_are_told() -> None:
    lacking = missing((), [Rule(("get",), ("pods",), ("apps",), ("a",))])
    assert describe(lacking) == '{APIGroups:["apps"], Resources:["pods"], ResourceNames:["a"], Verbs:["get"]}'


def test_lists_are_told_as_go_prints_them() -> None:
    assert listed(["a", 'b"c']) == '["a" "b\\"c"]'
    assert listed([]) == "[]"


@pytest.mark.parametrize(
    ("pattern", "path", "covers"),
    [("*", "/a", True), ("/a/*", "/a/b/c", True), ("/a/*", "/a", False), ("/a", "/a/", False), ("/a", "/a", True)],
)
def test_paths(pattern: str, path: str, covers: bool) -> None:
    assert url_covers(pattern, path) is covers
    assert Rule(("get",), (), (), (), (pattern,)).allows(Attributes("get", path=path)) is covers


def test_a_rule_for_resources_says_nothing_about_paths() -> None:
    assert not Rule(("*",), ("*",), ("*",)).allows(Attributes("get", path="/metrics"))
