"""Actions on simulated disks."""

from __future__ import annotations

import pytest

from ironbell.agent.messages import Power
from ironbell.codec.diskwipe import parse
from ironbell.lab.fleet.actions import booted_disk, perform, whole_disk
from ironbell.lab.fleet.catalogue import server
from ironbell.lab.fleet.state import DiskContents, Node, ServerState

SERVER = server(1)
EMPTY = ServerState(on=True)
INSTALLED = ServerState(
    on=True,
    disks={"/dev/nvme0n1": DiskContents(image="http://images/a.raw", files={"/etc/x": "1"})},
    node=Node(instance="i", hostname="h", joined=True),
)


def test_an_image_is_what_the_disk_has_afterwards() -> None:
    done = perform(
        SERVER,
        INSTALLED,
        "quay.io/tinkerbell/actions/image2disk:latest",
        {"DEST_DISK": "/dev/nvme0n1", "IMG_URL": "http://images/b.raw.gz"},
    )
    assert not done.failure
    assert done.lost
    assert done.state.disks == {"/dev/nvme0n1": DiskContents(image="http://images/b.raw.gz")}
    assert done.state.node is None


def test_files_go_into_what_was_installed() -> None:
    words = {"DEST_DISK": "/dev/nvme0n1p2", "DEST_PATH": "/etc/y", "CONTENTS": "2"}
    done = perform(SERVER, INSTALLED, "writefile", words)
    assert done.state.disks["/dev/nvme0n1"].files == {"/etc/x": "1", "/etc/y": "2"}
    assert done.state.node == INSTALLED.node
    assert "nothing was installed" in perform(SERVER, EMPTY, "writefile", words).failure


def test_a_wipe_takes_the_named_disks_and_no_others() -> None:
    both = ServerState(disks={one.device: DiskContents(image="x") for one in SERVER.disks})
    done = perform(SERVER, both, "wipe", {"DEST_DISK": "/dev/nvme0n1"})
    assert set(done.state.disks) == {"/dev/nvme1n1"}
    assert done.state.wipes == 1
    found = booted_disk(SERVER, done.state)
    assert found is not None
    assert found.image == "x"
    assert "DEST_DISK is empty" in perform(SERVER, both, "wipe", {}).failure


@pytest.mark.parametrize(("method", "complete"), [("quick", False), ("complete", True)])
def test_a_wipe_reports_as_the_agent_does(method: str, complete: bool) -> None:
    words = {"DEST_DISK": "/dev/nvme0n1,/dev/nvme1n1", "WIPE_METHOD": method}
    reports = parse(perform(SERVER, INSTALLED, "wipe", words).result)
    assert [report.device for report in reports] == ["/dev/nvme0n1", "/dev/nvme1n1"]
    assert [report.serial for report in reports] == [disk.serial for disk in SERVER.disks]
    assert {report.complete for report in reports} == {complete}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"IRONBELL_MACHINE_UUID": server(2).uuid}, "UUID"),
        ({"IRONBELL_MACHINE_MAC": server(2).mac}, "MAC"),
        ({"IRONBELL_DISK_SERIAL": server(2).disks[0].serial}, "serial number"),
        ({"DEST_DISK": "/dev/sdz"}, "does not exist; the disks are /dev/nvme0n1, /dev/nvme1n1"),
    ],
)
@pytest.mark.parametrize("action", ["wipe", "image2disk"])
def test_another_machine_is_refused_and_nothing_changes(action: str, words: dict[str, str], message: str) -> None:
    done = perform(SERVER, INSTALLED, action, {"DEST_DISK": "/dev/nvme0n1", "IMG_URL": "x", **words})
    assert message in done.failure
    assert done.state == INSTALLED


def test_leaving() -> None:
    wrapped = perform(SERVER, EMPTY, "ghcr.io/x/waitdaemon:latest", {"IMAGE": "reboot", "WAIT_SECONDS": "7"})
    assert wrapped.after is not None
    assert (wrapped.after.power, wrapped.after.delay_s) == (Power.REBOOT, 7.0)
    off = perform(SERVER, EMPTY, "poweroff", {})
    assert off.after is not None
    assert off.after.power is Power.POWEROFF


def test_images_that_nobody_knows_change_nothing() -> None:
    done = perform(SERVER, INSTALLED, "example.org/firmware-update:1", {})
    assert not done.failure
    assert done.state == INSTALLED


def test_partitions() -> None:
    assert whole_disk("/dev/sda3") == whole_disk("/dev/sda") == "/dev/sda"
    assert whole_disk("/dev/nvme0n1p12") == whole_disk("/dev/nvme0n1") == "/dev/nvme0n1"


def test_a_kept_disk_is_neither_wiped_nor_written() -> None:
    first, second = SERVER.disks
    both = ServerState(disks={disk.device: DiskContents(image="x") for disk in SERVER.disks})
    words = {"DEST_DISK": f"{first.device},{second.device}", "IRONBELL_KEEP_DISKS": first.serial}
    done = perform(SERVER, both, "wipe", {**words, "WIPE_METHOD": "complete"})
    assert set(done.state.disks) == {first.device}
    assert [report.kept for report in parse(done.result)] == [True, False]
    image = {"DEST_DISK": first.device, "IMG_URL": "http://images/b", "IRONBELL_KEEP_DISKS": first.serial}
    assert "must be kept" in perform(SERVER, both, "image2disk", image).failure
    later = {"DEST_DISK": second.device, "IRONBELL_KEEP_DISKS": first.serial}
    later["IRONBELL_WORKFLOW_DISKS"] = f"{second.device},{first.device}p1"
    assert "must be kept" in perform(SERVER, both, "wipe", later).failure
    assert "keep-disks names typo" in perform(SERVER, both, "wipe", {**words, "IRONBELL_KEEP_DISKS": "typo"}).failure
