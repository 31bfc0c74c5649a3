"""cloud-init's own network renderers, from Debian's newest package and without installing it.

The package is fetched by apt from the host's own mirror, since stable releases have versions that do not read a
network configuration over HTTP yet. It is unpacked into the user's cache, with the Python libraries that it needs
beside it; the renderers run in a process of their own.
"""

from __future__ import annotations

import fcntl
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from support.programs.gobuild import cache_folder

_LIBRARIES = ("configobj", "jinja2", "jsonpatch", "jsonschema", "oauthlib", "requests", "pyserial", "PyYAML")
_FETCH_TIMEOUT_S = 300
_PROGRAM = Path(__file__).parents[2] / "compat/cloudinit/render.py"


class NoCloudInit(Exception):  # noqa: N818 - the message is the reason of a skip
    """cloud-init cannot be fetched here."""


@cache
def cloud_init_folders() -> tuple[Path, ...]:
    """The folders to put on Python's path to import `cloudinit`.

    Raises:
        NoCloudInit: apt or pip cannot fetch it.
    """
    base = cache_folder() / "cloud-init-sid"
    base.mkdir(parents=True, exist_ok=True)
    package, libraries = base / "package", base / f"libraries-{sys.version_info.major}.{sys.version_info.minor}"
    with (base / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not package.exists():
            _fetch(base, "package.partial")
            (base / "package.partial").rename(package)
        if not libraries.exists():
            partial = libraries.with_suffix(".partial")
            _run(sys.executable, "-m", "pip", "install", "-q", "--target", str(partial), *_LIBRARIES, cwd=base)
            partial.rename(libraries)
    return package / "usr/lib/python3/dist-packages", libraries


def render(config: Mapping[str, Any], present: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """What each renderer writes for a network configuration: renderer to path to text. `present` are the interfaces of
    the machine, MAC to name."""
    folders = ":".join(str(folder) for folder in cloud_init_folders())
    done = subprocess.run(
        [sys.executable, "-S", str(_PROGRAM)],
        input=json.dumps({"config": config, "present": present}),
        capture_output=True,
        text=True,
        timeout=60,
        env={"PYTHONPATH": folders, "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
    )
    assert done.returncode == 0, done.stderr
    written: dict[str, dict[str, str]] = json.loads(done.stdout)
    return written


def _fetch(base: Path, target: str) -> None:
    debian = ("Created-By: Packages", "Origin: Debian", "Component: main")
    mirrors = _run("apt-get", "indextargets", "--format", "deb $(REPO_URI) sid main", *debian, cwd=base).splitlines()
    mirrors = [line for line in mirrors if "security" not in line]
    if not mirrors:
        raise NoCloudInit("cloud-init cannot be fetched: apt has no entry for Debian")
    with tempfile.TemporaryDirectory(dir=base) as folder:
        scratch = Path(folder)
        (scratch / "sid.list").write_text(f"{mirrors[0]}\n")
        for needed in ("lists/partial", "cache/archives/partial"):
            (scratch / needed).mkdir(parents=True)
        options = ["-q", "-o", f"Dir::Etc::sourcelist={scratch / 'sid.list'}", "-o", "Dir::Etc::sourceparts=/dev/null"]
        options += ["-o", f"Dir::State::lists={scratch / 'lists'}", "-o", f"Dir::Cache={scratch / 'cache'}"]
        options += ["-o", "APT::Sandbox::User=root", "-o", "Acquire::Languages=none"]
        _run("apt-get", *options, "update", cwd=scratch)
        _run("apt-get", *options, "download", "cloud-init", cwd=scratch)
        (fetched,) = scratch.glob("cloud-init_*.deb")
        _run("dpkg-deb", "-x", str(fetched), str(base / target), cwd=scratch)


def _run(*command: str, cwd: Path) -> str:
    try:
        done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=_FETCH_TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoCloudInit(f"cloud-init cannot be fetched: {error}") from error
    if done.returncode != 0:
        raise NoCloudInit(f"cloud-init cannot be fetched: {' '.join(command)}: {done.stderr.strip()[-300:]}")
    return done.stdout
