from __future__ import annotations

from typing import Any

from ironbell.api.tinkerbell.template import TEMPLATE
from ironbell.base.errors import IronbellError, Retry
from ironbell.controllers.tink.template import Parsed, TemplateReconciler, resolvers
from ironbell.kube.testing import World, crash_check


def problem(_world: World, query: Parsed) -> str:
    return "template line 2: unexpected end" if "bad" in query.text else ""


def world(data: str) -> World:
    made = World(resolvers={Parsed: problem})
    made.add(TEMPLATE, {"metadata": {"name": "t", "namespace": "default"}, "spec": {"data": data}})
    return made


def test_defect_7_a_text_that_parses_makes_the_template_ready() -> None:
    end = crash_check(TemplateReconciler(), world("good"))
    assert end.require(TEMPLATE, "default", "t").status.state == "Ready"
    assert end.emitted == []


def test_a_text_that_does_not_parse_is_told_with_its_line_and_forgotten_once_mended() -> None:
    end = crash_check(TemplateReconciler(), world("bad"))
    template = end.require(TEMPLATE, "default", "t")
    assert template.status.state == "Error"
    assert "line 2" in template.metadata.annotations["ironbell.dev/error"]
    assert [(e.reason, e.type) for e in end.emitted] == [("TemplateInvalid", "Warning")]
    end.change(TEMPLATE, template, {"spec": {"data": "good"}})
    end.settle(TemplateReconciler())
    mended = end.require(TEMPLATE, "default", "t")
    assert (mended.status.state, mended.metadata.annotations) == ("Ready", {})


async def test_the_asker_turns_errors_of_the_engine_into_answers() -> None:
    async def parse(text: str, _namespace: str) -> None:
        if text:
            raise IronbellError("template line 1: no", retry=Retry.NEVER)

    ask: Any = resolvers(parse)[Parsed]
    assert await ask(Parsed("x")) == "template line 1: no"
    assert await ask(Parsed("")) == ""
