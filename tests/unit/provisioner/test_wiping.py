"""What the reports of a wipe add up to."""

from __future__ import annotations

import pytest

from ironbell.api.tinkerbell.workflow import Workflow, WorkflowAction, WorkflowStatus, WorkflowTask
from ironbell.codec.diskwipe import DiskReport
from ironbell.provisioner.disks import disk_certificates, is_wiped, unproven

DONE = DiskReport("/dev/sda", "1.0 TB", "A", "zeros everywhere", 10**12, 10**12, True)
HALF = DiskReport("/dev/sdb", "1.0 TB", "B", "zeros at the ends only", 20 << 20, 10**12, False)
KEPT = DiskReport("/dev/sdc", "1.0 TB", "C")


def workflow(*reports: DiskReport, image: str = "quay.io/x/wipe:v1") -> Workflow:
    actions = [WorkflowAction(image=image, message=str(report)) for report in reports]
    return Workflow(status=WorkflowStatus(tasks=[WorkflowTask(actions=actions)]))


@pytest.mark.parametrize(
    ("devices", "reports", "wiped", "doubtful"),
    [
        (["/dev/sda"], [DONE], True, []),
        (["/dev/sda", "/dev/sdb"], [DONE], False, ["/dev/sdb"]),
        (["/dev/sda", "/dev/sdb"], [DONE, HALF], False, ["/dev/sdb"]),
        (["/dev/sda", "/dev/sdc"], [DONE, KEPT], True, []),
        (["/dev/sdc"], [KEPT], False, []),
        (["/dev/disk/by-id/a"], [DONE], False, ["/dev/disk/by-id/a"]),
        (["/dev/sda"], [], False, ["/dev/sda"]),
        ([], [], False, []),
    ],
)
def test_wiped_is_what_was_completely_wiped(
    devices: list[str], reports: list[DiskReport], wiped: bool, doubtful: list[str]
) -> None:
    disks = disk_certificates(workflow(*reports))
    assert (is_wiped(devices, disks), unproven(devices, disks)) == (wiped, doubtful)


def test_the_last_report_of_a_disk_counts() -> None:
    again = DiskReport("/dev/sdb", "1.0 TB", "B", "zeros everywhere", 10**12, 10**12, True)
    assert is_wiped(["/dev/sdb"], disk_certificates(workflow(HALF, again)))


def test_only_the_action_that_wipes_is_believed() -> None:
    assert disk_certificates(workflow(DONE, image="cexec")) == []
