"""Every asynchronous test of this package runs on virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import looptime
import pytest


def virtual_loop() -> asyncio.AbstractEventLoop:
    loop: asyncio.AbstractEventLoop = looptime.new_event_loop(start=0.0)
    return loop


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"virtual": virtual_loop}
