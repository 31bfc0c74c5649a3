"""Arguments of the KubeadmConfig controller's effects, without any secret.

Every effect may be repeated: its result is stored under a name or in a field that the first write claims, and the
stored result is used from then on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ironbell.contract.clusters.secrets import Purpose
from ironbell.controllers.kubeadm.config.rendering.kubeadm import ClusterFacts
from ironbell.controllers.kubeadm.config.rendering.userdata import Role
from ironbell.workload.clusterkey import ClusterKey

CREATE_CERTIFICATES: Final = "make-certificates"
DISCOVER: Final = "decide-discovery"
KEEP_TOKEN: Final = "keep-bootstrap-token"  # noqa: S105 - a name
RENDER: Final = "render-bootstrap-data"
KEEP_TOKEN_TIMEOUT_S: Final = 20.0


@dataclass(frozen=True, slots=True)
class ConfigKey:
    """Identity of a KubeadmConfig, to tell it apart from a later one of the same name."""

    namespace: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class CreateCertificates:
    """Create the missing key pairs of a cluster without a control plane object."""

    config: ConfigKey
    cluster: ClusterKey
    purposes: tuple[Purpose, ...]
    algorithm: str
    days: int


@dataclass(frozen=True, slots=True)
class Discover:
    """Write the discovery of the cluster into the spec."""

    config: ConfigKey
    cluster: ClusterKey
    endpoint: str
    """`host:port`; empty if the spec has the address."""
    role: Role
    new_token: bool = False
    """Whether to replace the existing token."""


@dataclass(frozen=True, slots=True)
class KeepToken:
    """Make the workload cluster accept the spec's token for its lifetime."""

    config: ConfigKey
    cluster: ClusterKey
    is_new: bool = False
    """Whether the token's Secret is expected not to exist, so that it need not be read first."""


@dataclass(frozen=True, slots=True)
class Render:
    """Render the data and store them."""

    config: ConfigKey
    cluster: ClusterKey
    role: Role
    machine: str
    """Name of the Machine, which the init lock records as its holder."""
    version: str
    facts: ClusterFacts
    control_plane_version: str = ""
    acquires_lock: bool = False
    """Whether the write before that of the data acquires the init lock."""
    again: bool = False
    """Whether the data were rendered before: a MachinePool's, for another token."""
