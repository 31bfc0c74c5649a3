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
# Loaded by name at run time, so no header tells: the matches and targets of iptables.
_PLUGINS = ("usr/lib/*/xtables/*.so",)
_LINKS = 10


def with_libraries(tree: Path, names: Sequence[str]) -> list[Entry]:
    """Each program under /usr/sbin by its name, its libraries where the loader looks."""
    found = {f"usr/sbin/{name}": _resolved(tree, _place(tree, name)) for name in names}
    for pattern in _PLUGINS:
        found |= {_merged(tree, path): _resolved(tree, path) for path in tree.glob(pattern)}
    pending = list(found.values())
    while pending:
        for wanted in elf.needed(pending.pop().read_bytes()):
            place = _library(tree, wanted)
            if (name := _merged(tree, place)) not in found:
                found[name] = _resolved(tree, place)
                pending.append(found[name])
    return [*_links(found), *_grouped(found)]


def _grouped(found: dict[str, Path]) -> Iterable[Entry]:
    """One copy of a file that has several names."""
    first: dict[Path, str] = {}
    for name, path in sorted(found.items()):
        if path in first:
            yield Entry(name, link=f"/{first[path]}")
        else:
            first[path] = name
            yield Entry(name, path)


def _links(found: dict[str, Path]) -> list[Entry]:
    """`/lib` and its like inside `/usr`, as in the tree that the libraries come from."""
    return [
        Entry(name, link=f"usr/{name}") for name in ("lib", "lib64") if any(k.startswith(f"usr/{name}/") for k in found)
    ]


def _place(tree: Path, name: str) -> Path:
    for folder in _FOLDERS:
        path = tree / folder / name
        if path.exists() or path.is_symlink():
            return path
    raise BuildError(f"no package brought the program {name}")


def _library(tree: Path, wanted: str) -> Path:
    if wanted.startswith("/"):
        return tree / wanted.lstrip("/")
    for folder in sorted((*tree.glob("usr/lib/*-linux-gnu"), tree / "usr/lib")):
        if (folder / wanted).exists() or (folder / wanted).is_symlink():
            return folder / wanted
    raise BuildError(f"no package brought the library {wanted}")


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
