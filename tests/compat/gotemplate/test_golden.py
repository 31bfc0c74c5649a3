"""The hand-made templates' recorded results are what Go gives today."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

_GOLDEN = Path(__file__).parents[2] / "unit" / "codec" / "gotemplate" / "golden.json"


def test_recorded_results_are_those_of_go(oracle: Callable[..., list[Any]]) -> None:
    golden = msgspec.json.decode(_GOLDEN.read_bytes())
    cases = [{"mode": "render", "text": case["template"], **golden["input"]} for case in golden["cases"]]
    for case, answer in zip(golden["cases"], oracle(cases), strict=True):
        output = None if answer.output is None else answer.output.decode("utf-8", "surrogateescape")
        assert output == case["output"], f"{case['template']}\nGo says: {answer.error}"
