from __future__ import annotations

import contextlib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ironbell.api.client import ApiError, Conflict, EventType, Expired, Unavailable
from ironbell.kube.transport.frames import FrameSplitter, read_frame, read_status


@given(st.lists(st.binary(min_size=1, max_size=40).map(lambda b: b.replace(b"\n", b"x")), max_size=8), st.data())
def test_lines_come_out_whole_however_they_are_cut(lines: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(line + b"\n" for line in lines)
    splitter = FrameSplitter()
    found: list[bytes] = []
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        found += splitter.feed(stream[:size])
        stream = stream[size:]
    assert found == [line for line in lines if line.strip()]


def test_an_endless_line_is_refused() -> None:
    splitter = FrameSplitter(max_frame=100)
    splitter.feed(b"x" * 90)
    with pytest.raises(Unavailable):
        splitter.feed(b"x" * 20)


def test_a_line_of_a_megabyte_is_not() -> None:
    splitter = FrameSplitter()
    line = b"x" * 1_000_000
    assert splitter.feed(line) == []
    assert splitter.feed(b"\n{}") == [line]


def test_a_frame_is_read_with_its_version() -> None:
    event = read_frame(b'{"type":"MODIFIED","object":{"kind":"Slot","metadata":{"name":"a","resourceVersion":"7"}}}')
    assert (event.type, event.resource_version) == (EventType.MODIFIED, "7")
    assert msgspec.json.decode(event.body)["metadata"]["name"] == "a"
    bookmark = read_frame(b'{"type":"BOOKMARK","object":{"kind":"Slot","metadata":{"resourceVersion":"9"}}}')
    assert (bookmark.body, bookmark.resource_version) == (b"", "9")


def test_an_error_frame_is_raised_as_what_it_means() -> None:
    with pytest.raises(Expired, match="too old"):
        read_frame(b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}}')
    with pytest.raises(Expired):
        read_frame(b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Gone"}}')


@given(st.binary(max_size=200))
def test_any_bytes_are_an_event_or_our_error(line: bytes) -> None:
    with contextlib.suppress(ApiError):
        read_frame(line)


@given(st.binary(max_size=300), st.integers(400, 599))
def test_any_answer_is_an_error_with_a_message(body: bytes, code: int) -> None:
    error = read_status(body, code)
    assert isinstance(error, ApiError)
    assert error.message


def test_a_status_keeps_reason_and_details() -> None:
    body = b'{"kind":"Status","code":409,"reason":"Conflict","message":"m","details":{"name":"x"}}'
    error = read_status(body, 409)
    assert isinstance(error, Conflict)
    assert error.details == {"name": "x"}
    assert read_status(b"<html>bad gateway</html>", 502).message == "<html>bad gateway</html>"
