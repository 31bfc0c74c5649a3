"""Answers of a hostile BMC: a login and an operation of the driver, over what the input makes the BMC say.

Either the driver gets documents, or aiohttp gets the bytes of HTTP answers, compressed ones too.
"""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any, cast

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.http_writer import _serialize_headers
from multidict import CIMultiDict

from ironbell.api.bmc.action import PowerAction
from ironbell.api.bmc.machine import PowerState
from ironbell.api.meta import to_builtin
from ironbell.bmc.driver import BmcError
from ironbell.bmc.redfish import http as http_module
from ironbell.bmc.redfish.driver import RedfishDriver, RedfishTarget, _system_path
from ironbell.bmc.redfish.http import Endpoint, RedfishHttp
from ironbell.bmc.redfish.inventory import MAX_PARTS

from ..checks import Reader, check_line

INSTRUMENTED = ("ironbell.bmc.redfish", "ironbell.bmc.driver")
LONGEST = 4096
WORDS = (
    b'{"@odata.id":"/', b'"Systems":', b'"Members":[', b'"Links":{"Sessions":', b'"SessionService":', b'"PowerState":"On"',
    b'"PowerState":"Off"', b'"Actions":{"#ComputerSystem.Reset":{"target":"/r"', b'"@Redfish.ActionInfo":"/i"',
    b'"ResetType@Redfish.AllowableValues":["ForceOff"]', b'"Parameters":[{"Name":"ResetType","AllowableValues":',
    b'"Boot":{"BootSourceOverrideTarget@Redfish.AllowableValues":["Pxe"]}', b'"@Redfish.Settings":{"SettingsObject":',
    b'"Managers":', b'"VirtualMedia":', b'"MediaTypes":["CD"]', b'"Inserted":true', b'"#VirtualMedia.InsertMedia":{"target":',
    b'"@odata.etag":"', b'"error":{"@Message.ExtendedInfo":[{"Message":"', b'"Severity":"Critical"', b'"Storage":',
    b'"Drives":[', b'"SimpleStorage":', b'"Devices":[', b'"Processors":', b'"Memory":', b'"EthernetInterfaces":',
    b'"Status":{"State":"Absent"', b'"CapacityBytes":1e300', b'"Identifiers":[{"DurableNameFormat":"NAA","DurableName":',
    b"null", b"true", b"-1", b"[]", b"{}", b"\\r\\n", b"\\u202e", b"HTTP/1.1 200 OK\r\n", b"Content-Length: ",
    b"Content-Encoding: gzip\r\n", b"Transfer-Encoding: chunked\r\n", b"X-Auth-Token: t\r\n", b"Location: /s\r\n", b"\r\n\r\n",
    b"ETag: W/\r\n", b"0\r\n\r\n", b"Content-Encoding: br\r\n", b"Content-Encoding: deflate\r\n",
)  # fmt: skip
_STATUS = (200, 200, 200, 201, 204, 400, 401, 403, 404, 405, 409, 412, 428, 500, 503, 301)
_HEADERS = ({}, {"X-Auth-Token": "t", "Location": "/session/1"}, {"ETag": 'W/"1"'}, {"Location": "//x"})
_PASSWORD = "Pw-Zx9-secret"
_MESSAGE = 1500
_MAX_REQUESTS = 16 * MAX_PARTS
_SEPARATOR = b"\n"


class _Bmc:
    """Answers one request after the other, and says the last thing again and again when it has no more to say."""

    def __init__(self, answers: list[bytes]) -> None:
        self._answers = answers or [b""]
        self.asked = 0

    def next(self) -> bytes:
        self.asked += 1
        assert self.asked <= _MAX_REQUESTS, f"one operation asks more than {_MAX_REQUESTS} times"
        return self._answers[min(self.asked, len(self._answers)) - 1]


class _Content:
    def __init__(self, body: bytes) -> None:
        self._body = body

    async def iter_any(self) -> AsyncIterator[bytes]:
        yield self._body


class _Exchange:
    """A request whose answer is a document: the first byte is the status, the second the headers."""

    def __init__(self, bmc: _Bmc, headers: dict[str, str]) -> None:
        self._bmc = bmc
        self._sent = headers

    async def __aenter__(self) -> Any:
        # As aiohttp does; it refuses what would end a header.
        _serialize_headers("GET / HTTP/1.1", CIMultiDict(self._sent))
        answer = self._bmc.next()
        status, kind = (answer[0] % 16, answer[1] % 4) if len(answer) > 1 else (0, 0)
        headers = CIMultiDict(_HEADERS[kind])
        return SimpleNamespace(status=_STATUS[status], headers=headers, content=_Content(answer[2:]))

    async def __aexit__(self, *_: object) -> None:
        pass


class _Session:
    def __init__(self, bmc: _Bmc) -> None:
        self._bmc = bmc

    def request(self, _method: str, url: str, *, headers: dict[str, str], **_: Any) -> _Exchange:
        _check_url(url)
        return _Exchange(self._bmc, headers)

    async def close(self) -> None:
        pass


