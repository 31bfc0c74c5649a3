"""Pools and claims on a real API server: our webhooks judge, and the provider may do only what its role says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from support.capi.processes import cluster_api
from support.site.components import OnCluster
from support.waiting import eventually

GROUP = "/apis/ipam.cluster.x-k8s.io"
POOLS = f"{GROUP}/v1alpha2/namespaces/default/inclusterippools"
CLAIMS = f"{GROUP}/v1beta2/namespaces/default/ipaddressclaims"
ADDRESSES = f"{GROUP}/v1beta2/namespaces/default/ipaddresses"
HARDWARE = "/apis/tinkerbell.org/v1alpha1/namespaces/default/hardware"


@pytest.fixture
def site(on_cluster: OnCluster) -> Iterator[OnCluster]:
    with cluster_api(on_cluster, "ipam"):
        yield on_cluster


def pool(*addresses: str) -> dict[str, Any]:
    return {
        "apiVersion": "ipam.cluster.x-k8s.io/v1alpha2",
        "kind": "InClusterIPPool",
        "metadata": {"name": "pool"},
        "spec": {"addresses": [*addresses], "prefix": 24, "gateway": "192.0.2.1"},
    }


def test_addresses_are_given_and_taken_back(site: OnCluster) -> None:
    api = site.api
    refused = api.post(POOLS, pool("192.0.2.10", "2001:db8::1"))
    assert refused.status == 422, refused.body
    assert "mixed IP families" in refused.json["message"]
    api.made(POOLS, pool("192.0.2.10-192.0.2.12"))
    metadata = {"name": "pooled", "annotations": {"ironbell.dev/address-pool": "pool"}}
    spec = {"interfaces": [{"dhcp": {"mac": "02:00:00:00:66:01"}}]}
    api.made(
        HARDWARE, {"apiVersion": "tinkerbell.org/v1alpha1", "kind": "Hardware", "metadata": metadata, "spec": spec}
    )
    reference = {"apiGroup": "ipam.cluster.x-k8s.io", "kind": "InClusterIPPool", "name": "pool"}
    for name in ("a", "b"):
        claim = {"metadata": {"name": name}, "spec": {"poolRef": reference}}
        api.made(CLAIMS, {"apiVersion": "ipam.cluster.x-k8s.io/v1beta2", "kind": "IPAddressClaim", **claim})

    def given() -> set[str]:
        claims = api.get(CLAIMS).json["items"]
        assert all(one.get("status", {}).get("addressRef") for one in claims), claims
        assert len(claims) == 3
        return {one["spec"]["address"] for one in api.get(ADDRESSES).json["items"]}

    assert eventually(given) == {"192.0.2.10", "192.0.2.11", "192.0.2.12"}

    def served() -> bool:
        return api.get(f"{HARDWARE}/pooled").json["spec"]["interfaces"][0]["dhcp"]["ip"]["netmask"] == "255.255.255.0"

    assert eventually(served)
    kept = api.delete(f"{POOLS}/pool")
    assert kept.status == 403, kept.body
    assert "IPAddresses allocated" in kept.json["message"]
    for path in (f"{CLAIMS}/a", f"{CLAIMS}/b", f"{HARDWARE}/pooled"):
        assert api.delete(path).status == 200

    def left() -> bool:
        return not api.get(ADDRESSES).json["items"] and not api.get(CLAIMS).json["items"]

    # no garbage collection runs beside this API server: the Hardware's claim is deleted as that would
    api.delete(f"{CLAIMS}/pooled-interface-0")
    assert eventually(left)
    assert api.delete(f"{POOLS}/pool").status == 200
    assert eventually(lambda: api.get(f"{POOLS}/pool").status == 404)
