"""The action `banner`, run as the agent runs it: in a process of its own."""

from __future__ import annotations

from ironbell.agent import builtins
from ironbell.agent.execution import Ending, Job, Listener, Outcome, execute


async def banner(**environment: str) -> tuple[Outcome, list[str]]:
    lines: list[str] = []
    listener = Listener(line=lambda _error, text: lines.append(text), progress=lambda _note: None)
    action = builtins.resolve("quay.io/example/banner:v1", command=(), environment=environment)
    return await execute(Job(action.name, environment=environment), listener), lines


async def test_the_text_is_printed_as_often_as_requested() -> None:
    outcome, lines = await banner(TEXT="hello", TIMES="2")
    assert outcome.ending is Ending.SUCCESS
    assert lines == ["hello", "hello"]


async def test_a_missing_variable_is_named() -> None:
    outcome, _ = await banner()
    assert outcome.ending is Ending.FAILED
    assert "TEXT is not set" in outcome.message