class _Transport(asyncio.Transport):
    """A connection that gets one answer, and is closed by the BMC."""

    def __init__(self, protocol: ResponseHandler, bmc: _Bmc, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._protocol = protocol
        self._bmc = bmc
        self._loop = loop
        self._is_answered = False
        self._is_closed = False

    def write(self, data: object) -> None:
        if not self._is_answered:
            self._is_answered = True
            self._loop.call_soon(self._answer)

    def _answer(self) -> None:
        if not self._is_closed:
            self._protocol.data_received(self._bmc.next())
            self._protocol.eof_received()
            self.close()

    def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._loop.call_soon(self._protocol.connection_lost, None)

    abort = close

    def is_closing(self) -> bool:
        return self._is_closed


class _Connector(aiohttp.BaseConnector):
    def __init__(self, bmc: _Bmc) -> None:
        super().__init__(force_close=True)
        self._bmc = bmc

    async def _create_connection(self, req: Any, *_: Any) -> ResponseHandler:
        _check_url(str(req.url))
        loop = asyncio.get_running_loop()
        protocol = ResponseHandler(loop)
        protocol.connection_made(_Transport(protocol, self._bmc, loop))
        return protocol


_now: dict[str, Any] = {}
"""The BMC of the current input, and whether aiohttp gets its bytes."""


def _session(**options: Any) -> Any:
    if not _now["in bytes"]:
        return _Session(_now["bmc"])
    return aiohttp.ClientSession(**{**options, "connector": _Connector(_now["bmc"])})


# What the driver opens leads to the input's BMC; nothing else of aiohttp changes.
http_module.aiohttp = SimpleNamespace(  # type: ignore[attr-defined]
    **{**vars(aiohttp), "ClientSession": _session, "TCPConnector": lambda **_: None}
)
_loop = asyncio.new_event_loop()


def _check_url(url: str) -> None:
    assert url.startswith("https://bmc.example"), f"a request goes to another host: {url!r}"


def one(data: bytes) -> None:
    """Operation, then how the BMC is entered; answers are separated by newlines, or by two where they are bytes."""
    reader = Reader(data)
    operation, how = reader.byte(), reader.byte()
    in_bytes = bool(how & 0x80)
    answers = reader.rest().split(_SEPARATOR * 2 if in_bytes else _SEPARATOR)
    _now.update({"bmc": _Bmc(answers), "in bytes": in_bytes})
    endpoint = Endpoint("bmc.example", username="root", password=_PASSWORD, use_basic_auth=bool(how & 1))
    target = RedfishTarget(endpoint, "node" if how & 2 else "")
    try:
        _loop.run_until_complete(_operate(target, operation))
    except BmcError as error:
        check_line(error.message, _MESSAGE, "the error's message")
        assert _PASSWORD not in error.message, "the password is in the error's message"


async def _operate(target: RedfishTarget, operation: int) -> None:
    http = RedfishHttp(target.endpoint)
    try:
        await http.open()
        driver = RedfishDriver(http, target, await _system_path(http, target))
        await _carried_out(driver, operation)
    finally:
        await http.close()


async def _carried_out(driver: RedfishDriver, operation: int) -> None:
    match operation & 7:
        case 0:
            assert isinstance(await driver.power_state(), PowerState)
        case 1 | 2:
            await driver.set_power(list(PowerAction)[(operation >> 3) % len(PowerAction)])
        case 3:
            device = ("pxe", "disk", "none", "uefi_http")[operation >> 3 & 3]
            await driver.set_boot_device(device, persistent=bool(operation & 64), efi=bool(operation & 128))
        case 4:
            await driver.insert_media("http://192.0.2.1/a.iso", kind="CD")
        case 5:
            await driver.eject_media(kind="CD")
        case _:
            _check_inventory(cast(dict[str, Any], to_builtin(await driver.inventory())))


def _check_inventory(found: Any) -> None:
    if isinstance(found, dict):
        for value in found.values():
            _check_inventory(value)
    elif isinstance(found, list):
        assert len(found) <= MAX_PARTS, "there are more parts of a kind than are read"
        for value in found:
            _check_inventory(value)
    elif isinstance(found, str):
        assert len(found) <= 256
    else:
        assert isinstance(found, bool | None) or 0 <= found < 1 << 83


_ROOT = b'\0\0{"Systems":{"@odata.id":"/c"},"Managers":{"@odata.id":"/m"},"Links":{"Sessions":{"@odata.id":"/l"}}}'
_LOGIN = b"\3\1{}"
_SYSTEMS = b'\0\0{"Members":[{"@odata.id":"/s"}]}'
_RESET = (
    b'\0\2{"Name":"node","PowerState":"Off","Actions":{"#ComputerSystem.Reset":{"target":"/r",'
    b'"ResetType@Redfish.AllowableValues":["On","ForceOff"]}},"Boot":{}}'
)
_WITH_INFO = (
    b'\0\0{"PowerState":"On","Actions":{"#ComputerSystem.Reset":{"target":"/r","@Redfish.ActionInfo":"/i"}},'
    b'"Boot":{"BootSourceOverrideTarget@Redfish.AllowableValues":["Pxe","Hdd"]},'
    b'"@Redfish.Settings":{"SettingsObject":{"@odata.id":"/t"}}}'
)
_INFO = b'\0\0{"Parameters":[{"Name":"ResetType","AllowableValues":["ForceOff","ForceRestart"]}]}'
_DONE, _REFUSED, _CHANGED = b"\4\0", b'\5\0{"error":{"@Message.ExtendedInfo":[{"Message":"no"}]}}', b"\x0b\0"
_MANAGER = b'\0\0{"VirtualMedia":{"@odata.id":"/v"},"Manufacturer":"x","Status":{"Health":"OK"}}'
_SLOT = (
    b'\0\0{"MediaTypes":["CD","DVD"],"Inserted":true,"Actions":{"#VirtualMedia.InsertMedia":{"target":"/n"},'
    b'"#VirtualMedia.EjectMedia":{"target":"/e"}}}'
)
_MACHINE = (
    b'\0\0{"Manufacturer":"Dell","Model":"R640","MemorySummary":{"TotalSystemMemoryGiB":64},'
    b'"Processors":{"@odata.id":"/p"},"Memory":{"@odata.id":"/d"},"EthernetInterfaces":{"@odata.id":"/e"},'
    b'"Storage":{"@odata.id":"/g"},"Links":{"Chassis":[{"@odata.id":"/h"}],"ManagedBy":[{"@odata.id":"/b"}]}}'
)
_PART = b'\0\0{"Id":"1","TotalCores":8,"CapacityMiB":32,"Drives":[{"@odata.id":"/x"}],"MACAddress":"AA","SpeedMbps":1}'
_DRIVE = b'\0\0{"Id":"d","CapacityBytes":480,"FailurePredicted":true,"Identifiers":[{"DurableNameFormat":"NAA","DurableName":"5"}]}'
_MANY = b",".join([b'{"@odata.id":"/m"}'] * MAX_PARTS)
_EVERYTHING = b'\0\0{"Storage":{"@odata.id":"/g"},"Members":[' + _MANY + b'],"Drives":[' + _MANY + b"]}"


def _talk(operation: int, *answers: bytes, how: int = 0) -> bytes:
    return bytes((operation, how)) + _SEPARATOR.join(answers)


def _http(body: bytes, *headers: bytes) -> bytes:
    # Bare line ends would separate answers.
    lines = [b"HTTP/1.1 200 OK", b"Content-Length: %d" % len(body), *headers]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


_ZIPPED = gzip.compress(_SYSTEMS[2:], mtime=0)
_ENTERED = (_ROOT, _LOGIN, _SYSTEMS)
SEEDS = (
    _talk(0, *_ENTERED, _RESET),
    _talk(0, _ROOT, _SYSTEMS, _RESET, how=1),
    _talk(0, *_ENTERED, _RESET, _RESET, how=2),
    *(_talk(1 | command << 3, *_ENTERED, _RESET, _DONE) for command in range(5)),
    *(_talk(1 | command << 3, *_ENTERED, _WITH_INFO, _INFO, _REFUSED, _RESET) for command in range(5)),
    _talk(3, *_ENTERED, _RESET, _RESET, _RESET, _DONE),
    _talk(3 | 128, *_ENTERED, _WITH_INFO, _WITH_INFO, _WITH_INFO, _REFUSED, _WITH_INFO, _CHANGED),
    _talk(4, *_ENTERED, _SYSTEMS, _MANAGER, _MANAGER, _SYSTEMS, _SLOT, _DONE, _DONE),
    _talk(5, *_ENTERED, _SYSTEMS, _MANAGER, _MANAGER, _SYSTEMS, _SLOT, _DONE),
    _talk(6, *_ENTERED, _MACHINE, _SYSTEMS, _PART, _SYSTEMS, _PART, _SYSTEMS, _PART, _PART, _MANAGER, _SYSTEMS, _PART, _DRIVE),
    _talk(6, *_ENTERED, _EVERYTHING),
    _talk(0, _ROOT, b"\6\0{}", _LOGIN, _SYSTEMS, _RESET),
    bytes((0, 0x81)) + b"\n\n".join((_http(_ROOT[2:]), _http(_ZIPPED, b"Content-Encoding: gzip"), _http(_RESET[2:]))),
    bytes((0, 0x80)) + b"\n\n".join((_http(_ROOT[2:]), _http(b"{}", b"X-Auth-Token: t"), _http(_SYSTEMS[2:]))),
)  # fmt: skip
