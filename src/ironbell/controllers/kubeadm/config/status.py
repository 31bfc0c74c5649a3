"""What a KubeadmConfig's status says: both sets of conditions, and the name of the data's Secret.

Source: kubernetes-sigs/cluster-api: bootstrap/kubeadm/reconcilers/kubeadmconfig/kubeadmconfig_controller.go;
api/bootstrap/kubeadm/v1beta2/{kubeadmconfig_types,v1beta1_condition_consts}.go.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from ironbell.api.bootstrap.kubeadmconfig import (
    KUBEADM_CONFIG,
    KubeadmConfig,
    KubeadmConfigDeprecatedStatus,
    KubeadmConfigInitializationStatus,
    KubeadmConfigStatus,
    KubeadmConfigV1Beta1DeprecatedStatus,
)
from ironbell.api.meta import Condition
from ironbell.contract.clusters import bootstrap_failure
from ironbell.contract.clusters.paused import paused_condition
from ironbell.contract.conditions import Reasons, summary
from ironbell.contract.conditions.draft import ConditionsDraft
from ironbell.contract.conditions.legacy import (
    ERROR,
    INFO,
    WARNING,
    LegacyCondition,
    legacy_false,
    legacy_summary,
    legacy_true,
)
from ironbell.kube.draft import replace

READY: Final = "Ready"
DATA_SECRET: Final = "DataSecretAvailable"  # noqa: S105 - a name
CERTIFICATES: Final = "CertificatesAvailable"
BOOTSTRAP: Final = bootstrap_failure.CONDITION
AVAILABLE, NOT_AVAILABLE = "Available", "NotAvailable"
BOOTSTRAP_FAILED: Final = "BootstrapFailed"
_READY_REASONS: Final = Reasons("NotReady", "ReadyUnknown", "Ready")


@dataclass(frozen=True, slots=True)
class Finding:
    """One condition in both forms."""

    condition: Condition
    legacy: LegacyCondition


class ConfigDraft(ConditionsDraft[KubeadmConfig]):
    """A KubeadmConfig's next state."""

    status: KubeadmConfigStatus

    def __init__(self, config: KubeadmConfig, now: datetime) -> None:
        super().__init__(
            KUBEADM_CONFIG,
            config,
            now,
            deprecated=KubeadmConfigDeprecatedStatus,
            v1beta1=KubeadmConfigV1Beta1DeprecatedStatus,
        )

    def report(self, *findings: Finding, data_secret: str = "") -> None:
        """Set these conditions, and those that add all of them up; `data_secret` is the Secret once it exists."""
        for finding in findings:
            self.put(finding.condition)
            self.put_legacy(finding.legacy)
        types = (DATA_SECRET, CERTIFICATES, BOOTSTRAP)
        ready = summary(self.status.conditions, READY, types, ignore_if_missing=(BOOTSTRAP,), reason=_READY_REASONS)
        self.put(ready, paused_condition(KUBEADM_CONFIG.kind, self.obj))
        self.put_legacy(legacy_summary(self.older.conditions, types=types))
        self.observe_generation()
        if data_secret:
            initialization = KubeadmConfigInitializationStatus(data_secret_created=True)
            self.status = replace(self.status, data_secret_name=data_secret, initialization=initialization)

    def wait_for(self, reason: str, message: str, finding: Finding) -> None:
        """Record the reason for waiting, and report it."""
        self.wait(reason, message)
        self.report(finding)


def available(name: str) -> Finding:
    """It is there."""
    return Finding(Condition(type=name, status="True", reason=AVAILABLE), legacy_true(name))


def waiting_for_infrastructure() -> Finding:
    """The Cluster has no infrastructure yet."""
    message = "Waiting for Cluster status.infrastructureReady to be true"
    return _absent(DATA_SECRET, message, legacy_false(DATA_SECRET, "WaitingForClusterInfrastructure", INFO))


def waiting_for_control_plane(message: str) -> Finding:
    """The machine's turn comes later."""
    return _absent(DATA_SECRET, message, legacy_false(DATA_SECRET, "WaitingForControlPlaneAvailable", INFO))


def not_generated(message: str) -> Finding:
    """The data cannot be made of what the spec says."""
    return _absent(DATA_SECRET, message, legacy_false(DATA_SECRET, "DataSecretGenerationFailed", WARNING, message))


def certificates_missing(message: str, *, to_be_made: bool) -> Finding:
    """There are no usable certificates; those of the first control plane machine are still to be made."""
    legacy = ("CertificatesGenerationFailed", WARNING) if to_be_made else ("CertificatesCorrupted", ERROR)
    return _absent(CERTIFICATES, message, legacy_false(CERTIFICATES, *legacy, message))


def bootstrap_failed(message: str) -> Finding:
    """The host said why it did not become a node."""
    return Finding(
        Condition(type=BOOTSTRAP, status="False", reason=BOOTSTRAP_FAILED, message=message),
        legacy_false(BOOTSTRAP, BOOTSTRAP_FAILED, ERROR, message),
    )


def bootstrap_succeeded() -> Finding:
    """What failed before is a node now."""
    return Finding(Condition(type=BOOTSTRAP, status="True", reason="Succeeded"), legacy_true(BOOTSTRAP))


def _absent(name: str, message: str, legacy: LegacyCondition) -> Finding:
    return Finding(Condition(type=name, status="False", reason=NOT_AVAILABLE, message=message), legacy)
