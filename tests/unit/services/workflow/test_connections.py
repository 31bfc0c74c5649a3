"""Which connections the gRPC port keeps, decided on a clock that tests move."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest
import structlog

from ironbell.base.rejections import Rejections
from ironbell.services.workflow.port.connections import ConnectionLimits, Connections, default_limits


@dataclass
class Time:
    seconds: float = 0.0

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.seconds, UTC)

    def monotonic(self) -> float:
        return self.seconds


@dataclass(eq=False)
class Peer:
    address: str
    has_called: bool = False
    began: float | None = None
    ended: list[str] = field(default_factory=list)

    def end(self, reason: str) -> None:
        self.ended.append(reason)

    def oldest_call(self) -> float | None:
        return self.began


@pytest.fixture
async def site() -> Connections:
    limits = ConnectionLimits(total=10, per_address=4, calls=6, calls_per_address=3, new_at_once=8, new_per_second=1.0)
    return Connections(limits, Time(), Rejections())


def passes(site: Connections, seconds: float) -> None:
    site._clock.seconds += seconds  # type: ignore[attr-defined]


def arrive(site: Connections, address: str, *, calls: bool = False) -> Peer | None:
    peer = Peer(address)
    if not site.admit(peer):
        return None
    if calls:
        peer.has_called = True
        assert site.call_begins(peer) is None
    return peer


async def test_an_address_has_so_many_and_its_oldest_idle_one_gives_way(site: Connections) -> None:
    peers = [arrive(site, "a") for _ in range(4)]
    assert arrive(site, "a") is None, "too young to give way"
    passes(site, 2)
    assert arrive(site, "a") is not None
    assert [peer.ended for peer in peers if peer] == [["gave way"], [], [], []]
    assert len(site) == 4


async def test_a_connection_with_a_call_gives_way_to_nobody(site: Connections) -> None:
    first = arrive(site, "a", calls=True)
    for number in range(9):
        arrive(site, f"b{number}")
    passes(site, 2)
    assert first is not None
    site.call_ends(first, is_last=True)
    busy = arrive(site, "c", calls=True)
    assert busy is not None
    assert first.ended == [], "its rest began just now"
    assert len(site) == 10


async def test_where_all_have_calls_new_ones_are_refused(site: Connections) -> None:
    with structlog.testing.capture_logs() as logged:
        peers = [arrive(site, f"a{number}") for number in range(10)]
        for peer in peers[:6]:
            assert peer is not None
            assert site.call_begins(peer) is None
        passes(site, 2)
        late = [arrive(site, "b"), *(arrive(site, f"c{number}") for number in range(3))]
        assert all(late)
        seventh = late[0]
        assert seventh is not None
        assert site.call_begins(seventh) == "there are more than 6 calls at the same time"
    (warning,) = [line for line in logged if "nearly full" in line["event"]]
    assert (warning["connections"], warning["limit"]) == (8, 10)


async def test_an_address_has_so_many_calls(site: Connections) -> None:
    peer = arrive(site, "a")
    assert peer is not None
    assert [site.call_begins(peer) for _ in range(4)] == [None] * 3 + [
        "the address has more than 3 calls at the same time"
    ]


async def test_who_floods_comes_back_slowly(site: Connections) -> None:
    peer = arrive(site, "a")
    assert peer is not None
    site.flooded(peer, "too many frames")
    site.remove(peer)
    assert arrive(site, "a") is None
    assert arrive(site, "b") is not None
    passes(site, 8)
    assert arrive(site, "a") is None
    passes(site, 2)
    assert arrive(site, "a") is not None


async def test_what_does_nothing_is_closed(site: Connections) -> None:
    silent, idle, stuck = arrive(site, "a"), arrive(site, "b", calls=True), arrive(site, "c", calls=True)
    assert silent is not None
    assert idle is not None
    assert stuck is not None
    stuck.began = 0.0
    site.call_ends(idle, is_last=True)
    passes(site, 16)
    site.sweep()
    assert [peer.ended for peer in (silent, idle, stuck)] == [["idle"], [], []]
    passes(site, 170)
    site.sweep()
    assert [peer.ended for peer in (silent, idle, stuck)] == [["idle"], [], ["stuck"]]
    passes(site, 120)
    site.sweep()
    assert idle.ended == ["idle"]


async def test_addresses_are_forgotten(site: Connections) -> None:
    for number in range(100):
        peer = arrive(site, f"10.0.0.{number}")
        assert peer is not None
        site.remove(peer)
    passes(site, 1000)
    site.sweep()
    assert not site._addresses


def test_the_limit_is_below_that_of_open_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("resource.getrlimit", lambda _which: (1024, 4096))
    assert default_limits().total == 512
    assert default_limits().per_address == 128
