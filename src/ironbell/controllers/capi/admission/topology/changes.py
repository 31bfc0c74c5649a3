"""Validation of changes to a Cluster's topology: no new version while an upgrade is in progress.

Source: kubernetes-sigs/cluster-api: core/webhooks/admission/cluster.go (validateTopology on update,
validateTopologyVersionUpdate), internal/topology/check/upgrade.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ironbell.base.labels import SelectorError
from ironbell.contract.admission import FieldProblem, invalid
from ironbell.contract.clusters.controlplane import ControlPlane
from ironbell.contract.clusters.references import V1BETA2
from ironbell.contract.clusters.versions import Version, find_version
from ironbell.contract.selectors import PlainSelector, compiled
from ironbell.controllers.capi.admission.checks import at
from ironbell.controllers.capi.admission.topology.topology import ROOT
from ironbell.kube.decision import Fields


def version_changes(new: Fields, old: Fields) -> tuple[Version, Version] | None:
    """The old and the new version; None if the version does not change, or if one of the two is not valid."""
    old_version, new_version = (find_version(str(at(c, "spec", "topology", "version") or "")) for c in (old, new))
    if old_version is None or new_version is None or str(old_version) == str(new_version):
        return None
    return old_version, new_version


def version_problems(new: Fields, old: Fields, *, leaps: bool, running: Running | None) -> Iterator[FieldProblem]:
    """Check that a Cluster can get its new version now.

    `leaps` allows leaving out minor versions; `running` is None if the running objects were not looked up.
    """
    changed = version_changes(new, old)
    if changed is None:
        return
    old_version, new_version = changed
    path, text = f"{ROOT}.version", at(new, "spec", "topology", "version")
    if new_version.core < old_version.core:
        yield invalid(path, text, f'version cannot be decreased from "{old_version}" to "{new_version}"')
    elif not leaps and new_version.core >= Version(old_version.major, old_version.minor + 2, 0):
        detail = (
            f'version cannot be increased from "{old_version}" to "{new_version}": upgrade to'
            f" v{old_version.major}.{old_version.minor + 1} first, or"
            " list the versions in spec.kubernetesVersions of the ClusterClass"
        )
        yield invalid(path, text, detail)
    elif running is not None and (problems := list(running.problems(old_version))):
        yield invalid(path, text, f"version cannot be changed: {_joined(problems)}")


class Running:
    """The running objects of a Cluster with a topology."""

    def __init__(
        self,
        control_plane: Fields | None,
        deployments: Sequence[Fields],
        pools: Sequence[Fields],
        machines: Sequence[Fields],
    ) -> None:
        self._control_plane = control_plane
        self._deployments, self._pools, self._machines = deployments, pools, machines

    def problems(self, version: Version) -> Iterator[str]:
        """Reasons why the objects have not completed the upgrade to a version."""
        yield from self._control_plane_problems(version)
        if names := sorted(
            _name(deployment) for deployment in self._deployments if self._is_behind(deployment, version)
        ):
            yield f"there are still MachineDeployments completing a previous upgrade: [{', '.join(names)}]"
        if names := sorted(_name(pool) for pool in self._pools if _is_pool_behind(pool, version)):
            yield f"there are still MachinePools completing a previous upgrade: [{', '.join(names)}]"

    def _control_plane_problems(self, version: Version) -> Iterator[str]:
        if self._control_plane is None:
            yield "failed to check if control plane is upgrading: its object does not exist yet"
            return
        plane = ControlPlane(self._control_plane, V1BETA2)
        desired = find_version(plane.version)
        if desired is None:
            yield "failed to check if control plane is upgrading: it has no version"
        elif str(desired) != str(version):
            yield (
                f"Cluster.spec.topology.version {version} was not propagated to control plane yet"
                f" (control plane version {desired})"
            )
        elif plane.is_provisioning:
            yield "control plane is currently provisioning"
        elif plane.is_upgrading:
            yield "control plane is still completing a previous upgrade"

    def _is_behind(self, deployment: Fields, version: Version) -> bool:
        text = str(at(deployment, "spec", "template", "spec", "version") or "")
        desired = find_version(text)
        if desired is None or str(desired) != str(version):
            return True
        try:
            selector = compiled(PlainSelector.of(at(deployment, "spec", "selector") or {}))
        except SelectorError:
            return True
        return any(
            {text} != {at(machine, "spec", "version"), at(machine, "status", "nodeInfo", "kubeletVersion") or text}
            for machine in self._machines
            if selector.matches(at(machine, "metadata", "labels") or {})
        )


def _is_pool_behind(pool: Fields, version: Version) -> bool:
    text = str(at(pool, "spec", "template", "spec", "version") or "")
    desired = find_version(text)
    if desired is None or str(desired) != str(version):
        return True
    return any(counter.get("version") != text for counter in at(pool, "status", "versions") or ())


def _name(obj: Any) -> str:
    return str(at(obj, "metadata", "name"))


def _joined(problems: Sequence[str]) -> str:
    return problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
