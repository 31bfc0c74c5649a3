"""What the KubeadmConfig controller has done outside its decisions: arguments of its effects, without any secret.

Every one of them may be repeated: what is made is stored under a name or in a field that is claimed by its write, and
what was stored is used from then on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ironbell.contract.clusters.secrets import Purpose
from ironbell.controllers.kubeadm.config.rendering.kubeadm import ClusterFacts
from ironbell.controllers.kubeadm.config.rendering.userdata import Role
from ironbell.workload.clusterkey import ClusterKey

MAKE_CERTIFICATES: Final = "make-certificates"
DISCOVER: Final = "decide-discovery"
KEEP_TOKEN: Final = "keep-bootstrap-token"  # noqa: S105 - a name
RENDER: Final = "render-bootstrap-data"
KEEP_TOKEN_TIMEOUT_S: Final = 20.0


@dataclass(frozen=True, slots=True)
class ConfigKey:
    """A KubeadmConfig, and not a later one of the same name."""

    namespace: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class MakeCertificates:
    """Make those key pairs of a cluster without a control plane object that are not there."""

    config: ConfigKey
    cluster: ClusterKey
    purposes: tuple[Purpose, ...]
    algorithm: str
    days: int


@dataclass(frozen=True, slots=True)
class Discover:
    """Write into the spec how the machine finds its cluster."""

    config: ConfigKey
    cluster: ClusterKey
    endpoint: str
    """`host:port`; empty where the spec gives the address."""
    role: Role
    new_token: bool = False
    """Make another token in place of the one there."""


@dataclass(frozen=True, slots=True)
class KeepToken:
    """Have the workload cluster accept the spec's token for its time to live."""

    config: ConfigKey
    cluster: ClusterKey
    is_new: bool = False
    """The cluster does not know it yet, as far as is known: there is nothing to read first."""


@dataclass(frozen=True, slots=True)
class Render:
    """Make the data and store them."""

    config: ConfigKey
    cluster: ClusterKey
    role: Role
    machine: str
    """Name of the Machine, which is what the init lock is held by."""
    version: str
    facts: ClusterFacts
    control_plane_version: str = ""
    takes_lock: bool = False
    """Whether the init lock is still to be taken, by the write before that of the data."""
    again: bool = False
    """Whether the data were made before: a MachinePool's, for another token."""
