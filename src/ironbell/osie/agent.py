"""The agent and what it imports, laid out for the in-memory OS's Python.

The libraries are taken from where this program itself runs, when its Python is the one that the OS will have;
otherwise wheels of the same versions are fetched for the OS's Python by pip, with pip's own configuration. Everything
is compiled and the sources are left out, because a machine that boots into memory pays for them in time and memory.

Failure modes: a library that is not installed, or no wheel for the target, is a `BuildError` that names it.

Source: Python packaging specifications: recording installed projects; platform compatibility tags.
"""

from __future__ import annotations

import platform
import shutil
import sys
import tempfile
import zipfile
from importlib import metadata
from pathlib import Path

import ironbell
from ironbell.image.debian import BuildError, run
from ironbell.osie import contents

LIBRARY_FOLDER = "usr/lib/ironbell"
_UNUSED_SUFFIXES = {".pyi", ".pxd", ".h", ".c", ".typed", ".py.orig"}
_UNUSED_PARTS = {
    "__pycache__",
    "tests",
    "testing",
    "compiler",
    "plugin",
    "health",
    "channelz",
    "reflection",
    "emscripten",
}
# The highest glibc that wheels may require; Debian 12 has 2.36.
_GLIBC_MINORS = (17, 28, 34)
_COMPILE = ("-m", "compileall", "-b", "-q", "--invalidation-mode", "unchecked-hash")


def add_libraries(target: Path, *, python: str, architecture: str) -> None:
    """Put the agent's libraries into a tree.

    Raises:
        BuildError: a library is not available for the target's Python.
    """
    folder = target / LIBRARY_FOLDER
    folder.mkdir(parents=True)
    if _is_same_python(python, architecture):
        for name in contents.AGENT_DISTRIBUTIONS:
            _copy_installed(_installed(name), folder)
    else:
        _download(versions(), folder, python=python, architecture=architecture)


def versions() -> dict[str, str]:
    """Versions of the agent's libraries as installed here; the in-memory OS gets the same.

    Raises:
        BuildError: a library is not installed.
    """
    return {name: _installed(name).version for name in contents.AGENT_DISTRIBUTIONS}


def add_own(target: Path, *, python: str) -> None:
    """Put our own packages into a tree; compiled, when our Python is of the OS's version."""
    folder = target / LIBRARY_FOLDER
    _copy_own(folder)
    if python == _version():
        run([sys.executable, *_COMPILE, "-s", str(target), str(folder)])
        _remove_sources(folder)


def compile_libraries(target: Path, *, python: str) -> None:
    """Compile Python's library and the agent's in a tree, with the tree's own interpreter or ours of that version.

    Where neither can run, the sources stay, which costs a second at every boot.
    """
    folders = [f"usr/lib/python{python}", LIBRARY_FOLDER]
    if python == _version():
        run([sys.executable, *_COMPILE, "-s", str(target), *(str(target / folder) for folder in folders)])
    else:
        try:
            run(["chroot", str(target), f"/usr/bin/python{python}", *_COMPILE, *(f"/{folder}" for folder in folders)])
        except BuildError:
            return
    for folder in folders:
        _remove_sources(target / folder)


def _remove_sources(folder: Path) -> None:
    for source in folder.rglob("*.py"):
        if source.with_suffix(".pyc").exists():
            source.unlink()


def own_folders() -> list[Path]:
    """The folders of our own packages that go into the OS."""
    base = Path(ironbell.__file__).parent
    return [base / name for name in contents.AGENT_PACKAGES]


def _version() -> str:
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def _is_same_python(python: str, architecture: str) -> bool:
    return (
        python == _version()
        and platform.machine() == contents.PLATFORM_TAG[architecture]
        and platform.libc_ver()[0] == "glibc"
    )


def _installed(name: str) -> metadata.Distribution:
    try:
        return metadata.distribution(name)
    except metadata.PackageNotFoundError as error:
        raise BuildError(f"the agent needs the Python library {name}, which is not installed") from error


def _is_used(path: Path) -> bool:
    return path.suffix not in _UNUSED_SUFFIXES and not _UNUSED_PARTS.intersection(path.parts) and path.parts[0] != ".."


def _copy_installed(distribution: metadata.Distribution, folder: Path) -> None:
    for entry in distribution.files or ():
        path = Path(entry)
        if not _is_used(path) or path.parts[0].endswith(".dist-info"):
            continue
        destination = folder / path
        destination.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(str(distribution.locate_file(entry)), destination)


def _copy_own(folder: Path) -> None:
    base = Path(ironbell.__file__).parent
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(base / "__init__.py", _with_parent(folder / "ironbell/__init__.py"))
    shutil.copyfile(base / "osie/__init__.py", _with_parent(folder / "ironbell/osie/__init__.py"))
    ignore = shutil.ignore_patterns("__pycache__", "*.pyi", "*.proto")
    for name in contents.AGENT_PACKAGES:
        shutil.copytree(base / name, folder / "ironbell" / name, ignore=ignore, dirs_exist_ok=True)


def _with_parent(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _download(versions: dict[str, str], folder: Path, *, python: str, architecture: str) -> None:
    machine = contents.PLATFORM_TAG[architecture]
    tags = [f"--platform=manylinux_2_{minor}_{machine}" for minor in _GLIBC_MINORS]
    tags += [f"--platform=manylinux2014_{machine}"]
    with tempfile.TemporaryDirectory(prefix="ironbell-wheels-") as scratch:
        run([
            sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--dest", scratch,
            f"--python-version={python}", *tags, *(f"{name}=={version}" for name, version in versions.items()),
        ])  # fmt: skip
        for wheel in sorted(Path(scratch).glob("*.whl")):
            with zipfile.ZipFile(wheel) as archive:
                members = [name for name in archive.namelist() if _is_used(Path(name)) and ".dist-info/" not in name]
                archive.extractall(folder, members)
