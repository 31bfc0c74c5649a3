"""Building iPXE: where the source comes from, and errors that say what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from ironbell.ipxe.build import SCRIPT, BuildRequest, IpxeBuildError, build, source_stanzas


def test_source_packages_come_from_the_hosts_own_sources_in_either_format() -> None:
    deb822 = "Types: deb\nURIs: http://packages.example/debian\nSuites: stable\nComponents: main\n"
    assert source_stanzas(deb822) == deb822.replace("Types: deb\n", "Types: deb-src\n")
    lines = "# comment\ndeb [signed-by=/k] http://packages.example/debian stable main\ndeb-src http://x stable main\n"
    assert source_stanzas(lines) == "deb-src [signed-by=/k] http://packages.example/debian stable main\n"


def test_folder_that_is_no_source_tree_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ironbell.ipxe.build.TOOLS", {})
    monkeypatch.setattr("ironbell.ipxe.build.HEADERS", {})
    with pytest.raises(IpxeBuildError, match="src/Makefile"):
        build(BuildRequest(tmp_path / "out", tmp_path), lambda _: None)


def test_missing_tools_are_named_all_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ironbell.ipxe.build.TOOLS", {"no-such-tool-a": "package-a", "no-such-tool-b": "package-b"})
    with pytest.raises(IpxeBuildError, match="install package-a package-b"):
        build(BuildRequest(tmp_path), lambda _: None)


def test_embedded_script_names_its_class_and_leaves_with_an_error() -> None:
    assert SCRIPT.startswith("#!ipxe\nset user-class Tinkerbell\n")
    assert SCRIPT.endswith("exit 1\n")
