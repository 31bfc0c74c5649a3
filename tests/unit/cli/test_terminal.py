"""Nothing that was stored reaches the terminal as a control sequence."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from ironbell.base.printable import one_line, printable
from ironbell.cli.objects.tables import table_text
from ironbell.operations.why.text import explain

HOSTILE = "boo \x1b[2J\x00\x9b31m\r end"
SHOWN = "boo \\x1b[2J\\x00\\x9b31m\\x0d end"


def test_why_writes_control_characters_out() -> None:
    action = {"name": "a", "state": "FAILED", "message": HOSTILE}
    workflow = {
        "kind": "Workflow",
        "metadata": {"name": "w", "namespace": "default"},
        "status": {"state": "FAILED", "tasks": [{"actions": [action]}]},
    }
    text = explain(workflow, [], datetime(2026, 1, 1, tzinfo=UTC)).text()
    assert SHOWN in text
    assert "\x1b" not in text


def test_a_table_keeps_a_row_in_its_line() -> None:
    table = {
        "columnDefinitions": [{"name": "Message"}],
        "rows": [{"cells": [HOSTILE + "\nsecond"], "object": {"metadata": {}}}],
    }
    assert table_text([table], wide=False, with_namespace=False) == f"MESSAGE\n{SHOWN}\\nsecond\n"


@given(st.text())
def test_no_control_character_is_left(text: str) -> None:
    assert "\n" not in one_line(text)
    assert all(character.isprintable() or character in "\t\n" or ord(character) > 0x9F for character in printable(text))
