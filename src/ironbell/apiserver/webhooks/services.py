"""Addresses of Services, without a cluster network.

Source: kubernetes/apiserver: pkg/util/proxy/proxy.go (ResolveEndpoint).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ironbell.apiserver.store.store import Store
from ironbell.apiserver.webhooks.configuration import ServiceReference
from ironbell.base.errors import IronbellError, Retry
from ironbell.base.randomness import Randomness

SERVICE_NAME_LABEL = "kubernetes.io/service-name"


class UnreachableError(IronbellError):
    """A Service cannot be reached."""

    reason, retry = "ServiceUnreachable", Retry.BACKOFF


def resolve(store: Store, service: ServiceReference, randomness: Randomness) -> tuple[str, int]:
    """Host and port of one ready endpoint of a Service.

    Raises:
        UnreachableError: the Service or port does not exist, or has no ready endpoint.
    """
    entry = store.get("services", (service.namespace, service.name))
    if entry is None:
        raise UnreachableError(f'service "{service.name}" not found')
    spec = entry.decode().get("spec") or {}
    if spec.get("type") == "ExternalName":
        return str(spec.get("externalName", "")), service.port
    port = next((candidate for candidate in spec.get("ports") or () if candidate.get("port") == service.port), None)
    if port is None:
        raise UnreachableError(f'no service port {service.port} found for service "{service.name}"')
    places = [*_from_slices(store, service, port.get("name", ""))] or [*_from_endpoints(store, service, port)]
    if places:
        return places[int(randomness.fraction() * len(places))]
    address = spec.get("clusterIP", "")
    if not spec.get("selector") and address and address != "None":
        return address, service.port
    raise UnreachableError(f'no endpoints available for service "{service.name}"')


def _from_slices(store: Store, service: ServiceReference, port_name: str) -> Iterator[tuple[str, int]]:
    for entry in store.objects("endpointslices.discovery.k8s.io").entries(service.namespace):
        if (entry.labels or {}).get(SERVICE_NAME_LABEL) != service.name:
            continue
        value = entry.decode()
        port = _port(value.get("ports"), port_name)
        for endpoint in value.get("endpoints") or () if port else ():
            if (endpoint.get("conditions") or {}).get("ready", True):
                yield from ((address, port) for address in endpoint.get("addresses") or ())


def _from_endpoints(store: Store, service: ServiceReference, port: dict[str, Any]) -> Iterator[tuple[str, int]]:
    entry = store.get("endpoints", (service.namespace, service.name))
    for subset in entry.decode().get("subsets") or () if entry is not None else ():
        number = _port(subset.get("ports"), port.get("name", ""))
        for address in subset.get("addresses") or () if number else ():
            yield address["ip"], number


def _port(ports: Any, name: str) -> int:
    return next((int(port["port"]) for port in ports or () if (port.get("name") or "") == name and port.get("port")), 0)
