"""Slash-separated paths; the `os` variants are the same on Linux.

Source: golang/go: src/path/path.go, src/path/filepath/path.go.
"""

from __future__ import annotations

from ironbell.codec.gotemplate.functions import Library, P

PATHS = Library()
_add = PATHS.add


@_add("base osBase", P.STRING)
def _base(path: str) -> str:
    if not path:
        return "."
    stripped = path.rstrip("/")
    return stripped.rpartition("/")[2] if stripped else "/"


@_add("clean osClean", P.STRING)
def _clean(path: str) -> str:
    rooted = path.startswith("/")
    parts: list[str] = []
    for part in path.split("/"):
        if part in ("", "."):
            continue
        if part == ".." and parts and parts[-1] != "..":
            parts.pop()
        elif part != ".." or not rooted:
            parts.append(part)
    cleaned = "/".join(parts)
    return "/" + cleaned if rooted else cleaned or "."


_add("dir osDir", P.STRING)(lambda path: _clean(path[: path.rfind("/") + 1]))


@_add("ext osExt", P.STRING)
def _ext(path: str) -> str:
    name = path.rpartition("/")[2]
    dot = name.rfind(".")
    return name[dot:] if dot >= 0 else ""


_add("isAbs osIsAbs", P.STRING)(lambda path: path.startswith("/"))
