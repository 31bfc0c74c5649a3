"""The server's engine against the client's download on a network that loses, doubles and delays what it is told to."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ironbell.codec.tftp import (
    Download,
    Engine,
    ErrorCode,
    Finished,
    Limits,
    Opcode,
    Outcome,
    Rejected,
    Request,
    Requested,
    Retransmission,
    Stray,
    decode,
)
from ironbell.codec.tftp.messages import Ack, Data, Error, OptionAck, ack_bytes, data_bytes, error_bytes, request_bytes

SERVER, CLIENT = "server", "client"
Fate = Callable[[int], int]
"""How many copies of the n-th datagram arrive: 0 loses it."""


def always(number: int) -> int:
    del number
    return 1


class Wire:
    """One engine, one download, virtual time; every datagram takes a millisecond."""

    def __init__(
        self,
        content: bytes,
        options: dict[str, str] | None = None,
        *,
        fate: Fate = always,
        limits: Limits | None = None,
    ) -> None:
        self.engine: Engine[str] = Engine(limits or Limits())
        self.download = Download("file", SERVER, options=options)
        self.content = content
        self.fate = fate
        self.now = 0.0
        self.carried = 0
        self.finished: list[Finished[str]] = []

    def run(self, *, until_s: float = 1000.0) -> None:
        self.download.start(self.now)
        while self.now < until_s:
            moved = self._carry()
            if not moved:
                deadlines = [at for at in (self.engine.timeout(), self.download.timeout()) if at is not None]
                if not deadlines or (self.download.is_finished and not len(self.engine)):
                    return
                self.now = max(self.now, min(deadlines))
                self.engine.on_timeout(self.now)
                if self.download.timeout() is not None and (self.download.timeout() or 0) <= self.now:
                    self.download.on_timeout(self.now)

    def _carry(self) -> bool:
        self.now += 0.001
        to_server = [data for data, _ in self.download.outgoing()]
        to_client = [data for data, _ in self.engine.outgoing()]
        for data in to_server:
            for _ in range(self._copies()):
                self.engine.receive(data, CLIENT, self.now)
        for data in to_client:
            for _ in range(self._copies()):
                self.download.receive(data, SERVER, self.now)
        for event in self.engine.events():
            if isinstance(event, Requested):
                self.engine.serve(event, self.content, self.now)
            elif isinstance(event, Finished):
                self.finished.append(event)
        return bool(to_server or to_client)

    def _copies(self) -> int:
        self.carried += 1
        return self.fate(self.carried)


OPTIONS: list[dict[str, str]] = [
    {},
    {"blksize": "1468", "tsize": "0"},
    {"windowsize": "4"},
    {"blksize": "100", "windowsize": "16", "tsize": "0", "timeout": "2"},
]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("size", [0, 1, 511, 512, 513, 1024, 5000, 100_000])
def test_a_file_arrives_whole(options: dict[str, str], size: int) -> None:
    content = bytes(number % 251 for number in range(size))
    wire = Wire(content, options)
    wire.run()
    assert wire.download.content == content
    assert [(event.outcome, event.size) for event in wire.finished] == [(Outcome.SENT, size)]
    assert wire.download.expected_size in {None, size}
    assert len(wire.engine) == 0


@pytest.mark.parametrize("options", OPTIONS)
@given(st.data())
@settings(max_examples=40, deadline=None)
def test_a_file_arrives_whole_over_a_bad_network(options: dict[str, str], data: st.DataObject) -> None:
    """At most every third datagram is lost or doubled, so that no retry is exhausted."""
    fates = data.draw(st.lists(st.sampled_from([0, 1, 1, 1, 1, 2]), min_size=20, max_size=60))

    def fate(number: int) -> int:
        chosen = fates[number % len(fates)]
        return chosen if number % 3 == 0 else 1

    content = data.draw(st.binary(max_size=3000))
    wire = Wire(content, options, fate=fate)
    wire.run()
    assert wire.download.content == content, wire.download.failure


@pytest.mark.parametrize("lost", range(1, 12))
@pytest.mark.parametrize("options", OPTIONS)
def test_any_single_loss_is_repaired(options: dict[str, str], lost: int) -> None:
    content = bytes(3000)
    wire = Wire(content, options, fate=lambda number: 0 if number == lost else 1)
    wire.run()
    assert wire.download.content == content
    assert [event.outcome for event in wire.finished] in ([Outcome.SENT], [Outcome.SENT] * 2)


def test_a_lost_block_in_a_window_is_repaired_without_waiting() -> None:
    options = {"windowsize": "8"}
    # Request, OACK, ACK 0, then blocks 1 to 8: the third of them is lost.
    wire = Wire(bytes(512 * 20), options, fate=lambda number: 0 if number == 6 else 1)
    wire.run()
    assert wire.download.content is not None
    assert wire.finished[0].seconds < 0.5


def test_a_lost_first_block_of_a_window_is_repaired_without_waiting() -> None:
    wire = Wire(bytes(512 * 20), {"windowsize": "8"}, fate=lambda number: 0 if number == 4 else 1)
    wire.run()
    assert wire.download.content is not None
    assert wire.finished[0].seconds < 0.5


def test_doubled_acknowledgements_do_not_double_blocks() -> None:
    """The Sorcerer's Apprentice: one duplicate must not make every later packet come twice."""
    wire = Wire(bytes(512 * 50), fate=lambda number: 2 if number == 3 else 1)
    wire.run()
    assert wire.download.content is not None
    assert wire.carried <= 2 * 51 + 4


