"""Both versions of KubeadmControlPlane and its template.

Source: kubernetes-sigs/cluster-api: api/controlplane/kubeadm/v1beta1/conversion.go,
controlplane/kubeadm/webhooks/conversion.
"""

from __future__ import annotations

from typing import Final

from ironbell.api.bootstrap.conversion import KUBEADM_CONFIG_SPEC
from ironbell.api.cluster.conversion.machines import deletion
from ironbell.api.conversion.paths import MISSING, Body, path, put, take, value_at
from ironbell.api.conversion.rules import (
    Reference,
    Rule,
    Target,
    Written,
    dropped,
    from_seconds,
    move,
    seconds,
    to_seconds,
    within,
)
from ironbell.api.conversion.status import FAILURE, Status, initialized

_RETRY: Final = path("remediationStrategy.retryPeriod")
_RETRY_SECONDS: Final = path("remediation.retryPeriodSeconds")


class _RetryPeriod:
    """A duration that the older version always has: a zero comes back only where it was stored."""

    def up(self, body: Body, kept: Body | None) -> None:
        if "remediationStrategy" not in body:
            return
        value = take(body, _RETRY)
        limit = to_seconds(value) if isinstance(value, str) and value else 0
        if limit or value_at(kept, _RETRY_SECONDS) == 0:
            put(body, _RETRY_SECONDS, limit)

    def down(self, body: Body, target: Target) -> None:
        value = take(body, _RETRY_SECONDS)
        if value is not MISSING:
            put(body, _RETRY, from_seconds(value))


_SPEC: Final[tuple[Rule, ...]] = (
    within("kubeadmConfigSpec", *KUBEADM_CONFIG_SPEC),
    within("machineTemplate", *deletion("spec."), move("taints", "spec.taints")),
    _RetryPeriod(),
    move("remediationStrategy.maxRetry", "remediation.maxRetry"),
    seconds("remediationStrategy.minHealthyPeriod", "remediation.minHealthyPeriodSeconds"),
    *dropped("remediationStrategy"),
    move("rolloutBefore.certificatesExpiryDays", "rollout.before.certificatesExpiryDays"),
    *dropped("rolloutBefore"),
    move("rolloutAfter", "rollout.after"),
    move("rolloutStrategy.type", "rollout.strategy.type"),
    move("rolloutStrategy.rollingUpdate.maxSurge", "rollout.strategy.rollingUpdate.maxSurge"),
    *dropped("rolloutStrategy"),
    move("machineNamingStrategy.template", "machineNaming.template"),
    *dropped("machineNamingStrategy"),
)


class _Ready:
    """The status `ready`: true if any Machine is ready. The stored version does not have it."""

    def up(self, body: Body, kept: Body | None) -> None:
        take(body, ("status", "ready"))

    def down(self, body: Body, target: Target) -> None:
        ready = value_at(body, ("status", "readyReplicas"))
        if isinstance(ready, int) and ready > 0:
            put(body, ("status", "ready"), True)


class _RolloutType:
    """A template's way of rolling out has a default in the stored version."""

    def up(self, body: Body, kept: Body | None) -> None:
        strategy = value_at(body, ("rolloutStrategy",))
        if isinstance(strategy, dict) and not strategy.get("type"):
            strategy["type"] = "RollingUpdate"

    def down(self, body: Body, target: Target) -> None:
        """It is there in both versions."""


KUBEADM_CONTROL_PLANE: Final[tuple[Rule, ...]] = (
    within(
        "spec",
        within(
            "machineTemplate",
            Reference(path("infrastructureRef"), path("spec.infrastructureRef")),
            move("readinessGates", "spec.readinessGates"),
        ),
        *_SPEC,
    ),
    _Ready(),
    within("status.lastRemediation", move("timestamp", "time"), Written(("retryCount",))),
    Status(
        FAILURE,
        ("updatedReplicas", "readyReplicas", "unavailableReplicas"),
        ("readyReplicas", "availableReplicas", "upToDateReplicas"),
        always=True,
    ),
    Written(path("status.replicas")),
    initialized("initialized", "controlPlaneInitialized"),
)

KUBEADM_CONTROL_PLANE_TEMPLATE: Final[tuple[Rule, ...]] = (within("spec.template.spec", _RolloutType(), *_SPEC),)
