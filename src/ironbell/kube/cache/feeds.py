"""Feeds of facts, adapted: for who adds up many things and need not look at every change."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from ironbell.kube.decision import Question
from ironbell.kube.reconciler import Feed


def spaced(feed: Feed, spacing_s: float) -> Feed:
    """The feed, telling of each question at most once per `spacing_s`: the first change after a quiet time at once,
    those that follow together when the time is over. For use in an event loop."""

    def subscribe(outdate: Callable[[Question[Any]], None]) -> Callable[[], None]:
        relay = _Relay(outdate, spacing_s)
        end = feed(relay.changed)

        def unsubscribe() -> None:
            end()
            relay.close()

        return unsubscribe

    return subscribe


class _Relay:
    """Passes changes on, with a pause after each for every question."""

    def __init__(self, outdate: Callable[[Question[Any]], None], spacing_s: float) -> None:
        self._outdate = outdate
        self._spacing_s = spacing_s
        self._pauses: dict[Question[Any], asyncio.TimerHandle] = {}
        self._changed: set[Question[Any]] = set()

    def changed(self, question: Question[Any]) -> None:
        if question in self._pauses:
            self._changed.add(question)
        else:
            self._pass_on(question)

    def close(self) -> None:
        for pause in self._pauses.values():
            pause.cancel()
        self._pauses.clear()

    def _pass_on(self, question: Question[Any]) -> None:
        loop = asyncio.get_running_loop()
        self._pauses[question] = loop.call_later(self._spacing_s, self._over, question)
        self._outdate(question)

    def _over(self, question: Question[Any]) -> None:
        del self._pauses[question]
        if question in self._changed:
            self._changed.discard(question)
            self._pass_on(question)