@pytest.mark.parametrize("window", ["1", "16"])
def test_block_numbers_wrap_to_zero(window: str) -> None:
    content = bytes(8 * 66_000 + 3)
    wire = Wire(content, {"blksize": "8", "windowsize": window})
    wire.run()
    assert wire.download.content == content


def test_a_client_that_vanishes_is_given_up_with_backoff() -> None:
    wire = Wire(bytes(5000), fate=lambda number: 1 if number < 4 else 0)
    wire.run()
    assert [event.outcome for event in wire.finished] == [Outcome.TIMED_OUT]
    assert 38 < wire.finished[0].seconds < 42
    assert wire.carried < 20


def test_a_negotiated_timeout_is_kept() -> None:
    engine, requested = asked({"timeout": "3"})
    engine.serve(requested, b"x", 100.0)
    engine.receive(ack_bytes(0), CLIENT, 100.5)
    engine.on_timeout(102.0)
    assert engine.timeout() == 103.5


def test_a_client_that_was_never_heard_from_is_given_up_soon_whatever_time_it_asks_for() -> None:
    engine, requested = asked({"timeout": "255"})
    engine.serve(requested, b"x", 0.0)
    assert given_up_at(engine) == 11.0


def test_a_client_that_falls_silent_is_given_up_whatever_time_it_asks_for() -> None:
    engine, requested = asked({"timeout": "255"})
    engine.serve(requested, b"x" * 600, 0.0)
    engine.receive(ack_bytes(0), CLIENT, 5.0)
    engine.receive(ack_bytes(0), CLIENT, 50.0)
    assert given_up_at(engine) == 65.0


def given_up_at(engine: Engine[str]) -> float:
    """When the only transfer of an engine ends by itself."""
    now = 0.0
    while len(engine):
        now = engine.timeout() or now
        engine.on_timeout(now)
    return now


def engine_with(data: bytes, peer: str = CLIENT) -> Engine[str]:
    engine: Engine[str] = Engine(Limits(block_size=512, window=4), Retransmission(), 2)
    engine.receive(data, peer, 0.0)
    return engine


def rrq(filename: str = "file", mode: str = "octet", options: dict[str, str] | None = None) -> bytes:
    return request_bytes(Request(Opcode.READ, filename, mode, options or {}))


def asked(options: dict[str, str] | None = None) -> tuple[Engine[str], Requested[str]]:
    engine = engine_with(rrq(options=options))
    (event,) = engine.events()
    assert isinstance(event, Requested)
    return engine, event


def sent(engine: Engine[str]) -> list[object]:
    return [decode(data) for data, _ in engine.outgoing()]


def test_writes_are_refused() -> None:
    engine = engine_with(request_bytes(Request(Opcode.WRITE, "file", "octet", {})))
    assert sent(engine) == [Error(ErrorCode.ACCESS_VIOLATION, "writing is not allowed")]
    (event,) = engine.events()
    assert isinstance(event, Rejected)


def test_unknown_modes_are_refused() -> None:
    (answer,) = sent(engine_with(rrq(mode="mail")))
    assert isinstance(answer, Error)
    assert answer.code == ErrorCode.ILLEGAL_OPERATION


