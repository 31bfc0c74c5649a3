"""What a static pod's status makes of its Machine's condition."""

from __future__ import annotations

import pytest

from ironbell.controllers.kubeadm.controlplane.conditions.podhealth import verdict_of
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
    verdict = verdict_of(PodAnswer("n1", "etcd", pod))
    assert verdict.mark is not None
    assert verdict.legacy is not None
    assert (verdict.mark.status, verdict.mark.reason, verdict.mark.message) == expected
    assert (verdict.legacy.status, verdict.legacy.severity) == (expected[0], legacy)


def test_a_pod_that_could_not_be_read_is_unknown_and_says_why() -> None:
    verdict = verdict_of(PodAnswer("n1", "etcd", error="timeout"))
    assert verdict.mark is not None
    assert (verdict.mark.status, verdict.mark.message) == ("Unknown", "Failed to get the Pod: timeout")
