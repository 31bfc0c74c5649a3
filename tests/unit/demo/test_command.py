"""What `ironbell demo` refuses before it builds or starts anything."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from ironbell.cli.main import cli


def test_a_cluster_without_workers_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    result = CliRunner().invoke(cli, ["demo", "--workers", "0", "--qemu-workers", "0"])
    assert "needs a worker" in str(result.exception)


def test_without_qemu_it_is_said_what_needs_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    assert "or use --qemu-workers 0" in str(CliRunner().invoke(cli, ["demo"]).exception)
    assert "--qemu-workers" not in str(CliRunner().invoke(cli, ["demo", "--machine"]).exception)


def test_root_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert "run it as root" in str(CliRunner().invoke(cli, ["demo", "--machine"]).exception)


def test_a_signal_ends_a_build_as_ctrl_c_does(tmp_path: Path) -> None:
    """What a build has in a temporary folder goes with it."""
    program = (
        "import os, tempfile, time\n"
        "from ironbell.cli.main import cli\n"
        "from ironbell.demo import artefacts\n"
        "def build(say):\n"
        "    with tempfile.TemporaryDirectory():\n"
        "        print('building', flush=True)\n"
        "        time.sleep(60)\n"  # a build that is under way until the signal
        "artefacts.ensure_osie = build\n"
        "os.geteuid = lambda: 0\n"
        "cli(['demo', '--qemu-workers', '0'])\n"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    with process.stdout:
        assert process.stdout.readline() == "building\n"
        process.terminate()
        assert process.wait(30) == 128 + signal.SIGTERM
    assert list(tmp_path.iterdir()) == []
