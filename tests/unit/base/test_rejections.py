"""What is rejected is one line per machine and minute, with a count."""

from __future__ import annotations

import asyncio
import logging

import structlog

from ironbell.base.rejections import OTHERS, Rejections
from support.waiting import until


async def test_a_flood_is_one_line_and_then_one_with_a_count_per_period() -> None:
    rejections = Rejections(period_s=0.05)
    with structlog.testing.capture_logs() as logged:
        for number in range(500):
            rejections.log("192.0.2.1", "report rejected", why=f"number {number}", text="x" * 100_000)
        assert [line["why"] for line in logged] == ["number 0"]
        assert len(str(logged)) < 1000
        await until(lambda: len(logged) >= 2)
    assert {"count": 499, "why": "number 499", "machine": "192.0.2.1", "log_level": "warning"}.items() <= logged[
        1
    ].items()


async def test_a_machine_that_is_quiet_for_a_period_is_logged_at_once_again() -> None:
    rejections = Rejections(period_s=0.02, level=logging.INFO)
    with structlog.testing.capture_logs() as logged:
        rejections.log("192.0.2.1", "one")
        await asyncio.sleep(0.1)  # several periods
        rejections.log("192.0.2.1", "two")
    assert [(line["event"], line["log_level"]) for line in logged] == [("one", "info"), ("two", "info")]


async def test_machines_have_a_line_each_and_too_many_share_one() -> None:
    rejections = Rejections(max_machines=3)
    with structlog.testing.capture_logs() as logged:
        for number in range(1000):
            rejections.log(f"192.0.2.{number}", "rejected")
    assert [line["machine"] for line in logged] == ["192.0.2.0", "192.0.2.1", "192.0.2.2", OTHERS]
