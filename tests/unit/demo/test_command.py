"""What `ironbell demo` refuses before it builds or starts anything."""

from __future__ import annotations

import os

import pytest
from click.testing import CliRunner

from ironbell.cli.main import cli


def test_a_cluster_without_workers_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    result = CliRunner().invoke(cli, ["demo", "--workers", "0", "--qemu-workers", "0"])
    assert "needs a worker" in str(result.exception)


def test_root_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert "run it as root" in str(CliRunner().invoke(cli, ["demo", "--machine"]).exception)
