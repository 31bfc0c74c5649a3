"""Reports of cloud-init: a request through the HTTP handler, and what becomes of the report on the Hardware."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import cast

import msgspec
from aiohttp import web

from ironbell.api.meta import ObjectMeta
from ironbell.api.tinkerbell.hardware import Hardware, HardwareSpec
from ironbell.api.tinkerbell.interface import Dhcp, Interface, Ip
from ironbell.base.printable import plain
from ironbell.contract.redaction import last_lines, without_secrets
from ironbell.contract.servers.boot_progress import BootEvent, BootStage
from ironbell.contract.servers.directory import HardwareDirectory
from ironbell.provisioner.installed_system import SystemFailure, decoded, encoded
from ironbell.services.metadata.http import MetadataHttp
from ironbell.services.metadata.reports import (
    MAX_BODY_BYTES,
    OUTPUT_LINES,
    OUTPUT_WIDTH,
    ReportError,
    StageReport,
    parse_report,
)

from ..checks import check_line

INSTRUMENTED = (
    "ironbell.services.metadata.reports", "ironbell.services.metadata.http", "ironbell.contract.redaction",
    "ironbell.base.printable", "ironbell.provisioner.installed_system",
)  # fmt: skip
LONGEST = 4096
WORDS = (
    b'"name": "', b'"event_type": "finish"', b'"event_type": "start"', b'"description": "', b'"result": "FAIL"',
    b'"result": "SUCCESS"', b'"duration": 1.5', b'"output": "', b"modules-final", b"modules-config/config-runcmd",
    b"init-network/search-", b"scripts_user", b"\\u001b[31m", b"\\u009b", b"\\ud83d\\ude00", b"\\ud800", b"\\n", b"\\r",
    b"-----BEGIN RSA PRIVATE KEY-----", b"-----END RSA PRIVATE KEY-----", b"--token ", b"password: ", b"abcdef.0123456789abcdef",
    b"Bearer ", b"eyJhbGciOi", b"https://user:pass@", b"sha256:", b"\\u202e", b"\\u2028",
)  # fmt: skip
_ADDRESS = "192.0.2.50"
_SECRET = "Zx9-secret-Q7"
_MESSAGE = 300
_SEEN: list[BootEvent] = []


def _directory() -> HardwareDirectory:
    interface = Interface(dhcp=Dhcp(mac="02:00:00:00:00:01", ip=Ip(address=_ADDRESS, netmask="255.255.255.0")))
    directory = HardwareDirectory()
    directory.upsert(
        Hardware(metadata=ObjectMeta(name="a", namespace="lab"), spec=HardwareSpec(interfaces=[interface]))
    )
    return directory


_loop = asyncio.new_event_loop()
_handlers = MetadataHttp(_directory(), lambda *_: None, _SEEN.append)


class _Content:
    def __init__(self, body: bytes, size: int) -> None:
        self._body = body
        self._size = size

    async def iter_any(self) -> AsyncIterator[bytes]:
        for start in range(0, len(self._body), self._size):
            yield self._body[start : start + self._size]


class _Request:
    """What the handler reads of a request."""

    def __init__(self, body: bytes, size: int) -> None:
        self.remote = _ADDRESS
        self.match_info: dict[str, str] = {}
        self.content = _Content(body, size)


async def _status(body: bytes, size: int) -> int:
    """The status of the answer."""
    try:
        return (await _handlers.report(cast(web.Request, _Request(body, size)))).status
    except web.HTTPException as error:
        return error.status


def one(data: bytes) -> None:
    """The first byte says in which pieces the body comes; 0xFF repeats it beyond the limit."""
    if not data:
        return
    body = data[1:] * (MAX_BODY_BYTES // max(1, len(data) - 1) + 2) if data[0] == 0xFF else data[1:]
    _check_redaction(data.decode("utf-8", "replace"))
    _SEEN.clear()
    status = _loop.run_until_complete(_status(body, data[0] + 1))
    assert status in {200, 400}
    assert len(_SEEN) <= 1, "one report is told twice"
    try:
        report = parse_report(body)
    except ReportError as error:
        assert status == 400
        check_line(error.message, 400, "the error's message")
        return
    assert status == (200 if len(body) <= MAX_BODY_BYTES else 400)
    _check_report(report)
    for event in _SEEN:
        _check_event(event)


def _check_report(report: StageReport) -> None:
    check_line(report.stage, 100, "the stage")
    check_line(report.message, _MESSAGE, "the message")
    assert len(report.output) <= OUTPUT_LINES
    for line in report.output:
        check_line(line, OUTPUT_WIDTH, "a line of the output")
    assert report.ok is False or not report.output
    assert not report.fails_bootstrap or report.ok is False
    assert not report.is_final or report.stage == "modules-final"


def _check_event(event: BootEvent) -> None:
    assert event.stage in {BootStage.PROBLEM, BootStage.INSTALLED, BootStage.INSTALLED_WITH_ERRORS}
    check_line(event.message, _MESSAGE + 150, "the event's message")
    failure = SystemFailure("2026-01-01T00:00:00Z", event.failed, event.message, list(event.output))
    text = encoded(failure)
    assert decoded(text) == failure, "a failure that was stored reads otherwise"
    assert len(text) < 64 << 10


def _check_redaction(text: str) -> None:
    assert _SECRET not in without_secrets(f"password: {_SECRET} {text}"), "a password is shown"
    for line in last_lines(f"{text}\n--token={_SECRET}", lines=OUTPUT_LINES, width=OUTPUT_WIDTH):
        check_line(line, OUTPUT_WIDTH, "a line of the output")
        assert _SECRET not in line, "a token is shown"
    assert len(plain(text)) <= len(text)


def _report(**fields: object) -> bytes:
    return b"\x40" + msgspec.json.encode(fields)


SEEDS = (
    _report(name="init-local", event_type="start", description="starting", origin="cloudinit", timestamp=1.5),
    _report(name="modules-final", event_type="finish", description="done", result="SUCCESS", duration=2.5),
    _report(name="modules-final", event_type="finish", description="failed", result="FAIL", output="a\nb --token x\n" * 9),
    _report(name="modules-config/config-runcmd", event_type="finish", result="FAIL", output="\x1b[31mred\x1b[0m\r\nx"),
    _report(name="init-network/search-Ec2", event_type="finish", result="FAIL", output="password: x"),
    _report(name="modules-final/config-scripts_user", event_type="finish", result="FAIL", output="a-" * 500),
    _report(name="x", event_type="other"),
    _report(name="x", event_type="finish", description="-----BEGIN KEY-----\nabc\n-----END KEY-----" * 3),
    _report(name="x", event_type="finish", result="FAIL", output="https://u:p@h/ eyJhbGciOi.eyJpc3M " + "5f" * 32),
    b"\xff" + b"{}", b"\x01[]", b"\x01" + b"[" * 500,
)  # fmt: skip
