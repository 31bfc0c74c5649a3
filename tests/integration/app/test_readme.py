"""The README's blocks that need no server, pasted into two shells: as they stand, but with ports that are free here."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.ports import free_port
from support.site.readme import ROOT, blocks
from support.waiting import eventually

READY_S = 60.0
STOP_S = 20.0


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Of a user with an empty home folder; where the checkout has no .venv, the program is this interpreter's."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {"HOME": str(tmp_path), "PATH": path}


@pytest.fixture
def second_terminal(environment: dict[str, str], tmp_path: Path) -> Iterator[list[str]]:
    """What is pasted into the second terminal while the first runs what is pasted there."""
    found = blocks(ROOT / "README.md")
    number = next(number for number, block in enumerate(found) if any("--simulate" in line for line in block))
    first = [line for line in found[number] if not line.startswith("make ")]
    assert first[-1].startswith("ironbell up ")
    first[-1] = f"exec {first[-1]} --http-port {free_port()} --grpc-port 0"
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(
            ["bash", "-c", "\n".join(first)], cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=log, text=True
        )
    try:
        assert process.stdout is not None
        readable, _, _ = select.select([process.stdout], [], [], READY_S)
        assert readable, (tmp_path / "log").read_text()
        assert process.stdout.readline() == f"ready {tmp_path}/try/kubeconfig\n"
        yield found[number + 1]
    finally:
        process.terminate()
        process.communicate(timeout=STOP_S)


def test_a_cluster_without_a_server(second_terminal: list[str], environment: dict[str, str], tmp_path: Path) -> None:
    upgrade = "ironbell cluster upgrade one --kubernetes-version v1.35.0 --no-wait"
    more = [
        "ironbell cluster list",
        "ironbell cluster kubeconfig one --wait | head -c 11",
        upgrade,
        f"{upgrade} 2>&1 | tail -n 1",
        "ironbell cluster describe one --wait | head -n 1",
        upgrade,
        "ironbell cluster describe one --wait | head -n 1",
        "ironbell cluster list --wait",
    ]
    script = "\n".join(["set -e", *second_terminal, *more])
    done = subprocess.run(
        ["bash", "-c", script], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=180, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "Cluster default/one is available" in done.stderr
    assert "Cluster default/one" in done.stdout
    assert "one    1/1             2/2       v1.34.2   True" in done.stdout
    assert "apiVersion:" in done.stdout
    assert "The workers are next. Run this again once the control plane runs v1.35.0." in done.stdout
    assert "one    1/1             2/2       v1.35.0   True" in done.stdout
    assert done.stdout.count("sim-0012") == 1
    assert "Traceback" not in done.stderr
    watch_until_interrupted(environment, tmp_path)


def watch_until_interrupted(environment: dict[str, str], folder: Path) -> None:
    output = folder / "watch"
    with output.open("w") as file:
        process = subprocess.Popen(
            ["ironbell", "get", "hardware", "-w"],
            env={**environment, "KUBECONFIG": f"{folder}/try/kubeconfig"},
            stdout=file,
            stderr=subprocess.STDOUT,
        )
    try:
        eventually(lambda: "sim-0012" in output.read_text(), seen=output.read_text)
        process.send_signal(signal.SIGINT)
        assert process.wait(STOP_S) == 0
        assert "Traceback" not in output.read_text()
    finally:
        process.kill()
