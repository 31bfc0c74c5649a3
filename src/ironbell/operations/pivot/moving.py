"""A pivot: each step may be repeated, and whichever was the last one before a crash, the same command goes on.

Until the target's record says `committed`, the copies are paused and count for nothing; from then on the sources do.
At no moment are both of an object unpaused.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import msgspec

from ironbell.api.cluster.names import ANNOTATION_DELETE_FOR_MOVE
from ironbell.base.clock import Clock, rfc3339
from ironbell.base.wording import counted, spoken_duration
from ironbell.contract.clusters.paused import ANNOTATION_PIVOT_PAUSED
from ironbell.operations.pivot import checks, copies
from ironbell.operations.pivot import items as kinds
from ironbell.operations.pivot.graph import Plan, Wanted, order
from ironbell.operations.pivot.items import Item, Key
from ironbell.operations.pivot.journal import Course, Journal, Phase, course
from ironbell.operations.pivot.site import ChangedError, Site, SiteError, Survey
from ironbell.operations.progress import Progress, Report

ROUNDS: Final = 12


@dataclass(frozen=True)
class Settings:
    """How to go about it."""

    timeout_s: float = 300.0
    """How long to wait until controllers have paused."""
    acknowledged: bool = True
    """Whether to wait for that at all."""
    workers: int = 8
    """How many objects are written at the same time."""
    adopts: bool = False
    """Whether to go on with a `clusterctl move` that was interrupted."""
    look_s: float = 0.5
    """How long between two looks."""


@dataclass(frozen=True)
class Outcome:
    """What a run has done."""

    id: str = ""
    course: str = ""
    objects: int = 0
    clusters: tuple[Key, ...] = ()
    kept: tuple[Key, ...] = ()
    """What is on both sides now."""
    paused: tuple[Key, ...] = ()
    """What was paused before, and still is."""


@dataclass
class Pivot:
    """From one API to another."""

    source: Site
    target: Site
    clock: Clock
    new_id: Callable[[], str]
    report: Report
    settings: Settings = field(default_factory=Settings)

    def __post_init__(self) -> None:
        self._survey = Survey(self.source, self.target)

    async def run(self, wanted: Wanted | None) -> Outcome:
        """Move what is wanted, or go on with what is under way; without `wanted` only the latter.

        Raises:
            RefusedError: something speaks against it; nothing is lost.
            JournalError: another pivot is under way.
            SiteError: an API does not answer or refuses; run again.
        """
        journals, identities = await self._look()
        what = course(*journals, identities=identities, wanted=wanted)
        if what is Course.TIDY:
            await self.source.drop_journal()
            return Outcome(course=what.value)
        known = journals[1] or journals[0]
        if what is Course.BEGIN:
            known = await self._begin(wanted or Wanted(), identities)
            if known is None:
                return Outcome(course=Course.NOTHING.value)
        assert known is not None  # noqa: S101 - what goes on has a record
        outcome = Outcome(known.id, what.value)
        if what is not Course.FINISH:
            outcome = await self._copy(known, outcome)
        return await self._finish(known, outcome)

    async def finish_alone(self) -> Outcome:
        """Go on after the point of no return without a source that is gone for good.

        Raises:
            RefusedError: the copies do not count yet.
        """
        found = await self.target.journal()
        if found is None or found[0].phase is not Phase.COMMITTED:
            checks.refuse(["the target has no pivot whose copies count already; the source is needed"])
        assert found is not None  # noqa: S101 - refused above
        outcome = await self._release(found[0], Outcome(found[0].id, Course.FINISH.value))
        await self.target.drop_journal()
        return outcome

    async def abort(self) -> Outcome:
        """Take the copies off the target and set the sources free; as `run` in its errors."""
        journals, identities = await self._look()
        if course(*journals, identities=identities, abort=True) is Course.NOTHING:
            return Outcome(course=Course.NOTHING.value)
        known = journals[1] or journals[0]
        assert known is not None  # noqa: S101 - else there is nothing to take back
        await self._set_phase(Phase.ABORTING)
        marked = await self._copies(known)
        self.report(Progress(f"removing {counted(len(marked), 'copy', 'copies')} from the target"))
        await self._drop(self.target, marked, lambda copy: copy.uid)
        await self._resume_sources(known)
        await self.target.drop_journal()
        await self.source.drop_journal()
        return Outcome(known.id, Course.ABORT.value, len(marked))

    async def preview(self, wanted: Wanted) -> Plan:
        """What would move; as `run` in its errors, and nothing is written."""
        journals, identities = await self._look()
        course(*journals, identities=identities, wanted=wanted)
        found = await self._survey.plan(wanted)
        known = journals[1] or journals[0]
        await self._checked(found, known.id if known else "", adopts=self.settings.adopts)
        return found

    async def _checked(self, found: Plan, pivot: str, *, adopts: bool) -> dict[Key, Item]:
        """What the target has under the names of what moves; raises RefusedError if something speaks against it."""
        there = await self._survey.there(found)
        checks.refuse(await self._survey.problems(found, there, pivot, adopts=adopts))
        return there

    async def _look(self) -> tuple[tuple[Journal | None, Journal | None], tuple[str, str]]:
        identities = (await self.source.identity(), await self.target.identity())
        if identities[0] == identities[1]:
            checks.refuse(["source and target are the same API; give --to another one's kubeconfig"])
        found = [await site.journal() for site in (self.source, self.target)]
        first, second = (None if one is None else one[0] for one in found)
        return (first, second), identities

    async def _begin(self, wanted: Wanted, identities: tuple[str, str]) -> Journal | None:
        found = await self._survey.plan(wanted)
        if not found.groups:
            return None
        await self._checked(found, "", adopts=self.settings.adopts)
        moved = sorted(
            {item.kind for item in found.items} | set(kinds.moved_kinds(await self._survey.definitions(self.source))),
            key=str,
        )
        journal = Journal(
            id=self.new_id(),
            phase=Phase.COPYING,
            source=identities[0],
            target=identities[1],
            target_server=self.target.server,
            namespaces=sorted(wanted.namespaces),
            clusters=sorted(wanted.clusters),
            kinds=[*dict.fromkeys((*moved, *kinds.CORE))],
            started=rfc3339(self.clock.now()),
            adopts=self.settings.adopts,
        )
        await self.source.write_journal(journal)
        return journal

    async def _copy(self, journal: Journal, outcome: Outcome) -> Outcome:
        """Up to the point of no return, and over it."""
        for site in (self.source, self.target):
            if await site.journal() is None:
                await site.write_journal(journal)
        self.report(Progress("pausing the source"))
        found = await self._quiet(journal)
        namespaces = {item.namespace for item in found.items}
        await self.target.ensure_namespaces(namespaces)
        for number in range(ROUNDS):
            there = await self._checked(found, journal.id, adopts=journal.adopts)
            why = await self._pause(found, journal) or await self._round(found, there, journal)
            if not why:
                break
            if number:
                await asyncio.sleep(self.settings.look_s)
            found = await self._survey.plan(journal.wanted)
        else:
            raise SiteError(
                f"{why} still differs on the target after {ROUNDS} times: its definition or a controller there does "
                "not keep what the source says, or the source goes on changing; remedy it and run the same command "
                "again, or with --abort"
            )
        self.report(Progress("all copies are complete; from here on they count"))
        await self._set_phase(Phase.COMMITTED)
        items = list(found.items)
        mine = {item.uid for item in items if item.annotations.get(ANNOTATION_PIVOT_PAUSED) == journal.id}
        return replace(
            outcome,
            objects=len(items),
            clusters=tuple(item.key for item in items if item.kind.name == kinds.CLUSTER),
            kept=tuple(item.key for item in items if item.uid in found.kept),
            paused=tuple(item.key for item in items if copies.is_paused(item) and item.uid not in mine),
        )

    async def _quiet(self, journal: Journal) -> Plan:
        """Wait until controllers leave the sources alone and no provider blocks; what moves then."""
        last = ""
        try:
            async with asyncio.timeout(self.settings.timeout_s):
                while True:
                    found = await self._survey.plan(journal.wanted)
                    why = await self._pause(found, journal)
                    why = why or copies.unready(found.items, acknowledged=self.settings.acknowledged)
                    if not why:
                        return found
                    if why != last:
                        self.report(Progress(why))
                    last = why
                    await asyncio.sleep(self.settings.look_s)
        except TimeoutError:
            raise SiteError(
                f"{last} after {spoken_duration(self.settings.timeout_s)}; see that its controller runs, or give "
                "--no-wait-for-pause if none does, and run the same command again, or with --abort"
            ) from None

    async def _pause(self, found: Plan, journal: Journal) -> str:
        """Pause what is not; the last that was, so that its controllers are waited for."""
        patches = {
            item.uid: patch
            for item in found.items
            if item.uid in found.paused and (patch := copies.pause(item, journal.id, adopts=journal.adopts))
        }
        loose = [item for item in found.items if item.uid in patches]

        async def one(item: Item) -> None:
            with contextlib.suppress(ChangedError):  # the next look tells
                await self.source.merge(item, patches[item.uid])

        await self._each(loose, one)
        return f"{loose[-1].title} is being paused" if loose else ""

    async def _round(self, found: Plan, there: Mapping[Key, Item], journal: Journal) -> str:
        """Bring all copies up to their sources once; the last thing that had to be changed, empty if nothing had."""
        uids = {item.uid: there[item.key].uid for item in found.items if item.key in there}
        changed: list[str] = []
        total, done = sum(map(len, found.groups)), 0

        async def one(item: Item) -> None:
            nonlocal done
            try:
                why = await self._one(item, there.get(item.key), uids, journal, kept=item.uid in found.kept)
            except ChangedError as error:
                why = str(error)
            done += 1
            if why:
                changed.append(f"{item.title}: {why}")
                self.report(Progress(f"copied {done} of {total}: {item.title}", done, total))

        for group in found.groups:
            await self._each(group, one)
        wanted = {item.key for item in found.items}
        stale = [copy for copy in await self._copies(journal) if copy.key not in wanted]
        await self._drop(self.target, stale, lambda copy: copy.uid)
        changed += [f"{copy.title}: gone from the source" for copy in stale]
        return changed[-1] if changed else ""

    async def _one(self, item: Item, copy: Item | None, uids: dict[str, str], journal: Journal, *, kept: bool) -> str:
        is_theirs = copy is not None and not copies.is_marked(copy, journal.id)
        if is_theirs and (kept or not journal.adopts):
            return ""  # cluster-wide or shared, and there already: it serves as it is
        body, why = copies.copy_of(item, uids=uids, pivot=journal.id, kept=kept), ""
        if copy is not None and ANNOTATION_DELETE_FOR_MOVE in item.annotations:
            body = copies.adopted(body, copy)
        if copy is None:
            copy, why = await self.target.create(item.kind, body), "new"
        elif why := copies.difference(copy, body):
            copy = await self.target.replace(copy, body)
        uids[item.uid] = copy.uid
        status = copies.status_of(item, int(copy.meta.get("generation") or 0))
        if status is not None and (lacks := copies.status_difference(copy, status)):
            await self.target.write_status(copy, status)
            why = why or lacks
        return why

    async def _finish(self, journal: Journal, outcome: Outcome) -> Outcome:
        await self._set_phase(Phase.COMMITTED)
        marked = await self._copies(journal)
        going = [copy for copy in marked if kinds.ANNOTATION_KEPT not in copy.annotations]
        self.report(Progress(f"removing {counted(len(going), 'object')} from the source"))
        await self._drop(self.source, going, lambda copy: copy.annotations[kinds.ANNOTATION_SOURCE])
        await self._resume_sources(journal)
        outcome = await self._release(journal, outcome)
        await self.source.drop_journal()
        await self.target.drop_journal()
        return outcome

    async def _release(self, journal: Journal, outcome: Outcome) -> Outcome:
        """Set the copies free: all others first, then what holds a pause, and Clusters last."""
        for _ in range(ROUNDS):
            marked = await self._copies(journal)
            if not marked:
                return outcome
            self.report(Progress(f"setting {counted(len(marked), 'object')} free on the target"))
            holders = [copy for copy in marked if ANNOTATION_PIVOT_PAUSED in copy.annotations]
            clusters = [copy for copy in holders if copy.kind.name == kinds.CLUSTER]
            others = [copy for copy in marked if copy not in holders]
            for some in (others, [copy for copy in holders if copy not in clusters], clusters):
                await self._each(some, lambda copy: self._free(copy, journal.id))
        raise SiteError("objects on the target change all the time; run the same command again")

    async def _free(self, copy: Item, pivot: str) -> None:
        resumed = copies.resume(copy, pivot)
        patch = copies.released(copy)
        patch["metadata"]["annotations"] |= resumed.get("metadata", {}).get("annotations", {})
        if "spec" in resumed:
            patch["spec"] = resumed["spec"]
        with contextlib.suppress(ChangedError):  # the next round has its new version
            await self.target.merge(copy, patch)

    async def _resume_sources(self, journal: Journal) -> None:
        """Undo what was paused and is still there."""

        async def resume(item: Item) -> None:
            with contextlib.suppress(ChangedError):
                await self.source.merge(item, copies.resume(item, journal.id))

        for kind in (kind for kind in journal.kinds if kind.forced):
            for _ in range(ROUNDS):
                found = [
                    item for item in await self.source.items(kind)
                    if item.annotations.get(ANNOTATION_PIVOT_PAUSED) == journal.id
                ]  # fmt: skip
                if not found:
                    break
                await self._each(found, resume)

    async def _drop(self, site: Site, items: Sequence[Item], uid_of: Callable[[Item], str]) -> None:
        """Remove objects from a side, what is owned first."""
        done = 0

        async def one(item: Item) -> None:
            nonlocal done
            await site.remove(item.kind, item.namespace, item.name, uid_of(item))
            done += 1
            message = f"removed {done} of {len(items)} from the {site.side}: {item.title}"
            self.report(Progress(message, done, len(items)))

        for group in reversed(order(items)):
            await self._each(group, one)

    async def _set_phase(self, phase: Phase) -> None:
        for site in (self.target, self.source):
            found = await site.journal()
            if found is not None and found[0].phase is not phase:
                await site.write_journal(msgspec.structs.replace(found[0], phase=phase), found[1])

    async def _copies(self, journal: Journal) -> list[Item]:
        return [
            item
            for kind in journal.kinds
            for item in await self.target.items(kind, labels=f"{kinds.LABEL_COPY}={journal.id}")
        ]

    async def _each(self, items: Iterable[Item], work: Callable[[Item], Awaitable[None]]) -> None:
        """Several at a time; the first error ends all, and is raised alone."""
        limit = asyncio.Semaphore(self.settings.workers)

        async def one(item: Item) -> None:
            async with limit:
                await work(item)

        try:
            async with asyncio.TaskGroup() as group:
                for item in items:
                    group.create_task(one(item))
        except ExceptionGroup as errors:
            # Python 3.11.3 and older wrap what is raised in an `except*` clause into a group again
            raise _first(errors.exceptions) from errors


def _first(errors: Sequence[BaseException]) -> BaseException:
    found = errors[0]
    return _first(found.exceptions) if isinstance(found, BaseExceptionGroup) else found
