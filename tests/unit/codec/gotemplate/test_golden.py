"""Hand-made templates give what the real text/template with sprig gave when it was asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from ironbell.codec.gotemplate import Int64, TemplateError, render
from ironbell.codec.gotemplate.golib.gojson import floats
from ironbell.contract.servers.template_data import template_data

_GOLDEN = msgspec.json.decode((Path(__file__).parent / "golden.json").read_bytes())


def _go_value(value: Any) -> Any:
    if isinstance(value, dict):
        return Int64(value["$int"]) if set(value) == {"$int"} else {key: _go_value(item) for key, item in value.items()}
    return [_go_value(item) for item in value] if isinstance(value, list) else floats(value)


def _data() -> dict[str, Any]:
    data = template_data({"spec": _GOLDEN["input"]["spec"]})
    return {**_go_value(_GOLDEN["input"]["data"]), "Hardware": data["Hardware"], "hardware": data["hardware"]}


@pytest.mark.parametrize("case", _GOLDEN["cases"], ids=lambda case: case["template"][:40])
def test_templates_render_as_go_rendered_them(case: dict[str, Any]) -> None:
    if case["output"] is None:
        with pytest.raises(TemplateError):
            render(case["template"], _data())
    else:
        assert render(case["template"], _data()) == case["output"]
