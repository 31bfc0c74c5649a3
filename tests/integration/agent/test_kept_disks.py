"""Disks to keep: no action writes to one, whatever a template says, and a name that is no disk's stops everything."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ironbell.agent import machine
from ironbell.agent.actions import image2disk, rootio, wipe, writefile
from ironbell.agent.actions.disks import devices
from ironbell.agent.messages import ResultMessage
from ironbell.codec.diskidentity import DiskIdentity
from ironbell.codec.diskwipe import parse

pytestmark = pytest.mark.root
PRECIOUS = b"do not lose this "


class Rack:
    """Two disks: `KEPT` with data, and another."""

    def __init__(self, kept: str, other: str) -> None:
        self.kept, self.other = kept, other


@pytest.fixture
def rack(loop_disk: Callable[[int], str], monkeypatch: pytest.MonkeyPatch) -> Rack:
    found = Rack(loop_disk(32), loop_disk(32))
    with Path(found.kept).open("r+b") as file:
        file.write(PRECIOUS * 1000)
        os.fsync(file.fileno())
    names = {
        Path(found.kept).name: DiskIdentity("KEPT", "naa.5000c500a1b2c3d4"),
        Path(found.other).name: DiskIdentity("OTHER"),
    }
    monkeypatch.setattr(machine, "disk_identity", lambda name: names.get(name, DiskIdentity()))
    monkeypatch.setattr(devices, "disks", lambda: list(names))
    return found


def holds(disk: str) -> bool:
    with Path(disk).open("rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        return file.read(len(PRECIOUS)) == PRECIOUS


def messages(result: Any) -> str:
    return "; ".join(note.message for note in result.notes if isinstance(note, ResultMessage))


@pytest.mark.parametrize("name", ["KEPT", "0x5000c500a1b2c3d4"])
@pytest.mark.parametrize("takes_all", [True, False])
def test_a_wipe_leaves_a_kept_disk_alone_and_reports_it(rack: Rack, run_here, name: str, takes_all: bool) -> None:
    disks = "all" if takes_all else f"{rack.kept},{rack.other}"
    result = run_here(wipe.run, DEST_DISK=disks, WIPE_METHOD="complete", IRONBELL_KEEP_DISKS=name)
    assert result.status == 0, result.said
    assert holds(rack.kept)
    assert not any(Path(rack.other).read_bytes())
    reports = {report.device: report for report in parse(messages(result))}
    assert reports[rack.other].complete
    assert reports[rack.kept].kept
    assert reports[rack.kept].serial == "KEPT"


def test_without_the_annotation_it_is_wiped(rack: Rack, run_here) -> None:
    assert run_here(wipe.run, DEST_DISK=rack.kept, WIPE_METHOD="complete").status == 0
    assert not holds(rack.kept)


def test_a_name_that_is_no_disks_stops_the_wipe(rack: Rack, run_here) -> None:
    result = run_here(wipe.run, DEST_DISK=rack.kept, IRONBELL_KEEP_DISKS="KEPD")
    assert "keep-disks names KEPD, which no disk of this machine has" in result.failure
    assert "correct the annotation" in result.failure
    assert holds(rack.kept)


def test_an_image_for_a_kept_disk_is_refused(rack: Rack, run_here) -> None:
    words = {"DEST_DISK": rack.kept, "IMG_URL": "http://127.0.0.1:9/x.img", "IRONBELL_KEEP_DISKS": "KEPT"}
    result = run_here(image2disk.run, **words)
    assert "must be kept: rejected" in result.failure
    assert holds(rack.kept)


def test_a_partition_of_a_kept_disk_is_refused(rack: Rack, run_here) -> None:
    subprocess.run(["sfdisk", "--quiet", rack.kept], input="label: gpt\n40960,\n", text=True, check=True)
    subprocess.run(["partx", "--update", rack.kept], check=True)
    words = {"DEST_DISK": f"{rack.kept}p1", "FS_TYPE": "ext4", "DEST_PATH": "/x", "CONTENTS": "x"}
    modes = {"UID": "0", "GID": "0", "MODE": "0644", "DIRMODE": "0755"}
    result = run_here(writefile.run, IRONBELL_KEEP_DISKS="KEPT", **words, **modes)
    assert "must be kept: rejected" in result.failure


@pytest.mark.parametrize("suffix", ["", "p3"])
def test_what_a_later_action_would_write_to_is_refused_before_anything_is_written(
    rack: Rack, run_here, suffix: str
) -> None:
    with Path(rack.other).open("r+b") as file:
        file.write(PRECIOUS)
    targets = f"{rack.other},{rack.kept}{suffix}"
    words = {"IRONBELL_KEEP_DISKS": "KEPT", "IRONBELL_WORKFLOW_DISKS": targets}
    result = run_here(wipe.run, DEST_DISK=rack.other, **words)
    assert "must be kept: rejected" in result.failure
    assert holds(rack.other)
    assert holds(rack.kept)


def test_a_disk_layout_that_takes_a_kept_disk_is_refused(rack: Rack, run_here, web) -> None:
    layout = {"disks": [{"device": rack.kept, "wipe_table": True}]}
    instance = {"metadata": {"instance": {"storage": layout}}}

    web.body = json.dumps(instance).encode()
    host, _, port = web.url.removeprefix("http://").partition("/")[0].partition(":")
    words = {"MIRROR_HOST": host, "METADATA_SERVICE_PORT": port, "IRONBELL_KEEP_DISKS": "KEPT"}
    result = run_here(rootio.run, "wipe", **words)
    assert result.status != 0
    assert "must be kept: rejected" in result.failure, result.said
    assert holds(rack.kept)
