"""TFTP: datagrams of several clients through the engine, with files served and refused, and time that passes."""

from __future__ import annotations

import contextlib

from ironbell.codec.tftp import (
    Engine,
    ErrorCode,
    Finished,
    Limits,
    Outcome,
    Rejected,
    Requested,
    Retransmission,
    Stray,
    TftpDecodeError,
)
from ironbell.codec.tftp.messages import Data, Error, OptionAck, Request, decode, request_bytes
from ironbell.services.tftp.server import PathRejectedError, served_path

from ..checks import Reader, check_line, piece

INSTRUMENTED = ("ironbell.codec.tftp", "ironbell.services.tftp.server")
LONGEST = 600
WORDS = (
    b"\0\1", b"\0\2", b"\0\3", b"\0\4\0\0", b"\0\4\0\1", b"\0\5\0\0", b"\0\6", b"octet\0", b"netascii\0", b"blksize\0",
    b"tsize\0", b"timeout\0", b"windowsize\0", b"1468\0", b"65464\0", b"8\0", b"255\0", b"65535\0", b"../", b"\\", b"//",
    b"undionly.kpxe\0", b"-00-23b1e307bb35484f535a1f772c06910e-d887dc3912240434-01",
)  # fmt: skip
_LIMITS = Limits(block_size=1468, window=4)
_RETRANSMISSION = Retransmission()
_MAX_TRANSFERS = 6
_SHARE = 2
_SIZES = (0, 1, 511, 512, 513, 1468, 4096, 8_000)
_FILE = bytes(range(251)) * 32
_MAX_STEPS = 60
_WINDOW = _LIMITS.window * (_LIMITS.block_size + 4) + 256
"""Bytes of one window, or of an error."""

Peer = tuple[int, int]
"""Address and port."""


def _share(peer: Peer) -> tuple[int, int]:
    return peer[0], _SHARE


class _Site:
    """One engine, the files that it serves, and what it sent."""

    def __init__(self) -> None:
        self.engine: Engine[Peer] = Engine(_LIMITS, _RETRANSMISSION, _MAX_TRANSFERS, _share)
        self.now = 0.0
        self.asked: list[Requested[Peer]] = []
        self.sizes: dict[Peer, int] = {}
        self.blocks: dict[Peer, int] = {}
        self.provoked = 0
        """How often something happened that may cause one window to be sent."""
        self.sent = 0

    def receive(self, data: bytes, peer: Peer) -> None:
        _check_codec(data)
        self.provoked += 1
        self.engine.receive(data, peer, self.now)
        self.after()

    def answer(self, how: int) -> None:
        """Serve the oldest request, or refuse it."""
        if not self.asked:
            return
        requested = self.asked.pop(0)
        if how & 0x80:
            self.engine.reject(requested, ErrorCode.NOT_FOUND, "x" * (how & 0x7F))
        else:
            size = _SIZES[how % len(_SIZES)]
            self.sizes[requested.peer] = size
            self.blocks[requested.peer] = 512
            self.provoked += 1
            self.engine.serve(requested, _FILE[:size], self.now, block_limit=(how & 0x40) * 8)
        self.after()

    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.provoked += len(self.engine)
        self.engine.on_timeout(self.now)
        due = self.engine.timeout()
        assert due is None or due > self.now, "a deadline passed and stayed"
        self.after()

    def after(self) -> None:
        assert len(self.engine) <= _MAX_TRANSFERS
        for data, peer in self.engine.outgoing():
            self.sent += len(data)
            self.check_sent(data, peer)
        assert self.sent <= self.provoked * _WINDOW, "more is sent than one window for each cause"
        for event in self.engine.events():
            self.check_event(event)

    def check_sent(self, data: bytes, peer: Peer) -> None:
        message = decode(data)
        assert isinstance(message, Data | OptionAck | Error), f"a server sends no {type(message).__name__}"
        if isinstance(message, OptionAck):
            assert set(message.options) <= {"blksize", "tsize", "timeout", "windowsize"}
            self.blocks[peer] = int(message.options.get("blksize", 512))
            assert message.options.get("tsize") in {None, str(self.sizes[peer])}
        if isinstance(message, Data):
            block, content = self.blocks[peer], _FILE[: self.sizes[peer]]
            assert 0 < block <= _LIMITS.block_size
            assert message.block > 0, "such small files have no block 0"
            assert message.payload == content[(message.block - 1) * block : message.block * block], "a wrong block"

    def check_event(self, event: object) -> None:
        match event:
            case Requested():
                self.asked.append(event)
            case Finished():
                assert event.outcome is not Outcome.RUNNING
                assert event.agreed.block_size <= _LIMITS.block_size
                assert 1 <= event.agreed.window <= _LIMITS.window
                assert event.seconds >= 0
            case Rejected() | Stray():
                pass
            case _:
                raise AssertionError(f"unknown event {event!r}")

    def end(self) -> None:
        """Whatever came before, everything ends by itself, and all slots are free again."""
        while self.asked:
            self.answer(1)
        for _ in range(200):
            due = self.engine.timeout()
            if due is None:
                break
            self.wait(max(0.0, due - self.now) + 0.001)
        assert len(self.engine) == 0, "a transfer to a silent client never ends"
        assert self.now < 3600 * 2, "a transfer to a silent client goes on for hours"
        for address in range(4):
            assert self.engine._slots.has_room((address, 1)), "a slot was lost"


