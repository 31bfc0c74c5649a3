"""An address out of a pool reaches the machine by DHCP, over a real network."""

from __future__ import annotations

from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import pytest

from ironbell.api.meta import to_builtin
from ironbell.api.tinkerbell.hardware import HARDWARE
from ironbell.codec.dhcp import MessageType, Op, Option, Packet
from ironbell.controllers.ipam.claims import IpAddressClaimReconciler
from ironbell.controllers.ipam.hardware import HardwareAddressReconciler
from support.servers.ipamworld import a_world, add_pool

pytestmark = pytest.mark.root

MAC = "02:00:00:00:00:01"


def test_hardware_that_names_a_pool_is_offered_an_address_of_it(network: Any, tmp_path: Path) -> None:
    world = a_world()
    world.api.serve([HARDWARE])
    add_pool(world, "10.66.0.100-10.66.0.110", gateway="10.66.0.254")
    metadata = {"namespace": "default", "name": "a", "annotations": {"ironbell.dev/address-pool": "pool"}}
    spec = {"interfaces": [{"dhcp": {"mac": MAC}, "netboot": {"allowPXE": True}}]}
    world.add(HARDWARE, {"metadata": metadata, "spec": spec})
    world.settle(HardwareAddressReconciler(), IpAddressClaimReconciler())
    network.add("srv", "10.66.0.1/24")
    network.add("cli", mac=MAC)
    network.serve("srv", tmp_path, [to_builtin(world.require(HARDWARE, "default", "a"))])
    offer = network.client("cli").reply(
        Packet(
            op=Op.REQUEST,
            xid=7,
            flags=0x8000,
            chaddr=bytes.fromhex(MAC.replace(":", "")),
            options={int(Option.MESSAGE_TYPE): bytes((MessageType.DISCOVER,))},
        )
    )
    assert offer.yiaddr == IPv4Address("10.66.0.100")
    assert offer.options[int(Option.SUBNET_MASK)] == IPv4Address("255.255.255.0").packed
    assert offer.options[int(Option.ROUTERS)] == IPv4Address("10.66.0.254").packed
