"""A TLS context follows its files, and costs nothing where there are none."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest

from ironbell.base.clock import ManualClock
from ironbell.kube.transport.tls_sources import CHECK_INTERVAL_S, FileTls


def new_context() -> ssl.SSLContext:
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


async def test_a_context_is_made_anew_when_its_file_has_changed(tmp_path: Path) -> None:
    file, clock = tmp_path / "ca.crt", ManualClock()
    file.write_text("one")
    source = FileTls(new_context, [file], clock=clock)
    first = await source()
    file.write_text("another")
    assert await source() is first
    clock.advance(CHECK_INTERVAL_S)
    second = await source()
    assert second is not first
    clock.advance(CHECK_INTERVAL_S)
    assert await source() is second


async def test_without_files_nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = ManualClock()
    source = FileTls(new_context, [], clock=clock)
    first = await source()

    def threads(*_arguments: object) -> None:
        raise AssertionError("a thread was asked to look at no files")

    monkeypatch.setattr(asyncio, "to_thread", threads)
    clock.advance(10 * CHECK_INTERVAL_S)
    assert await source() is first
