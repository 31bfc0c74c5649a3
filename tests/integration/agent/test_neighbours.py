"""The agent hears who is at the other end of its cables, over real links."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from ironbell.agent import inventory as neighbours
from ironbell.agent.inventory import Inventory
from ironbell.codec import lldp
from support.network.namespaces import ip, lan, within
from support.waiting import until

SWITCH = lldp.Neighbour("02:42:ac:11:00:02", "Ethernet7", system_name="red-1", vlan_id=10)


@pytest.fixture
def cable() -> Iterator[tuple[str, str]]:
    """Two namespaces with an interface each, of one cable: the machine's `eno1` and the switch's `swp7`."""
    with lan() as site:
        machine, switch = site.add("machine"), site.add("switch")
        ip("-n", machine, "link", "add", "eno1", "type", "veth", "peer", "name", "swp7", "netns", switch)
        ip("-n", switch, "link", "set", "swp7", "up")
        yield machine, switch


def announce(switch: str, *neighbours: lldp.Neighbour) -> None:
    def send() -> None:
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as out:
            out.bind(("swp7", 0))
            for neighbour in neighbours:
                out.send(lldp.to_frame(lldp.encode(neighbour), source=b"\x02\0\0\0\0\x08"))
            out.send(lldp.to_frame(b"garbage", source=b"\x02\0\0\0\0\x08"))

    within(switch, send)


def a_sysfs(folder: Path) -> Path:
    for name in ("eno1", "lan"):
        interface = folder / "class" / "net" / name
        interface.mkdir(parents=True)
        (interface / "address").write_text(f"02:00:00:00:00:{len(name):02x}\n")
    (folder / "class" / "net" / "eno1" / "device").mkdir()
    return folder


async def scene(inventory: Inventory, switch: str) -> None:
    listening = asyncio.create_task(inventory.listen(raises_links=True, limit_s=60.0))

    async def is_heard() -> bool:
        # A switch announces itself again and again; a link takes a moment to come up.
        await asyncio.to_thread(announce, switch, SWITCH, lldp.Neighbour("gone", "p", ttl_s=0))
        return any(network.lldp_neighbours for network in inventory.current.network)

    await until(is_heard, every_s=0.05)
    assert not listening.done(), "lan has heard nobody yet"
    assert not inventory.current.lldp_complete
    listening.cancel()


def test_a_switch_is_heard_on_a_link_that_was_down(cable, tmp_path):
    machine, switch = cable
    inventory = Inventory(sys=a_sysfs(tmp_path))
    within(machine, lambda: asyncio.run(scene(inventory, switch)))
    networks = {network.name: network for network in inventory.current.network}
    assert [one.system_name for one in networks["eno1"].lldp_neighbours] == ["red-1"]
    assert (networks["eno1"].lldp_neighbours[0].port_id, networks["eno1"].lldp_neighbours[0].vlan_id) == (
        "Ethernet7",
        10,
    )
    assert not networks["lan"].lldp_neighbours
    addresses = within(machine, lambda: Path("/proc/thread-self/net/if_inet6").read_text())
    assert "eno1" not in addresses, "a link that is only listened to gets no address"


def test_listening_ends(cable, tmp_path):
    machine, _ = cable
    inventory = Inventory(sys=a_sysfs(tmp_path))
    within(machine, lambda: asyncio.run(inventory.listen(limit_s=0.2)))
    assert inventory.current.lldp_complete


def test_without_the_right_nothing_is_heard_and_nothing_breaks(monkeypatch):
    def refused(*_arguments: object) -> None:
        raise PermissionError

    monkeypatch.setattr(neighbours.socket, "socket", refused)
    assert neighbours.listener(["lo"]) is None
