"""How far long work is, on a terminal; nothing where standard error is none."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import click

from ironbell.base.terminal import drawable


@contextmanager
def stages() -> Iterator[Callable[[str], Callable[[int, int], None]]]:
    """A bar for each part of the work: called with its name, gives what is called with how much is done of how much."""
    with ExitStack() as stack:

        def begin(label: str) -> Callable[[int, int], None]:
            stack.close()
            bar: Any = None

            def progress(done: int, total: int) -> None:
                nonlocal bar
                if bar is None:
                    bar = stack.enter_context(click.progressbar(length=total, label=label, file=drawable(sys.stderr)))
                bar.length = total
                bar.update(done - bar.pos)

            return progress if sys.stderr.isatty() else lambda done, total: None

        yield begin
