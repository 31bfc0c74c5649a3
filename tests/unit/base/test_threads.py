"""One processor is left to the event loop, and modules are loaded by one thread at a time."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time

from ironbell.base.threads import SpareProcessors, load

BOTH_ENDS = """
import asyncio
from ironbell.base.threads import load

def root():
    import ironbell.contract.clusters.name_templates

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


async def test_one_processor_is_left_to_the_loop() -> None:
    spare = SpareProcessors(3)
    running, most = 0, 0
    counted, both = threading.Lock(), threading.Barrier(2)

    def work() -> None:
        nonlocal running, most
        with counted:
            running += 1
            most = max(most, running)
        both.wait(10)
        with counted:
            running -= 1

    async with asyncio.timeout(20):
        await asyncio.gather(*(spare.run(work) for _ in range(6)))
    assert most == 2


async def test_what_the_work_returns_and_raises_comes_back() -> None:
    spare = SpareProcessors(1)
    assert await spare.run(divmod, 7, 2) == (3, 1)
    assert isinstance((await asyncio.gather(spare.run(int, "x"), return_exceptions=True))[0], ValueError)
