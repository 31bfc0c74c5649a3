"""Any front end can call operations: they need no command line, and nothing of it is loaded with them."""

from __future__ import annotations

import ast
import pkgutil
import subprocess
import sys
from pathlib import Path

from ironbell import operations

MODULES = [module.name for module in pkgutil.walk_packages(operations.__path__, "ironbell.operations.")]
ROOT = Path(operations.__path__[0])
STREAMS = {"stdin", "stdout", "stderr", "argv", "exit", "__stdout__", "__stderr__"}


def test_nothing_of_the_command_line_is_loaded_with_operations() -> None:
    program = (
        "import importlib, sys\n"
        f"for name in {MODULES}: importlib.import_module(name)\n"
        "print(*(name for name in sys.modules if name.split('.')[0] in ('click', 'argparse')))\n"
        "print(*(name for name in sys.modules if name.startswith('ironbell.cli')))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == []
    assert len(MODULES) > 30


def test_no_operation_prints_or_reads_a_command_line() -> None:
    found = []
    for path in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            is_print = isinstance(node, ast.Name) and node.id in ("print", "input")
            is_stream = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "sys"
            if is_print or (is_stream and node.attr in STREAMS):
                found.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert found == []
