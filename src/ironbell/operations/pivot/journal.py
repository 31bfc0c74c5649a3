"""What a pivot writes down about itself on both sides, and what is to be done, told from what is there.

The source's is made first and goes first, the target's decides: as soon as it says `committed` the copies count, and
there is no way back. One pivot at a time for each API.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec

from ironbell.base.errors import IronbellError, Retry
from ironbell.operations.pivot.graph import Wanted
from ironbell.operations.pivot.items import MovedKind

JOURNAL: Final = "ironbell-pivot"
"""ConfigMap on both sides, and Lease on the target."""
JOURNAL_NAMESPACE: Final = "kube-system"
JOURNAL_KEY: Final = "pivot.json"


class Phase(StrEnum):
    """How far a pivot is."""

    COPYING = "copying"
    """Sources are paused and copied; it can be taken back."""
    COMMITTED = "committed"
    """The copies are complete and count; sources go."""
    ABORTING = "aborting"
    """Copies go, sources will be set free."""


class Journal(msgspec.Struct, frozen=True, kw_only=True):
    """One side's record."""

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
    """Whether it goes on with a `clusterctl move`, whose copies have no marks."""

    @property
    def wanted(self) -> Wanted:
        return Wanted(frozenset(self.namespaces), frozenset(self.clusters))

    @property
    def options(self) -> str:
        """The options that name what moves."""
        namespaces = [f"--namespace {name}" for name in self.namespaces] or ["--all-namespaces"]
        return " ".join([*namespaces, *(f"--cluster {name}" for name in self.clusters)])


class JournalError(IronbellError):
    """Another pivot is in the way, or it is too late for what was asked."""

    reason, retry = "PivotUnderWay", Retry.NEVER


class Course(StrEnum):
    """What a run does."""

    BEGIN = "begin"
    COPY = "copy"
    """Go on before the point of no return."""
    FINISH = "finish"
    """Go on after it."""
    ABORT = "abort"
    TIDY = "tidy"
    """Everything is done but for the source's record."""
    NOTHING = "nothing"


NO_OTHER: Final = "; one pivot at a time"


def course(
    source: Journal | None,
    target: Journal | None,
    *,
    identities: tuple[str, str],
    wanted: Wanted | None = None,
    abort: bool = False,
) -> Course:
    """What to do, with the records that are there. `wanted` is what the command line asks for, if it does.

    Raises:
        JournalError: they are of another pivot, or it is too late.
    """
    for journal, side in ((source, "source"), (target, "target")):
        if journal is not None and (journal.source, journal.target) != identities:
            other = f" to {journal.target_server}" if journal.target_server else ""
            raise JournalError(
                f"the {side} has a pivot of {journal.options}{other} under way (since {journal.started}){NO_OTHER}: "
                "finish it by its own command, or take it back by that command with --abort"
            )
    if source is not None and target is not None and source.id != target.id:
        raise JournalError("source and target tell of different pivots; was one of them restored from a backup?")
    known = target or source
    if known is None:
        return Course.NOTHING if abort else Course.BEGIN
    committed = any(one is not None and one.phase is Phase.COMMITTED for one in (source, target))
    if abort:
        if known.adopts:
            raise JournalError(
                "this pivot goes on with a `clusterctl move`, which may have removed sources already: it cannot be "
                "taken back; run the same command without --abort"
            )
        if committed:
            raise JournalError(
                "the copies on the target count already, and there is no way back: run the same command without "
                "--abort to the end, then pivot in the other direction"
            )
        return Course.ABORT
    if any(one is not None and one.phase is Phase.ABORTING for one in (source, target)):
        raise JournalError("this pivot is being taken back: run it with --abort until that is done, then begin anew")
    if wanted is not None and wanted != known.wanted:
        raise JournalError(f"a pivot of {known.options} is under way between these two{NO_OTHER}: give these options")
    if not committed:
        return Course.COPY
    return Course.FINISH if target is not None else Course.TIDY
