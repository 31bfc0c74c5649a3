"""What the demonstration says while it builds, and before it builds what cannot be built here."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from ironbell.demo import artefacts
from ironbell.image.debian import BuildError


def test_what_is_built_is_said_once_and_each_step_with_its_time(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def build(_options: Any, _sources: Any, *, progress: Any) -> None:
        progress("unpacking packages")
        progress("packing 42 MB")

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(artefacts.osies, "build", build)
    said: list[str] = []
    artefacts.ensure_osie(said.append)
    assert said[0].startswith("building the in-memory OS")
    assert [line.split(" s  ")[1] for line in said[1:]] == ["unpacking packages", "packing 42 MB"]


def test_what_is_up_to_date_is_not_talked_about(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(artefacts.osies, "build", lambda *_words, **_more: None)
    said: list[str] = []
    artefacts.ensure_osie(said.append)
    assert said == []


def test_without_go_nothing_is_begun(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    said: list[str] = []
    with pytest.raises(BuildError, match="add it to PATH"):
        artefacts.ensure_node_image("v1.36.3", said.append)
    assert said == []
