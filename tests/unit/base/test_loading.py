"""Modules are loaded by one thread at a time: half-made ones are seen by nobody."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time

from ironbell.base.loading import load

BOTH_ENDS = """
import asyncio
from ironbell.base.loading import load

def root():
    import ironbell.contract.name_templates

def parts():
    import ironbell.codec.gotemplate.functions

async def main():
    await asyncio.gather(load(root), load(parts))

asyncio.run(main())
"""


async def test_one_after_the_other() -> None:
    at_work, most = 0, 0

    def work(number: int) -> int:
        nonlocal at_work, most
        at_work += 1
        most = max(most, at_work)
        time.sleep(0.01)
        at_work -= 1
        return number

    assert await asyncio.gather(*(load(lambda number=number: work(number)) for number in range(8))) == list(range(8))
    assert most == 1


def test_a_package_is_loaded_from_both_ends_at_once() -> None:
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", BOTH_ENDS], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
