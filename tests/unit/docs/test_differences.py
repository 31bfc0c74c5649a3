"""What differs from kube-apiserver is said, and what is said is tested."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[3]


def marked() -> Iterator[str]:
    """The reasons of all `@pytest.mark.differs` in the conformance tests."""
    for path in sorted((ROOT / "tests" / "conformance").glob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "differs":
                yield ast.literal_eval(node.args[0])


def test_every_difference_is_on_the_page() -> None:
    reasons = set(marked())
    assert reasons
    page = (ROOT / "docs" / "kubernetes-api.md").read_text()
    assert [reason for reason in sorted(reasons) if reason not in page] == []
