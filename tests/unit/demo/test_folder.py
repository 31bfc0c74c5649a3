"""A demonstration's folder: it goes at the end, and what of killed ones is there goes at the next start."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from ironbell.app.site.data_folder import LOCK
from ironbell.demo import folder as folders
from ironbell.demo.folder import KEPT_PREFIX, PREFIX, own_folder
from ironbell.demo.site import DemoError


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def parent(tmp_path: Path) -> Path:
    (tmp_path / "tmp").mkdir()
    return tmp_path / "tmp"


def silent(_text: str) -> None:
    return


def die_in_a_folder(parent: Path) -> None:
    if (pid := os.fork()) == 0:
        with own_folder(silent, parent=parent) as folder:
            (folder / "disk0.raw").write_text("data")
            os._exit(0)
    os.waitpid(pid, 0)


def fail_in_a_folder(parent: Path) -> None:
    with own_folder(silent, parent=parent) as folder:
        console = folder / "lab/machines/q-1/console.log"
        console.parent.mkdir(parents=True)
        console.write_text("kernel panic")
        console.with_name("disk0.raw").write_text("data")
        raise DemoError("no node")


def test_it_goes_at_the_end(parent: Path) -> None:
    with own_folder(silent, parent=parent) as folder:
        (folder / "up.log").write_text("said")
        assert folder.parent == parent
    assert list(parent.iterdir()) == []


def test_of_one_that_failed_logs_are_kept(parent: Path) -> None:
    with pytest.raises(DemoError, match="no node; logs: ") as failed:
        fail_in_a_folder(parent)
    (kept,) = parent.iterdir()
    assert str(kept) in str(failed.value)
    assert kept.name.startswith(KEPT_PREFIX)
    assert [path.name for path in kept.rglob("*") if path.is_file()] == ["console.log"]


def test_what_a_killed_one_left_goes_and_a_running_one_stays(parent: Path) -> None:
    said: list[str] = []
    die_in_a_folder(parent)
    (left,) = parent.iterdir()
    with own_folder(said.append, parent=parent) as running:
        assert said == [f"removing the folder of an earlier demonstration: {left}"]
        with own_folder(said.append, parent=parent) as second:
            assert {running, second} == set(parent.iterdir())
    assert len(said) == 1


def test_a_site_that_is_still_ending_is_waited_for(parent: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders, "STOP_TIMEOUT_S", 0.3)
    left = parent / f"{PREFIX}left"
    left.mkdir()
    with (left / LOCK).open("w") as site:
        fcntl.flock(site, fcntl.LOCK_EX)
        with pytest.raises(DemoError, match="still runs"), own_folder(silent, parent=parent):
            pytest.fail("the old site still has the network")
    with own_folder(silent, parent=parent):
        assert not left.exists()


@pytest.mark.root
def test_what_somebody_else_put_there_is_left_alone(parent: Path, tmp_path: Path) -> None:
    """Its lock would be opened, and its files deleted, by whoever runs the next demonstration, such as root."""
    planted = parent / f"{PREFIX}planted"
    planted.mkdir()
    os.chown(planted, 60771, 60771)
    with own_folder(silent, parent=parent):
        pass
    assert list(parent.iterdir()) == [planted]
