"""`base.ports` is the only home of port numbers, and docs/reference/ports.md lists all of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from ironbell.base import ports

ROOT = Path(__file__).parents[3]
SOURCE = ROOT / "src" / "ironbell"
PAGE = ROOT / "docs" / "reference" / "ports.md"

NEXT = {ports.GRPC_PORT + 1, ports.HEALTH_PORT + 1, ports.ETCD_PORT + 1}
"""Ports that are derived from the one before."""


def numbers() -> set[int]:
    values = [value for name, value in vars(ports).items() if name.endswith(("_PORT", "_PORTS"))]
    return {number for value in values for number in (value if isinstance(value, tuple) else (value,))}


def documented() -> set[int]:
    section = PAGE.read_text().partition("## Ports\n")[2].partition("\n## ")[0]
    return {int(number) for number in re.findall(r"\b(?:TCP|UDP|on|;) (\d+)", section)}


def written(path: Path) -> Iterator[tuple[int, int]]:
    """Line and number of each known port that a module writes itself; small numbers count where a port is named."""
    known = numbers()
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and type(node.value) is int and node.value in known and node.value > 1023:
            yield node.lineno, node.value
        named: list[tuple[str, ast.expr | None]] = []
        if isinstance(node, ast.AnnAssign):
            named = [(ast.unparse(node.target), node.value)]
        elif isinstance(node, ast.Assign):
            named = [(ast.unparse(node.targets[0]), node.value)]
        elif isinstance(node, ast.keyword):
            named = [(node.arg or "", node.value)]
        elif isinstance(node, ast.Dict):
            named = [
                (ast.unparse(key) if key else "", value) for key, value in zip(node.keys, node.values, strict=True)
            ]
        for name, value in named:
            is_port = re.search(r"(?<![a-z])port(?![a-z])", name, re.IGNORECASE)
            if is_port and isinstance(value, ast.Constant) and type(value.value) is int and value.value in known:
                yield node.lineno if not isinstance(node, ast.keyword) else value.lineno, value.value


def test_every_port_is_documented_and_no_documented_port_is_invented() -> None:
    assert len(numbers()) > 15
    assert numbers() - documented() == set()
    assert documented() - numbers() - NEXT == set()


def test_no_module_writes_the_number_of_a_port_itself() -> None:
    paths = [path for path in SOURCE.rglob("*.py") if path != SOURCE / "base" / "ports.py"]
    assert {(str(path.relative_to(SOURCE)), *found) for path in paths for found in written(path)} == set()


def test_a_written_number_is_found(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text("PORT: int = 69\ncall(port=443)\nbody = {'port': 623}\nother = ('sim', 6443)\nsize = 443\n")
    assert sorted(written(module)) == [(1, 69), (2, 443), (3, 623), (4, 6443)]
