"""Python clients of Kubernetes, in a virtual environment of their own: what they need must not mix with what we need.

It is made once per set of versions and kept in the user's cache.
"""

from __future__ import annotations

import fcntl
import subprocess
import sys
from pathlib import Path

import pytest

from support.programs.gobuild import cache_folder
from support.skips import missing_program

PACKAGES = ("kr8s==0.20.15", "kubernetes==36.0.3", "kopf==1.45.2")
INSTALL_TIMEOUT_S = 300


@pytest.fixture(scope="session")
def client_python() -> Path:
    """A Python that has the clients; the test is skipped where they cannot be installed."""
    name = "-".join(package.replace("==", "-") for package in PACKAGES)
    home = cache_folder() / f"clients-py{sys.version_info.major}.{sys.version_info.minor}-{name}"
    python, done = home / "bin" / "python", home / "installed"
    home.parent.mkdir(parents=True, exist_ok=True)
    with home.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            try:
                _install(home, python)
            except (subprocess.SubprocessError, OSError) as error:
                missing_program(f"{', '.join(PACKAGES)}: {error}")
            done.touch()
    return python


def _install(home: Path, python: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--clear", home], check=True, capture_output=True, timeout=120)
    install = [python, "-m", "pip", "install", "-q", "--retries", "1", "--timeout", "15", *PACKAGES]
    subprocess.run(install, check=True, capture_output=True, timeout=INSTALL_TIMEOUT_S)
