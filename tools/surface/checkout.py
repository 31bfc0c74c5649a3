"""A checkout of Ironbell, and its program."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

COLUMNS = 80
TIMEOUT_S = 120


class CheckoutError(Exception):
    """A checkout cannot be run, or its program did something unexpected."""


@dataclass(frozen=True)
class Output:
    """How a command ended, and what it printed."""

    status: int
    stdout: str
    stderr: str


@dataclass(frozen=True)
class Checkout:
    """A folder with `src`, and the interpreter that runs it."""

    folder: Path
    python: Path

    @classmethod
    def at(cls, folder: Path, python: Path) -> Checkout:
        """The checkout in a folder: run by the interpreter of its `.venv` if it has one, else by `python`.

        Raises:
            CheckoutError: the folder is not a checkout, or the interpreter imports another one.
        """
        folder = folder.resolve()
        own = folder / ".venv" / "bin" / "python"
        checkout = cls(folder, own if own.exists() else python)
        if not (folder / "src" / "ironbell").is_dir():
            raise CheckoutError(f"{folder} is not a checkout of Ironbell: it has no src/ironbell")
        script = "import ironbell; print(ironbell.__path__[0])"
        done = checkout._run([str(checkout.python), "-c", script], TIMEOUT_S)
        if done.status or Path(done.stdout.strip()) != folder / "src" / "ironbell":
            raise CheckoutError(f"{checkout.python} does not import {folder}/src: {done.stdout}{done.stderr}")
        return checkout

    @property
    def command(self) -> list[str]:
        """The words that start its program."""
        return [str(self.python), "-m", "ironbell"]

    @property
    def environment(self) -> dict[str, str]:
        """The environment of its program: nothing in it depends on who compares."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("IRONBELL_", "PYTHON"))}
        return kept | {
            "PYTHONPATH": str(self.folder / "src"),
            "PYTHONDONTWRITEBYTECODE": "1",
            "COLUMNS": str(COLUMNS),
            "KUBECONFIG": "/nonexistent",
            "LC_ALL": "C.UTF-8",
        }

    def run(self, *words: str, timeout_s: float = TIMEOUT_S) -> Output:
        """Run a command of its program, whatever its exit status.

        Raises:
            CheckoutError: the command does not end in time.
        """
        return self._run([*self.command, *words], timeout_s)

    def printed(self, *words: str, timeout_s: float = TIMEOUT_S) -> str:
        """Run a command that succeeds, and return what it prints.

        Raises:
            CheckoutError: the command fails.
        """
        done = self.run(*words, timeout_s=timeout_s)
        if done.status:
            raise CheckoutError(f"{self.folder}: ironbell {' '.join(words)} failed ({done.status}): {done.stderr}")
        return done.stdout

    def _run(self, command: list[str], timeout_s: float) -> Output:
        try:
            done = subprocess.run(
                command,
                cwd="/",
                env=self.environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=timeout_s,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise CheckoutError(f"{self.folder}: {' '.join(command)}: {error}") from error
        return Output(done.returncode, done.stdout, done.stderr)
