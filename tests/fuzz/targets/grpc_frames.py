"""gRPC: the bytes of a connection to the workflow service, through the frame guard, h2, grpclib and the real services.

The API is in memory and the log of actions in a folder of this process; both are made anew once an input has changed
something, so that an input does the same each time.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import shutil
import struct
import tempfile
import traceback
from pathlib import Path
from typing import Any

import msgspec
from hpack import Encoder

from ironbell.api.client import PatchType
from ironbell.api.tinkerbell.hardware import HARDWARE
from ironbell.api.tinkerbell.workflow import WORKFLOW
from ironbell.base.clock import ManualClock
from ironbell.codec.proto import log_pb2, workflow_pb2
from ironbell.contract.servers.directory import HardwareDirectory
from ironbell.kube.testing.memory import MemoryApi
from ironbell.services.workflow.index import WorkflowTable
from ironbell.services.workflow.port import receive
from ironbell.services.workflow.port.connections import ConnectionLimits
from ironbell.services.workflow.port.protocol import GuardedProtocol, GuardedServer
from ironbell.services.workflow.port.server import Options, WorkflowServer

from ..checks import Reader, piece

INSTRUMENTED = (
    "ironbell.codec.http2", "ironbell.services.workflow", "ironbell.contract.servers.boot_token", "ironbell.contract.servers.identity",
    "grpclib", "h2.connection", "h2.stream",
)  # fmt: skip
LONGEST = 2048
WORDS = (
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"application/grpc", b"grpc-timeout", b"1S", b"52:54:00:00:00:01", b"default/one",
    b"id-a", b"task-one", b"\x00\x00\x00\x04\x00\x00\x00\x00\x00", b"\x00\x00\x04\x08\x00\x00\x00\x00\x00", b"one",
)  # fmt: skip
AGENT = "52:54:00:00:00:01"
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_SETTINGS = b"\0\0\0\4\0\0\0\0\0"
_PATHS = (
    "/proto.WorkflowService/GetAction", "/proto.WorkflowService/ReportActionStatus", "/ironbell.LogService/Append",
    "/ironbell.LogService/ReportMachine", "/ironbell.HeartbeatService/Beat", "/nothing/Here",
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
)  # fmt: skip
_TURNS = 50
"""Of the event loop after each piece, at most: more than any call takes that waits for nothing."""
_MAX_SENT = 64 << 10
_LIMITS = ConnectionLimits(total=64)


def _block(path: str, *more: tuple[str, str], kind: str = "application/grpc") -> bytes:
    """Headers of a call that change nothing in the table of the connection."""
    head = [(":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "x"), ("te", "trailers")]
    encoder = Encoder()
    encoder.header_table_size = 0
    return bytes(encoder.encode([*head, ("content-type", kind), *more], huffman=False))


_BLOCKS = (
    *map(_block, _PATHS),
    _block(_PATHS[0], ("ironbell-boot-id", "b"), ("ironbell-heartbeat", "10"), ("grpc-timeout", "1S")),
    _block(_PATHS[0], ("ironbell-boot-id", "b"), ("ironbell-actions", "image2disk,reboot"), ("grpc-timeout", "0n")),
    _block(_PATHS[1], ("ironbell-boot-token", "t")),
    _block(_PATHS[0], ("grpc-encoding", "gzip")),
    _block(_PATHS[0], kind="text/plain"),
    _block("/" + "x" * 2000),
    _block(_PATHS[0], ("a", "b" * 3000)),
    b"\x82",
)  # fmt: skip


class _Transport(asyncio.Transport):
    """A connection that takes everything."""

    def __init__(self) -> None:
        super().__init__()
        self.sent = bytearray()
        self.is_closed = False

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("192.0.2.9", 4000) if name == "peername" else default

    def write(self, data: Any) -> None:
        self.sent += data

    def close(self) -> None:
        self.is_closed = True

    abort = close

    def is_closing(self) -> bool:
        return self.is_closed

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass


class _Seen(logging.Handler):
    """What grpclib reports of calls that failed by a defect."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.errors: list[BaseException | None] = []

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        frames = traceback.extract_tb(error.__traceback__) if error is not None else []
        # What grpclib raises of its own is how it ends a call that is none, or that its caller's deadline ends.
        if any("/ironbell/" in frame.filename for frame in frames) and not isinstance(error, TimeoutError):
            self.errors.append(error)


