"""Running commands several at a time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

_Value = TypeVar("_Value")
_Result = TypeVar("_Result")


def in_parallel(values: Iterable[_Value], work: Callable[[_Value], _Result]) -> list[_Result]:
    """The results of `work` in the order of the values, with as many commands at a time as there are processors."""
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        return list(pool.map(work, values))
