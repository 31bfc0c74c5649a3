"""cloud-init's own check of user data, from its Debian package.

The package is unpacked into the user's cache and not installed: installed, it would configure this machine at its next
boot.
"""

from __future__ import annotations

import fcntl
import shutil
import subprocess
from pathlib import Path

from support.gobuild import cache_folder

PYTHON = Path("/usr/bin/python3")
"""Debian's own, which Debian's packages are for."""
_PACKAGES = (
    "cloud-init", "python3-attr", "python3-certifi", "python3-chardet", "python3-charset-normalizer",
    "python3-configobj", "python3-idna", "python3-jinja2", "python3-json-pointer", "python3-jsonpatch",
    "python3-jsonschema", "python3-markupsafe", "python3-netifaces", "python3-oauthlib", "python3-pyrsistent",
    "python3-requests", "python3-serial", "python3-six", "python3-urllib3", "python3-yaml",
)  # fmt: skip
_CHECK = "import sys; from cloudinit.cmd.main import main; sys.argv[0] = 'cloud-init'; sys.exit(main())"
_JINJA = "## template: jinja\n"


class NoCloudInitError(Exception):
    """cloud-init is not to be had; the message is the reason of a skip."""


def cloud_init() -> Path:
    """The folder with cloud-init's Python packages.

    Raises:
        NoCloudInitError: this is not Debian, or packages cannot be downloaded.
    """
    folder = cache_folder() / "cloud-init"
    modules = folder / "usr/lib/python3/dist-packages"
    if not PYTHON.exists() or shutil.which("apt-get") is None:
        raise NoCloudInitError("cloud-init is taken from Debian's packages, and this is not Debian")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / "cloud-init.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            partial = folder.with_suffix(".partial")
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir()
            _run(["apt-get", "download", "-q", *_PACKAGES], partial)
            for package in partial.glob("*.deb"):
                _run(["dpkg-deb", "-x", str(package), "."], partial)
                package.unlink()
            partial.rename(folder)
    return modules


def schema_problems(modules: Path, user_data: str, file: Path) -> str:
    """What `cloud-init schema` says is wrong with user data; empty if nothing is.

    The line that asks for jinja is left out, as it is of what cloud-init has rendered.
    """
    file.write_text(user_data.removeprefix(_JINJA))
    command = [PYTHON, "-c", _CHECK, "schema", "--config-file", file]
    environment = {"PYTHONPATH": str(modules), "PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    is_valid = done.returncode == 0 and "Valid cloud-config" in done.stdout
    return "" if is_valid else (done.stdout + done.stderr).strip() or f"status {done.returncode}"


def _run(command: list[str], folder: Path) -> None:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoCloudInitError(f"{command[0]}: {error}") from error
    if done.returncode:
        raise NoCloudInitError(f"{' '.join(command[:2])}: {done.stderr.strip()[-300:]}")
