"""What children of a site report: a process toward machines may say anything without ending the others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ironbell.app.site.options import UpOptions
from ironbell.app.site.up import Site
from ironbell.app.wire.config import BOOT_PROCESS


@pytest.mark.parametrize(
    "report",
    [
        {"event": "bound", "what": 1, "from": "core", "sender": [], "self": 1, "level": "x"},
        {"event": ["ready"], "kubeconfig": 7},
        {"event": None},
    ],
)
async def test_any_report_is_only_logged(report: dict[str, Any]) -> None:
    ready: list[Path] = []
    site = Site(UpOptions(data_dir="/nowhere"), ready.append)
    await site._reported(BOOT_PROCESS, report)
    assert ready == []
