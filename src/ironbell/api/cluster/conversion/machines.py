"""Both versions of Machines and of what makes them.

Source: kubernetes-sigs/cluster-api: api/core/v1beta1/conversion.go, core/webhooks/conversion/machine*.go.
"""

from __future__ import annotations

from typing import Final

from ironbell.api.conversion.paths import MISSING, Body, path, put, take
from ironbell.api.conversion.rules import (
    Kept,
    Restored,
    Rule,
    Target,
    Within,
    Written,
    dropped,
    move,
    reference,
    seconds,
    within,
)
from ironbell.api.conversion.status import FAILURE, Status, initialized

_RENEWED: Final = ("readyReplicas", "availableReplicas", "upToDateReplicas")


def deletion(prefix: str = "") -> tuple[Rule, ...]:
    """Time limits of a deletion."""
    limits = ("nodeDrainTimeout", "nodeVolumeDetachTimeout", "nodeDeletionTimeout")
    return tuple(seconds(limit, f"{prefix}deletion.{limit}Seconds") for limit in limits)


_MACHINE_SPEC: Final[tuple[Rule, ...]] = (
    *deletion(),
    reference("infrastructureRef"),
    reference("bootstrap.configRef"),
)

_TEMPLATE_SPEC: Final = Within(path("spec.template.spec"), _MACHINE_SPEC)
_READY_SECONDS: Final = move("spec.minReadySeconds", "spec.template.spec.minReadySeconds")


class _NodeRef:
    """The Node, of which the stored version keeps the name only."""

    def up(self, body: Body, kept: Body | None) -> None:
        node = take(body, ("status", "nodeRef"))
        if isinstance(node, dict) and node.get("name"):
            put(body, ("status", "nodeRef"), {"name": node["name"]})

    def down(self, body: Body, target: Target) -> None:
        node = take(body, ("status", "nodeRef"))
        if node is not MISSING and isinstance(node, dict) and node.get("name"):
            put(body, ("status", "nodeRef"), {"apiVersion": "v1", "kind": "Node", "name": node["name"]})


MACHINE: Final[tuple[Rule, ...]] = (
    within("spec", *_MACHINE_SPEC),
    Kept(path("spec.minReadySeconds")),
    Kept(path("status.phase"), values_in_old={"Updating": "Running"}),
    Kept(path("status.failureDomain")),
    _NodeRef(),
    Status(FAILURE),
    initialized("bootstrapReady", "bootstrapDataSecretCreated"),
    initialized("infrastructureReady", "infrastructureProvisioned"),
)

MACHINE_SET: Final[tuple[Rule, ...]] = (
    _TEMPLATE_SPEC,
    Restored(path("spec.minReadySeconds"), path("spec.template.spec.minReadySeconds"), 0),
    move("spec.deletePolicy", "spec.deletion.order"),
    move("spec.machineNamingStrategy.template", "spec.machineNaming.template"),
    *dropped("spec.machineNamingStrategy"),
    Status(FAILURE, ("availableReplicas", "fullyLabeledReplicas", "readyReplicas"), _RENEWED, always=True),
    Written(path("status.replicas")),
)


def rollout(health_check: str) -> tuple[Rule, ...]:
    """Rollout strategy of a MachineDeployment; the limit for remediation is at `health_check`."""
    return (
        move("strategy.rollingUpdate.deletePolicy", "deletion.order"),
        move("strategy.remediation.maxInFlight", f"{health_check}.maxInFlight"),
        *(
            move(f"strategy.{name}", f"rollout.strategy.{name}")
            for name in ("type", "rollingUpdate.maxUnavailable", "rollingUpdate.maxSurge")
        ),
        *dropped("strategy"),
    )


MACHINE_DEPLOYMENT: Final[tuple[Rule, ...]] = (
    _TEMPLATE_SPEC,
    _READY_SECONDS,
    within("spec", *rollout("remediation")),
    move("spec.rolloutAfter", "spec.rollout.after"),
    move("spec.machineNamingStrategy.template", "spec.machineNaming.template"),
    *dropped("spec.machineNamingStrategy"),
    *dropped("spec.progressDeadlineSeconds", "spec.revisionHistoryLimit"),
    Restored(path("spec.paused"), path("spec.paused")),
    Status((), ("availableReplicas", "unavailableReplicas", "updatedReplicas", "readyReplicas"), _RENEWED, always=True),
    Written(path("status.replicas")),
)

MACHINE_POOL: Final[tuple[Rule, ...]] = (
    _TEMPLATE_SPEC,
    _READY_SECONDS,
    Status(FAILURE, ("readyReplicas", "availableReplicas", "unavailableReplicas"), _RENEWED, always=True),
    Written(path("status.replicas")),
    initialized("bootstrapReady", "bootstrapDataSecretCreated"),
    initialized("infrastructureReady", "infrastructureProvisioned"),
)
