"""The records of a pivot on both sides, and the course that a run takes according to them.

The source's record is created first and deleted first; the target's decides: as soon as its phase is `committed`, the
copies are in effect, and the pivot cannot be undone. There is one pivot at a time for each API.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec

from ironbell.base.errors import IronbellError, Retry
from ironbell.operations.pivot.graph import Selection
from ironbell.operations.pivot.items import MovedKind

JOURNAL: Final = "ironbell-pivot"
"""ConfigMap on both sides, and Lease on the target."""
JOURNAL_NAMESPACE: Final = "kube-system"
JOURNAL_KEY: Final = "pivot.json"


class Phase(StrEnum):
    """The phase of a pivot."""

    COPYING = "copying"
    """Sources are paused and copied; the pivot can be undone."""
    COMMITTED = "committed"
    """The copies are complete and in effect; sources are deleted."""
    ABORTING = "aborting"
    """Copies are deleted, and sources will be resumed."""


class Journal(msgspec.Struct, frozen=True, kw_only=True):
    """The record of one side."""

    id: str
    phase: Phase
    source: str
    """Identity of the source's API."""
    target: str
    target_server: str = ""
    namespaces: list[str] = []
    clusters: list[str] = []
    kinds: list[MovedKind] = []
    started: str = ""
    adopts: bool = False
    """Whether the pivot continues a `clusterctl move`, whose copies have no marks."""

    @property
    def selection(self) -> Selection:
        return Selection(frozenset(self.namespaces), frozenset(self.clusters))

    @property
    def options(self) -> str:
        """The options that select the objects to move."""
        namespaces = [f"--namespace {name}" for name in self.namespaces] or ["--all-namespaces"]
        return " ".join([*namespaces, *(f"--cluster {name}" for name in self.clusters)])


class JournalError(IronbellError):
    """Another pivot is under way, or it is too late for the requested action."""

    reason, retry = "PivotUnderWay", Retry.NEVER


class Course(StrEnum):
    """The course of a run."""

    BEGIN = "begin"
    COPY = "copy"
    """Continue before the point of no return."""
    FINISH = "finish"
    """Continue after it."""
    ABORT = "abort"
    TIDY = "tidy"
    """Only the source's record is left to delete."""
    NOTHING = "nothing"


NO_OTHER: Final = "; one pivot at a time"


def course(
    source: Journal | None,
    target: Journal | None,
    *,
    identities: tuple[str, str],
    selection: Selection | None = None,
    abort: bool = False,
) -> Course:
    """Return the course for the existing records. `selection` is that of the command line, if it has one.

    Raises:
        JournalError: the records belong to another pivot, or it is too late.
    """
    for journal, side in ((source, "source"), (target, "target")):
        if journal is not None and (journal.source, journal.target) != identities:
            other = f" to {journal.target_server}" if journal.target_server else ""
            raise JournalError(
                f"the {side} has a pivot of {journal.options}{other} under way (since {journal.started}){NO_OTHER}: "
                "complete it with its own command, or undo it with that command and --abort"
            )
    if source is not None and target is not None and source.id != target.id:
        raise JournalError("source and target have records of different pivots; was one restored from a backup?")
    known = target or source
    if known is None:
        return Course.NOTHING if abort else Course.BEGIN
    committed = any(record is not None and record.phase is Phase.COMMITTED for record in (source, target))
    if abort:
        if known.adopts:
            raise JournalError(
                "this pivot continues a `clusterctl move`, which may have removed sources already: it cannot be "
                "undone; run the same command without --abort"
            )
        if committed:
            raise JournalError(
                "the copies on the target are in effect already, and the pivot cannot be undone: run the same command "
                "without --abort to the end, then pivot in the other direction"
            )
        return Course.ABORT
    if any(record is not None and record.phase is Phase.ABORTING for record in (source, target)):
        raise JournalError("this pivot is being undone: run it with --abort until that is completed, then start again")
    if selection is not None and selection != known.selection:
        raise JournalError(f"a pivot of {known.options} is under way between these two{NO_OTHER}: use these options")
    if not committed:
        return Course.COPY
    return Course.FINISH if target is not None else Course.TIDY
