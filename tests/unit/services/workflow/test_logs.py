"""Logs: batches by number, crashes, limits, following."""

from __future__ import annotations

import asyncio
import itertools
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ironbell.base.clock import ManualClock
from ironbell.services.workflow.logs import file as logfile
from ironbell.services.workflow.logs.file import (
    MACHINE_BYTES,
    MAX_EXECUTIONS,
    Batch,
    Line,
    LogFile,
    Record,
    Source,
    TooManyExecutionsError,
    decode,
    encode,
    read,
)
from ironbell.services.workflow.logs.store import BadLogNameError, Limits, LogKey, LogStore

NOW = "2026-01-01T00:00:00.000000Z"
KEY = LogKey("ns", "wf", "uid-1")


def a_batch(first: int, *texts: str, oldest: int = 0, action: str = "a", execution: str = "e", **fields) -> Batch:
    lines = [Line(Source.OUT, text, NOW) for text in texts]
    return Batch(action=action, execution=execution, first=first, oldest=oldest, lines=lines, **fields)


def a_file(folder: Path, **limits: int) -> LogFile:
    return LogFile(folder / "log", **{"action_limit": 1 << 20, "file_limit": 1 << 20, **limits})


def texts(path: Path) -> list[str]:
    return [record.text for record in read(path, 0)[0] if record.source is not Source.END]


