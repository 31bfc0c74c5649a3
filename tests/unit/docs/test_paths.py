"""Pages name only files, folders, modules and functions that exist in the repository."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SOURCE = ROOT / "src" / "ironbell"
PAGES = sorted(
    [ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "tests").rglob("README.md")]
)
PACKAGES = frozenset(path.name for path in SOURCE.iterdir() if (path / "__init__.py").is_file())
FOLDERS = frozenset(path.name for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith("."))
"""Folders of the repository: a path that begins with one of them is in the repository."""
OTHER_NAMES = frozenset({"api.db", "bmc.port", "bmc.tinkerbell.org", "ipxe.efi", "osie.json", "controllers.py"})
"""Files, fields and groups that look like a module of a package."""
CREATED_BY_RECIPES = ("src/ironbell/web/", "tests/integration/web/")
"""Folders that a recipe of docs/contributing creates; tests/integration/tools/test_recipes.py follows it."""

_PATH = re.compile(rf"(?<![\w/.:~-])(?:{'|'.join(sorted(FOLDERS))})/[\w./*-]*[\w*/]")
_CODE = re.compile(r"`([^`\n]+)`")
_IN_PACKAGE = re.compile(rf"(?:{'|'.join(sorted(PACKAGES))})(?:/\w[\w.-]*)+/?")
_DOTTED = re.compile(rf"(?:ironbell\.)?(?:{'|'.join(sorted(PACKAGES))})(?:\.\w+)+")
_PLACEHOLDER = re.compile(r"(?<![A-Za-z])[A-Z][A-Z_]+(?![a-z])")


def missing_in(text: str) -> list[str]:
    """The paths and modules that a page names and that do not exist; upper-case words stand for any name."""
    names = [path for path in _PATH.findall(text) if not _exists(ROOT, path)]
    for code in _CODE.findall(text):
        if _IN_PACKAGE.fullmatch(code) and not _exists(SOURCE, code):
            names.append(code)
        if _DOTTED.fullmatch(code) and code not in OTHER_NAMES and not _is_importable(code.removeprefix("ironbell.")):
            names.append(code)
    return names


def _exists(root: Path, path: str) -> bool:
    # what a build or a test run writes is not in the repository
    if path.startswith(("build/", "dist/", *CREATED_BY_RECIPES)):
        return True
    return (root / path).exists() or any(root.glob(_PLACEHOLDER.sub("*", path.rstrip("/"))))


def _is_importable(name: str) -> bool:
    """Return whether a dotted name below `ironbell` is a module, or is defined in one."""
    module, *rest = name.split(".")
    value: object = importlib.import_module(f"ironbell.{module}")
    for position, part in enumerate(rest, 1):
        try:
            value = importlib.import_module(".".join(["ironbell", *name.split(".")[: position + 1]]))
        except ModuleNotFoundError:
            if not hasattr(value, part):
                return False
            value = getattr(value, part)
    return True


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_names_only_what_exists(page: Path) -> None:
    assert missing_in(page.read_text()) == []


@pytest.mark.parametrize(
    "text",
    [
        "see src/ironbell/nowhere.py",
        "the package `kube/nowhere`",
        "the module `kube.nowhere`",
        "the function `kube.testing.nowhere`",
        "`tests/support/nowhere`, too",
        "docs/guide/NAME.txt",
    ],
)
def test_what_does_not_exist_is_listed(text: str) -> None:
    assert len(missing_in(text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "docs/guide/NAME.md",
        "tools/*.py",
        "`kube/testing/`",
        "`kube.testing.crash_check`",
        "https://example.com/docs/nowhere",
        "/usr/src/nowhere",
        "build/fuzz/figures.json",
    ],
)
def test_what_exists_or_is_elsewhere_is_not_listed(text: str) -> None:
    assert missing_in(text) == []