def test_netascii_is_refused_with_the_remedy_and_takes_no_slot() -> None:
    engine = engine_with(rrq(mode="netascii", options={"tsize": "0"}))
    assert sent(engine) == [Error(ErrorCode.ILLEGAL_OPERATION, "the files are binary: use mode octet (binary)")]
    assert len(engine) == 0


def test_too_many_transfers_are_refused() -> None:
    engine = engine_with(rrq(), "one")
    engine.receive(rrq(), "two", 0.0)
    engine.receive(rrq(), "three", 0.0)
    (answer,) = sent(engine)
    assert isinstance(answer, Error)
    assert len(engine) == 2


def crowded(total: int = 8, share: int = 3) -> Engine[tuple[str, int]]:
    """An engine whose peers are addresses and ports, and which has given every slot to addresses of its own."""
    engine: Engine[tuple[str, int]] = Engine(max_transfers=total, share_of=lambda peer: (peer[0], share))
    for number in range(total):
        started(engine, (f"stranger {number}", 1), float(number))
    return engine


def started(engine: Engine[tuple[str, int]], peer: tuple[str, int], now: float) -> bool:
    """Whether a request of that peer is answered with the file."""
    engine.receive(rrq(), peer, now)
    for event in engine.events():
        if isinstance(event, Requested):
            engine.serve(event, b"x" * 2000, now)
    return Data(1, b"x" * 512) in [decode(data) for data, to in engine.outgoing() if to == peer]


def test_the_oldest_transfer_that_was_not_heard_from_gives_way() -> None:
    engine = crowded()
    engine.receive(ack_bytes(1), ("stranger 0", 1), 8.0)
    assert started(engine, ("machine", 1), 8.0)
    assert len(engine) == 8
    engine.outgoing()
    engine.receive(ack_bytes(1), ("stranger 1", 1), 8.0)
    engine.receive(ack_bytes(2), ("stranger 0", 1), 8.0)
    engine.receive(ack_bytes(1), ("machine", 1), 8.0)
    assert {to for _, to in engine.outgoing()} == {("stranger 0", 1), ("machine", 1)}


def test_an_address_has_its_share_and_its_own_oldest_transfer_gives_way() -> None:
    engine: Engine[tuple[str, int]] = Engine(max_transfers=8, share_of=lambda peer: (peer[0], 3))
    for port in range(20):
        assert started(engine, ("greedy", port), float(port))
        assert len(engine) == min(port + 1, 3)
    assert started(engine, ("machine", 1), 20.0)
    for port in (17, 18, 19):
        engine.receive(ack_bytes(1), ("greedy", port), 20.0)
    engine.outgoing()
    engine.receive(rrq(), ("greedy", 20), 20.0)
    ((answer, _),) = engine.outgoing()
    assert decode(answer) == Error(ErrorCode.UNDEFINED, "too many transfers, try again later")


def test_transfers_that_were_heard_from_give_way_after_a_silence_only() -> None:
    """Whoever acknowledges blindly keeps a slot no longer than a real client that has gone."""
    engine = crowded()
    for number in range(8):
        engine.receive(ack_bytes(1), (f"stranger {number}", 1), 8.0)
    assert not started(engine, ("machine", 1), 9.0)
    assert started(engine, ("machine", 1), 18.0)
    assert len(engine) == 8


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4), st.sampled_from(["ask", "ack", "fail", "wait"]))))
def test_slots_are_counted_right_whatever_happens(steps: list[tuple[int, int, str]]) -> None:
    engine: Engine[tuple[str, int]] = Engine(max_transfers=5, share_of=lambda peer: (peer[0], 2))
    now = 0.0
    for address, port, what in steps:
        peer = (f"a{address}", port)
        if what == "ask":
            started(engine, peer, now)
        elif what == "ack":
            engine.receive(ack_bytes(1), peer, now)
        elif what == "fail":
            engine.receive(error_bytes(ErrorCode.UNDEFINED, ""), peer, now)
        else:
            now += 3.0
            engine.on_timeout(now)
        assert len(engine) <= 5
        engine.events()
    given = 0
    while len(engine):
        now = max(now, engine.timeout() or now)
        engine.on_timeout(now)
        given += 1
    assert [started(engine, ("new", port), now) for port in range(3)] == [True, True, True]
    assert len(engine) == 2


def test_a_repeated_request_is_the_same_request() -> None:
    engine, requested = asked()
    engine.receive(rrq(), CLIENT, 0.1)
    assert engine.events() == []
    engine.serve(requested, b"x" * 600, 0.2)
    first = sent(engine)
    engine.receive(rrq(), CLIENT, 0.3)
    assert sent(engine) == first
    assert engine.events() == []


