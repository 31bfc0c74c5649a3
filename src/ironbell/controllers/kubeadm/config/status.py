"""The status of a KubeadmConfig: both sets of conditions, the reasons for waiting, and the name of the data's Secret.

Source: kubernetes-sigs/cluster-api: bootstrap/kubeadm/reconcilers/kubeadmconfig/kubeadmconfig_controller.go;
api/bootstrap/kubeadm/v1beta2/{kubeadmconfig_types,v1beta1_condition_consts}.go.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from ironbell.api.bootstrap.kubeadmconfig import (
    KUBEADM_CONFIG,
    KubeadmConfig,
    KubeadmConfigInitializationStatus,
    KubeadmConfigStatus,
)
from ironbell.api.meta import Condition
from ironbell.contract.clusters import bootstrap
from ironbell.contract.clusters.paused import paused_condition
from ironbell.contract.conditions import Reasons, summary
from ironbell.contract.conditions.draft import ConditionsDraft
from ironbell.contract.conditions.legacy import (
    ERROR,
    INFO,
    WARNING,
    LegacyCondition,
    legacy_false,
    legacy_true,
)
from ironbell.kube.draft import replace

ANNOTATION_RENDERED_TOKEN: Final = "ironbell.dev/rendered-token"  # noqa: S105 - a name
"""Annotation of the data's Secret: the public part of its token."""


class Reason(StrEnum):
    """Reason for waiting."""

    NO_OWNER = "WaitingForOwner"
    NO_CLUSTER = "WaitingForCluster"
    PAUSED = "Paused"
    NO_INFRASTRUCTURE = "WaitingForClusterInfrastructure"
    NOT_INITIALIZED = "WaitingForControlPlaneInitialized"
    LOCKED = "WaitingForInitLock"
    NO_CERTIFICATES = "WaitingForCertificates"
    NO_ENDPOINT = "WaitingForControlPlaneEndpoint"
    NOT_CONNECTED = "WaitingForConnection"
    MISSING_REFERENCE = "WaitingForSecrets"
    NO_VERSION = "WaitingForControlPlaneVersion"
    FAILED = "DataSecretGenerationFailed"
    NODE = "WaitingForNode"
    BOOTSTRAP_FAILED = "BootstrapFailed"


READY: Final = "Ready"
DATA_SECRET: Final = "DataSecretAvailable"  # noqa: S105 - a name
CERTIFICATES: Final = "CertificatesAvailable"
BOOTSTRAP: Final = bootstrap.BOOTSTRAP_SUCCEEDED
AVAILABLE, NOT_AVAILABLE = "Available", "NotAvailable"
BOOTSTRAP_FAILED: Final = "BootstrapFailed"
_READY_REASONS: Final = Reasons("NotReady", "ReadyUnknown", "Ready")


@dataclass(frozen=True, slots=True)
class Finding:
    """A condition in both forms."""

    condition: Condition
    legacy: LegacyCondition


class ConfigDraft(ConditionsDraft[KubeadmConfig]):
    """A KubeadmConfig's next state."""

    status: KubeadmConfigStatus

    def __init__(self, config: KubeadmConfig, now: datetime) -> None:
        super().__init__(KUBEADM_CONFIG, config, now)

    def report(self, *findings: Finding, data_secret: str = "") -> None:
        """Set conditions, and those that summarize them; `data_secret` is the name of the Secret once it exists."""
        for finding in findings:
            self.put(finding.condition)
            self.put_legacy(finding.legacy)
        types = (DATA_SECRET, CERTIFICATES, BOOTSTRAP)
        ready = summary(self.status.conditions, READY, types, ignore_if_missing=(BOOTSTRAP,), reason=_READY_REASONS)
        self.put(ready, paused_condition(KUBEADM_CONFIG.kind, self.obj))
        self.summarize_legacy(*types)
        self.observe_generation()
        if data_secret:
            initialization = KubeadmConfigInitializationStatus(data_secret_created=True)
            self.status = replace(self.status, data_secret_name=data_secret, initialization=initialization)

    def wait_for(self, reason: str, message: str, finding: Finding) -> None:
        """Record the reason for waiting, and report it."""
        self.wait(reason, message)
        self.report(finding)


def available(name: str) -> Finding:
    """Return the condition that the Secret or the certificates exist."""
    return Finding(Condition(type=name, status="True", reason=AVAILABLE), legacy_true(name))


def waiting_for_infrastructure() -> Finding:
    """Return the condition that the Cluster has no infrastructure yet."""
    message = "Waiting for Cluster status.infrastructureReady to be true"
    return _absent(DATA_SECRET, message, legacy_false(DATA_SECRET, "WaitingForClusterInfrastructure", INFO))


def waiting_for_control_plane(message: str) -> Finding:
    """Return the condition that the machine waits for the control plane."""
    return _absent(DATA_SECRET, message, legacy_false(DATA_SECRET, "WaitingForControlPlaneAvailable", INFO))


def not_generated(message: str) -> Finding:
    """Return the condition that the data cannot be generated from the spec."""
    return _absent(DATA_SECRET, message, legacy_false(DATA_SECRET, "DataSecretGenerationFailed", WARNING, message))


def certificates_missing(message: str, *, creates_certificates: bool) -> Finding:
    """Return the condition that no usable certificates exist; the first control plane machine creates them."""
    legacy = ("CertificatesGenerationFailed", WARNING) if creates_certificates else ("CertificatesCorrupted", ERROR)
    return _absent(CERTIFICATES, message, legacy_false(CERTIFICATES, *legacy, message))


def bootstrap_failed(message: str) -> Finding:
    """Return the condition that the host reported a failed bootstrap."""
    return Finding(
        Condition(type=BOOTSTRAP, status="False", reason=BOOTSTRAP_FAILED, message=message),
        legacy_false(BOOTSTRAP, BOOTSTRAP_FAILED, ERROR, message),
    )


def bootstrap_succeeded() -> Finding:
    """Return the condition that a host became a node after a failure."""
    return Finding(Condition(type=BOOTSTRAP, status="True", reason="Succeeded"), legacy_true(BOOTSTRAP))


def _absent(name: str, message: str, legacy: LegacyCondition) -> Finding:
    return Finding(Condition(type=name, status="False", reason=NOT_AVAILABLE, message=message), legacy)
