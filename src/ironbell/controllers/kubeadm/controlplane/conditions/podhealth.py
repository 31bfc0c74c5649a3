"""What the status of a static pod says about its component, pure.

Source: kubernetes-sigs/cluster-api: controlplane/kubeadm/pkg/workload_cluster_conditions.go (updateStaticPodCondition).
"""

from __future__ import annotations

from typing import Final

from ironbell.controllers.kubeadm.controlplane.conditions.marks import INFO, Verdict, bad, good, unknown
from ironbell.controllers.kubeadm.controlplane.workload.queries import PodAnswer, PodView

RUNNING: Final = "Running"
PROVISIONING: Final = "Provisioning"
FAILED: Final = "Failed"
DOES_NOT_EXIST: Final = "DoesNotExist"
INSPECTION_FAILED: Final = "InspectionFailed"

_LEGACY: Final = {
    PROVISIONING: "PodProvisioning",
    FAILED: "PodFailed",
    DOES_NOT_EXIST: "PodMissing",
    INSPECTION_FAILED: "PodInspectionFailed",
}


def verdict_of(answer: PodAnswer) -> Verdict:
    """The condition that a component's pod gives its Machine."""
    if answer.error:
        return unknown(
            INSPECTION_FAILED,
            f"Failed to get the Pod: {answer.error}",
            legacy_reason=_LEGACY[INSPECTION_FAILED],
            legacy_message="Failed to get Pod status",
        )
    if answer.pod is None:
        name = f"{answer.component}-{answer.node}"
        return bad(
            DOES_NOT_EXIST,
            "Pod does not exist",
            legacy_reason=_LEGACY[DOES_NOT_EXIST],
            legacy_message=f"Pod {name} is missing",
        )
    if answer.pod.phase == "Pending":
        return _pending(answer.pod)
    if answer.pod.phase == "Running":
        return _running(answer.pod)
    if answer.pod.phase in ("Succeeded", "Failed"):
        return _failed("All the containers have been terminated")
    message = "Pod is reporting Unknown status"
    return unknown(INSPECTION_FAILED, message, legacy_reason=_LEGACY[INSPECTION_FAILED])


def _pending(pod: PodView) -> Verdict:
    if pod.condition("PodScheduled") != "True":
        return _provisioning("Waiting to be scheduled")
    if pod.condition("Initialized") != "True":
        return _provisioning("Running init containers")
    return _provisioning("")


def _running(pod: PodView) -> Verdict:
    if pod.condition("Ready") == "True":
        return good(RUNNING)
    waiting = ", ".join(container.waiting for container in pod.containers if container.waiting)
    if waiting:
        # a container that ended with an error waits in CrashLoopBackOff: it is not on its way up
        crashed = any(container.last_exit_code for container in pod.containers)
        return _failed(waiting) if crashed else _provisioning(waiting)
    terminated = ", ".join(container.terminated for container in pod.containers if container.terminated)
    if terminated:
        return _failed(terminated)
    return _provisioning("Waiting for startup or readiness probes")


def _provisioning(message: str) -> Verdict:
    return bad(PROVISIONING, message, legacy_reason=_LEGACY[PROVISIONING], severity=INFO)


def _failed(message: str) -> Verdict:
    return bad(FAILED, message, legacy_reason=_LEGACY[FAILED])