def test_another_request_from_the_same_port_replaces_the_transfer() -> None:
    engine, requested = asked()
    engine.serve(requested, b"x" * 600, 0.0)
    engine.receive(rrq("other"), CLIENT, 0.1)
    finished, again = engine.events()
    assert isinstance(finished, Finished)
    assert finished.outcome is Outcome.ABORTED
    assert isinstance(again, Requested)
    assert again.request.filename == "other"


def test_an_answer_to_a_request_that_was_replaced_is_dropped() -> None:
    engine, first = asked()
    engine.receive(rrq("other"), CLIENT, 0.1)
    engine.serve(first, b"x", 0.2)
    engine.reject(first, ErrorCode.NOT_FOUND, "no")
    assert engine.outgoing() == []


def test_a_clients_error_ends_its_transfer() -> None:
    engine, requested = asked({"tsize": "0"})
    engine.serve(requested, b"x", 0.0)
    engine.receive(error_bytes(ErrorCode.OPTION_REJECTED, "only asked for the size"), CLIENT, 0.1)
    (event,) = engine.events()
    assert isinstance(event, Finished)
    assert (event.outcome, event.detail) == (Outcome.ABORTED, "client's error 8: only asked for the size")
    assert len(engine) == 0


@pytest.mark.parametrize("data", [ack_bytes(1), data_bytes(1, b""), error_bytes(ErrorCode.UNDEFINED, ""), b"junk"])
def test_what_belongs_to_no_transfer_gets_no_answer(data: bytes) -> None:
    engine = engine_with(data)
    assert engine.outgoing() == []
    (event,) = engine.events()
    assert isinstance(event, Stray)


def test_an_acknowledgement_of_what_was_not_sent_is_ignored() -> None:
    engine, requested = asked()
    engine.serve(requested, b"x" * 2000, 0.0)
    engine.outgoing()
    engine.receive(ack_bytes(3), CLIENT, 0.0)
    assert engine.outgoing() == []


def test_the_block_size_follows_the_clients_network() -> None:
    engine = engine_with(rrq(options={"blksize": "1468"}))
    (event,) = engine.events()
    assert isinstance(event, Requested)
    engine.serve(event, b"x", 0.0, block_limit=400)
    assert sent(engine) == [OptionAck({"blksize": "400"})]


@given(
    st.lists(st.binary(max_size=60) | st.sampled_from([rrq(), ack_bytes(0), ack_bytes(1), ack_bytes(2)]), max_size=30)
)
def test_any_datagrams_are_survived(datagrams: list[bytes]) -> None:
    engine: Engine[str] = Engine()
    for now, data in enumerate(datagrams):
        engine.receive(data, CLIENT, float(now))
        for event in engine.events():
            if isinstance(event, Requested):
                engine.serve(event, b"content" * 200, float(now))
        engine.on_timeout(float(now))
        engine.outgoing()
    assert len(engine) <= 1


@given(st.lists(st.binary(max_size=60), max_size=20))
def test_a_download_survives_any_datagrams(datagrams: list[bytes]) -> None:
    download = Download("file", SERVER, options={"blksize": "1468", "windowsize": "4"})
    download.start(0.0)
    for data in datagrams:
        download.receive(data, SERVER, 0.0)
    download.outgoing()


def test_a_download_tells_strangers_that_they_are_wrong() -> None:
    download = Download("file", "server:69")
    download.start(0.0)
    download.outgoing()
    download.receive(data_bytes(1, b"x" * 512), "server:1000", 0.0)
    download.receive(data_bytes(2, b"evil"), "stranger:9", 0.0)
    assert [(decode(data), to) for data, to in download.outgoing()] == [
        (Ack(1), "server:1000"),
        (Error(ErrorCode.UNKNOWN_TRANSFER, "not your transfer"), "stranger:9"),
    ]


def test_a_download_reports_the_servers_error_and_silence() -> None:
    refused = Download("file", SERVER)
    refused.start(0.0)
    refused.receive(error_bytes(ErrorCode.NOT_FOUND, "gone"), SERVER, 0.0)
    assert refused.failure is not None
    assert (refused.failure.code, refused.failure.message) == (1, "gone")
    silent = Wire(b"", fate=lambda number: 0)
    silent.run()
    assert silent.download.failure is not None
