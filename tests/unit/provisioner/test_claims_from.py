"""Who may claim the servers of a namespace."""

from __future__ import annotations

import pytest

from ironbell.api.core import NAMESPACE, Namespace
from ironbell.provisioner.claims_from import CLAIMS_FROM, claim_rules, rules_changed


def namespace(name: str, text: str | None = None) -> Namespace:
    annotations = {} if text is None else {CLAIMS_FROM: text}
    return NAMESPACE.convert({"metadata": {"name": name, "annotations": annotations}})


@pytest.mark.parametrize(
    ("text", "claimant", "allowed"),
    [
        ("a", "a", True),
        ("x, a ,y", "a", True),
        ("*", "a", True),
        ("aa,x", "a", False),
        ("", "a", False),
        ("x", "servers", True),
        (None, "a", False),
    ],
)
def test_a_namespace_names_those_who_may_claim_its_servers(text: str | None, claimant: str, allowed: bool) -> None:
    rules = claim_rules([namespace("servers", text), namespace("elsewhere", "")])
    assert rules.allow("servers", claimant) is allowed
    assert (rules.problem("servers", claimant) == "") is allowed


def test_without_any_annotation_everybody_may_claim() -> None:
    rules = claim_rules([namespace("servers"), namespace("a")])
    assert not rules.are_set
    assert rules.allow("servers", "a")


def test_only_what_a_namespace_says_matters() -> None:
    assert not rules_changed(namespace("a", "x"), namespace("a", "x"))
    assert not rules_changed(None, namespace("a"))
    assert rules_changed(namespace("a"), namespace("a", ""))
    assert rules_changed(namespace("a", "x"), None)
