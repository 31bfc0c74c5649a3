"""The process that fuzzes one target: `python -m tests.fuzz.engine TARGET CORPUS ARTEFACTS [SEED]`.

libFuzzer, within atheris, writes to standard error what it reaches; a line `inputs N` follows each second. An input
that raises, takes too long or too much memory ends the process and is left in the folder of artefacts.

Source: llvm.org/docs/LibFuzzer.html (options, output); google/atheris: README.md.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HANG_S = 300
"""After so long an input hangs, in whatever it waits; long, since the machine may be busy with others."""
MEMORY_MB = 1024
_PDEATHSIG = 1


@contextmanager
def _instrumenting(names: tuple[str, ...]) -> Iterator[None]:
    """Instrument the modules of these names and below; atheris alone takes whole distributions."""
    from atheris.import_hook import AtherisMetaPathFinder

    class Finder(AtherisMetaPathFinder):  # type: ignore[misc]
        def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:
            if not any(fullname == name or fullname.startswith(f"{name}.") for name in names):
                return None
            return super().find_spec(fullname, path, target)

    finder = Finder({name.partition(".")[0] for name in names}, set(), True, True)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


def _counted(one: Callable[[bytes], None]) -> Callable[[bytes], None]:
    """The same, and each second a line with the number of inputs so far."""
    from .checks import bounded

    count, told = 0, time.monotonic()

    def counting(data: bytes) -> None:
        nonlocal count, told
        count += 1
        with bounded():
            one(data)
        if (now := time.monotonic()) - told >= 1:
            told = now
            os.write(2, f"inputs {count}\n".encode())

    return counting


def _dictionary(folder: Path, words: tuple[bytes, ...]) -> Path:
    path = folder / "words"
    lines = ['"' + "".join(f"\\x{byte:02x}" for byte in word) + '"\n' for word in words]
    path.write_text("".join(lines), "ascii")
    return path


def main(name: str, corpus: str, artefacts: str, seed: str = "0") -> None:
    """Fuzz until something is found, or for ever."""
    ctypes.CDLL(None).prctl(_PDEATHSIG, signal.SIGKILL)
    import atheris

    from . import corpus as committed
    from . import targets
    from .checks import silence

    silence()

    with _instrumenting(_instrumented(name)):
        target = targets.load(name)
    for number, data in enumerate([*target.SEEDS, *committed.read(name)]):
        (Path(corpus) / f"known-{number:04}").write_bytes(data)
    words = _dictionary(Path(artefacts), target.WORDS)
    options = [
        f"-artifact_prefix={artefacts}/", f"-timeout={HANG_S}", f"-rss_limit_mb={MEMORY_MB}", f"-dict={words}",
        f"-max_len={target.LONGEST}", f"-seed={seed}", "-print_funcs=0", "-len_control=20",
    ]  # fmt: skip
    atheris.Setup([sys.argv[0], *options, corpus], _counted(target.one))
    atheris.Fuzz()


def _instrumented(name: str) -> tuple[str, ...]:
    """What the target wants instrumented, read before the target is imported: importing it imports the product."""
    import ast

    source = (Path(__file__).parent / "targets" / f"{name}.py").read_text()
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "INSTRUMENTED":
            return tuple(ast.literal_eval(node.value))
    raise LookupError(f"{name} does not say what is INSTRUMENTED")


if __name__ == "__main__":
    main(*sys.argv[1:])
