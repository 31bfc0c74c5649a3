"""The program that our default template installs: what it sends of a bootstrap that failed, and when nothing."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from aiohttp import web

from ironbell.provisioner.default_template import PROGRAM
from ironbell.services.metadata.reports import StageReport, parse_report

CONFIG = """\
datasource: {{Ec2: {{strict_id: false}}}}
reporting:
  ironbell: {{type: webhook, endpoint: "{endpoint}"}}
  other: {{type: log}}
"""
LOG = """\
[preflight] Running pre-flight checks
error execution phase preflight: [ERROR Swap]: running with swap on is not supported
2026-01-01 00:00:00,000 - cc_scripts_user.py[WARNING]: Failed to run module scripts-user
Cloud-init v. 22.4.2 finished at Thu, 01 Jan 2026 00:00:00 +0000. Up 20 seconds
"""


async def sent(folder: Path, result: str) -> list[StageReport]:
    """What arrives when systemd runs the program after a stage that ended so."""
    reports: list[StageReport] = []

    async def take(request: web.Request) -> web.Response:
        reports.append(parse_report(await request.read()))
        return web.Response(text="ok\n")

    application = web.Application()
    application.add_routes([web.post("/reports/cloud-init", take)])
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    endpoint = f"http://127.0.0.1:{runner.addresses[0][1]}/reports/cloud-init"
    (folder / "10_tinkerbell.cfg").write_text(CONFIG.format(endpoint=endpoint))
    (folder / "empty.cfg").write_text("")
    (folder / "output.log").write_text("noise\n" * 20_000 + LOG)
    text = PROGRAM.replace("/etc/cloud/cloud.cfg.d", str(folder))
    text = text.replace("/var/log/cloud-init-output.log", str(folder / "output.log"))
    program = folder / "program"
    program.write_text(text)
    try:
        environment = {**os.environ, "SERVICE_RESULT": result}
        process = await asyncio.create_subprocess_exec(sys.executable, str(program), env=environment)
        async with asyncio.timeout(30):
            assert await process.wait() == 0
    finally:
        await runner.cleanup()
    return reports


async def test_the_end_of_the_output_is_sent_without_what_cloud_init_says_of_itself(tmp_path: Path) -> None:
    (report,) = await sent(tmp_path, "exit-code")
    assert (report.stage, report.ok) == ("modules-final", False)
    assert report.output[-2:] == (
        "[preflight] Running pre-flight checks",
        "error execution phase preflight: [ERROR Swap]: running with swap on is not supported",
    )
    assert len(report.output) == 20


async def test_nothing_is_sent_when_the_stage_succeeded(tmp_path: Path) -> None:
    assert await sent(tmp_path, "success") == []