class TestFile:
    def test_a_file_that_cannot_be_read_back_leaves_no_descriptor_open(self, tmp_path, monkeypatch):
        (tmp_path / "log").write_bytes(b"half a line")

        def broken(*_: object) -> None:
            raise OSError(5, "Input/output error")

        monkeypatch.setattr(os, "ftruncate", broken)
        before = len(list(Path("/proc/self/fd").iterdir()))
        for _ in range(3):
            with pytest.raises(OSError, match="Input/output"):
                a_file(tmp_path)
        assert len(list(Path("/proc/self/fd").iterdir())) == before

    def test_a_batch_again_changes_nothing_and_an_overlap_adds_the_rest(self, tmp_path):
        file = a_file(tmp_path)
        assert file.append(a_batch(0, "a", "b"), now=NOW).next == 2
        assert file.append(a_batch(0, "a", "b"), now=NOW).next == 2
        assert file.append(a_batch(1, "b", "c"), now=NOW).next == 3
        assert texts(file.path) == ["a", "b", "c"]
        file.close()

    def test_a_gap_is_refused_while_the_sender_can_fill_it(self, tmp_path):
        file = a_file(tmp_path)
        file.append(a_batch(0, "a"), now=NOW)
        assert file.append(a_batch(5, "f"), now=NOW).next == 1
        assert file.append(a_batch(5, "f", oldest=4), now=NOW).next == 6
        assert texts(file.path) == ["a", "4 lines are missing here", "f"]
        file.close()

    def test_durable_is_what_was_synced(self, tmp_path):
        file = a_file(tmp_path)
        assert file.append(a_batch(0, "a"), now=NOW).durable == 0
        file.sync()
        assert file.append(a_batch(1, "b"), now=NOW).durable == 1
        file.close()

    def test_what_is_read_back_or_over_the_limit_becomes_durable_too(self, tmp_path):
        file = a_file(tmp_path)
        file.append(a_batch(0, "a"), now=NOW)
        file.close()
        again = a_file(tmp_path, action_limit=1)
        assert again.append(a_batch(1), now=NOW).durable == 0
        again.sync()
        assert again.append(a_batch(1, "too much", "by far"), now=NOW).durable == 1
        again.sync()
        assert again.append(a_batch(3), now=NOW).durable == 3
        again.close()

    def test_a_closed_log_takes_nothing(self, tmp_path):
        file = a_file(tmp_path)
        file.close()
        with pytest.raises(OSError, match="closed"):
            file.append(a_batch(0, "a"), now=NOW)

    def test_a_half_written_line_is_cut_off_after_a_crash(self, tmp_path):
        file = a_file(tmp_path)
        file.append(a_batch(0, "a", "b", "c"), now=NOW)
        file.close()
        data = file.path.read_bytes()
        file.path.write_bytes(data[:-5])
        again = a_file(tmp_path)
        assert again.append(a_batch(3, "d"), now=NOW).next == 2
        assert again.append(a_batch(2, "c", "d"), now=NOW).next == 4
        assert texts(file.path) == ["a", "b", "c", "d"]
        again.close()

    def test_a_summary_has_the_last_lines_and_the_exit_code(self, tmp_path):
        file = a_file(tmp_path)
        file.append(a_batch(0, *(f"line {i}" for i in range(30)), ends=True, exit_code=3), now=NOW)
        before = file.summary("a")
        assert before.lines == [f"line {i}" for i in range(10, 30)]
        assert (before.count, before.exit_code) == (30, 3)
        assert file.summary("other") is None
        file.close()
        again = a_file(tmp_path)
        assert again.summary("a") == before
        again.close()

    def test_a_second_execution_starts_its_own_tail(self, tmp_path):
        file = a_file(tmp_path)
        file.append(a_batch(0, "old"), now=NOW)
        file.append(a_batch(0, "new", execution="f"), now=NOW)
        assert file.summary("a").lines == ["new"]
        file.close()

    def test_a_full_log_says_so_once_and_goes_on_counting(self, tmp_path):
        file = a_file(tmp_path, action_limit=1000)
        for number in range(50):
            assert file.append(a_batch(number, "x" * 50), now=NOW).next == number + 1
        found = texts(file.path)
        assert found.count("the log is full: what follows is not kept") == 1
        assert file.append(a_batch(0, "other", action="b"), now=NOW).next == 1
        assert texts(file.path)[-1] == "other"
        file.close()

    def test_gaps_count_against_the_limit(self, tmp_path):
        file = a_file(tmp_path, action_limit=2000)
        for number in range(1, 200):
            file.append(a_batch(2 * number, "", oldest=2 * number), now=NOW)
        assert file.size < 2500
        file.close()

    def test_what_a_machine_says_has_a_limit_of_its_own(self, tmp_path):
        file = a_file(tmp_path, file_limit=10 * MACHINE_BYTES)
        answers = [file.append_report(Source.MACHINE, ["x"] * 100, now=NOW) for _ in range(100)]
        assert answers[0]
        assert not answers[-1]
        assert MACHINE_BYTES - 200 < file.size < MACHINE_BYTES + 200
        file.append(a_batch(0, "an action's line"), now=NOW)
        last = [decode(line).text for line in file.path.read_bytes().splitlines()[-2:]]
        assert last == ["the log is full: what follows is not kept", "an action's line"]
        file.close()
        again = a_file(tmp_path, file_limit=10 * MACHINE_BYTES)
        assert not again.append_report(Source.MACHINE, ["more"], now=NOW)
        again.close()

    def test_ends_have_some_room_beyond_the_limit_and_no_more(self, tmp_path, monkeypatch):
        monkeypatch.setattr(logfile, "_RESERVE", 5000)
        file = a_file(tmp_path, file_limit=1000)
        for action in range(20):
            for execution in range(MAX_EXECUTIONS):
                batch = a_batch(0, "x" * 100, action=f"a{action}", execution=f"e{execution}", ends=True, exit_code=3)
                assert file.append(batch, now=NOW).next == 1
        assert file.size <= 6000
        assert file.summary("a0").exit_code == 3
        with pytest.raises(TooManyExecutionsError, match="at most 64 executions"):
            file.append(a_batch(0, "x", execution="one more", action="a3"), now=NOW)
        file.close()
        again = a_file(tmp_path, file_limit=1000)
        assert again.append(a_batch(0, "x", action="new"), now=NOW).next == 1
        again.close()

    def test_a_full_disk_is_no_reason_to_keep_nothing_afterwards(self, tmp_path, monkeypatch):
        file = a_file(tmp_path, action_limit=300)

        def full(*_: object) -> int:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(os, "write", full)
            with pytest.raises(OSError, match="No space"):
                file.append(a_batch(0, "x" * 1000), now=NOW)
        file.append(a_batch(0, "short"), now=NOW)
        assert texts(file.path) == ["short"]
        file.close()

    def test_a_number_in_the_file_that_no_log_reaches_is_passed_over(self, tmp_path):
        record = Record(time=NOW, action="a", execution="e", sequence=(1 << 64) - 1, text="far away")
        (tmp_path / "log").write_bytes(encode(record))
        file = a_file(tmp_path)
        assert file.append(a_batch(0, "a"), now=NOW).next == 1
        file.close()

    @given(
        st.lists(
            st.one_of(
                st.tuples(st.just("send"), st.integers(0, 6), st.integers(1, 4)),
                st.tuples(st.just("sync"), st.just(0), st.just(0)),
                st.tuples(st.just("crash"), st.integers(0, 400), st.just(0)),
            ),
            max_size=40,
        )
    )
    @settings(max_examples=100, deadline=None)
    def test_whatever_happens_every_line_is_there_once_and_in_order(self, tmp_path_factory, steps):
        """A sender that forgets only what is durable, against a file that loses what is not."""
        folder = tmp_path_factory.mktemp("log")
        file = a_file(folder)
        durable_size = forgotten = sent_next = total = 0
        for kind, first, count in steps:
            if kind == "send":
                total = max(total, sent_next + count)
                start = max(forgotten, sent_next - first)
                lines = [str(number) for number in range(start, min(start + count + first, total))]
                position = file.append(a_batch(start, *lines, oldest=forgotten), now=NOW)
                sent_next, forgotten = position.next, max(forgotten, position.durable)
            elif kind == "sync":
                file.sync()
                durable_size = file.size
            else:
                file.close()
                kept = min(file.size, durable_size + first)
                file.path.write_bytes(file.path.read_bytes()[:kept])
                file = a_file(folder)
        while forgotten < total:
            lines = [str(number) for number in range(sent_next, total)]
            position = file.append(a_batch(sent_next, *lines, oldest=forgotten), now=NOW)
            sent_next, forgotten = max(position.next, forgotten), max(forgotten, position.durable)
            file.sync()
        assert texts(file.path) == [str(number) for number in range(total)]
        file.close()

    @given(st.binary(max_size=300))
    @settings(max_examples=100, deadline=None)
    def test_any_bytes_in_a_file_are_survived(self, tmp_path_factory, data):
        folder = tmp_path_factory.mktemp("log")
        (folder / "log").write_bytes(data)
        file = a_file(folder)
        file.append(a_batch(0, "a"), now=NOW)
        file.close()
        assert texts(folder / "log")[-1] == "a"


