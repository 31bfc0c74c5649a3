"""Changes that a watch reads from disk and from memory, each once."""

from __future__ import annotations

from typing import Any

from ironbell.apiserver.store.entry import Change, Entry
from ironbell.apiserver.store.state import History
from ironbell.apiserver.store.watch import Feed


def change(version: int) -> Change:
    return Change(Entry("configmaps.", ("default", "a"), version, "uid", b"{}"), None)


class Store:
    """A store after a start: history up to revision 2 is on disk alone, and 3 was just committed."""

    def __init__(self) -> None:
        self.memory = History(2)
        self.disk = [change(1), change(2), change(3)]

    def history(self, _resource: str) -> History:
        return self.memory

    def oldest(self, _resource: str) -> int:
        return 0

    async def read_history(self, _resource: str, after: int, *, limit: int) -> list[Change]:
        return [entry for entry in self.disk if entry.entry.version > after][:limit]


async def test_what_is_committed_and_not_in_memory_yet_comes_once() -> None:
    store: Any = Store()
    feed = Feed(store, "configmaps.", after=0)
    result = [*(await feed.next(0.01) or ()), *(await feed.next(0.01) or ())]
    store.memory.add(store.disk[-1])
    result += await feed.next(0.01) or ()
    assert [entry.entry.version for entry in result] == [1, 2, 3]
