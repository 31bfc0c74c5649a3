"""TFTP messages and options."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ironbell.codec.tftp import Agreed, ErrorCode, Limits, Opcode, Request, TftpDecodeError, decode
from ironbell.codec.tftp.messages import (
    Ack,
    Data,
    Error,
    Message,
    OptionAck,
    ack_bytes,
    data_bytes,
    error_bytes,
    option_ack_bytes,
    request_bytes,
)
from ironbell.codec.tftp.options import accept, negotiate

names = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=20)


@given(st.binary(max_size=600))
def test_any_bytes_give_a_message_or_the_codecs_error(data: bytes) -> None:
    try:
        message = decode(data)
    except TftpDecodeError:
        return
    assert isinstance(message, Message)


@given(st.sampled_from([1, 2, 6]), st.binary(max_size=200))
def test_any_strings_give_a_message_or_the_codecs_error(opcode: int, tail: bytes) -> None:
    try:
        decode(bytes((0, opcode)) + tail + b"\0")
    except TftpDecodeError:
        return


@given(names, st.dictionaries(names.map(str.lower), names, max_size=4))
def test_requests_round_trip(filename: str, options: dict[str, str]) -> None:
    options = {name.lower(): value for name, value in options.items() if name == name.lower()}
    request = Request(Opcode.READ, filename, "octet", options)
    assert decode(request_bytes(request)) == request


@given(st.integers(0, 65535), st.binary(max_size=600))
def test_blocks_round_trip(block: int, payload: bytes) -> None:
    assert decode(data_bytes(block, payload)) == Data(block, payload)
    assert decode(ack_bytes(block)) == Ack(block)


def test_errors_and_option_acknowledgements_round_trip() -> None:
    assert decode(error_bytes(ErrorCode.NOT_FOUND, "gone")) == Error(1, "gone")
    assert decode(option_ack_bytes({"blksize": "1468"})) == OptionAck({"blksize": "1468"})


def test_mode_and_option_names_have_no_case_and_padding_is_ignored() -> None:
    data = b"\0\1ipxe.efi\0OCTET\0BlkSize\x001468\0\0\0"
    assert decode(data) == Request(Opcode.READ, "ipxe.efi", "octet", {"blksize": "1468"})


@pytest.mark.parametrize(
    "data",
    [
        b"", b"\0\1", b"\0\1\0\0", b"\0\1file\0", b"\0\1file\0octet", b"\0\1file\0octet\0blksize\0",
        b"\1\1file\0octet\0",
        b"\0\x07file\0octet\0", b"\0\1\xff\xfe\0octet\0",
    ],
)  # fmt: skip
def test_refuses_what_is_no_message(data: bytes) -> None:
    with pytest.raises(TftpDecodeError):
        decode(data)


LIMITS = Limits(block_size=1468, window=16)
NEGOTIATIONS: list[tuple[dict[str, str], Agreed, dict[str, str]]] = [
    ({}, Agreed(), {}),
    ({"blksize": "1468"}, Agreed(1468), {"blksize": "1468"}),
    ({"blksize": "65464"}, Agreed(1468), {"blksize": "1468"}),
    ({"blksize": "8"}, Agreed(8), {"blksize": "8"}),
    ({"blksize": "7"}, Agreed(), {}),
    ({"blksize": "-1"}, Agreed(), {}),
    ({"blksize": "١٢"}, Agreed(), {}),
    ({"tsize": "0"}, Agreed(), {"tsize": "1000"}),
    ({"timeout": "5"}, Agreed(timeout_s=5), {"timeout": "5"}),
    ({"timeout": "0"}, Agreed(), {}),
    ({"timeout": "256"}, Agreed(), {}),
    ({"windowsize": "64"}, Agreed(window=16), {"windowsize": "16"}),
    ({"windowsize": "0"}, Agreed(), {}),
    ({"windowsize": "65536"}, Agreed(), {}),
    ({"multicast": ""}, Agreed(), {}),
    (
        {"tsize": "0", "blksize": "1024", "windowsize": "4"}, Agreed(1024, 4),
        {"tsize": "1000", "blksize": "1024", "windowsize": "4"},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("requested", "agreed", "taken"), NEGOTIATIONS)
def test_negotiation(requested: dict[str, str], agreed: Agreed, taken: dict[str, str]) -> None:
    assert negotiate(requested, size=1000, limits=LIMITS) == (agreed, taken)
    if taken:
        assert accept(taken, requested=requested) == agreed


@pytest.mark.parametrize("answer", [{"windowsize": "2"}, {"blksize": "2000"}, {"blksize": "x"}, {"blksize": "0"}])
def test_a_client_refuses_what_it_did_not_ask(answer: dict[str, str]) -> None:
    assert accept(answer, requested={"blksize": "1468"}) is None
