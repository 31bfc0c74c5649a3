"""What lies in a write-ahead log behind the last commit that counts: leftovers, or commits that were lost."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from ironbell.apiserver.store.guards import require_whole_log, wal_of
from ironbell.apiserver.store.log import StorageError

PAGE = 4096
FRAME = PAGE + 24


def log_with(folder: Path, commits: int, *, pages: int = 3) -> bytes:
    """SQLite's own log of commits of some pages each."""
    path = folder / "made.db"
    path.unlink(missing_ok=True)
    connection = apsw.Connection(str(path))
    connection.pragma("page_size", PAGE)
    connection.pragma("journal_mode", "wal")
    connection.pragma("wal_autocheckpoint", 0)
    connection.execute("CREATE TABLE t (a)")
    for _ in range(commits):
        connection.execute("INSERT INTO t VALUES (randomblob(?))", (PAGE * pages,))
    raw = wal_of(path).read_bytes()
    connection.close()
    return raw


def frames(raw: bytes) -> list[bytes]:
    return [raw[start : start + FRAME] for start in range(32, len(raw), FRAME)]


def commit_ends(raw: bytes) -> list[int]:
    """How many frames there are up to the end of each commit."""
    return [number for number, frame in enumerate(frames(raw), 1) if frame[4:8] != bytes(4)]


def check(folder: Path, raw: bytes, accepted: int) -> None:
    path = folder / "checked.db"
    wal_of(path).write_bytes(raw)
    require_whole_log(path, accepted=accepted, page_bytes=PAGE)


def test_a_whole_log(tmp_path: Path) -> None:
    raw = log_with(tmp_path, 5)
    check(tmp_path, raw, commit_ends(raw)[-1])


def test_a_last_commit_that_is_not_whole(tmp_path: Path) -> None:
    raw = log_with(tmp_path, 5)
    before_last = commit_ends(raw)[-2]
    check(tmp_path, raw, before_last)
    check(tmp_path, raw[:-FRAME], before_last)
    check(tmp_path, raw[:-100], before_last)


@pytest.mark.parametrize("lost", [1, 2, 3])
def test_commits_behind_the_last_that_counts(tmp_path: Path, lost: int) -> None:
    raw = log_with(tmp_path, 5)
    with pytest.raises(StorageError, match="is not what was written at byte"):
        check(tmp_path, raw, commit_ends(raw)[-1 - lost - 1])


def test_what_failed_commits_left_is_no_loss(tmp_path: Path) -> None:
    """Two commits of different length were written whole and failed, and a short one took their place."""
    raw = log_with(tmp_path, 2)
    salts = raw[16:24]
    accepted = commit_ends(raw)[-1]
    first, second = log_with(tmp_path, 1, pages=9), log_with(tmp_path, 1, pages=5)

    def last_commit(log: bytes) -> list[bytes]:
        return [frame[:8] + salts + frame[16:] for frame in frames(log)[commit_ends(log)[-2] :]]

    longer, shorter = last_commit(first), last_commit(second)
    leftovers = shorter + longer[len(shorter) :]
    assert [frame[4:8] != bytes(4) for frame in leftovers].count(True) == 2
    check(tmp_path, raw + b"".join(leftovers), accepted)
