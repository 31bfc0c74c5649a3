"""The embedded API as a user starts it, `ironbell up`, in a process of its own: the counterpart of `realcluster`."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

START_TIMEOUT_S = 60
STOP_TIMEOUT_S = 20


@dataclass
class EmbeddedCluster:
    """One site in one folder."""

    folder: Path
    arguments: tuple[str, ...] = ()
    checkout: Path | None = None
    """A folder with `src` and `.venv` whose program is started; None: the one that is tested."""
    kubeconfig: Path = field(default=Path(), init=False)
    _process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until its API answers.

        Raises:
            TimeoutError: with the end of its log.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        python, environment = sys.executable, dict(os.environ)
        if self.checkout is not None:
            python = str(self.checkout / ".venv" / "bin" / "python")
            environment["PYTHONPATH"] = str(self.checkout / "src")
        command = [python, "-m", "ironbell", "up", "--data-dir", str(self.folder / "data")]
        with (self.folder / "up.log").open("ab") as log:
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", *command, *self.arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment,
            )
        assert self._process.stdout is not None
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline:
            readable, _, _ = select.select([self._process.stdout], [], [], 1.0)
            line = self._process.stdout.readline().decode() if readable else ""
            if line.startswith("ready"):
                self.kubeconfig = self.folder / "data" / "kubeconfig"
                assert self.kubeconfig.exists(), line
                return
            if readable and not line:
                break
        raise TimeoutError(f"ironbell up is not ready: {(self.folder / 'up.log').read_text()[-1500:]}")

    def stop(self) -> None:
        """End it."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.communicate(timeout=STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()
        self._process = None

    def kill(self) -> None:
        """kill -9; its children end by themselves."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def kill_all(self) -> None:
        """kill -9 of all its processes at once. They are sessions of their own, and so are not one process group."""
        if self._process is not None:
            for pid in [self._process.pid, *_descendants(self._process.pid)]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self._process.communicate()
            self._process = None


def _descendants(pid: int) -> list[int]:
    """The processes that a process has started, and those that they have started, before they lose their parent."""
    children = Path(f"/proc/{pid}/task").glob("*/children")
    found = [int(child) for path in children for child in path.read_text().split()]
    return found + [later for child in found for later in _descendants(child)]


@pytest.fixture(scope="session")
def embedded_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    """A running `ironbell up` without machines, for all tests of the run; its history is as long as upstream's."""
    cluster = EmbeddedCluster(tmp_path_factory.mktemp("embedded-cluster"), ("--history", "5m"))
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
