"""The guard in front of the HTTP/2 library: counts frames, whatever pieces they come in."""

from __future__ import annotations

import pytest

from ironbell.codec.http2 import ALLOWANCES, MAX_CONTINUATIONS, MAX_FRAME, MAX_HEADER_BLOCK, FrameGuard, Kind

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def frame(kind: int, size: int = 0, flags: int = 0) -> bytes:
    return size.to_bytes(3, "big") + bytes((kind, flags)) + b"\0\0\0\1" + b"x" * size


def guard() -> FrameGuard:
    made = FrameGuard(0.0)
    assert made.objection(PREFACE, 0.0) is None
    return made


@pytest.mark.parametrize(
    "kind", [kind for kind in Kind if not ALLOWANCES[kind].slows and kind is not Kind.CONTINUATION]
)
def test_what_is_needed_rarely_ends_the_connection_beyond_its_allowance(kind: Kind) -> None:
    made, allowed = guard(), ALLOWANCES[kind]
    assert made.objection(frame(kind) * allowed.at_once, 0.0) is None
    assert made.objection(frame(kind), 0.0) == f"too many frames of type {kind.name}"
    if allowed.per_second:
        assert made.objection(frame(kind), 2 / allowed.per_second) is None


@pytest.mark.parametrize("kind", [Kind.HEADERS, Kind.DATA])
def test_what_carries_calls_slows_down_first(kind: Kind) -> None:
    made, allowed = guard(), ALLOWANCES[kind]
    one = frame(kind, flags=4)
    assert made.objection(one * allowed.at_once, 0.0) is None
    assert made.delay_s() == 0.0
    assert made.objection(one * 40, 0.0) is None
    delay_s = made.delay_s()
    assert delay_s == pytest.approx(40 / allowed.per_second)
    assert made.objection(b"", delay_s) is None
    assert made.delay_s() == pytest.approx(0.0)
    assert made.objection(one * (2 * allowed.at_once + 1), delay_s) == f"too many frames of type {kind.name}"


@pytest.mark.parametrize("piece", [1, 8, 9, 10, 1000])
def test_pieces_make_no_difference(piece: int) -> None:
    data = PREFACE + (frame(Kind.DATA, 100) + frame(Kind.PING, 8)) * 101
    made = FrameGuard(0.0)
    found = [made.objection(data[place : place + piece], 0.0) for place in range(0, len(data), piece)]
    assert next(why for why in found if why) == "too many frames of type PING"
    assert found.index("too many frames of type PING") == (24 + 101 * 126 - 17 + 8) // piece


def test_large_frames_are_refused_before_they_are_there() -> None:
    assert guard().objection(frame(Kind.DATA, MAX_FRAME)[:9], 0.0) is None
    assert guard().objection(frame(Kind.DATA, MAX_FRAME + 1)[:9], 0.0) == "a frame has more than 16384 bytes"
    assert guard().objection(frame(Kind.SETTINGS, 390)[:9], 0.0) == "a SETTINGS frame has more than 384 bytes"


def test_a_block_of_headers_has_a_size_and_a_number_of_pieces() -> None:
    why = f"the headers of a call have more than {MAX_HEADER_BLOCK} bytes or {MAX_CONTINUATIONS} pieces"
    assert guard().objection(frame(Kind.HEADERS, 9000) + frame(Kind.CONTINUATION, 9000), 0.0) == why
    pieces = frame(Kind.HEADERS, 1) + frame(Kind.CONTINUATION, 1) * MAX_CONTINUATIONS
    assert guard().objection(pieces, 0.0) is None
    assert guard().objection(pieces + frame(Kind.CONTINUATION), 0.0) == why
    whole = frame(Kind.HEADERS, 9000) + frame(Kind.CONTINUATION, 7000, flags=4)
    assert guard().objection(whole * 3, 0.0) is None
