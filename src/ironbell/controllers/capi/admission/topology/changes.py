"""Changes of a Cluster's topology: another version while one is still under way, another class.

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
    """The version that was, and the one that is to be; None if it stays, or one is none."""
    before, after = (find_version(str(at(one, "spec", "topology", "version") or "")) for one in (old, new))
    if before is None or after is None or str(before) == str(after):
        return None
    return before, after


def version_problems(new: Fields, old: Fields, *, leaps: bool, running: Running | None) -> Iterator[FieldProblem]:
    """Why a Cluster may not get its new version now.

    `leaps` tells that minor versions may be left out; `running` is None where that was not looked up.
    """
    changed = version_changes(new, old)
    if changed is None:
        return
    before, after = changed
    path, text = f"{ROOT}.version", at(new, "spec", "topology", "version")
    if after.core < before.core:
        yield invalid(path, text, f'version cannot be decreased from "{before}" to "{after}"')
    elif not leaps and after.core >= Version(before.major, before.minor + 2, 0):
        detail = (
            f'version cannot be increased from "{before}" to "{after}": go over v{before.major}.{before.minor + 1}, or'
            " list the versions in spec.kubernetesVersions of the ClusterClass"
        )
        yield invalid(path, text, detail)
    elif running is not None and (busy := list(running.faults(before))):
        yield invalid(path, text, f"version cannot be changed: {_joined(busy)}")


class Running:
    """What runs of a Cluster with a topology."""

    def __init__(
        self,
        control_plane: Fields | None,
        deployments: Sequence[Fields],
        pools: Sequence[Fields],
        machines: Sequence[Fields],
    ) -> None:
        self._control_plane = control_plane
        self._deployments, self._pools, self._machines = deployments, pools, machines

    def faults(self, version: Version) -> Iterator[str]:
        """What has not come to a version yet."""
        yield from self._control_plane_faults(version)
        if names := sorted(_name(one) for one in self._deployments if self._is_behind(one, version)):
            yield f"there are still MachineDeployments completing a previous upgrade: [{', '.join(names)}]"
        if names := sorted(_name(one) for one in self._pools if _is_pool_behind(one, version)):
            yield f"there are still MachinePools completing a previous upgrade: [{', '.join(names)}]"

    def _control_plane_faults(self, version: Version) -> Iterator[str]:
        if self._control_plane is None:
            yield "failed to check if control plane is upgrading: its object is not there yet"
            return
        plane = ControlPlane(self._control_plane, V1BETA2)
        wanted = find_version(plane.version)
        if wanted is None:
            yield "failed to check if control plane is upgrading: it has no version"
        elif str(wanted) != str(version):
            yield (
                f"Cluster.spec.topology.version {version} was not propagated to control plane yet"
                f" (control plane version {wanted})"
            )
        elif plane.is_provisioning:
            yield "control plane is currently provisioning"
        elif plane.is_upgrading:
            yield "control plane is still completing a previous upgrade"

    def _is_behind(self, deployment: Fields, version: Version) -> bool:
        text = str(at(deployment, "spec", "template", "spec", "version") or "")
        wanted = find_version(text)
        if wanted is None or str(wanted) != str(version):
            return True
        try:
            selector = compiled(PlainSelector.of(at(deployment, "spec", "selector") or {}))
        except SelectorError:
            return True
        return any(
            {text} != {at(one, "spec", "version"), at(one, "status", "nodeInfo", "kubeletVersion") or text}
            for one in self._machines
            if selector.matches(at(one, "metadata", "labels") or {})
        )


def _is_pool_behind(pool: Fields, version: Version) -> bool:
    text = str(at(pool, "spec", "template", "spec", "version") or "")
    wanted = find_version(text)
    if wanted is None or str(wanted) != str(version):
        return True
    return any(one.get("version") != text for one in at(pool, "status", "versions") or ())


def _name(obj: Any) -> str:
    return str(at(obj, "metadata", "name"))


def _joined(faults: Sequence[str]) -> str:
    return faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]"
