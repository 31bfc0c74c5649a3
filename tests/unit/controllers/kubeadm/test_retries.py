"""The shell that tries to join again, run by a real shell with a kubeadm that fails as often as it is told."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ironbell.controllers.kubeadm.config.rendering.userdata import repeated

KUBEADM = """#!/bin/sh
echo "$*" >> calls
[ "$1" = reset ] && exit 0
[ "$(grep -c join calls)" -gt "$FAILURES" ]
"""


def calls(folder: Path, *, attempts: int, failures: int) -> tuple[list[str], int]:
    """What kubeadm was asked for, and how the command ended."""
    (folder / "kubeadm").write_text(KUBEADM)
    (folder / "kubeadm").chmod(0o755)
    (folder / "sleep").symlink_to("/bin/true")
    command = f"{repeated('kubeadm join', attempts)} && echo success > sentinel"
    environment = {"PATH": f"{folder}:/usr/bin:/bin", "FAILURES": str(failures)}
    done = subprocess.run(["sh", "-c", command], cwd=folder, env=environment)
    assert (folder / "sentinel").exists() is (done.returncode == 0)
    return (folder / "calls").read_text().splitlines(), done.returncode


@pytest.mark.parametrize(
    ("attempts", "failures", "expected", "status"),
    [
        (1, 0, ["join"], 0),
        (1, 1, ["join"], 1),
        (3, 0, ["join"], 0),
        (3, 1, ["join", "reset --force", "join"], 0),
        (3, 2, ["join", "reset --force", "join", "reset --force", "join"], 0),
        (3, 3, ["join", "reset --force", "join", "reset --force", "join"], 1),
    ],
)
def test_it_tries_as_often_as_told(
    tmp_path: Path, attempts: int, failures: int, expected: list[str], status: int
) -> None:
    assert calls(tmp_path, attempts=attempts, failures=failures) == (expected, status)
