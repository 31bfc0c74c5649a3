"""Feeds of facts at a limited rate: for readers that aggregate many facts and need not see every change."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from ironbell.kube.decision import Query
from ironbell.kube.reconciler import Feed


def spaced(feed: Feed, spacing_s: float) -> Feed:
    """Return the feed, limited to one report per query and `spacing_s`: the first change after a quiet time is passed
    on at once, those that follow together when the time has passed. For use in an event loop."""

    def subscribe(outdate: Callable[[Query[Any]], None]) -> Callable[[], None]:
        relay = _Relay(outdate, spacing_s)
        end = feed(relay.changed)

        def unsubscribe() -> None:
            end()
            relay.close()

        return unsubscribe

    return subscribe


class _Relay:
    """Passes changes on, with a pause after each for every query."""

    def __init__(self, outdate: Callable[[Query[Any]], None], spacing_s: float) -> None:
        self._outdate = outdate
        self._spacing_s = spacing_s
        self._pauses: dict[Query[Any], asyncio.TimerHandle] = {}
        self._changed: set[Query[Any]] = set()

    def changed(self, query: Query[Any]) -> None:
        if query in self._pauses:
            self._changed.add(query)
        else:
            self._pass_on(query)

    def close(self) -> None:
        for pause in self._pauses.values():
            pause.cancel()
        self._pauses.clear()

    def _pass_on(self, query: Query[Any]) -> None:
        loop = asyncio.get_running_loop()
        self._pauses[query] = loop.call_later(self._spacing_s, self._end_pause, query)
        self._outdate(query)

    def _end_pause(self, query: Query[Any]) -> None:
        del self._pauses[query]
        if query in self._changed:
            self._changed.discard(query)
            self._pass_on(query)
