"""Programs of a Debian tree with the libraries that they need, as entries of a container image.

Failure modes: `BuildError` that names a program or library that the tree lacks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from ironbell.image.debian import BuildError
from ironbell.image.kubernetes.oci import Entry
from ironbell.osie import elf

_FOLDERS = ("usr/sbin", "usr/bin", "sbin", "bin")
# Loaded by name at run time, so no header names them: the matches and targets of iptables.
_PLUGINS = ("usr/lib/*/xtables/*.so",)
_LINKS = 10


def with_libraries(tree: Path, names: Sequence[str]) -> list[Entry]:
    """Each program under /usr/sbin by its name, and its libraries where the loader expects them."""
    files = {f"usr/sbin/{name}": _resolved(tree, _place(tree, name)) for name in names}
    for pattern in _PLUGINS:
        files |= {_merged(tree, path): _resolved(tree, path) for path in tree.glob(pattern)}
    pending = list(files.values())
    while pending:
        for needed in elf.needed(pending.pop().read_bytes()):
            place = _library(tree, needed)
            if (name := _merged(tree, place)) not in files:
                files[name] = _resolved(tree, place)
                pending.append(files[name])
    return [*_links(files), *_grouped(files)]


def _grouped(files: dict[str, Path]) -> Iterable[Entry]:
    """Entries with one copy of a file that has several names."""
    first: dict[Path, str] = {}
    for name, path in sorted(files.items()):
        if path in first:
            yield Entry(name, link=f"/{first[path]}")
        else:
            first[path] = name
            yield Entry(name, path)


def _links(files: dict[str, Path]) -> list[Entry]:
    """Links of `/lib` and `/lib64` into `/usr`, as in the tree that the libraries come from."""
    return [
        Entry(name, link=f"usr/{name}") for name in ("lib", "lib64") if any(k.startswith(f"usr/{name}/") for k in files)
    ]


def _place(tree: Path, name: str) -> Path:
    for folder in _FOLDERS:
        path = tree / folder / name
        if path.exists() or path.is_symlink():
            return path
    raise BuildError(f"no package brought the program {name}")


def _library(tree: Path, needed: str) -> Path:
    if needed.startswith("/"):
        return tree / needed.lstrip("/")
    for folder in sorted((*tree.glob("usr/lib/*-linux-gnu"), tree / "usr/lib")):
        if (folder / needed).exists() or (folder / needed).is_symlink():
            return folder / needed
    raise BuildError(f"no package brought the library {needed}")


def _resolved(tree: Path, path: Path) -> Path:
    """The file behind links, which are followed as if the tree were the root."""
    for _ in range(_LINKS):
        if not path.is_symlink():
            return path
        target = path.readlink()
        path = tree / target.relative_to("/") if target.is_absolute() else path.parent / target
    raise BuildError(f"{path}: too many links")


def _merged(tree: Path, path: Path) -> str:
    name = path.relative_to(tree).as_posix()
    return name if name.startswith("usr/") else f"usr/{name}"
