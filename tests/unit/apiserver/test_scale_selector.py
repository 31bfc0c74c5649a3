"""What a Scale says of the objects that are counted."""

from __future__ import annotations

from typing import Any

import pytest

from ironbell.apiserver.verbs.scale import selector_text


@pytest.mark.parametrize(
    ("selector", "text"),
    [
        ({"matchLabels": {"b": "2", "a": "1"}}, "a=1,b=2"),
        ({"app": "web"}, "app=web"),
        ({"matchExpressions": [{"key": "a", "operator": "In", "values": ["y", "x"]}]}, "a in (x,y)"),
        ({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["x"]}]}, "a notin (x)"),
        (
            {
                "matchLabels": {"m": "1"},
                "matchExpressions": [{"key": "z", "operator": "Exists"}, {"key": "a", "operator": "DoesNotExist"}],
            },
            "!a,m=1,z",
        ),
    ],
)
def test_selectors_are_written_as_in_a_query(selector: dict[str, Any], text: str) -> None:
    assert selector_text(selector) == text
