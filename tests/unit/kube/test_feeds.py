"""Feeds that are not told every change."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import ClassVar

import looptime

from ironbell.kube.cache.feeds import spaced
from ironbell.kube.decision import Query


@dataclass(frozen=True)
class Count(Query[int]):
    subject: ClassVar[str] = "the count"

    of: str


@dataclass
class Source:
    """A feed, with who listens to it."""

    listeners: list[Callable[[Query[int]], None]] = field(default_factory=list)

    def feed(self, outdate: Callable[[Query[int]], None]) -> Callable[[], None]:
        self.listeners.append(outdate)
        return lambda: self.listeners.remove(outdate)

    def change(self, *names: str) -> None:
        for name in names:
            for listener in self.listeners:
                listener(Count(name))


def in_virtual_time(play: Callable[[], Awaitable[None]]) -> None:
    with asyncio.Runner(loop_factory=lambda: looptime.new_event_loop(start=0.0)) as runner:
        runner.run(play())


def test_the_first_change_is_told_at_once_and_those_that_follow_together() -> None:
    async def play() -> None:
        source, heard = Source(), []
        end = spaced(source.feed, 2.0)(lambda query: heard.append((asyncio.get_running_loop().time(), query)))
        source.change("a", "a", "b")
        assert heard == [(0.0, Count("a")), (0.0, Count("b"))]
        await asyncio.sleep(1.0)
        source.change("a", "a")
        await asyncio.sleep(9.0)
        assert heard[2:] == [(2.0, Count("a"))]
        source.change("a")
        assert heard[3:] == [(10.0, Count("a"))]
        end()

    in_virtual_time(play)


def test_who_has_left_hears_nothing_more() -> None:
    async def play() -> None:
        source, heard = Source(), []
        end = spaced(source.feed, 2.0)(heard.append)
        source.change("a", "a")
        end()
        await asyncio.sleep(5.0)
        assert heard == [Count("a")]
        assert source.listeners == []

    in_virtual_time(play)
