"""tests/facts says what upstream's files say, and our own texts for code do as much as upstream's."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from support.capi.constructs import constructs
from support.programs.upstream import FACTS, ORIGINALS, names_with_code, needs_originals

TOOL = Path(__file__).parents[2] / "tools" / "upstream_facts.py"


@pytest.fixture(scope="module")
def tool() -> Iterator[ModuleType]:
    spec = importlib.util.spec_from_file_location("upstream_facts", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["upstream_facts"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["upstream_facts"]


@needs_originals
def test_the_facts_are_what_the_tool_gives(tool: ModuleType) -> None:
    assert tool.difference(ORIGINALS) == [], f"run tools/upstream_facts.py {ORIGINALS}"


def test_the_facts_have_no_prose(tool: ModuleType) -> None:
    """Also in a clone alone: what the tool makes of the facts is the facts, so that nothing in them is left to drop."""
    texts = tool.Texts(FACTS / "texts.yaml")
    for name in (path.relative_to(FACTS).as_posix() for path in (FACTS / "manifests").glob("*/*.yaml")):
        assert tool.manifest(tool.Original(FACTS, name), texts) == (FACTS / name).read_text(), name
    for path in (FACTS / "crds").glob("*.yaml"):
        assert "#" not in "".join(line for line in path.read_text().splitlines() if line.lstrip().startswith("#"))


@needs_originals
def test_our_texts_use_every_construct_of_the_originals(tool: ModuleType) -> None:
    systems = {name.split("/")[0] for name in names_with_code()}
    assert systems == {"capt", "osm", "tinkerbell"}
    for system in systems:
        names = [f"manifests/{name}" for name in names_with_code() if name.startswith(f"{system}/")]
        theirs = {found for name in names for found in _constructs(tool, ORIGINALS, name)}
        ours = {found for name in names for found in _constructs(tool, FACTS, name)}
        assert theirs - ours == set(), system


def _constructs(tool: ModuleType, folder: Path, name: str) -> set[str]:
    return {found for text in tool.Original(folder, name).texts() for found in constructs(text)}


@pytest.mark.parametrize(
    ("text", "used"),
    [
        ("[Unit]\nAfter={{- .After }}", {"sections", "template: left trimmed", "template: field", "template: value"}),
        ("a: {{/* why */}}", {"YAML", "template: comment"}),
        ("one && two", {"shell", "shell: and"}),
        ("#!/bin/bash\necho $(date) >> f", {"bash", "shell: command's output", "shell: appended to a file"}),
        ("{{ if a }}{{ else if b }}x = 1{{ end }}", {"template: if", "template: else if", "template: end"}),
    ],
)
def test_constructs_of_a_text(text: str, used: set[str]) -> None:
    assert used <= constructs(text)


def test_a_text_that_does_less_is_noticed() -> None:
    assert "shell: pipe" in constructs("one | two > three") - constructs("one && two > three")
