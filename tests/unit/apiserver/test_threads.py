"""Requests that need a thread are answered whatever keeps the threads of the rest of the process."""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading

import pytest

from ironbell.apiserver.http import answers
from ironbell.apiserver.threads import in_thread


async def test_the_api_has_threads_of_its_own() -> None:
    released = threading.Event()
    shared = min(32, (os.cpu_count() or 1) + 4)
    taken = [asyncio.create_task(asyncio.to_thread(released.wait)) for _ in range(2 * shared)]
    await asyncio.sleep(0)  # each of them is in line for a thread now
    try:
        async with asyncio.timeout(5):
            body = b'{"kind":"ConfigMapList","apiVersion":"v1","metadata":{},"items":[]}'
            large = body[:-2] + b",".join([b'{"metadata":{"name":"a"}}'] * 20_000) + b"]}"
            assert (await answers._protobuf(large)).startswith(b"k8s\0")
    finally:
        released.set()
        await asyncio.gather(*taken)


async def test_work_sees_the_context_of_its_request_and_its_errors_arrive() -> None:
    variable = contextvars.ContextVar("variable", default="")
    variable.set("request")
    assert await in_thread(variable.get) == "request"
    with pytest.raises(ValueError, match="invalid literal"):
        await in_thread(int, "x")
