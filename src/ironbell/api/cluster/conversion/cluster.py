"""Both versions of Cluster, with its topology.

Source: kubernetes-sigs/cluster-api: api/core/v1beta1/conversion.go, core/webhooks/conversion/cluster.go.
"""

from __future__ import annotations

from typing import Final

from ironbell.api.cluster.conversion.health import checks
from ironbell.api.cluster.conversion.machines import deletion, rollout
from ironbell.api.conversion.rules import Rule, dropped, flag, for_each, move, reference, within
from ironbell.api.conversion.status import FAILURE, FailureDomains, Status, initialized

_HEALTH_CHECK: Final[tuple[Rule, ...]] = (
    move("machineHealthCheck.enable", "healthCheck.enabled"),
    *checks("machineHealthCheck.", "healthCheck."),
    *dropped("machineHealthCheck"),
)
_OVERRIDES: Final = for_each("variables.overrides", *dropped("definitionFrom"))

_TOPOLOGY: Final[tuple[Rule, ...]] = (
    move("class", "classRef.name"),
    move("classNamespace", "classRef.namespace"),
    *dropped("rolloutAfter"),
    for_each("variables", *dropped("definitionFrom")),
    within("controlPlane", *deletion(), *_HEALTH_CHECK, _OVERRIDES),
    for_each(
        "workers.machineDeployments",
        *rollout("healthCheck.remediation"),
        *deletion(),
        *_HEALTH_CHECK,
        _OVERRIDES,
    ),
    for_each("workers.machinePools", *deletion(), _OVERRIDES),
)

CLUSTER: Final[tuple[Rule, ...]] = (
    flag("spec.paused"),
    reference("spec.infrastructureRef"),
    reference("spec.controlPlaneRef"),
    within("spec.topology", *_TOPOLOGY),
    FailureDomains(),
    Status(FAILURE, renewed=("controlPlane", "workers")),
    initialized("controlPlaneReady", "controlPlaneInitialized"),
    initialized("infrastructureReady", "infrastructureProvisioned"),
)
