"""What must hold before a MachineSet makes or replaces a Machine.

Source: kubernetes-sigs/cluster-api: core/reconcilers/machineset/machineset_preflight.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from ironbell.contract.clusters.versions import Version, VersionError, is_newer, parse_version

ALL: Final = "All"
CONTROL_PLANE_IS_STABLE: Final = "ControlPlaneIsStable"
KUBERNETES_VERSION_SKEW: Final = "KubernetesVersionSkew"
KUBEADM_VERSION_SKEW: Final = "KubeadmVersionSkew"
CONTROL_PLANE_VERSION_SKEW: Final = "ControlPlaneVersionSkew"
CHECKS: Final = (
    ALL,
    KUBEADM_VERSION_SKEW,
    KUBERNETES_VERSION_SKEW,
    CONTROL_PLANE_IS_STABLE,
    CONTROL_PLANE_VERSION_SKEW,
)
_OLDER_MINORS: Final = 3


@dataclass(frozen=True, slots=True)
class ControlPlaneState:
    """What a control plane object says of versions."""

    kind: str
    name: str
    """With its namespace: `default/prod-control-plane`."""
    version: str = ""
    """`spec.version`; without it no check is made."""
    status_versions: tuple[str, ...] = ()
    """What runs, oldest first."""


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What the checks depend on."""

    control_plane: ControlPlaneState
    version: str = ""
    """The MachineSet's version."""
    kubeadm: bool = False
    """Whether its Machines are bootstrapped by kubeadm."""
    topology_version: str = ""
    """`spec.topology.version` of the Cluster; empty without a topology."""
    upgrade_step: str = ""
    """The version that the topology is stepping to."""


def skipped(text: str) -> frozenset[str]:
    """The checks that an annotation names."""
    return frozenset(part.strip() for part in text.split(",") if part.strip())


def failing(about: Circumstances, skip: Iterable[str] = ()) -> list[str]:
    """Every check that fails, with its reason; empty when Machines may be made."""
    skip = frozenset(skip)
    plane = about.control_plane
    if ALL in skip or not plane.version:
        return []
    found: list[tuple[str, str]] = []
    try:
        wanted = parse_version(plane.version)
        found.append((CONTROL_PLANE_IS_STABLE, _unstable(about, wanted)))
        if about.version:
            own = parse_version(about.version)
            found.append((KUBERNETES_VERSION_SKEW, _skewed(own, wanted)))
            found.append((KUBEADM_VERSION_SKEW, _skewed_for_kubeadm(about, own, wanted)))
            found.append((CONTROL_PLANE_VERSION_SKEW, _not_propagated(about)))
    except VersionError as error:
        return [f"versions cannot be compared: {error}"]
    return [f'{why} ("{check}" preflight check failed)' for check, why in found if why and check not in skip]


def _unstable(about: Circumstances, wanted: Version) -> str:
    plane = about.control_plane
    if about.topology_version and plane.version not in (about.topology_version, about.upgrade_step):
        target = about.upgrade_step or about.topology_version
        return f"{plane.kind} {plane.name} has a pending version upgrade to {target}"
    if not plane.status_versions or not plane.status_versions[0]:
        return f"{plane.kind} {plane.name} is provisioning"
    if any(is_newer(wanted, parse_version(version)) for version in plane.status_versions):
        return f"{plane.kind} {plane.name} is upgrading"
    return ""


def _skewed(own: Version, plane: Version) -> str:
    subject = f"MachineSet version ({own}) and ControlPlane version ({plane}) do not conform to the kubernetes"
    if own.minor > plane.minor:
        return f"{subject} version skew policy as MachineSet version is higher than ControlPlane version"
    if own.minor < plane.minor - _OLDER_MINORS:
        return (
            f"{subject} version skew policy as MachineSet version is more than {_OLDER_MINORS} minor versions older"
            " than the ControlPlane version"
        )
    return ""


def _skewed_for_kubeadm(about: Circumstances, own: Version, plane: Version) -> str:
    if not about.kubeadm or own.minor == plane.minor:
        return ""
    return (
        f"MachineSet version ({own}) and ControlPlane version ({plane}) do not conform to kubeadm version skew policy"
        " as kubeadm only supports joining with the same major+minor version as the control plane"
    )


def _not_propagated(about: Circumstances) -> str:
    if not about.topology_version or about.version == about.control_plane.version:
        return ""
    return (
        f"MachineSet version ({about.version}) is not yet the same as the ControlPlane version"
        f" ({about.control_plane.version}), waiting for version to be propagated to the MachineSet"
    )
