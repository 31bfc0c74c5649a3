"""A build that is interrupted while its programs have the host's folders mounted: nothing of the host is removed, no
mount and no process stays, and the scratch folder goes. A stand-in for mmdebstrap mounts as the real one does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.waiting import eventually

pytestmark = pytest.mark.root

MMDEBSTRAP = """\
#!/bin/sh
eval "tree=\\${$(($# - 1))}"
mkdir -p "$tree/sys" "$tree/var"
mount -o rbind "$HOST" "$tree/sys" || exit 1
trap '' INT TERM
(while :; do echo x > "$tree/var/$(date +%N)"; done) &
touch "$READY"
exec sleep 987654
"""


@pytest.fixture
def build(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """`ironbell image archive`, which has come as far as the mounted folder of the host."""
    for name in ("bin", "scratch", "host"):
        (tmp_path / name).mkdir()
    (tmp_path / "host" / "variable").write_text("the host's own")
    (tmp_path / "sources").write_text("deb http://packages.invalid/debian bookworm main\n")
    program = tmp_path / "bin" / "mmdebstrap"
    program.write_text(MMDEBSTRAP)
    program.chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{program.parent}:{os.environ['PATH']}",
        "TMPDIR": str(tmp_path / "scratch"),
        "HOST": str(tmp_path / "host"),
        "READY": str(tmp_path / "ready"),
    }
    # whoever runs the tests in the background of a script has them ignore SIGINT, and a child would, too
    command = ["env", "--default-signal=INT,TERM", sys.executable, "-m", "ironbell", "image", "archive"]
    command += ["--output", str(tmp_path / "made.tar.zst")]
    command += ["--suite", "bookworm", "--sources", str(tmp_path / "sources")]
    with subprocess.Popen(
        command, env=environment, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            eventually((tmp_path / "ready").exists)
            yield process
        finally:
            process.kill()
            for folder in mounts(tmp_path):  # of a build that left its mount
                subprocess.run(["umount", "--lazy", folder], check=False)
            for pid in programs(tmp_path):
                os.kill(pid, signal.SIGKILL)


def mounts(folder: Path) -> list[str]:
    """What is mounted below a folder, as the host sees it."""
    points = (line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines())
    return [point for point in points if point.startswith(str(folder))]


def programs(folder: Path) -> list[int]:
    """Processes of the stand-in."""
    found = []
    for process in Path("/proc").iterdir():
        try:
            if process.name.isdigit() and f"READY={folder}/ready" in (process / "environ").read_text():
                found.append(int(process.name))
        except OSError:  # it has just ended
            continue
    return [pid for pid in found if pid != os.getpid()]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_build_removes_what_it_made_and_nothing_of_the_host(
    build: subprocess.Popen[str], tmp_path: Path, number: signal.Signals
) -> None:
    if number is signal.SIGINT:
        os.killpg(build.pid, number)  # as a terminal sends it
    else:
        build.send_signal(number)
    assert build.stderr is not None
    said = build.stderr.read()
    assert (build.wait(timeout=20), said.splitlines()[-1]) == (130, "ironbell: interrupted")
    assert (tmp_path / "host" / "variable").read_text() == "the host's own"
    assert list((tmp_path / "scratch").iterdir()) == []
    assert mounts(tmp_path) == []
    assert programs(tmp_path) == []


def test_a_build_that_is_killed_leaves_no_mount_and_no_process(build: subprocess.Popen[str], tmp_path: Path) -> None:
    build.kill()
    build.wait(timeout=20)
    eventually(lambda: programs(tmp_path) == [])
    assert mounts(tmp_path) == []
    assert (tmp_path / "host" / "variable").read_text() == "the host's own"
