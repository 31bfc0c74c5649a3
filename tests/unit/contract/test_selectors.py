"""Label selectors of API objects."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from ironbell.base.labels import SelectorError
from ironbell.contract.selectors import compiled, matches


@dataclass
class Expression:
    key: str
    operator: str
    values: list[str] = field(default_factory=list)


@dataclass
class Selector:
    match_labels: dict[str, str] = field(default_factory=dict)
    match_expressions: list[Expression] = field(default_factory=list)


@pytest.mark.parametrize(
    ("selector", "labels", "expected"),
    [
        (None, {"a": "b"}, True),
        (Selector(), {}, True),
        (Selector({"a": "b"}), {"a": "b", "c": "d"}, True),
        (Selector({"a": "b"}), {"a": "c"}, False),
        (Selector({"a": ""}), {"a": ""}, True),
        (Selector({"a": ""}), {}, False),
        (Selector({"a": "b", "c": "d"}), {"a": "b"}, False),
        (Selector({}, [Expression("a", "In", ["x", "y"])]), {"a": "y"}, True),
        (Selector({}, [Expression("a", "In", ["x", "y"])]), {}, False),
        (Selector({}, [Expression("a", "NotIn", ["x"])]), {}, True),
        (Selector({}, [Expression("a", "NotIn", ["x"])]), {"a": "x"}, False),
        (Selector({}, [Expression("ex.io/a", "Exists")]), {"ex.io/a": ""}, True),
        (Selector({}, [Expression("a", "Exists")]), {"b": ""}, False),
        (Selector({}, [Expression("a", "DoesNotExist")]), {"b": ""}, True),
        (Selector({}, [Expression("a", "DoesNotExist")]), {"a": ""}, False),
        (Selector({"z": "1"}, [Expression("a", "Exists")]), {"a": "", "z": "2"}, False),
    ],
)
def test_matching(selector: Selector | None, labels: dict[str, str], expected: bool) -> None:
    assert matches(selector, labels) is expected


@pytest.mark.parametrize(
    ("selector", "told"),
    [
        (Selector({}, [Expression("a", "Near", ["x"])]), '"Near" is not a valid label selector operator'),
        (Selector({}, [Expression("a", "In")]), "values set can't be empty"),
        (Selector({}, [Expression("a", "Exists", ["x"])]), "values set must be empty"),
        (Selector({}, [Expression("-a", "Exists")]), "must be a label key"),
        (Selector({"UPPER.io/a": "x"}), "must be a label key"),
        (Selector({"a": "no spaces"}), "must be empty or a label value"),
    ],
)
def test_what_is_no_selector_is_refused(selector: Selector, told: str) -> None:
    with pytest.raises(SelectorError, match=told):
        compiled(selector)