class _Site:
    """The services over an API with a Workflow that waits, one that runs, and the Hardware of their machine."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.api = MemoryApi(clock=ManualClock())
        self.index = WorkflowTable()
        self.directory = HardwareDirectory()
        options = Options(log_folder=folder, replica="one", hold_s=0, directory=self.directory, connections=_LIMITS)
        self.server = WorkflowServer(self.api, self.index, options, clock=ManualClock())
        self.connections = self.server.connections
        self.grpc: GuardedServer
        self.version = 0

    async def fill(self) -> None:
        self.api.serve([HARDWARE, WORKFLOW])
        hardware = {"metadata": {"name": "m"}, "spec": {"agentID": AGENT, "interfaces": [{"dhcp": {"mac": AGENT}}]}}
        body = await self.api.create(HARDWARE.collection, "default", msgspec.json.encode(hardware))
        self.directory.upsert(HARDWARE.decode(body))
        await self._workflow("one", AGENT, "PENDING")
        await self._workflow("two", "52:54:00:00:00:02", "RUNNING")
        self.grpc = GuardedServer(self.server._services, self.connections)
        self.version = self.api.version

    async def _workflow(self, name: str, agent: str, state: str) -> None:
        body = {"metadata": {"name": name}, "spec": {"templateRef": "t", "hardwareRef": "m" if name == "one" else ""}}
        await self.api.create(WORKFLOW.collection, "default", msgspec.json.encode(body))
        action = {"id": "id-a", "name": "a", "image": "quay.io/tinkerbell/actions/reboot:latest", "timeout": 60}
        actions = [{**action, "state": state}, {**action, "id": "id-b", "name": "b", "state": "PENDING"}]
        tasks = [{"id": f"task-{name}", "name": "os", "agentID": agent, "actions": actions}]
        current = {"agentID": agent, "taskID": f"task-{name}", "actionID": "id-a", "state": state}
        status = {"agentID": agent, "state": state, "tasks": tasks}
        status |= {"currentState": current} if state == "RUNNING" else {}
        change = msgspec.json.encode({"status": status})
        stored = await self.api.patch(
            WORKFLOW.collection, "default", name, change, patch_type=PatchType.MERGE, subresource="status"
        )
        self.index.upsert(WORKFLOW.decode(stored))

    def is_changed(self) -> bool:
        return self.api.version != self.version or bool(self.server._store._open)


_loop = asyncio.new_event_loop()
_seen = _Seen()
_wrong: list[dict[str, Any]] = []
_loop.set_exception_handler(lambda _, context: _wrong.append(context))
_folder = Path(tempfile.mkdtemp(prefix="ironbell-fuzz-"))
atexit.register(shutil.rmtree, _folder, ignore_errors=True)
_sites: list[_Site] = []


async def _site() -> _Site:
    """The site, made anew where the input before has changed it."""
    if _sites and not _sites[0].is_changed():
        return _sites[0]
    _sites.clear()
    shutil.rmtree(_folder, ignore_errors=True)
    site = _Site(_folder)
    await site.fill()
    logger = logging.getLogger("grpclib.server")
    logger.handlers = [_seen]
    _sites.append(site)
    return site


def one(data: bytes) -> None:
    """The first byte chooses: bytes as they are, in pieces; or frames, whose lengths are in order."""
    reader = Reader(data)
    how = reader.byte()
    rest = reader.rest()
    if how & 1:
        pieces = [_PREFACE + _SETTINGS, *_frames(Reader(rest))]
    else:
        size = max(1, how * 8)
        whole = (_PREFACE if how & 2 else b"") + rest
        pieces = [whole[start : start + size] for start in range(0, len(whole), size)]
    _seen.errors.clear()
    _wrong.clear()
    _loop.run_until_complete(_connection(pieces))
    assert not _seen.errors, f"a call failed by a defect: {_seen.errors!r}"
    assert not _wrong, f"the event loop was told: {_wrong!r}"


def _frames(reader: Reader) -> list[bytes]:
    """Frames: type, flags, stream, then for headers which ones, for a message its body, else a payload."""
    found = []
    while len(reader) and len(found) < 64:
        kind, flags, stream = reader.byte(), reader.byte(), reader.byte()
        if kind & 0x40:
            block = _BLOCKS[reader.byte() % len(_BLOCKS)]
            found.append(_frame(1, flags & 1 | 4, stream | 1, block))
        elif kind & 0x80:
            body = reader.piece()
            found.append(_frame(0, flags & 1, stream | 1, struct.pack(">?I", bool(flags & 2), len(body)) + body))
        else:
            found.append(_frame(kind & 0xF, flags, stream, reader.take(reader.byte())))
    return found


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return struct.pack(">I", len(payload))[1:] + bytes((kind, flags)) + struct.pack(">I", stream) + payload


async def _connection(pieces: list[bytes]) -> None:
    site = await _site()
    protocol: GuardedProtocol = site.grpc._protocol_factory()
    transport = _Transport()
    protocol.connection_made(transport)
    for data in pieces:
        protocol.data_received(data)
        for _ in range(_TURNS):
            await asyncio.sleep(0)
            if not _loop._ready:  # type: ignore[attr-defined]
                break
    protocol.connection_lost(None)
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    if tasks:
        _, late = await asyncio.wait(tasks, timeout=120)
        assert not late, f"a call goes on without its connection: {late!r}"
    _check_sent(bytes(transport.sent), sum(map(len, pieces)))
    _check_nothing_stays(site)


def _check_sent(sent: bytes, received: int) -> None:
    """What was sent is frames, and not far more than what came in."""
    assert len(sent) <= _MAX_SENT + 64 * received, f"{len(sent)} bytes are sent for {received}"
    position = 0
    while position < len(sent):
        assert len(sent) - position >= 9, "the last frame has no head"
        size = int.from_bytes(sent[position : position + 3], "big")
        assert size <= 16384, "a frame is larger than any client takes"
        position += 9 + size
    assert position == len(sent), "the last frame is cut"


def _check_nothing_stays(site: _Site) -> None:
    connections = site.connections
    assert len(connections) == 0, "a connection stays"
    assert connections._calls == 0, "a call stays counted"
    assert not connections._idle
    for address in connections._addresses.values():
        assert (address.connections, address.calls, len(address.idle)) == (0, 0, 0), "something stays of an address"
    connections._addresses.clear()
    assert receive._ROOM._reserved == 0, "room for a message stays taken"
    assert not receive._ROOM._by_address


def _call(number: int, body: bytes, stream: int = 1, flags: int = 1) -> bytes:
    return bytes((0x40, 0, stream, number)) + bytes((0x80, flags, stream)) + piece(body)


_ASK = workflow_pb2.ActionRequest(
    agent_id=AGENT, agent_attributes=workflow_pb2.AgentAttributes(cpu=workflow_pb2.CPU(total_cores=2))
).SerializeToString()
_REPORT = workflow_pb2.ActionStatusRequest(
    workflow_id="default/two", task_id="task-two", action_id="id-a", agent_id="52:54:00:00:00:02",
    action_state=workflow_pb2.ActionStatusRequest.SUCCESS, message=workflow_pb2.ActionMessage(message="done"),
).SerializeToString()  # fmt: skip
_LOG = log_pb2.AppendRequest(
    workflow_id="default/two", action_id="id-a", agent_id="52:54:00:00:00:02", execution_id="e",
    lines=[log_pb2.LogLine(text="a")], progress=log_pb2.Progress(percent=5, done_bytes=1),
).SerializeToString()  # fmt: skip
_SAID = log_pb2.MachineReport(agent_id="52:54:00:00:00:02", text="panic").SerializeToString()
SEEDS = (
    b"\1" + _call(0, _ASK), b"\1" + _call(8, _ASK), b"\1" + _call(9, _ASK), b"\1" + _call(1, _REPORT),
    b"\1" + _call(2, _LOG), b"\1" + _call(3, _SAID), b"\1" + _call(4, b""), b"\1" + _call(5, b""),
    b"\1" + _call(6, b"\x3a\0"), b"\1" + _call(7, b"\x3a\0"), b"\1" + _call(0, _ASK, flags=3),
    *(b"\1" + _call(number, _ASK) for number in range(10, 16)),
    b"\1" + _call(0, _ASK, 1) + _call(1, _REPORT, 3) + _call(2, _LOG, 5),
    b"\1" + bytes((0x40, 0, 1, 0)) + b"\3\0\1\4\0\0\0\x08" + b"\6\0\0\x0812345678" + b"\x08\0\0\4\0\0\xff\xff",
    b"\1" + b"\4\0\0\x06\0\1\0\0\0\0" * 25, b"\1" + b"\6\0\0\x0812345678" * 60, b"\1" + b"\5\0\1\0",
    b"\1" + bytes((0x40, 0, 1, 0)) + b"\0\0\1\x0a\0\0\0\0\xff" + b"\7\0\0\x08" + bytes(8),
    b"\1" + b"\1\0\1\x01\x82" + b"\x09\4\1\1\x86",
    b"\2" + _SETTINGS + _frame(1, 5, 1, _BLOCKS[0]), b"\x30GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\2\xff\xff\xff\0\0\0\0\0\0",
)  # fmt: skip
