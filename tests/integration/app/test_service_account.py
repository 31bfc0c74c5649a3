"""The account of the servers toward machines was taken over: what it plants leads root nowhere at the next start."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from ironbell.api.client import Forbidden
from ironbell.api.tinkerbell import WORKFLOW
from ironbell.app.processes.privileges import named_account
from ironbell.kube.client import Client
from ironbell.kube.transport.connection import from_kubeconfig, over_socket
from ironbell.kube.transport.http import HttpApi
from support.ports import free_ports
from support.site.up import BOOT, CORE, WORKFLOWS, Site
from support.waiting import eventually

pytestmark = pytest.mark.root

NOBODY = 65534
PLANTED = ("artefacts", "ipxe", "logs", "token", "workflow-token", ".token.partial", "logs.sock", "evil")
Entry = tuple[str, int, int, int, int, str]


def as_account(uid: int, folder: Path, act: Callable[[], str]) -> str:
    """What `act` returns in a process of that account which was in the folder before it became it, as they are."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.chdir(folder)
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
            os.write(writing, act().encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as said:
        text = said.read().decode()
    os.waitpid(pid, 0)
    return text


def tried(step: Callable[[], object]) -> bool:
    try:
        step()
    except OSError:
        return False
    return True


def plant(victim: Path) -> Callable[[], str]:
    """Put a link to the victim wherever root may write next; returns the names for which that succeeded."""

    def act() -> str:
        done = []
        for name in PLANTED:
            place, aside = Path(name), Path(f"old-{name}")
            is_free = not os.path.lexists(place) or tried(lambda place=place, aside=aside: place.rename(aside))
            target = victim / "precious" if "." in name or "token" in name else victim
            if is_free and tried(lambda place=place, target=target: place.symlink_to(target)):
                done.append(name)
        if "artefacts" in done:  # a folder of the attacker's own, in which the link is one level down
            Path("artefacts").unlink()
            Path("artefacts").mkdir()
            Path("artefacts/files").symlink_to(victim)
        return " ".join(done)

    return act


def read_tokens() -> str:
    """Read what one of the two processes has, as the other would, which has the same account."""
    return " ".join(name for name in ("token", "workflow-token") if tried(Path(name).read_text))


def plant_below_logs(victim: Path) -> Callable[[], str]:
    def act() -> str:
        Path("logs/default").mkdir(exist_ok=True)
        Path("logs/default/folder").symlink_to(victim)
        Path("logs/default/file").symlink_to(victim / "precious")
        Path("logs/evil").symlink_to(victim)
        return "planted"

    return act


def seen(folder: Path) -> list[Entry]:
    found = []
    for path in (folder, *sorted(folder.rglob("*"))):
        status = path.lstat()
        text = path.read_text() if path.is_file() else ""
        found.append((path.name, status.st_mode, status.st_uid, status.st_gid, status.st_nlink, text))
    return found


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """A folder of root's that has nothing to do with the site."""
    made = tmp_path / "victim"
    (made / "below").mkdir(parents=True)
    (made / "precious").write_text("kept")
    (made / "below" / "also").write_text("kept as well")
    made.chmod(0o755)
    return made


@pytest.fixture
def served(tmp_path: Path) -> Path:
    made = tmp_path / "served"
    made.mkdir()
    (made / "file").write_text("public")
    return made


def started(site: Site) -> int:
    """Start it; the account of the servers toward machines."""
    site.start()
    site.wait_serving()
    (account,) = {Path(f"/proc/{site.child(one)}").stat().st_uid for one in (BOOT, WORKFLOWS)}
    return account


def site_of(folder: Path, served: Path) -> Site:
    http, grpc, health = free_ports(3)
    ports = ("--http-port", str(http), "--grpc-port", str(grpc), "--workflow-http-port", str(health))
    options = ("--simulate", "1", *ports, "--artefacts", f"files={served}", "--ipxe-dir", str(served))
    return Site(folder, *options, http=f"127.0.0.1:{http}", workflow_port=health)


async def tries_to_restart_a_workflow(site: Site, token: str) -> None:
    """With the workflow service's token: a Workflow that ended would have its machine netboot and its disks erased."""
    where = ("default", "ended")
    async with (
        HttpApi(from_kubeconfig(site.kubeconfig)) as api,
        HttpApi(over_socket(site.folder / "wire" / "api.sock", token)) as wires,
    ):
        body = {"metadata": {"name": "ended", "namespace": "default"}, "spec": {"templateRef": "none"}}
        await Client(api).create(WORKFLOW, body)
        for ended in ("FAILED", "SUCCESS", "TIMEOUT"):
            await Client(api).merge_patch(WORKFLOW, *where, body={"status": {"state": ended}}, subresource="status")
            for state in ("PREPARING", "PENDING", "RUNNING", "POST"):
                change = {"status": {"state": state}}
                with pytest.raises(Forbidden, match=f'its state is "{ended}"'):
                    await Client(wires).merge_patch(WORKFLOW, *where, body=change, subresource="status")


def test_links_in_a_folder_of_an_earlier_release_lead_nowhere(tmp_path: Path, victim: Path, served: Path) -> None:
    """Earlier releases gave the whole folder to the account; what it planted there before the upgrade comes to nothing,
    and what it may still do afterwards neither."""
    folder = tmp_path / "site"
    wire = folder / "wire"
    (wire / "artefacts").mkdir(parents=True)
    (wire / "logs").mkdir()
    (folder / "lock").touch()
    for path in (wire, wire / "logs"):
        os.chown(path, NOBODY, NOBODY)
        path.chmod(0o700)
    folder.chmod(0o755)
    assert as_account(NOBODY, wire, plant(victim)) == " ".join(PLANTED)
    before = seen(victim)
    site = site_of(folder, served)
    try:
        account = started(site)
        assert seen(victim) == before
        assert account == named_account("").uid
        assert account not in {0, NOBODY}
        assert site.get("/files/file") == b"public"
        assert folder.stat().st_mode & 0o7777 == 0o700
        owners = {name: (wire / name).lstat().st_uid for name in PLANTED if os.path.lexists(wire / name)}
        assert owners == {
            "artefacts": 0, "ipxe": 0, "logs": account, "logs.sock": 0, "token": 0, "workflow-token": 0,
            "evil": NOBODY,
        }  # fmt: skip
        asyncio.run(tries_to_restart_a_workflow(site, (wire / "workflow-token").read_text()))
        site.stop()
        assert as_account(account, wire, plant(victim)) == ""
        assert as_account(account, wire, read_tokens) == ""
        assert as_account(account, wire, plant_below_logs(victim)) == "planted"
        before = seen(victim)
        started(site)
        assert seen(victim) == before
        assert site.get("/files/file") == b"public"
        with socket.socket(socket.AF_UNIX) as asked:
            asked.connect(str(wire / "logs.sock"))
    finally:
        site.close()


def test_who_is_not_known_any_more_begins_anew_with_another_token(tmp_path: Path, served: Path) -> None:
    site = site_of(tmp_path / "site", served)
    try:
        started(site)
        before = {one: site.child(one) for one in (BOOT, WORKFLOWS)}
        (site.folder / "tokens.json").unlink()
        site.kill_child(CORE)
        for one, gone in before.items():
            eventually(lambda one=one, gone=gone: site.child(one) != gone, within_s=60, what=f"a successor of {one}")  # type: ignore[misc]
        site.wait_serving()
        assert "no longer accepts this process's token" in site.log.read_text()
    finally:
        site.close()
