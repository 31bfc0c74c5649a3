"""Folders of our own: nothing that another account puts there leads anywhere else."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ironbell.base.ownfolder import FolderNotOwnError, OwnFolder

OTHER = 60771
NEXT = 60772


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[OwnFolder]:
    (tmp_path / "own").mkdir()
    with OwnFolder.open(tmp_path / "own") as opened:
        yield opened


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """A folder that nothing here may touch."""
    made = tmp_path / "victim"
    made.mkdir(mode=0o711)
    (made / "precious").write_text("kept")
    (made / "precious").chmod(0o604)
    return made


def seen(victim: Path) -> list[tuple[str, int, int, int, str]]:
    """Everything about it."""
    found = []
    for path in (victim, *sorted(victim.rglob("*"))):
        status = path.lstat()
        text = path.read_text() if path.is_file() else ""
        found.append((path.name, status.st_mode, status.st_uid, status.st_gid, text))
    return found


WRITES: dict[str, Callable[[OwnFolder, Path], object]] = {
    "sub": lambda folder, _: folder.sub("x").close(),
    "publish below": lambda folder, source: folder.sub("x").place(source, "precious"),
    "write": lambda folder, _: folder.write("x", b"new", mode=0o644),
    "place": lambda folder, source: folder.place(source, "x"),
    "remove": lambda folder, _: folder.remove("x"),
    "listen": lambda folder, _: folder.listen("x").close(),
    "give": lambda folder, _: folder.give("x", user=os.geteuid(), group=os.getegid()),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
@pytest.mark.parametrize("to", ["folder", "file", "nothing"])
def test_a_link_is_replaced_and_never_followed(
    folder: OwnFolder, victim: Path, tmp_path: Path, write: Callable[[OwnFolder, Path], object], to: str
) -> None:
    target = {"folder": victim, "file": victim / "precious", "nothing": victim / "new"}[to]
    (folder.path / "x").symlink_to(target)
    source = tmp_path / "source"
    source.write_text("public")
    before = seen(victim)
    write(folder, source)
    assert seen(victim) == before
    assert not (folder.path / "x").is_symlink()


@pytest.mark.parametrize("mode", [0o644, 0o600])
def test_a_file_is_written_beside_and_renamed(folder: OwnFolder, victim: Path, tmp_path: Path, mode: int) -> None:
    source = tmp_path / "source"
    source.write_text("public")
    source.chmod(mode)
    (folder.path / ".x.partial").symlink_to(victim / "precious")
    before = seen(victim)
    folder.place(source, "x")
    assert seen(victim) == before
    assert (folder.path / "x").read_text() == "public"
    assert (folder.path / "x").stat().st_mode & 0o777 == 0o644
    assert source.stat().st_mode & 0o777 == mode
    assert folder.names() == ["x"]


def test_a_file_that_is_there_already_is_left_alone(folder: OwnFolder, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_text("1")
    source.chmod(0o600)
    folder.place(source, "x")
    first = (folder.path / "x").stat().st_ino
    folder.place(source, "x")
    assert (folder.path / "x").stat().st_ino == first
    source.write_text("other")
    folder.place(source, "x")
    assert (folder.path / "x").read_text() == "other"


def test_a_file_takes_the_place_of_a_folder_and_the_other_way_round(folder: OwnFolder) -> None:
    folder.sub("x").write("y", b"1", mode=0o600)
    folder.write("x", b"2", mode=0o600)
    assert (folder.path / "x").read_text() == "2"
    folder.sub("x").close()
    assert (folder.path / "x").is_dir()


def test_only_regular_files_are_read(folder: OwnFolder, victim: Path) -> None:
    (folder.path / "link").symlink_to(victim / "precious")
    os.mkfifo(folder.path / "pipe")
    folder.sub("folder").close()
    folder.listen("socket").close()
    folder.write("file", b"content", mode=0o600)
    assert [folder.read(name, limit=4) for name in ("link", "pipe", "folder", "socket", "none")] == [None] * 5
    found = folder.read("file", limit=4)
    assert found is not None
    assert found[0] == b"cont"


def test_names_are_those_of_entries(folder: OwnFolder) -> None:
    for name in ("", ".", "..", "a/b", "/etc"):
        with pytest.raises(ValueError, match="not the name"):
            folder.remove(name)


def test_a_socket_answers_by_its_path_and_is_bound_again(folder: OwnFolder) -> None:
    folder.listen("x").close()
    with folder.listen("x") as listening, socket.socket(socket.AF_UNIX) as client:
        listening.listen()
        client.connect(str(folder.path / "x"))


def test_a_folder_of_any_depth_is_removed(folder: OwnFolder, victim: Path) -> None:
    """Nobody can keep a site from starting by nesting folders: neither recursion nor descriptors run out."""
    inner = os.open(folder.path, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("deep", dir_fd=inner)
        below = os.open("deep", os.O_RDONLY | os.O_DIRECTORY, dir_fd=inner)
        os.close(inner)
        inner = below
    os.symlink(victim, "link", dir_fd=inner)
    os.close(inner)
    before = seen(victim)
    folder.remove("deep")
    assert folder.names() == []
    assert seen(victim) == before


def test_a_folder_that_is_a_link_is_not_opened(folder: OwnFolder, victim: Path) -> None:
    link = folder.path / "link"
    link.symlink_to(victim)
    with pytest.raises(NotADirectoryError):
        OwnFolder.open(link)
    assert folder.find("link") is None


def as_other(path: Path) -> None:
    os.chown(path, OTHER, OTHER, follow_symlinks=False)


@pytest.mark.root
def test_a_folder_of_another_account_is_refused_or_made_anew(folder: OwnFolder, victim: Path) -> None:
    theirs = folder.path / "x"
    theirs.mkdir()
    (theirs / "artefact").symlink_to(victim)
    as_other(theirs)
    with pytest.raises(FolderNotOwnError, match="belongs to user id 60771"):
        OwnFolder.open(theirs)
    before = seen(victim)
    with folder.sub("x") as made:
        assert made.names() == []
        assert made.status().st_uid == 0
    assert seen(victim) == before


@pytest.mark.root
@pytest.mark.parametrize("mode", [0o777, 0o775, 0o1777])
def test_a_folder_that_others_may_write_in_is_made_anew(folder: OwnFolder, mode: int) -> None:
    (folder.path / "x").mkdir()
    (folder.path / "x" / "theirs").touch()
    (folder.path / "x").chmod(mode)
    with folder.sub("x", mode=0o755) as made:
        assert made.names() == []
        assert stat.S_IMODE(made.status().st_mode) == 0o755


@pytest.mark.root
def test_giving_hands_over_what_the_former_owner_had_and_nothing_else(
    folder: OwnFolder, victim: Path, tmp_path: Path
) -> None:
    logs = folder.path / "logs"
    (logs / "default" / "one").mkdir(parents=True)
    (logs / "default" / "one" / "uid.log").write_text("line")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("of the former owner")
    os.link(elsewhere, logs / "hard")
    (logs / "roots").write_text("")
    (logs / "link").symlink_to(victim)
    (logs / "default" / "file").symlink_to(victim / "precious")
    os.mkfifo(logs / "pipe")
    for path in (logs, *logs.rglob("*")):
        if path.name != "roots":
            as_other(path)
    before = seen(victim)
    for _ in range(2):
        folder.give("logs", user=NEXT, group=NEXT)
        assert seen(victim) == before
        owners = {str(path.relative_to(folder.path)): path.lstat().st_uid for path in (logs, *logs.rglob("*"))}
        assert owners == {
            "logs": NEXT,
            "logs/default": NEXT,
            "logs/default/one": NEXT,
            "logs/default/one/uid.log": NEXT,
            "logs/default/file": OTHER,
            "logs/link": OTHER,
            "logs/pipe": OTHER,
            "logs/hard": OTHER,
            "logs/roots": 0,
        }
    assert (logs / "default" / "one" / "uid.log").stat().st_mode & 0o777 == 0o640
    assert logs.stat().st_mode & 0o777 == 0o700


@pytest.mark.root
def test_a_folder_that_was_given_is_taken_back_with_our_files_alone(folder: OwnFolder, victim: Path) -> None:
    with folder.take("x") as made:
        made.write("ours", b"1", mode=0o644)
        made.give_folder(user=OTHER, group=OTHER)
    theirs = folder.path / "x"
    assert (theirs.stat().st_uid, (theirs / "ours").stat().st_uid) == (OTHER, 0)
    (theirs / "link").symlink_to(victim)
    (theirs / "below").mkdir()
    (theirs / "below" / "link").symlink_to(victim)
    (theirs / "index.json").write_text("{}")
    for path in (theirs / "link", theirs / "below", theirs / "index.json"):
        as_other(path)
    before = seen(victim)
    with folder.take("x") as taken:
        assert taken.names() == ["ours"]
        assert taken.status().st_uid == 0
    assert seen(victim) == before


@pytest.mark.root
def test_giving_that_was_interrupted_is_done_again(folder: OwnFolder) -> None:
    """The folder itself is given last, so an interruption shows."""
    logs = folder.path / "logs"
    (logs / "a").mkdir(parents=True)
    (logs / "b").mkdir()
    for path in (logs, logs / "b"):
        as_other(path)
    os.chown(logs / "a", NEXT, NEXT)
    folder.give("logs", user=NEXT, group=NEXT)
    assert {path.stat().st_uid for path in (logs, logs / "a", logs / "b")} == {NEXT}
