"""Fields of infrastructure providers' objects: clusters and machines, by both contracts.

Source: kubernetes-sigs/cluster-api: internal/contract/infrastructure_{cluster,machine}.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ironbell.api.cluster.cluster import FailureDomain
from ironbell.api.cluster.common import MachineAddress
from ironbell.contract.clusters.external import ProviderObject
from ironbell.contract.clusters.references import V1BETA1
from ironbell.contract.fields import at, flag_at, map_at, maps_at, number_at, text_at, texts_at


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Endpoint of an API server; valid with both."""

    host: str = ""
    port: int = 0

    @property
    def is_valid(self) -> bool:
        return bool(self.host and self.port)


class _Provided(ProviderObject):
    """An object that reports that it is provisioned."""

    @property
    def provisioned_field(self) -> str:
        """The field that reports it."""
        return "status.ready" if self.contract == V1BETA1 else "status.initialization.provisioned"

    @property
    def provisioned(self) -> bool:
        """Return whether it is provisioned; by contract for good. Callers remember that it was True."""
        return flag_at(self.body, *self.provisioned_field.split(".")) or False


class InfrastructureCluster(_Provided):
    """An InfraCluster."""

    @property
    def endpoint(self) -> Endpoint:
        return endpoint(self.body)

    @property
    def failure_domains(self) -> tuple[FailureDomain, ...]:
        """Sorted by name; a map in the v1beta1 contract, a list in v1beta2."""
        if isinstance(at(self.body, "status", "failureDomains"), list):
            named = [(text_at(item, "name"), item) for item in maps_at(self.body, "status", "failureDomains")]
        else:
            named = list(map_at(self.body, "status", "failureDomains").items())
        return tuple(
            FailureDomain(
                name=name,
                control_plane=flag_at(item, "controlPlane") or False,
                attributes=texts_at(item, "attributes"),
            )
            for name, item in sorted(named, key=lambda pair: pair[0])
        )


class InfrastructureMachine(_Provided):
    """An InfraMachine."""

    @property
    def provider_id(self) -> str:
        return text_at(self.body, "spec", "providerID")

    @property
    def addresses(self) -> tuple[MachineAddress, ...]:
        return tuple(
            MachineAddress(type=text_at(item, "type"), address=text_at(item, "address"))
            for item in maps_at(self.body, "status", "addresses")
        )

    @property
    def failure_domain(self) -> str:
        """Failure domain of the machine; in `status` by the contract, still read from `spec`."""
        return text_at(self.body, "status", "failureDomain") or text_at(self.body, "spec", "failureDomain")

    @property
    def interruptible(self) -> bool:
        """Return whether the machine may be interrupted at any time."""
        return flag_at(self.body, "status", "interruptible") or False


def endpoint(body: Mapping[str, Any]) -> Endpoint:
    """`spec.controlPlaneEndpoint` of an InfraCluster or a control plane."""
    path = ("spec", "controlPlaneEndpoint")
    return Endpoint(text_at(body, *path, "host"), number_at(body, *path, "port") or 0)
