"""Histories of what clients of an API asked and were told, and the program that holds them against its promises.

Each line of a file is a record that `tests/go/linearizable` reads. Times are those of one monotonic clock, so that what
ended before something else began is known across all clients.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, ClassVar, Literal, Self

import msgspec

from support.programs.catalog import build_program

CHECK_TIMEOUT_S = 1800

Verb = Literal["create", "update", "delete", "get", "list"]
Outcome = Literal["ok", "refused", "unknown"]


class Record(msgspec.Struct, tag_field="record", omit_defaults=True, rename="camel"):
    """One line."""

    kind: str = ""


class Item(msgspec.Struct, frozen=True):
    """An object as it was shown."""

    name: str
    value: str
    version: int
    uid: str


class Operation(Record, tag="operation", kw_only=True):
    """A request, and what became of it; one without an answer has `return_` 0."""

    client: int
    verb: Verb
    name: str = ""
    call: int
    return_: int = msgspec.field(default=0, name="return")
    outcome: Outcome
    reason: str = ""
    value: str = ""
    version: int = 0
    uid: str = ""
    if_version: int = 0
    if_uid: str = ""
    items: Iterable[Item] = ()


class Watch(Record, tag="watch", kw_only=True):
    """A watch is opened behind a version; with a watcher's number that was used before, it is resumed."""

    watcher: int
    at: int
    version: int


class Event(Record, tag="event", kw_only=True):
    """What a watch told."""

    watcher: int
    at: int
    type: str
    name: str = ""
    value: str = ""
    version: int
    uid: str = ""


class Leave(Record, tag="leave", kw_only=True):
    """A watcher does not come back."""

    watcher: int


class Fault(Record, tag="fault", kw_only=True):
    """Something was done to the server."""

    at: int
    what: str


class End(Record, tag="end", kw_only=True):
    """All watches of a kind were followed until this version."""

    version: int


class History:
    """A file that records are added to."""

    now: ClassVar = staticmethod(time.monotonic_ns)

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: BinaryIO = path.open("wb")
        self._encoder = msgspec.json.Encoder()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def add(self, record: Record) -> None:
        self._file.write(self._encoder.encode(record) + b"\n")

    def fault(self, what: str) -> None:
        self.add(Fault(at=self.now(), what=what))


class Violation(msgspec.Struct, frozen=True):
    """A promise that a history breaks."""

    check: str
    says: list[str]
    count: int
    picture: str = ""
    """A page that shows the smallest history of one object that is not linearizable."""


class Finding(msgspec.Struct, frozen=True):
    """What holding a history against the promises found."""

    operations: int
    unanswered: int
    happened: int
    """Of those without an answer, how many are known to have been carried out."""
    objects: int
    versions: int
    lists: int
    watches: int
    events: int
    violations: list[Violation]

    def __str__(self) -> str:
        return (
            f"{self.operations} operations on {self.objects} objects ({self.unanswered} without an answer, of which "
            f"{self.happened} are known to have happened), {self.versions} versions, {self.lists} lists, "
            f"{self.watches} watches opened or resumed, {self.events} events"
        )


def checker() -> Path:
    """The program that checks.

    Raises:
        CannotBuild: there is no toolchain, or it could not be built.
    """
    return build_program("linearizable")


async def check(path: Path) -> Finding:
    """Hold a history against what the API promises."""
    program = await asyncio.to_thread(checker)
    process = await asyncio.create_subprocess_exec(
        program, str(path), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(CHECK_TIMEOUT_S):
        said, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    return msgspec.json.decode(said, type=Finding)
