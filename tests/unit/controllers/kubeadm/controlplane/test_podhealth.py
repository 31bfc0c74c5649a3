"""What a static pod's status makes of its Machine's condition."""

from __future__ import annotations

import pytest

from ironbell.controllers.kubeadm.controlplane.conditions.components import finding_of
from ironbell.controllers.kubeadm.controlplane.workload.queries import ContainerView, PodAnswer, PodView

READY = (("Ready", "True"),)


@pytest.mark.parametrize(
    ("pod", "expected", "legacy"),
    [
        (PodView("Pending"), ("False", "Provisioning", "Waiting to be scheduled"), "Info"),
        (
            PodView("Pending", (("PodScheduled", "True"),)),
            ("False", "Provisioning", "Running init containers"),
            "Info",
        ),
        (
            PodView("Pending", (("PodScheduled", "True"), ("Initialized", "True"))),
            ("False", "Provisioning", ""),
            "Info",
        ),
        (PodView("Running", READY), ("True", "Running", ""), ""),
        (
            PodView("Running", (), (ContainerView("ErrImagePull"), ContainerView("B"))),
            ("False", "Provisioning", "ErrImagePull, B"),
            "Info",
        ),
        (
            PodView("Running", (), (ContainerView("CrashLoopBackOff", last_exit_code=1),)),
            ("False", "Failed", "CrashLoopBackOff"),
            "Error",
        ),
        (PodView("Running", (), (ContainerView(terminated="Error"),)), ("False", "Failed", "Error"), "Error"),
        (PodView("Running"), ("False", "Provisioning", "Waiting for startup or readiness probes"), "Info"),
        (PodView("Failed"), ("False", "Failed", "All the containers have been terminated"), "Error"),
        (PodView("Succeeded"), ("False", "Failed", "All the containers have been terminated"), "Error"),
        (PodView("Unknown"), ("Unknown", "InspectionFailed", "Pod is reporting Unknown status"), ""),
        (None, ("False", "DoesNotExist", "Pod does not exist"), "Error"),
    ],
)
def test_the_condition_follows_the_pod(pod: PodView | None, expected: tuple[str, str, str], legacy: str) -> None:
    finding = finding_of(PodAnswer("n1", "etcd", pod))
    assert finding.mark is not None
    assert finding.legacy is not None
    assert (finding.mark.status, finding.mark.reason, finding.mark.message) == expected
    assert (finding.legacy.status, finding.legacy.severity) == (expected[0], legacy)


def test_a_pod_that_could_not_be_read_is_unknown_and_says_why() -> None:
    finding = finding_of(PodAnswer("n1", "etcd", error="timeout"))
    assert finding.mark is not None
    assert (finding.mark.status, finding.mark.message) == ("Unknown", "Failed to get the Pod: timeout")
