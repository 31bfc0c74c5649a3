"""The conditions under which a MachineSet may create or replace a Machine.

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
    """The versions of a control plane object."""

    kind: str
    name: str
    """Name with namespace: `default/prod-control-plane`."""
    version: str = ""
    """`spec.version`; without it no check is run."""
    status_versions: tuple[str, ...] = ()
    """The running versions, oldest first."""


@dataclass(frozen=True, slots=True)
class Circumstances:
    """The input of the checks."""

    control_plane: ControlPlaneState
    version: str = ""
    """The MachineSet's version."""
    kubeadm: bool = False
    """Whether its Machines are bootstrapped by kubeadm."""
    topology_version: str = ""
    """`spec.topology.version` of the Cluster; empty without a topology."""
    upgrade_step: str = ""
    """The next version of the topology's upgrade."""


def skipped(text: str) -> frozenset[str]:
    """The checks that an annotation names."""
    return frozenset(part.strip() for part in text.split(",") if part.strip())


def failing(circumstances: Circumstances, skip: Iterable[str] = ()) -> list[str]:
    """Every check that fails, with its reason; empty if Machines may be created."""
    skip = frozenset(skip)
    plane = circumstances.control_plane
    if ALL in skip or not plane.version:
        return []
    results: list[tuple[str, str]] = []
    try:
        desired = parse_version(plane.version)
        results.append((CONTROL_PLANE_IS_STABLE, _unstable(circumstances, desired)))
        if circumstances.version:
            own = parse_version(circumstances.version)
            results.append((KUBERNETES_VERSION_SKEW, _skewed(own, desired)))
            results.append((KUBEADM_VERSION_SKEW, _skewed_for_kubeadm(circumstances, own, desired)))
            results.append((CONTROL_PLANE_VERSION_SKEW, _not_propagated(circumstances)))
    except VersionError as error:
        return [f"versions cannot be compared: {error}"]
    return [f'{reason} ("{check}" preflight check failed)' for check, reason in results if reason and check not in skip]


def _unstable(circumstances: Circumstances, desired: Version) -> str:
    plane = circumstances.control_plane
    if circumstances.topology_version and plane.version not in (
        circumstances.topology_version,
        circumstances.upgrade_step,
    ):
        target = circumstances.upgrade_step or circumstances.topology_version
        return f"{plane.kind} {plane.name} has a pending version upgrade to {target}"
    if not plane.status_versions or not plane.status_versions[0]:
        return f"{plane.kind} {plane.name} is provisioning"
    if any(is_newer(desired, parse_version(version)) for version in plane.status_versions):
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


def _skewed_for_kubeadm(circumstances: Circumstances, own: Version, plane: Version) -> str:
    if not circumstances.kubeadm or own.minor == plane.minor:
        return ""
    return (
        f"MachineSet version ({own}) and ControlPlane version ({plane}) do not conform to kubeadm version skew policy"
        " as kubeadm only supports joining with the same major+minor version as the control plane"
    )


def _not_propagated(circumstances: Circumstances) -> str:
    if not circumstances.topology_version or circumstances.version == circumstances.control_plane.version:
        return ""
    return (
        f"MachineSet version ({circumstances.version}) is not yet the same as the ControlPlane version"
        f" ({circumstances.control_plane.version}), waiting for version to be propagated to the MachineSet"
    )
