"""Where `ironbell image build` writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from ironbell.cli.builds import NODE_FILE, _file

DEFAULT = NODE_FILE.format(release="v1.36.3")
NAME = "debian-kubernetes-v1.36.3.raw.zst"


@pytest.mark.parametrize(
    ("output", "expected"),
    [("x.raw.zst", "x.raw.zst"), (".", NAME), ("new/", f"new/{NAME}")],
)
def test_a_folder_keeps_the_usual_name(
    output: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert _file(output, DEFAULT) == tmp_path / expected


def test_the_default_is_in_the_user_s_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/x")
    assert _file("", DEFAULT) == Path("/home/x/.cache/ironbell/images") / NAME
