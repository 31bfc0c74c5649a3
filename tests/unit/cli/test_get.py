"""`ironbell get`: one document whatever is asked for."""

from __future__ import annotations

from typing import Any

import msgspec

from ironbell.api import core
from ironbell.api.kind import Kind
from ironbell.api.tinkerbell import HARDWARE, TEMPLATE
from ironbell.cli.objects.get import objects_text
from ironbell.codec import goyaml
from ironbell.operations.kinds import kinds_named


def answer(kind: Kind[Any], *names: str) -> dict[str, Any]:
    return {"apiVersion": kind.api_version, "kind": f"{kind.kind}List", "items": [one(name) for name in names]}


def one(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}}


def test_several_kinds_are_one_list() -> None:
    found: list[tuple[Kind[Any], list[dict[str, Any]]]] = [
        (HARDWARE, [answer(HARDWARE, "a", "b")]),
        (TEMPLATE, [answer(TEMPLATE, "t")]),
    ]
    document = msgspec.json.decode(objects_text(found, output="json"))
    assert document["kind"] == "List"
    assert [item["kind"] for item in document["items"]] == ["Hardware", "Hardware", "Template"]
    assert goyaml.load(objects_text(found, output="yaml")) == document


def test_one_that_was_named_stands_alone() -> None:
    document = msgspec.json.decode(objects_text([(HARDWARE, [one("a")])], output="json"))
    assert (document["kind"], document["metadata"]["name"]) == ("Hardware", "a")


def test_a_list_of_one_or_none_is_a_list() -> None:
    for names in ((), ("a",)):
        document = msgspec.json.decode(objects_text([(HARDWARE, [answer(HARDWARE, *names)])], output="json"))
        assert document["kind"] == "List"
        assert len(document["items"]) == len(names)


def test_names_carry_their_group_if_there_is_one() -> None:
    found: list[tuple[Kind[Any], list[dict[str, Any]]]] = [
        (HARDWARE, [answer(HARDWARE, "a")]),
        (core.SECRET, [answer(core.SECRET, "s")]),
    ]
    assert objects_text(found, output="name") == "hardware.tinkerbell.org/a\nsecrets/s\n"


def test_words_for_kinds_of_the_core() -> None:
    assert kinds_named("sa")[0] is core.SERVICE_ACCOUNT
    assert kinds_named("crd")[0] is core.CUSTOM_RESOURCE_DEFINITION
