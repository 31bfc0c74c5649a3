"""docs/workflows.md tells what the code does: the diagram is drawn from the table, and no reason is left out."""

from __future__ import annotations

from pathlib import Path

import pytest

from ironbell.bmc.driver import BmcProblem
from ironbell.controllers.rufio import names as rufio
from ironbell.controllers.tink import names as tink
from ironbell.controllers.tink import states

TEXT = (Path(__file__).parents[4] / "docs" / "workflows.md").read_text()


def test_the_diagram_is_drawn_from_the_table() -> None:
    assert f"```mermaid\n{states.diagram()}\n```" in TEXT


@pytest.mark.parametrize("reason", [*tink.Reason, *BmcProblem])
def test_every_reason_is_described(reason: str) -> None:
    assert f"| `{reason}` |" in TEXT


@pytest.mark.parametrize(
    "name",
    [
        value
        for module in (tink, rufio)
        for key, value in vars(module).items()
        if key.startswith(("ANNOTATION_", "FINALIZER_"))
    ],
)
def test_every_annotation_is_described(name: str) -> None:
    assert f"`{name}" in TEXT
