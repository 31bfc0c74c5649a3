"""What a KubeadmConfig's status says: both sets of conditions, and the name of the data's Secret.

Source: kubernetes-sigs/cluster-api: bootstrap/kubeadm/reconcilers/kubeadmconfig/kubeadmconfig_controller.go;
api/bootstrap/kubeadm/v1beta2/{kubeadmconfig_types,v1beta1_condition_consts}.go.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import msgspec

from ironbell.api.bootstrap.kubeadmconfig import (
    KUBEADM_CONFIG,
    KubeadmConfig,
    KubeadmConfigDeprecatedStatus,
    KubeadmConfigInitializationStatus,
    KubeadmConfigStatus,
    KubeadmConfigV1Beta1DeprecatedStatus,
)
from ironbell.api.meta import Condition
from ironbell.contract import bootstrap_failure
from ironbell.contract.conditions import Reasons, set_condition, summary
from ironbell.contract.conditions.legacy import (
    ERROR,
    INFO,
    WARNING,
    LegacyCondition,
    legacy_conditions,
    legacy_false,
    legacy_summary,
    legacy_true,
    set_legacy,
)
from ironbell.contract.paused import paused_condition
from ironbell.kube.decision import MergePatch
from ironbell.kube.patches import status_change

READY: Final = "Ready"
DATA_SECRET: Final = "DataSecretAvailable"  # noqa: S105 - a name
CERTIFICATES: Final = "CertificatesAvailable"
BOOTSTRAP: Final = bootstrap_failure.CONDITION
AVAILABLE, NOT_AVAILABLE = "Available", "NotAvailable"
BOOTSTRAP_FAILED: Final = "BootstrapFailed"
_READY_REASONS: Final = Reasons("NotReady", "ReadyUnknown", "Ready")


@dataclass(frozen=True, slots=True)
class Saying:
    """One observation, in both forms."""

    condition: Condition
    legacy: LegacyCondition


def available(name: str) -> Saying:
    """It is there."""
    return Saying(Condition(type=name, status="True", reason=AVAILABLE), legacy_true(name))


def waiting_for_infrastructure() -> Saying:
    """The Cluster has no infrastructure yet."""
    message = "Waiting for Cluster status.infrastructureReady to be true"
    return _absent(DATA_SECRET, message, legacy_false(DATA_SECRET, "WaitingForClusterInfrastructure", INFO))


def waiting_for_control_plane(message: str) -> Saying:
    """The machine's turn comes later."""
    return _absent(DATA_SECRET, message, legacy_false(DATA_SECRET, "WaitingForControlPlaneAvailable", INFO))


def not_generated(message: str) -> Saying:
    """The data cannot be made of what the spec says."""
    return _absent(DATA_SECRET, message, legacy_false(DATA_SECRET, "DataSecretGenerationFailed", WARNING, message))


def certificates_missing(message: str, *, to_be_made: bool) -> Saying:
    """There are no usable certificates; those of the first control plane machine are still to be made."""
    legacy = ("CertificatesGenerationFailed", WARNING) if to_be_made else ("CertificatesCorrupted", ERROR)
    return _absent(CERTIFICATES, message, legacy_false(CERTIFICATES, *legacy, message))


def bootstrap_failed(message: str) -> Saying:
    """The host said why it did not become a node."""
    return Saying(
        Condition(type=BOOTSTRAP, status="False", reason=BOOTSTRAP_FAILED, message=message),
        legacy_false(BOOTSTRAP, BOOTSTRAP_FAILED, ERROR, message),
    )


def bootstrap_succeeded() -> Saying:
    """What failed before is a node now."""
    return Saying(Condition(type=BOOTSTRAP, status="True", reason="Succeeded"), legacy_true(BOOTSTRAP))


def stated(
    config: KubeadmConfig,
    sayings: Iterable[Saying],
    now: datetime,
    *,
    data_secret: str = "",
    without: Collection[str] = (),
) -> KubeadmConfigStatus:
    """The status with these observations, and with what they add up to.

    Args:
        config: as it is, not paused.
        sayings: what is known anew; what is not told stays.
        data_secret: the Secret with the data, once it is there.
        without: conditions that are not true any more, nor false.
    """
    status, generation = config.status, config.metadata.generation
    conditions = [condition for condition in status.conditions if condition.type not in without]
    legacy = [condition for condition in legacy_conditions(config) if condition.type not in without]
    for saying in sayings:
        conditions = set_condition(conditions, saying.condition, now=now, generation=generation)
        legacy = set_legacy(legacy, saying.legacy, now=now)
    types = (DATA_SECRET, CERTIFICATES, BOOTSTRAP)
    ready = summary(conditions, READY, types, ignore_if_missing=(BOOTSTRAP,), reason=_READY_REASONS)
    for condition in (ready, paused_condition(KUBEADM_CONFIG.kind, config)):
        conditions = set_condition(conditions, condition, now=now, generation=generation)
    legacy = set_legacy(legacy, legacy_summary(legacy, types=types), now=now)
    return msgspec.structs.replace(
        status,
        conditions=conditions,
        deprecated=_deprecated(status, legacy),
        observed_generation=generation,
        data_secret_name=data_secret or status.data_secret_name,
        initialization=KubeadmConfigInitializationStatus(data_secret_created=True)
        if data_secret
        else status.initialization,
    )


def paused(config: KubeadmConfig, *, cluster_paused: bool, now: datetime) -> KubeadmConfigStatus:
    """The status while nothing is done."""
    condition = paused_condition(KUBEADM_CONFIG.kind, config, cluster_paused=cluster_paused)
    conditions = set_condition(config.status.conditions, condition, now=now, generation=config.metadata.generation)
    return msgspec.structs.replace(config.status, conditions=conditions)


def change(config: KubeadmConfig, status: KubeadmConfigStatus) -> MergePatch | None:
    """The write of a status; None if it is there already."""
    return status_change(KUBEADM_CONFIG, config, config.status, status)


def _absent(name: str, message: str, legacy: LegacyCondition) -> Saying:
    return Saying(Condition(type=name, status="False", reason=NOT_AVAILABLE, message=message), legacy)


def _deprecated(status: KubeadmConfigStatus, legacy: list[LegacyCondition]) -> KubeadmConfigDeprecatedStatus:
    before = status.deprecated.v1beta1 if status.deprecated is not None else None
    held = before or KubeadmConfigV1Beta1DeprecatedStatus()
    return KubeadmConfigDeprecatedStatus(v1beta1=msgspec.structs.replace(held, conditions=legacy))
