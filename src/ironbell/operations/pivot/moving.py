"""Pivot: every step may be repeated, so the same command continues after a crash at any step.

Until the target's record has the phase `committed`, the copies are paused and not in effect; from then on the sources
are not. At no moment are both of an object unpaused.
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
from ironbell.operations.pivot.graph import Plan, Selection, order
from ironbell.operations.pivot.items import Item, Key
from ironbell.operations.pivot.journal import Course, Journal, Phase, course
from ironbell.operations.pivot.site import ChangedError, Site, SiteError, Survey
from ironbell.operations.progress import Progress, Report

ROUNDS: Final = 12


@dataclass(frozen=True)
class Settings:
    """Settings of a pivot."""

    timeout_s: float = 300.0
    """Time limit for controllers to pause."""
    acknowledged: bool = True
    """Whether to wait for controllers to report the pause."""
    workers: int = 8
    """Number of objects that are written at the same time."""
    adopts: bool = False
    """Whether to continue a `clusterctl move` that was interrupted."""
    poll_s: float = 0.5
    """Interval between two reads."""


@dataclass(frozen=True)
class Outcome:
    """The result of a run."""

    id: str = ""
    course: str = ""
    objects: int = 0
    clusters: tuple[Key, ...] = ()
    kept: tuple[Key, ...] = ()
    """Objects that are now on both sides."""
    paused: tuple[Key, ...] = ()
    """Objects that were paused before the pivot, and still are."""
    left_paused: tuple[Key, ...] = ()
    """Clusters that are paused on the target after a move of another program was adopted."""


@dataclass
class Pivot:
    """A pivot from one API to another."""

    source: Site
    target: Site
    clock: Clock
    new_id: Callable[[], str]
    report: Report
    settings: Settings = field(default_factory=Settings)

    def __post_init__(self) -> None:
        self._survey = Survey(self.source, self.target)

    async def run(self, selection: Selection | None) -> Outcome:
        """Move the selected objects, or continue a pivot that is under way; without `selection`, only the latter.

        Raises:
            PivotRejectedError: a check found problems; nothing is lost.
            JournalError: another pivot is under way.
            SiteError: an API does not answer, or rejects a write; run again.
        """
        journals, identities = await self._read_journals()
        step = course(*journals, identities=identities, selection=selection)
        if step is Course.TIDY:
            await self.source.drop_journal()
            return Outcome(course=step.value)
        known = journals[1] or journals[0]
        if step is Course.BEGIN:
            known = await self._begin(selection or Selection(), identities)
            if known is None:
                return Outcome(course=Course.NOTHING.value)
        assert known is not None  # noqa: S101 - a pivot that continues has a record
        outcome = Outcome(known.id, step.value)
        if step is not Course.FINISH:
            outcome = await self._copy(known, outcome)
        return await self._finish(known, outcome)

    async def finish_alone(self) -> Outcome:
        """Continue after the point of no return without a source, which is lost.

        Raises:
            PivotRejectedError: the copies are not in effect yet.
        """
        record = await self.target.journal()
        if record is None or record[0].phase is not Phase.COMMITTED:
            checks.raise_problems(["the target has no pivot whose copies are in effect; the source is needed"])
        assert record is not None  # noqa: S101 - checked above
        outcome = await self._release(record[0], Outcome(record[0].id, Course.FINISH.value))
        await self.target.drop_journal()
        return outcome

    async def abort(self) -> Outcome:
        """Remove the copies from the target and resume the sources; raises the errors of `run`."""
        journals, identities = await self._read_journals()
        if course(*journals, identities=identities, abort=True) is Course.NOTHING:
            return Outcome(course=Course.NOTHING.value)
        known = journals[1] or journals[0]
        assert known is not None  # noqa: S101 - otherwise there is nothing to undo
        await self._set_phase(Phase.ABORTING)
        marked = await self._copies(known)
        self.report(Progress(f"removing {counted(len(marked), 'copy', 'copies')} from the target"))
        await self._drop(self.target, marked, lambda copy: copy.uid)
        await self._resume_sources(known)
        await self.target.drop_journal()
        await self.source.drop_journal()
        return Outcome(known.id, Course.ABORT.value, len(marked))

    async def preview(self, selection: Selection) -> Plan:
        """Plan what would be moved, and write nothing; raises the errors of `run`."""
        journals, identities = await self._read_journals()
        course(*journals, identities=identities, selection=selection)
        plan = await self._survey.plan(selection)
        known = journals[1] or journals[0]
        await self._checked(plan, known.id if known else "", adopts=self.settings.adopts)
        return plan

    async def _checked(self, plan: Plan, pivot: str, *, adopts: bool) -> dict[Key, Item]:
        """Return the objects on the target with the names of those that move; raises PivotRejectedError for
        problems."""
        on_target = await self._survey.on_target(plan)
        checks.raise_problems(await self._survey.problems(plan, on_target, pivot, adopts=adopts))
        return on_target

    async def _read_journals(self) -> tuple[tuple[Journal | None, Journal | None], tuple[str, str]]:
        identities = (await self.source.identity(), await self.target.identity())
        if identities[0] == identities[1]:
            checks.raise_problems(["source and target are the same API; set --to to the kubeconfig of another one"])
        records = [await site.journal() for site in (self.source, self.target)]
        first, second = (None if record is None else record[0] for record in records)
        return (first, second), identities

    async def _begin(self, selection: Selection, identities: tuple[str, str]) -> Journal | None:
        plan = await self._survey.plan(selection)
        if not plan.groups:
            return None
        await self._checked(plan, "", adopts=self.settings.adopts)
        moved = sorted(
            {item.kind for item in plan.items} | set(kinds.moved_kinds(await self._survey.definitions(self.source))),
            key=str,
        )
        journal = Journal(
            id=self.new_id(),
            phase=Phase.COPYING,
            source=identities[0],
            target=identities[1],
            target_server=self.target.server,
            namespaces=sorted(selection.namespaces),
            clusters=sorted(selection.clusters),
            kinds=[*dict.fromkeys((*moved, *kinds.CORE))],
            started=rfc3339(self.clock.now()),
            adopts=self.settings.adopts,
        )
        await self.source.write_journal(journal)
        return journal

    async def _copy(self, journal: Journal, outcome: Outcome) -> Outcome:
        """Copy up to the point of no return, and commit."""
        for site in (self.source, self.target):
            if await site.journal() is None:
                await site.write_journal(journal)
        self.report(Progress("pausing the source"))
        plan = await self._quiet(journal)
        namespaces = {item.namespace for item in plan.items}
        await self.target.ensure_namespaces(namespaces)
        for number in range(ROUNDS):
            on_target = await self._checked(plan, journal.id, adopts=journal.adopts)
            problem = await self._pause(plan, journal) or await self._round(plan, on_target, journal)
            if not problem:
                break
            if number:
                await asyncio.sleep(self.settings.poll_s)
            plan = await self._survey.plan(journal.selection)
        else:
            raise SiteError(
                f"{problem} still differs on the target after {ROUNDS} rounds: its definition or a controller there "
                "changes the copy, or the source keeps changing; correct that and run the same command again, or with "
                "--abort"
            )
        self.report(Progress("all copies are complete and now in effect"))
        await self._set_phase(Phase.COMMITTED)
        items = list(plan.items)
        paused_by_pivot = {item.uid for item in items if item.annotations.get(ANNOTATION_PIVOT_PAUSED) == journal.id}
        return replace(
            outcome,
            objects=len(items),
            clusters=tuple(item.key for item in items if item.kind.name == kinds.CLUSTER),
            kept=tuple(item.key for item in items if item.uid in plan.kept),
            paused=tuple(item.key for item in items if copies.is_paused(item) and item.uid not in paused_by_pivot),
        )

    async def _quiet(self, journal: Journal) -> Plan:
        """Wait until controllers skip the sources and no provider blocks; return what moves then."""
        last = ""
        try:
            async with asyncio.timeout(self.settings.timeout_s):
                while True:
                    plan = await self._survey.plan(journal.selection)
                    problem = await self._pause(plan, journal)
                    problem = problem or copies.unready(plan.items, acknowledged=self.settings.acknowledged)
                    if not problem:
                        return plan
                    if problem != last:
                        self.report(Progress(problem))
                    last = problem
                    await asyncio.sleep(self.settings.poll_s)
        except TimeoutError:
            raise SiteError(
                f"{last} after {spoken_duration(self.settings.timeout_s)}; check that its controller runs, or use "
                "--no-wait-for-pause if none does, and run the same command again, or with --abort"
            ) from None

    async def _pause(self, plan: Plan, journal: Journal) -> str:
        """Pause objects that are not paused; return the last one, so that its controllers are waited for."""
        patches = {
            item.uid: patch
            for item in plan.items
            if item.uid in plan.paused and (patch := copies.pause(item, journal.id, adopts=journal.adopts))
        }
        loose = [item for item in plan.items if item.uid in patches]

        async def pause_item(item: Item) -> None:
            with contextlib.suppress(ChangedError):  # the next read shows it
                await self.source.merge(item, patches[item.uid])

        await self._for_each(loose, pause_item)
        return f"{loose[-1].title} is being paused" if loose else ""

    async def _round(self, plan: Plan, on_target: Mapping[Key, Item], journal: Journal) -> str:
        """Update all copies from their sources once; return the last difference, empty if there was none."""
        uids = {item.uid: on_target[item.key].uid for item in plan.items if item.key in on_target}
        changed: list[str] = []
        total, done = sum(map(len, plan.groups)), 0

        async def copy_item(item: Item) -> None:
            nonlocal done
            try:
                difference = await self._write_copy(
                    item, on_target.get(item.key), uids, journal, kept=item.uid in plan.kept
                )
            except ChangedError as error:
                difference = str(error)
            done += 1
            if difference:
                changed.append(f"{item.title}: {difference}")
                self.report(Progress(f"copied {done} of {total}: {item.title}", done, total))

        for group in plan.groups:
            await self._for_each(group, copy_item)
        planned = {item.key for item in plan.items}
        stale = [copy for copy in await self._copies(journal) if copy.key not in planned]
        await self._drop(self.target, stale, lambda copy: copy.uid)
        changed += [f"{copy.title}: deleted on the source" for copy in stale]
        return changed[-1] if changed else ""

    async def _write_copy(
        self, item: Item, copy: Item | None, uids: dict[str, str], journal: Journal, *, kept: bool
    ) -> str:
        is_foreign = copy is not None and not copies.is_marked(copy, journal.id)
        if is_foreign and (kept or not journal.adopts):
            return ""  # a cluster-wide or shared object that exists already is used unchanged
        body, difference = copies.copy_of(item, uids=uids, pivot=journal.id, kept=kept), ""
        if copy is not None and ANNOTATION_DELETE_FOR_MOVE in item.annotations:
            body = copies.adopted(body, copy)
        if copy is None:
            copy, difference = await self.target.create(item.kind, body), "new"
        elif difference := copies.difference(copy, body):
            copy = await self.target.replace(copy, body)
        uids[item.uid] = copy.uid
        status = copies.status_of(item, int(copy.meta.get("generation") or 0))
        if status is not None and (lacks := copies.status_difference(copy, status)):
            await self.target.write_status(copy, status)
            difference = difference or lacks
        return difference

    async def _finish(self, journal: Journal, outcome: Outcome) -> Outcome:
        await self._set_phase(Phase.COMMITTED)
        marked = await self._copies(journal)
        moved = [copy for copy in marked if kinds.ANNOTATION_KEPT not in copy.annotations]
        self.report(Progress(f"removing {counted(len(moved), 'object')} from the source"))
        await self._drop(self.source, moved, lambda copy: copy.annotations[kinds.ANNOTATION_SOURCE])
        await self._resume_sources(journal)
        outcome = await self._release(journal, outcome)
        await self.source.drop_journal()
        await self.target.drop_journal()
        return outcome

    async def _release(self, journal: Journal, outcome: Outcome) -> Outcome:
        """Resume the copies: all others first, then objects with a pause, and Clusters last."""
        for _ in range(ROUNDS):
            marked = await self._copies(journal)
            if not marked:
                return outcome
            self.report(Progress(f"resuming {counted(len(marked), 'object')} on the target"))
            holders = [copy for copy in marked if ANNOTATION_PIVOT_PAUSED in copy.annotations]
            clusters = [copy for copy in holders if copy.kind.name == kinds.CLUSTER]
            others = [copy for copy in marked if copy not in holders]
            for some in (others, [copy for copy in holders if copy not in clusters], clusters):
                await self._for_each(some, lambda copy: self._free(copy, journal.id))
        raise SiteError("objects on the target keep changing; run the same command again")

    async def _free(self, copy: Item, pivot: str) -> None:
        resumed = copies.resume(copy, pivot)
        patch = copies.released(copy)
        patch["metadata"]["annotations"] |= resumed.get("metadata", {}).get("annotations", {})
        if "spec" in resumed:
            patch["spec"] = resumed["spec"]
        with contextlib.suppress(ChangedError):  # the next round has its new version
            await self.target.merge(copy, patch)

    async def _resume_sources(self, journal: Journal) -> None:
        """Resume the sources that were paused and still exist."""

        async def resume(item: Item) -> None:
            with contextlib.suppress(ChangedError):
                await self.source.merge(item, copies.resume(item, journal.id))

        for kind in (kind for kind in journal.kinds if kind.forced):
            for _ in range(ROUNDS):
                paused = [
                    item for item in await self.source.items(kind)
                    if item.annotations.get(ANNOTATION_PIVOT_PAUSED) == journal.id
                ]  # fmt: skip
                if not paused:
                    break
                await self._for_each(paused, resume)

    async def _drop(self, site: Site, items: Sequence[Item], uid_of: Callable[[Item], str]) -> None:
        """Remove objects from a side, dependents first."""
        done = 0

        async def remove(item: Item) -> None:
            nonlocal done
            await site.remove(item.kind, item.namespace, item.name, uid_of(item))
            done += 1
            message = f"removed {done} of {len(items)} from the {site.side}: {item.title}"
            self.report(Progress(message, done, len(items)))

        for group in reversed(order(items)):
            await self._for_each(group, remove)

    async def _set_phase(self, phase: Phase) -> None:
        for site in (self.target, self.source):
            record = await site.journal()
            if record is not None and record[0].phase is not phase:
                await site.write_journal(msgspec.structs.replace(record[0], phase=phase), record[1])

    async def _copies(self, journal: Journal) -> list[Item]:
        return [
            item
            for kind in journal.kinds
            for item in await self.target.items(kind, labels=f"{kinds.LABEL_COPY}={journal.id}")
        ]

    async def _for_each(self, items: Iterable[Item], work: Callable[[Item], Awaitable[None]]) -> None:
        """Process several items at a time; the first error stops all, and is raised alone."""
        limit = asyncio.Semaphore(self.settings.workers)

        async def run_limited(item: Item) -> None:
            async with limit:
                await work(item)

        try:
            async with asyncio.TaskGroup() as group:
                for item in items:
                    group.create_task(run_limited(item))
        except ExceptionGroup as errors:
            # Python 3.11.3 and older wrap an exception that is raised in an `except*` clause into a group again
            raise _first_error(errors.exceptions) from errors


def _first_error(errors: Sequence[BaseException]) -> BaseException:
    first = errors[0]
    return _first_error(first.exceptions) if isinstance(first, BaseExceptionGroup) else first
