"""Pools, claims and addresses on the embedded API, each controller with its role and nothing more."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from ironbell.api.client import ApiError
from ironbell.api.clusteripam import IP_ADDRESS, IP_ADDRESS_CLAIM
from ironbell.api.crd.document import crd_document
from ironbell.api.inclusteripam import GLOBAL_IN_CLUSTER_IP_POOL, IN_CLUSTER_IP_POOL
from ironbell.api.tinkerbell.hardware import HARDWARE
from ironbell.apiserver.access.identity import ADMIN
from ironbell.apiserver.access.roles import RoleAuthorizer
from ironbell.apiserver.core import ApiServer
from ironbell.app import roles
from ironbell.app.admission.definitions import ClusterKinds
from ironbell.app.registry import KINDS
from ironbell.app.site.controllers import grant_controllers, identity
from ironbell.base.clock import SystemClock
from ironbell.base.randomness import SystemRandomness
from ironbell.codec.cel import compile_rule
from ironbell.controllers.ipam.controllers import controllers
from ironbell.kube.client import Client
from ironbell.kube.manager.manager import Manager
from ironbell.kube.testing import running
from support.waiting import until


@asynccontextmanager
async def site() -> AsyncIterator[tuple[Client, Manager]]:
    kinds, authorizer = ClusterKinds(), RoleAuthorizer()
    roles.grant_processes(authorizer)
    grant_controllers(authorizer)
    opened = ApiServer.open(
        None,
        clock=SystemClock(),
        randomness=SystemRandomness(),
        authorizer=authorizer,
        compile_rule=compile_rule,
        conversions=kinds.conversions,
        definitions=[crd_document(kind) for kind in KINDS if kind.group == "tinkerbell.org"],
    )
    async with opened as server:
        kinds.join(server)
        await kinds.define(server)
        reader = server.client(roles.READER)
        made = controllers(reader, lambda name: server.client(identity(name)))
        async with running(reader, *made) as manager:
            yield Client(server.client(ADMIN)), manager


def claim(name: str, *, kind: str = "InClusterIPPool", namespace: str = "default") -> dict[str, Any]:
    reference = {"apiGroup": "ipam.cluster.x-k8s.io", "kind": kind, "name": "pool"}
    return {"metadata": {"namespace": namespace, "name": name}, "spec": {"poolRef": reference}}


def pool(*addresses: str, prefix: int = 24) -> dict[str, Any]:
    return {"metadata": {"namespace": "default", "name": "pool"}, "spec": {"addresses": [*addresses], "prefix": prefix}}


def told(manager: Manager, count: int) -> Callable[[], bool]:
    claims = manager.informers.of(IP_ADDRESS_CLAIM).store
    return lambda: sum(1 for one in claims.list() if one.status.address_ref.name) == count


async def test_many_claims_at_once_get_an_address_each_and_give_it_back() -> None:
    async with site() as (client, manager):
        await client.create(IN_CLUSTER_IP_POOL, pool("192.0.2.10-192.0.2.49"))
        await asyncio.gather(*(client.create(IP_ADDRESS_CLAIM, claim(f"c{number}")) for number in range(50)))
        await until(told(manager, 40))
        addresses = manager.informers.of(IP_ADDRESS).store
        assert sorted(int(one.spec.address.rpartition(".")[2]) for one in addresses.list()) == list(range(10, 50))
        pools = manager.informers.of(IN_CLUSTER_IP_POOL).store

        def counts(free: int, used: int) -> bool:
            found = pools.get(("default", "pool"))
            addresses = found.status.ip_addresses if found is not None else None
            return addresses is not None and (addresses.free, addresses.used) == (free, used)

        await until(lambda: counts(0, 40))
        with pytest.raises(ApiError, match="IPAddresses allocated"):
            await client.delete(IN_CLUSTER_IP_POOL, "default", "pool")
        shrunk = {"spec": {"addresses": ["192.0.2.10-192.0.2.40"]}}
        with pytest.raises(ApiError, match="do not contain allocated addresses"):
            await client.merge_patch(IN_CLUSTER_IP_POOL, "default", "pool", body=shrunk)
        holders = [one.metadata.name for one in addresses.list()]
        for name in holders[:10]:
            await client.delete(IP_ADDRESS_CLAIM, "default", name)
        await until(told(manager, 40))
        assert len({one.spec.address for one in addresses.list()}) == 40
        for number in range(50):
            if f"c{number}" not in holders[:10]:
                await client.delete(IP_ADDRESS_CLAIM, "default", f"c{number}")
        await until(lambda: counts(40, 0))
        await client.delete(IN_CLUSTER_IP_POOL, "default", "pool")
        await until(lambda: pools.get(("default", "pool")) is None)


async def test_a_pool_for_all_namespaces_of_ipv6() -> None:
    async with site() as (client, manager):
        with pytest.raises(ApiError, match="mixed IP families"):
            await client.create(GLOBAL_IN_CLUSTER_IP_POOL, pool("2001:db8::/64", "192.0.2.1", prefix=64))
        await client.create(GLOBAL_IN_CLUSTER_IP_POOL, pool("2001:db8::/64", prefix=64))
        await client.create(IP_ADDRESS_CLAIM, claim("c", kind="GlobalInClusterIPPool"))
        await client.create(IP_ADDRESS_CLAIM, claim("c", kind="GlobalInClusterIPPool", namespace="kube-system"))
        await until(told(manager, 2))
        found = sorted(one.spec.address for one in manager.informers.of(IP_ADDRESS).store.list())
        assert found == ["2001:db8::1", "2001:db8::2"]


async def test_hardware_gets_its_address_and_gives_it_back() -> None:
    async with site() as (client, manager):
        await client.create(IN_CLUSTER_IP_POOL, pool("192.0.2.10-192.0.2.49"))
        metadata = {"namespace": "default", "name": "a", "annotations": {"ironbell.dev/address-pool": "pool"}}
        spec = {"interfaces": [{"dhcp": {"mac": "02:00:00:00:00:01"}}]}
        await client.create(HARDWARE, {"metadata": metadata, "spec": spec})
        servers = manager.informers.of(HARDWARE).store

        def address() -> str:
            found = servers.get(("default", "a"))
            dhcp = found.spec.interfaces[0].dhcp if found is not None else None
            return dhcp.ip.address if dhcp is not None and dhcp.ip is not None else ""

        await until(lambda: address() == "192.0.2.10")
        gone = {"metadata": {"annotations": {"ironbell.dev/address-pool": None}}}
        await client.merge_patch(HARDWARE, "default", "a", body=gone)
        await until(lambda: not address() and not manager.informers.of(IP_ADDRESS).store.list())
        assert not manager.informers.of(IP_ADDRESS_CLAIM).store.list()
