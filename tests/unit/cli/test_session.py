"""Where commands find the API."""

from __future__ import annotations

from pathlib import Path

import pytest

from ironbell.cli.session import NoApiError, kubeconfig_paths


def test_all_that_are_there_are_taken_in_their_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("b", "d"):
        (tmp_path / name).write_text("")
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path}/a::{tmp_path}/d:{tmp_path}/b")
    assert kubeconfig_paths(None) == [tmp_path / "d", tmp_path / "b"]
    assert kubeconfig_paths(tmp_path / "given") == [tmp_path / "given"]


def test_an_account_without_a_home_folder_is_told_what_to_give(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    with pytest.raises(NoApiError, match="Set --kubeconfig"):
        kubeconfig_paths(None)
