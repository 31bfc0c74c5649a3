"""The server's side of a forward in SPDY, against what client-go sends."""

from __future__ import annotations

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ironbell.lab.sim.serving.spdy import DICTIONARY, SpdyError, SpdyForward

SYN_STREAM, SYN_REPLY, RST_STREAM, PING, GOAWAY = 1, 2, 3, 6, 7
FIN = 1


def control(kind: int, payload: bytes, version: int = 3) -> bytes:
    return (0x8000 | version).to_bytes(2, "big") + kind.to_bytes(2, "big") + len(payload).to_bytes(4, "big") + payload


def data(stream: int, payload: bytes, flags: int = 0) -> bytes:
    return stream.to_bytes(4, "big") + bytes([flags]) + len(payload).to_bytes(3, "big") + payload


class Client:
    """Its headers are compressed in one go over the session, as SPDY has it."""

    def __init__(self) -> None:
        self.deflate = zlib.compressobj(zdict=DICTIONARY)

    def opens(self, stream: int, **headers: str) -> bytes:
        counted = [len(text).to_bytes(4, "big") + text.encode() for pair in headers.items() for text in pair]
        block = self.deflate.compress(len(headers).to_bytes(4, "big") + b"".join(counted))
        block += self.deflate.flush(zlib.Z_SYNC_FLUSH)
        return control(SYN_STREAM, stream.to_bytes(4, "big") + bytes(6) + block)

    def both(self) -> bytes:
        error = self.opens(1, streamtype="error", port="2379", requestid="0")
        return error + data(1, b"", FIN) + self.opens(3, streamtype="data", port="2379", requestid="0")


def test_the_dictionary_is_spdy_s() -> None:
    # its Adler-32 sum is at the start of what is compressed with it
    assert zlib.adler32(DICTIONARY) == 0xE3C6A7C2
    assert len(DICTIONARY) == 1423


def test_streams_are_answered_and_the_port_is_known_with_both() -> None:
    client, forward = Client(), SpdyForward()
    assert list(forward.take(client.opens(1, streamtype="error", port="2379"))) == []
    assert forward.port is None
    assert list(forward.take(client.opens(3, streamtype="data", port="2379"))) == []
    assert forward.port == 2379
    inflate = zlib.decompressobj(zdict=DICTIONARY)
    for stream, answer in zip((1, 3), forward.answers, strict=True):
        assert answer[:4] == b"\x80\x03\x00\x02"
        assert int.from_bytes(answer[8:12], "big") == stream
        assert inflate.decompress(answer[12:]) == bytes(4), "no headers"


@given(st.lists(st.binary(max_size=200), max_size=4), st.integers(1, 60))
def test_data_come_however_they_are_cut(parts: list[bytes], step: int) -> None:
    sent = Client().both() + b"".join(data(3, part) for part in parts)
    forward, found = SpdyForward(), b""
    for start in range(0, len(sent), step):
        found += b"".join(forward.take(sent[start : start + step]))
    assert found == b"".join(parts)
    assert not forward.is_closed


def test_data_and_failures_go_out_on_their_streams() -> None:
    forward = SpdyForward()
    assert list(forward.take(Client().both())) == []
    assert forward.data(b"abc") == data(3, b"abc")
    assert forward.failure("no such pod") == data(1, b"no such pod", FIN)


def test_pings_are_answered() -> None:
    forward = SpdyForward()
    assert list(forward.take(control(PING, b"\0\0\0\1"))) == []
    assert forward.answers == [control(PING, b"\0\0\0\1")]


@pytest.mark.parametrize(
    "end", [data(3, b"", FIN), control(RST_STREAM, b"\0\0\0\3\0\0\0\5"), control(GOAWAY, bytes(8))]
)
def test_the_client_ends_it(end: bytes) -> None:
    forward = SpdyForward()
    list(forward.take(Client().both() + end))
    assert forward.is_closed


def test_other_streams_do_not_count() -> None:
    forward = SpdyForward()
    other = data(5, b"x", FIN) + control(RST_STREAM, b"\0\0\0\1\0\0\0\5")
    assert list(forward.take(Client().both() + other)) == []
    assert not forward.is_closed


@pytest.mark.parametrize(
    "wrong",
    [
        control(PING, b"\0\0\0\1", version=2),
        b"\0\0\0\1\0\xff\xff\xff",
        Client().opens(1, streamtype="resize", port="1"),
        Client().opens(1, streamtype="data", port="http"),
        control(SYN_STREAM, bytes(20)),
        Client().both() + Client().both(),
    ],
)
def test_what_is_wrong_is_refused(wrong: bytes) -> None:
    with pytest.raises(SpdyError):
        list(SpdyForward().take(wrong))