def _check_codec(data: bytes) -> None:
    try:
        message = decode(data)
    except TftpDecodeError as error:
        check_line(error.message, 2000, "the error's message")
        return
    if isinstance(message, Request):
        # Empty strings at the end are padding, so that a request that ends in one is not what is written.
        if [message.mode, *message.options.values()][-1]:
            assert decode(request_bytes(message)) == message, "a request that was written reads otherwise"
        with contextlib.suppress(PathRejectedError):
            _check_path(served_path(message.filename))


def _check_path(path: str) -> None:
    assert path.isprintable()
    assert path
    assert not path.startswith("/")
    assert not {"", ".", ".."} & set(path.split("/")), f"{path!r} may leave the served tree"
    assert "\\" not in path


def one(data: bytes) -> None:
    """Steps: a datagram of a client, an answer to the oldest request, or time."""
    reader, site = Reader(data), _Site()
    for _ in range(_MAX_STEPS):
        if not len(reader):
            break
        kind = reader.byte()
        peer = (kind >> 4 & 3, kind >> 6)
        match kind & 3:
            case 0:
                site.receive(reader.take(reader.byte() * 2), peer)
            case 1:
                site.answer(reader.byte())
            case 2:
                site.wait(reader.byte() / 4)
            case 3:
                block = reader.byte() - 1
                site.receive(b"\0\4" + (block & 0xFFFF).to_bytes(2, "big"), peer)
    site.end()
    _check_codec(data)


def _asks(*options: bytes, name: bytes = b"undionly.kpxe", peer: int = 0) -> bytes:
    text = b"\0".join((b"\0\1" + name, b"octet", *options)) + b"\0"
    text += b"\0" * (len(text) % 2)
    return bytes((peer << 4, len(text) // 2)) + text


SEEDS = (
    _asks() + b"\x01\x03" + b"\x03\x02" * 3,
    _asks(b"blksize", b"1468", b"tsize", b"0", b"windowsize", b"4")
    + b"\x01\x07\x03\x01\x03\x05\x03\x03\x02\x04\x03\x09",
    _asks(b"timeout", b"255") + b"\x01\x06\x02\xff\x02\xff",
    _asks() + _asks(name=b"other") + _asks(peer=1) + _asks(peer=2) + b"\x01\x01\x01\x81\x01\x02\x02\x10",
    b"".join(_asks(peer=peer) for peer in range(16)) + b"\x01\x02" * 6 + b"\x02\x40" + _asks(peer=3),
    _asks(name=b"/a/../b\\c") + b"\x01\x01\x00\x03\0\5\0\0x\0",
    b"\0\1snp.efi-00-23b1e307bb35484f535a1f772c06910e-d887dc3912240434-01\0octet\0",
    piece(b"\0\2x\0netascii\0"),
)