@given(st.binary(max_size=200))
def test_any_line_is_a_record_or_none(data):
    record = decode(data)
    assert record is None or decode(encode(record)) == record


class TestStore:
    @pytest.mark.parametrize(
        "key",
        [
            LogKey("..", "wf", "u"),
            LogKey("ns", "../../etc", "u"),
            LogKey("ns", "a/b", "u"),
            LogKey("ns", "wf", "../x"),
            LogKey("ns", "", "u"),
            LogKey("NS", "wf", "u"),
        ],
    )
    async def test_names_that_are_none_never_become_paths(self, tmp_path, key):
        store = LogStore(tmp_path, clock=ManualClock())
        with pytest.raises(BadLogNameError):
            await store.append(key, a_batch(0, "x"))

    async def test_a_follower_gets_what_is_there_and_what_comes_until_the_end(self, tmp_path):
        store = LogStore(tmp_path, clock=ManualClock())
        await store.append(KEY, a_batch(0, "a"))
        over = asyncio.Event()

        class Follow:
            def is_complete(self) -> bool:
                return over.is_set()

            async def changed(self) -> None:
                await over.wait()

        got: list[str] = []

        async def follow() -> None:
            got.extend([record.text async for record in store.tail("ns", "wf", follow=Follow())])

        task = asyncio.create_task(follow())
        for number in range(1, 5):
            await store.append(KEY, a_batch(number, str(number)))
            await asyncio.sleep(0)
        over.set()
        async with asyncio.timeout(5):
            await task
        assert got == ["a", "1", "2", "3", "4"]
        store.close()

    async def test_a_follower_may_come_before_the_first_line(self, tmp_path):
        store = LogStore(tmp_path, clock=ManualClock())

        class Follow:
            def is_complete(self) -> bool:
                return False

            async def changed(self) -> None:
                await asyncio.Event().wait()

        records = store.tail("ns", "wf", follow=Follow())
        first = asyncio.create_task(anext(records))
        await asyncio.sleep(0)
        await store.append(KEY, a_batch(0, "at last"))
        async with asyncio.timeout(5):
            assert (await first).text == "at last"
        await records.aclose()
        store.close()

    async def test_old_logs_go_and_those_in_use_stay(self, tmp_path):
        clock = ManualClock()
        store = LogStore(tmp_path, clock=clock, limits=Limits(retention_s=500, total_bytes=300))
        for number in range(5):
            key = LogKey("ns", f"wf{number}", "u")
            await store.append(key, a_batch(0, "x" * 50))
            await store.sync()
            at = clock.now().timestamp()
            os.utime(store.path(key), (at, at))
            clock.advance(200)
        await store.sync()
        await store.append(LogKey("ns", "wf0", "u"), a_batch(1, "y"))
        await store.prune()
        left = sorted(path.parent.name for path in tmp_path.glob("*/*/*.log"))
        assert left == ["wf0", "wf4"], "wf1 and wf2 are too old, wf3 is one too many, wf0 is in use"
        assert await store.summary(LogKey("ns", "wf1", "u"), "a") is None
        store.close()

    async def test_a_folder_that_cannot_be_listed_ends_nothing(self, tmp_path, monkeypatch):
        store = LogStore(tmp_path, clock=ManualClock())

        def broken(*_: object) -> object:
            raise OSError(5, "Input/output error")

        monkeypatch.setattr(Path, "glob", broken)
        await store.prune()
        await store.append(KEY, a_batch(0, "x"))
        store.close()

    async def test_a_log_that_is_opened_while_old_ones_are_dropped_keeps_its_lines(self, tmp_path):
        clock = ManualClock(wall=datetime.now(UTC))
        store = LogStore(tmp_path, clock=clock, limits=Limits(retention_s=1.0))
        keys = [LogKey("ns", f"wf{i}", "u") for i in range(20)]
        for key in keys:
            await store.append(key, a_batch(0, "x"))
        clock.advance(1000)
        await store.sync()
        clock.advance(1000)
        await store.sync()
        pruning = asyncio.create_task(store.prune())
        await asyncio.gather(*(store.append(key, a_batch(1, "y", oldest=1)) for key in keys))
        await pruning
        for key in keys:
            found = [record.text async for record in store.tail("ns", key.name)]
            assert found[-1] == "y", "lines are in a file that has a name"
        store.close()

    async def test_many_writers_of_one_log_do_not_mix(self, tmp_path):
        store = LogStore(tmp_path, clock=ManualClock())
        batches = [a_batch(0, *(f"{n}-{i}" for i in range(20)), action=f"a{n}") for n in range(5)]
        await asyncio.gather(*(store.append(KEY, batch) for batch in batches))
        found = [record async for record in store.tail("ns", "wf")]
        for action, records in itertools.groupby(sorted(found, key=lambda r: r.action), key=lambda r: r.action):
            assert [record.text for record in records] == [f"{action[1:]}-{i}" for i in range(20)]
        store.close()
