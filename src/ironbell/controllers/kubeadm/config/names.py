"""Names that the KubeadmConfig controller uses towards others."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

ANNOTATION_RENDERED_TOKEN: Final = "ironbell.dev/rendered-token"  # noqa: S105 - a name
"""On the data's Secret: the public part of the token in it."""


class Reason(StrEnum):
    """What is waited for."""

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
