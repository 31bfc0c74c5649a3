"""The recipes of docs/contributing, followed: each has an example that is added to a copy of the repository.

A recipe is a folder with new files and `recipe.yaml`: where the files go (`files`), what is changed in files that exist
(`edits`, each a text and its replacement), the commands that write generated files (`generate`, `generated`), and the
tests that then pass (`tests`). The page of the recipe lists the files in a table.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import yaml

ROOT = Path(__file__).parents[3]
RECIPES = Path(__file__).parent
_TIMEOUT_S = 300
_IGNORED = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "build", "dist", "recipes")
_ROW = re.compile(r"^\| `([^`]+)`", re.MULTILINE)


class Edit(msgspec.Struct, frozen=True):
    """A change of a file: `find` occurs in it once."""

    path: str
    find: str
    replace: str


class Recipe(msgspec.Struct, frozen=True):
    """What is done to follow a recipe."""

    page: str
    files: dict[str, str]
    """Path in the repository of each new file, by its name in the recipe's folder."""
    tests: list[str]
    edits: list[Edit] = []
    generate: list[list[str]] = []
    """Arguments of Python for the commands that write generated files."""
    generated: list[str] = []


def read_recipe(name: str) -> Recipe:
    return msgspec.convert(yaml.safe_load((RECIPES / name / "recipe.yaml").read_text()), Recipe)


def copy_repository(folder: Path) -> Path:
    """Copy the repository without its environment, and return the copy."""
    return Path(shutil.copytree(ROOT, folder / "repository", ignore=_IGNORED, symlinks=True))


def follow(name: str, recipe: Recipe, copy: Path) -> None:
    """Follow a recipe in a copy of the repository."""
    for source, target in recipe.files.items():
        path = copy / target
        assert not path.exists(), f"{target} exists"
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(RECIPES / name / source, path)
    for edit in recipe.edits:
        path = copy / edit.path
        text = path.read_text()
        assert text.count(edit.find) == 1, f"{edit.path}: {text.count(edit.find)} times {edit.find!r}"
        path.write_text(text.replace(edit.find, edit.replace))
    for arguments in recipe.generate:
        run(copy, *arguments)


def run(copy: Path, *arguments: str) -> str:
    """Run Python in the copy, on the copy's source, and return its output."""
    environment = {**os.environ, "PYTHONPATH": f"{copy / 'src'}:{copy / 'tests'}", "PYTHONDONTWRITEBYTECODE": "1"}
    environment.pop("REQUIRE", None)
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=copy,
        env=environment,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-3000:]
    return done.stdout


def touched(copy: Path) -> list[str]:
    """Paths of the files in the copy that are new or different."""
    files = (path.relative_to(copy) for path in copy.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return sorted(str(path) for path in files if not _is_same(ROOT / path, copy / path))


def _is_same(old: Path, new: Path) -> bool:
    return old.is_file() and old.read_bytes() == new.read_bytes()


def listed_on(page: str) -> list[str]:
    """The paths in the table of a recipe's page."""
    return _ROW.findall((ROOT / page).read_text())
