"""The server's side of WebSockets, against what clients send."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ironbell.lab.sim.serving.websocket import Messages, WebSocketError

MASK = b"\x01\x02\x03\x04"


def sent(payload: bytes, opcode: int = 2, *, last: bool = True, masked: bool = True) -> bytes:
    """A client's frame."""
    head = bytes([(0x80 if last else 0) | opcode])
    flag = 0x80 if masked else 0
    if len(payload) < 126:
        head += bytes([flag | len(payload)])
    elif len(payload) < 1 << 16:
        head += bytes([flag | 126]) + len(payload).to_bytes(2, "big")
    else:
        head += bytes([flag | 127]) + len(payload).to_bytes(8, "big")
    if not masked:
        return head + payload
    return head + MASK + bytes(byte ^ MASK[i % 4] for i, byte in enumerate(payload))


@given(st.lists(st.binary(max_size=300), max_size=4), st.integers(1, 50))
def test_messages_come_whole_however_they_are_cut(messages: list[bytes], step: int) -> None:
    data = b"".join(sent(message) for message in messages)
    reader, found = Messages(), []
    for start in range(0, len(data), step):
        found += list(reader.feed(data[start : start + step]))
    assert found == messages


@pytest.mark.parametrize("size", [125, 126, 65535, 65536])
def test_all_lengths(size: int) -> None:
    assert list(Messages().feed(sent(b"x" * size))) == [b"x" * size]
    assert Messages().encode(b"x" * size) == sent(b"x" * size, masked=False)


def test_parts_of_a_message_are_put_together() -> None:
    reader = Messages()
    assert list(reader.feed(sent(b"ab", last=False) + sent(b"cd", 0))) == [b"abcd"]


def test_pings_are_answered_and_a_close_closes() -> None:
    reader = Messages()
    assert list(reader.feed(sent(b"hello", 9) + sent(b"\x03\xe8", 8) + sent(b"late"))) == []
    assert reader.answers == [sent(b"hello", 10, masked=False), sent(b"\x03\xe8", 8, masked=False)]
    assert reader.is_closed


def test_a_message_that_never_ends_is_rejected() -> None:
    parts = (sent(bytes(1 << 15), 0 if number else 2, last=False) for number in range(40))
    with pytest.raises(WebSocketError, match="more than"):
        list(Messages().feed(b"".join(parts)))


@pytest.mark.parametrize("data", [sent(b"x", masked=False), sent(b"x", 3), sent(b"x", 9, last=False)])
def test_malformed_frames_are_rejected(data: bytes) -> None:
    with pytest.raises(WebSocketError):
        list(Messages().feed(data))
