"""The conditions under which a MachineSet may create or replace a Machine.

Source: kubernetes-sigs/cluster-api: core/reconcilers/machineset/machineset_preflight.go.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ironbell.api.bootstrap import KUBEADM_CONFIG_TEMPLATE
from ironbell.api.cluster.cluster import Cluster
from ironbell.api.cluster.machineset import MachineSet
from ironbell.api.cluster.names import ANNOTATION_SKIP_PREFLIGHT_CHECKS, ANNOTATION_UPGRADE_STEP
from ironbell.contract.clusters.controlplane import ControlPlane
from ironbell.contract.clusters.external import External
from ironbell.contract.clusters.paused import creation_stopped
from ironbell.contract.clusters.versions import Version, VersionError, is_newer, parse_version
from ironbell.controllers.capi.machineset.observed import Observed

ALL: Final = "All"
CONTROL_PLANE_IS_STABLE: Final = "ControlPlaneIsStable"
KUBERNETES_VERSION_SKEW: Final = "KubernetesVersionSkew"
KUBEADM_VERSION_SKEW: Final = "KubeadmVersionSkew"
CONTROL_PLANE_VERSION_SKEW: Final = "ControlPlaneVersionSkew"
CHECKS: Final = (
    ALL,
    KUBERNETES_VERSION_SKEW,
    KUBEADM_VERSION_SKEW,
    CONTROL_PLANE_IS_STABLE,
    CONTROL_PLANE_VERSION_SKEW,
)
_OLDER_MINORS: Final = 3


@dataclass(frozen=True, slots=True)
class _Versions:
    """The versions that are compared."""

    plane_name: str
    """Kind and name of the control plane object, with its namespace: `Plane default/prod`."""
    plane: str
    """`spec.version` of the control plane object; without it no check is run."""
    running: tuple[str, ...]
    """The versions of the control plane's machines, oldest first."""
    own: str
    """The MachineSet's version."""
    is_kubeadm: bool
    """Whether its Machines are bootstrapped by kubeadm."""
    topology: str
    """`spec.topology.version` of the Cluster; empty without a topology."""
    step: str
    """The next version of the topology's upgrade."""


def preflight(observed: Observed) -> list[str]:
    """Every check that fails, with its reason; empty if Machines may be created."""
    cluster, plane = observed.cluster, observed.control_plane
    if cluster is not None and (stopped := creation_stopped(cluster)):
        return [stopped]
    if cluster is None or plane is None:
        return []
    skip = _skipped(observed)
    if ALL in skip:
        return []
    if not plane.exists:
        return [str(plane)]
    versions = _versions(observed.machine_set, cluster, plane)
    if not versions.plane:
        return []
    results: list[tuple[str, str]] = []
    try:
        desired = parse_version(versions.plane)
        results.append((CONTROL_PLANE_IS_STABLE, _unstable(versions, desired)))
        if versions.own:
            own = parse_version(versions.own)
            results.append((KUBERNETES_VERSION_SKEW, _skewed(own, desired)))
            results.append((KUBEADM_VERSION_SKEW, _skewed_for_kubeadm(versions, own, desired)))
            results.append((CONTROL_PLANE_VERSION_SKEW, _not_propagated(versions)))
    except VersionError as error:
        return [f"versions cannot be compared: {error}"]
    return [f'{reason} ("{check}" preflight check failed)' for check, reason in results if reason and check not in skip]


def _skipped(observed: Observed) -> frozenset[str]:
    """The checks that the annotation names, of the MachineSet or else of its bootstrap template."""
    text = observed.machine_set.metadata.annotations.get(ANNOTATION_SKIP_PREFLIGHT_CHECKS, "")
    if not text and observed.bootstrap is not None and observed.bootstrap.obj is not None:
        text = observed.bootstrap.obj.metadata.annotations.get(ANNOTATION_SKIP_PREFLIGHT_CHECKS, "")
    return skipped(text)


def skipped(text: str) -> frozenset[str]:
    """The checks that an annotation names."""
    return frozenset(part.strip() for part in text.split(",") if part.strip())


def _versions(machine_set: MachineSet, cluster: Cluster, plane: External) -> _Versions:
    control_plane, template = ControlPlane.of(plane), machine_set.spec.template.spec
    config, topology = template.bootstrap.config_ref, cluster.spec.topology
    return _Versions(
        f"{plane.reference.kind} {plane.namespace}/{plane.reference.name}",
        control_plane.version,
        tuple(count.version for count in control_plane.versions),
        template.version,
        is_kubeadm=(config.kind, config.api_group) == (KUBEADM_CONFIG_TEMPLATE.kind, KUBEADM_CONFIG_TEMPLATE.group),
        topology=topology.version if topology.class_ref.name else "",
        step=cluster.metadata.annotations.get(ANNOTATION_UPGRADE_STEP, ""),
    )


def _unstable(versions: _Versions, desired: Version) -> str:
    if versions.topology and versions.plane not in (versions.topology, versions.step):
        return f"{versions.plane_name} has a pending version upgrade to {versions.step or versions.topology}"
    if not versions.running or not versions.running[0]:
        return f"{versions.plane_name} is provisioning"
    if any(is_newer(desired, parse_version(version)) for version in versions.running):
        return f"{versions.plane_name} is upgrading"
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


def _skewed_for_kubeadm(versions: _Versions, own: Version, plane: Version) -> str:
    if not versions.is_kubeadm or own.minor == plane.minor:
        return ""
    return (
        f"MachineSet version ({own}) and ControlPlane version ({plane}) do not conform to kubeadm version skew policy"
        " as kubeadm only supports joining with the same major+minor version as the control plane"
    )


def _not_propagated(versions: _Versions) -> str:
    if not versions.topology or versions.own == versions.plane:
        return ""
    return (
        f"MachineSet version ({versions.own}) is not yet the same as the ControlPlane version"
        f" ({versions.plane}), waiting for version to be propagated to the MachineSet"
    )
