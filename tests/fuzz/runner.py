"""Starts a process for each target, watches what it reaches, and ends it when that is enough."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
WORK = ROOT / "build" / "fuzz"
"""What is found and reached; not in the repository."""
TELL_S = 20.0
_SILENT_S = 900.0
"""An engine that says nothing for so long is stuck in itself."""
_REACHED = re.compile(rb"#(\d+)\s+\w+\s+cov: (\d+) ft: (\d+)")
_COUNTED = re.compile(rb"inputs (\d+)")
_KEPT_LINES = 60


@dataclass(frozen=True)
class Enough:
    """When a target has been fuzzed enough: all three are reached."""

    inputs: int = 1_000_000
    seconds: float = 15 * 60.0
    unchanged: int = 100_000
    """Inputs since a branch was reached that none had reached before."""


@dataclass
class Figures:
    """How far a target is."""

    target: str
    inputs: int = 0
    seconds: float = 0.0
    branches: int = 0
    newest_at: int = 0
    """The input that reached the newest branch."""
    is_enough: bool = False
    found: str = ""
    """The file with the input that failed, or how else the process ended."""

    @property
    def rate(self) -> float:
        """Inputs a second."""
        return self.inputs / self.seconds if self.seconds else 0.0

    @property
    def unchanged(self) -> int:
        """Inputs since the newest branch."""
        return self.inputs - self.newest_at

    def is_reached(self, enough: Enough) -> bool:
        """Whether that is enough."""
        has_time = self.seconds >= enough.seconds
        return has_time and self.inputs >= max(1, enough.inputs) and self.unchanged >= enough.unchanged

    def line(self) -> str:
        """A row of the table."""
        state = f"FOUND {self.found}" if self.found else "enough" if self.is_enough else "not enough"
        return (
            f"{self.target:12} {self.inputs:>10,} {self.rate:>9,.0f} {self.branches:>9,} "
            f"{self.seconds / 60:>8.1f} {self.unchanged:>11,}  {state}"
        )

    def document(self) -> dict[str, object]:
        """The same for programs."""
        return {**asdict(self), "rate": round(self.rate, 1), "unchanged": self.unchanged}


HEADING = f"{'target':12} {'inputs':>10} {'inputs/s':>9} {'branches':>9} {'minutes':>8} {'unchanged':>11}  state"


@dataclass
class Run:
    """One target's process."""

    name: str
    enough: Enough
    tell: Callable[[str], None]
    seed: int = 0
    figures: Figures = field(init=False)
    _last: deque[str] = field(default_factory=lambda: deque(maxlen=_KEPT_LINES))

    def __post_init__(self) -> None:
        self.figures = Figures(self.name)

    async def run(self) -> Figures:
        """Fuzz until it is enough or something is found."""
        inputs, artefacts = self._folders()
        command = ["-m", f"{__package__}.engine", self.name, str(inputs), str(artefacts), str(self.seed)]
        began = time.monotonic()
        process = await asyncio.create_subprocess_exec(
            sys.executable, *command, cwd=ROOT, stdin=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
            limit=1 << 20, env={**os.environ, "TMPDIR": str(inputs.parent / "tmp")},
        )  # fmt: skip
        assert process.stderr is not None
        try:
            await self._follow(process.stderr, began)
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
            await process.wait()
        if not self.figures.is_enough:
            self._explain(artefacts, process.returncode)
        return self.figures

    def _folders(self) -> tuple[Path, Path]:
        """Those of inputs, which grows from run to run, and of what this run finds."""
        inputs, artefacts, scratch = (WORK / self.name / name for name in ("inputs", "found", "tmp"))
        for folder in (artefacts, scratch):
            shutil.rmtree(folder, ignore_errors=True)
        for folder in (inputs, artefacts, scratch):
            folder.mkdir(parents=True, exist_ok=True)
        return inputs, artefacts

    async def _follow(self, stream: asyncio.StreamReader, began: float) -> None:
        figures, told = self.figures, began
        while True:
            try:
                line = await asyncio.wait_for(stream.readline(), _SILENT_S)
            except TimeoutError:
                self._last.append(f"nothing was said for {_SILENT_S:.0f} s")
                return
            if not line:
                return
            if (reached := _REACHED.search(line)) is not None:
                figures.inputs = max(figures.inputs, int(reached[1]))
                if (branches := int(reached[2])) > figures.branches:
                    figures.branches, figures.newest_at = branches, figures.inputs
            elif (counted := _COUNTED.match(line)) is not None:
                figures.inputs = max(figures.inputs, int(counted[1]))
            elif not line.startswith(b"INFO:"):
                self._last.append(line.decode("utf-8", "replace").rstrip())
            now = time.monotonic()
            figures.seconds = now - began
            if figures.is_reached(self.enough):
                figures.is_enough = True
                return
            if now - told >= TELL_S:
                told = now
                self.tell(figures.line())

    def _explain(self, artefacts: Path, code: int | None) -> None:
        found = sorted(path for path in artefacts.iterdir() if path.name != "words")
        said = "\n".join(self._last)
        if not found:
            self.figures.found = f"no input: the process ended with {code}"
            self.tell(f"{said}\n\n{self.name}: the process ended with {code}, see above")
            return
        self.figures.found = str(found[0].relative_to(ROOT))
        self.tell(f"{said}\n\n{self.name}: this input fails, see above. Again:\n  {again(self.name, found[0])}")


def again(name: str, path: Path) -> str:
    """The command that feeds an input once more."""
    return f".venv/bin/python -m tests.fuzz {name} --input {path.relative_to(ROOT)}"


async def run_all(
    names: Sequence[str], enough: Enough, *, at_once: int, tell: Callable[[str], None], seed: int = 0
) -> list[Figures]:
    """Fuzz several targets, so many at once. What one finds does not end the others."""
    turn = asyncio.Semaphore(at_once)

    async def one(name: str) -> Figures:
        async with turn:
            figures = await Run(name, enough, tell, seed).run()
            tell(figures.line())
            return figures

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(name), name=name) for name in names]
    return [task.result() for task in tasks]
