"""The folder of a service: root's, with one folder for what the service writes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ironbell.app.processes import privileges
from ironbell.app.processes.privileges import SERVICE_ID, Account, PrivilegeError, named_account
from ironbell.app.site.service_folder import ServiceFolderError, open_service_folder, publish_all

NOBODY = 65534
ACCOUNT = Account("60770", SERVICE_ID, SERVICE_ID)

pytestmark = pytest.mark.root


def owner(path: Path) -> tuple[int, int, int]:
    status = path.lstat()
    return status.st_uid, status.st_gid, status.st_mode & 0o7777


def test_a_new_folder_is_root_s_and_its_logs_are_the_service_s(tmp_path: Path) -> None:
    for _ in range(2):
        open_service_folder(tmp_path / "wire", ACCOUNT).close()
        assert owner(tmp_path / "wire") == (0, SERVICE_ID, 0o750)
        assert owner(tmp_path / "wire" / "logs") == (SERVICE_ID, SERVICE_ID, 0o700)


KEPT = ["api.sock", "artefacts", "logs", "logs.sock", "token"]


def former(folder: Path, uid: int) -> Path:
    """As earlier releases made it, with a log in it."""
    log = folder / "logs" / "default" / "install" / "0123.log"
    log.parent.mkdir(parents=True)
    log.write_text("a line")
    for path in (folder, *folder.rglob("*")):
        os.chown(path, uid, uid)
    (folder / "artefacts" / "osie").mkdir(parents=True)
    (folder / "artefacts" / "osie" / "vmlinuz").touch()
    for name in ("token", "api.sock", "logs.sock"):
        (folder / name).touch()
    folder.chmod(0o700)
    return log


@pytest.mark.parametrize("uid", [NOBODY, 1234, 0])
def test_a_folder_of_an_earlier_release_is_taken_back_with_its_logs(tmp_path: Path, uid: int) -> None:
    log = former(tmp_path / "wire", uid)
    open_service_folder(tmp_path / "wire", ACCOUNT).close()
    assert owner(tmp_path / "wire") == (0, SERVICE_ID, 0o750)
    assert sorted(path.name for path in (tmp_path / "wire").iterdir()) == (["logs"] if uid else KEPT)
    assert owner(log) == (SERVICE_ID, SERVICE_ID, 0o640)
    assert log.read_text() == "a line"


def test_logs_move_with_another_account(tmp_path: Path) -> None:
    log = former(tmp_path / "wire", NOBODY)
    open_service_folder(tmp_path / "wire", ACCOUNT).close()
    open_service_folder(tmp_path / "wire", Account("other", 1234, 1235)).close()
    assert owner(tmp_path / "wire") == (0, 1235, 0o750)
    assert owner(log) == (1234, 1235, 0o640)


def test_taking_back_that_was_interrupted_leaves_nothing_that_is_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed at any point: what was planted and is still there is replaced when it is used."""
    victim, source, unlink, left = tmp_path / "victim", tmp_path / "source", os.unlink, [0]
    victim.mkdir()
    source.mkdir()
    (source / "file").touch()

    def dies(path: str, *, dir_fd: int | None = None) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        unlink(path, dir_fd=dir_fd)

    monkeypatch.setattr(os, "unlink", dies)
    for deaths in range(5):
        wire = tmp_path / f"wire-{deaths}"
        wire.mkdir()
        for name in ("artefacts", "ipxe", "token", "api.sock", "logs.sock"):
            (wire / name).symlink_to(victim)
        os.chown(wire, NOBODY, NOBODY)
        left[0] = deaths
        with pytest.raises(KeyboardInterrupt):
            open_service_folder(wire, ACCOUNT)
        left[0] = 1000
        with open_service_folder(wire, ACCOUNT) as folder:
            publish_all(folder, published={"osie": str(source)}, ipxe_dir=str(source), node_images="")
            folder.write("token", b"", mode=0o400)
            folder.listen("logs.sock").close()
        assert list(victim.iterdir()) == []
        assert owner(victim)[0] == 0


@pytest.mark.parametrize("names", [("api.db", "logs"), ("etc",)])
def test_a_folder_of_something_else_is_left_alone(tmp_path: Path, names: tuple[str, ...]) -> None:
    """Such as the data folder of `ironbell up`, or one of the system's."""
    for name in names:
        (tmp_path / "wire" / name).mkdir(parents=True)
    before = owner(tmp_path / "wire")
    with pytest.raises(ServiceFolderError, match=r"has other content .*; choose another --data-dir"):
        open_service_folder(tmp_path / "wire", ACCOUNT, is_chosen=True)
    assert owner(tmp_path / "wire") == before


def test_the_service_may_read_what_is_published_whatever_the_umask(tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "sub").mkdir(parents=True)
    (source / "sub" / "kernel").touch(mode=0o600)
    before = os.umask(0o077)
    try:
        with open_service_folder(tmp_path / "wire", ACCOUNT) as folder:
            publish_all(folder, published={"osie": str(source)}, ipxe_dir="", node_images="")
    finally:
        os.umask(before)
    assert owner(tmp_path / "wire" / "artefacts" / "osie" / "sub")[2] == 0o755
    assert owner(tmp_path / "wire" / "artefacts" / "osie" / "sub" / "kernel")[2] == 0o644


def test_accounts_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    assert named_account("1234") == Account("1234", 1234, 1234)
    assert named_account("1234:5678") == Account("1234:5678", 1234, 5678)
    assert named_account("nobody").uid == NOBODY
    for name in ("0", "1234:0", "root"):
        with pytest.raises(PrivilegeError, match="do not run as root"):
            named_account(name)
    with pytest.raises(PrivilegeError, match='has no account "someone-else"; use an existing one, or a number'):
        named_account("someone-else")
    with pytest.raises(PrivilegeError, match="the largest id is"):
        named_account("4294967295")


def test_the_default_account_is_a_number_that_nobody_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(privileges, "ACCOUNT", "no-such-account")
    assert named_account("") == Account("60770", SERVICE_ID, SERVICE_ID)
    monkeypatch.setattr(privileges, "SERVICE_ID", NOBODY)
    with pytest.raises(PrivilegeError, match='belongs to account "nobody"; set another one with --user'):
        named_account("")
