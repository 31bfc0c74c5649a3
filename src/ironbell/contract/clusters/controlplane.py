"""Fields of control plane providers' objects, by both contracts.

Source: kubernetes-sigs/cluster-api: internal/contract/controlplane.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ironbell.contract.clusters.external import ProviderObject
from ironbell.contract.clusters.infrastructure import Endpoint, endpoint
from ironbell.contract.clusters.references import V1BETA1, ObjectReference
from ironbell.contract.clusters.versions import find_version, is_newer
from ironbell.contract.fields import flag_at, maps_at, number_at, text_at


@dataclass(frozen=True, slots=True)
class VersionCount:
    """Numbers of machines by version."""

    version: str
    replicas: int


class ControlPlane(ProviderObject):
    """A control plane object of any kind."""

    @property
    def initialized_field(self) -> str:
        """The field that reports it."""
        return "status.initialized" if self.contract == V1BETA1 else "status.initialization.controlPlaneInitialized"

    @property
    def initialized(self) -> bool:
        """Return whether the control plane serves requests. Callers remember that it was True."""
        return flag_at(self.body, *self.initialized_field.split(".")) or False

    @property
    def denies_initialized(self) -> bool:
        """Return whether the object reports false, and not nothing: the control plane withdraws what it reported."""
        return flag_at(self.body, *self.initialized_field.split(".")) is False

    @property
    def ready(self) -> bool:
        """`status.ready` (v1beta1 contract)."""
        return flag_at(self.body, "status", "ready") or False

    @property
    def externally_managed(self) -> bool:
        """Return whether it runs on no Machines of the cluster."""
        return flag_at(self.body, "status", "externalManagedControlPlane") or False

    @property
    def endpoint(self) -> Endpoint:
        return endpoint(self.body)

    @property
    def version(self) -> str:
        """The desired version."""
        return text_at(self.body, "spec", "version")

    @property
    def versions(self) -> tuple[VersionCount, ...]:
        """Versions that run, the oldest first; of one that only says `status.version` that."""
        versions = tuple(
            VersionCount(text_at(item, "version"), number_at(item, "replicas") or 0)
            for item in maps_at(self.body, "status", "versions")
        )
        single = text_at(self.body, "status", "version")
        return versions or ((VersionCount(single, 0),) if single else ())

    @property
    def current_version(self) -> str:
        """The oldest version that runs; empty while there is none."""
        return self.versions[0].version if self.versions else ""

    @property
    def is_provisioning(self) -> bool:
        """Return whether no version runs yet."""
        return not self.current_version

    @property
    def is_upgrading(self) -> bool:
        """Return whether a version runs that is older than the desired one."""
        desired = find_version(self.version)
        running = [find_version(count.version) for count in self.versions]
        return desired is not None and any(version is not None and is_newer(desired, version) for version in running)

    @property
    def replicas(self) -> int | None:
        """The desired number."""
        return number_at(self.body, "spec", "replicas")

    @property
    def status_replicas(self) -> int | None:
        return number_at(self.body, "status", "replicas")

    @property
    def ready_replicas(self) -> int | None:
        return number_at(self.body, "status", "readyReplicas")

    @property
    def available_replicas(self) -> int | None:
        """Number of unavailable replicas; in the v1beta1 contract the rest of the desired number."""
        if self.contract == V1BETA1:
            desired = self.replicas
            return None if desired is None else desired - (number_at(self.body, "status", "unavailableReplicas") or 0)
        return number_at(self.body, "status", "availableReplicas")

    @property
    def up_to_date_replicas(self) -> int | None:
        name = "updatedReplicas" if self.contract == V1BETA1 else "upToDateReplicas"
        return number_at(self.body, "status", name)

    @property
    def selector(self) -> str:
        return text_at(self.body, "status", "selector")

    @property
    def rollout_after(self) -> str:
        """RFC 3339; empty if not set."""
        if self.contract == V1BETA1:
            return text_at(self.body, "spec", "rolloutAfter")
        return text_at(self.body, "spec", "rollout", "after")

    @property
    def infrastructure_template(self) -> ObjectReference | None:
        """The template of its machines' infrastructure."""
        path = self.infrastructure_path
        name = text_at(self.body, *path, "name")
        if not name:
            return None
        if self.contract == V1BETA1:
            group = text_at(self.body, *path, "apiVersion").rpartition("/")[0]
        else:
            group = text_at(self.body, *path, "apiGroup")
        return ObjectReference(group, text_at(self.body, *path, "kind"), name)

    @property
    def infrastructure_path(self) -> tuple[str, ...]:
        """Path of the reference to that template."""
        inner = ("infrastructureRef",) if self.contract == V1BETA1 else ("spec", "infrastructureRef")
        return ("spec", "machineTemplate", *inner)

    @property
    def readiness_gates(self) -> Sequence[Mapping[str, Any]]:
        return maps_at(self.body, "spec", "machineTemplate", *self._machine_spec, "readinessGates")

    @property
    def taints(self) -> Sequence[Mapping[str, Any]]:
        return maps_at(self.body, "spec", "machineTemplate", *self._machine_spec, "taints")

    @property
    def _machine_spec(self) -> tuple[str, ...]:
        return () if self.contract == V1BETA1 else ("spec",)
