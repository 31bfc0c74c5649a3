"""The server on real networks: real clients, a real second server, a relay, all in namespaces of the test's own."""

from __future__ import annotations

import asyncio
import stat
import subprocess
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import pytest

from ironbell.codec.dhcp import MessageType, Op, Option, Packet
from ironbell.codec.dhcp.addresses import server_identifier
from ironbell.services.dhcp import SocketError, probe_for_servers
from support.skips import require_program

pytestmark = pytest.mark.root

MAC = "02:00:00:00:00:01"
OWN = IPv4Address("10.66.0.1")
FOREIGN = IPv4Address("10.66.0.2")


def machine(address: str = "10.66.0.50", *, mac: str = MAC, name: str = "node-1", allow: bool = True) -> dict[str, Any]:
    dhcp = {
        "mac": mac,
        "hostname": name,
        "lease_time": 600,
        "name_servers": ["1.1.1.1"],
        "ip": {"address": address, "netmask": "255.255.255.0", "gateway": "10.66.0.254"},
    }
    return {
        "metadata": {"name": name, "namespace": "lab"},
        "spec": {"interfaces": [{"dhcp": dhcp, "netboot": {"allowPXE": allow}}]},
    }


def message(kind: MessageType, options: dict[int, bytes] | None = None, *, mac: str = MAC, **fields: Any) -> Packet:
    return Packet(
        op=Op.REQUEST,
        xid=fields.pop("xid", 0x1234),
        flags=0x8000,  # the test's client has no address to be reached by
        chaddr=bytes.fromhex(mac.replace(":", "")),
        options={int(Option.MESSAGE_TYPE): bytes((kind,)), **(options or {})},
        **fields,
    )


PXE = {60: b"PXEClient:Arch:00007:UNDI:003016", 93: b"\0\7", 94: b"\1\3\0", 97: b"\0" + b"u" * 16}


def dnsmasq(network: Any, *words: str) -> None:
    require_program("dnsmasq")
    process = network.start(
        "other", "dnsmasq", "--keep-in-foreground", "--log-facility=-", "--port=0", "--interface=lan", "--no-ping",
        "--conf-file=/dev/null", "--leasefile-ro", "--pid-file=", "--user=root", *words,
    )  # fmt: skip
    process.wait_for("started")


def test_a_real_client_gets_its_lease(network: Any, tmp_path: Path) -> None:
    require_program("udhcpc")
    network.add("srv", f"{OWN}/24")
    network.add("cli", mac=MAC)
    network.serve("srv", tmp_path, [machine()])
    script = tmp_path / "bound"
    script.write_text(f"#!/bin/sh\nenv >{tmp_path}/$1\n")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    subprocess.run(
        ["ip", "netns", "exec", network.name("cli"), "udhcpc", "-i", "lan", "-n", "-q", "-f", "-s", str(script)],
        check=True, capture_output=True, timeout=30,
    )  # fmt: skip
    bound = dict(line.split("=", 1) for line in (tmp_path / "bound").read_text().splitlines() if "=" in line)
    assert (bound["ip"], bound["subnet"], bound["router"]) == ("10.66.0.50", "255.255.255.0", "10.66.0.254")
    assert (bound["dns"], bound["hostname"], bound["lease"], bound["serverid"]) == (
        "1.1.1.1",
        "node-1",
        "600",
        str(OWN),
    )


def test_a_pxe_rom_gets_its_boot_file_and_its_ipxe_the_script(network: Any, tmp_path: Path) -> None:
    network.add("srv", f"{OWN}/24")
    network.add("cli", mac=MAC)
    network.serve("srv", tmp_path, [machine()])
    client = network.client("cli")
    offer = client.reply(message(MessageType.DISCOVER, PXE))
    assert (offer.file, offer.siaddr, server_identifier(offer)) == (b"ipxe.efi", OWN, OWN)
    script = client.reply(message(MessageType.DISCOVER, PXE | {77: b"iPXE"}, xid=2))
    assert script.file.decode() == f"http://{OWN}:7080/ipxe/script/{MAC}/auto.ipxe"


def test_a_wrong_address_is_refused_and_a_request_for_another_server_left_alone(network: Any, tmp_path: Path) -> None:
    network.add("srv", f"{OWN}/24")
    network.add("cli", mac=MAC)
    network.serve("srv", tmp_path, [machine()])
    client = network.client("cli")
    wrong = IPv4Address("10.66.0.99").packed
    refused = client.reply(message(MessageType.REQUEST, {50: wrong}))
    assert (refused.message_type, server_identifier(refused)) == (MessageType.NAK, OWN)
    client.ask(message(MessageType.REQUEST, {50: wrong, 54: FOREIGN.packed}, xid=2))
    # The answer to a later question shows that the earlier one got none.
    client.ask(message(MessageType.DISCOVER, xid=2))
    assert [packet.message_type for packet, _ in client.replies(2)] == [MessageType.OFFER]


def test_unknown_machines_and_conflicts_get_nothing(network: Any, tmp_path: Path) -> None:
    network.add("srv", f"{OWN}/24")
    network.add("cli", mac=MAC)
    twin = "02:00:00:00:00:02"
    server = network.serve(
        "srv", tmp_path,
        [machine(), machine("10.66.0.51", mac=twin, name="a"), machine("10.66.0.52", mac=twin, name="b")],
    )  # fmt: skip
    client = network.client("cli")
    client.ask(message(MessageType.DISCOVER, mac="02:00:00:00:00:99", xid=5))
    client.ask(message(MessageType.DISCOVER, mac=twin, xid=5))
    client.socket.sendto(b"garbage", ("255.255.255.255", 67))
    client.ask(message(MessageType.DISCOVER, xid=5))
    assert [packet.mac for packet, _ in client.replies(5)] == [MAC]
    assert "lab/a, lab/b" in server.wait_for("AmbiguousHardware")


def test_each_subnet_gets_the_address_that_it_reaches(network: Any, tmp_path: Path) -> None:
    """Two subnets on one wire: the server has an address in each."""
    network.add("srv", f"{OWN}/24", "10.77.0.1/24")
    network.add("cli", mac=MAC)
    second = "02:00:00:00:00:02"
    network.serve("srv", tmp_path, [machine(), machine("10.77.0.50", mac=second, name="node-2")])
    client = network.client("cli")
    first_offer = client.reply(message(MessageType.DISCOVER, PXE, xid=1))
    second_offer = client.reply(message(MessageType.DISCOVER, PXE | {77: b"iPXE"}, mac=second, xid=2))
    assert server_identifier(first_offer) == OWN
    assert server_identifier(second_offer) == IPv4Address("10.77.0.1")
    assert second_offer.file.decode() == f"http://10.77.0.1:7080/ipxe/script/{second}/auto.ipxe"
    chosen = {54: IPv4Address("10.77.0.1").packed, 50: IPv4Address("10.77.0.50").packed}
    assert client.reply(message(MessageType.REQUEST, chosen, mac=second, xid=3)).message_type == MessageType.ACK


def test_an_advertised_address_replaces_the_interfaces(network: Any, tmp_path: Path) -> None:
    network.add("srv", f"{OWN}/24")
    network.add("cli", mac=MAC)
    network.serve("srv", tmp_path, [machine()], advertise="203.0.113.9")
    offer = network.client("cli").reply(message(MessageType.DISCOVER, PXE))
    assert server_identifier(offer) == offer.siaddr == IPv4Address("203.0.113.9")


def test_a_server_without_an_address_says_so_and_stays_silent(network: Any, tmp_path: Path) -> None:
    network.add("srv")
    network.add("cli", mac=MAC)
    server = network.serve("srv", tmp_path, [machine()])
    network.client("cli").ask(message(MessageType.DISCOVER))
    server.wait_for("NoServerAddress")


def test_one_message_that_fails_does_not_stop_the_server(network: Any, tmp_path: Path) -> None:
    """An iPXE address that no parser takes makes the policy fail for that machine, and for that machine alone."""
    broken = machine("10.66.0.60", mac="02:00:00:00:00:02", name="broken")
    broken["spec"]["interfaces"][0]["netboot"]["ipxe"] = {"url": "http://[broken"}
    network.add("srv", f"{OWN}/24")
    network.add("cli", mac=MAC)
    network.serve("srv", tmp_path, [machine(), broken])
    client = network.client("cli")
    client.ask(message(MessageType.DISCOVER, PXE, mac="02:00:00:00:00:02", xid=9))
    assert client.reply(message(MessageType.DISCOVER, xid=10)).yiaddr == IPv4Address("10.66.0.50")


def test_a_relay_gets_its_answers_and_its_information_back(network: Any, tmp_path: Path) -> None:
    network.add("srv", f"{OWN}/24")
    network.add("relay", "10.66.0.3/24")
    network.serve("srv", tmp_path, [machine("10.99.0.50")])
    relay = network.client("relay", port=67)
    giaddr, information = IPv4Address("10.66.0.3"), b"\x01\x04port"
    options = PXE | {82: information, 77: b"iPXE"}
    offer = relay.reply(message(MessageType.DISCOVER, options, giaddr=giaddr, hops=1), to=(str(OWN), 67))
    assert (offer.giaddr, offer.options[82], offer.yiaddr) == (giaddr, information, IPv4Address("10.99.0.50"))
    assert server_identifier(offer) == OWN
    assert offer.file.decode().startswith(f"http://{OWN}:7080/")


def test_proxy_mode_works_beside_another_server(network: Any, tmp_path: Path) -> None:
    network.add("srv", f"{OWN}/24")
    network.add("other", f"{FOREIGN}/24")
    network.add("cli", mac=MAC)
    dnsmasq(network, "--dhcp-range=10.66.0.100,10.66.0.150,255.255.255.0,1h")
    network.serve("srv", tmp_path, [machine()], mode="proxy")
    client = network.client("cli")
    client.ask(message(MessageType.DISCOVER, PXE))
    offers = {server_identifier(packet): packet for packet, _ in client.replies(0x1234, count=2)}
    assert set(offers) == {OWN, FOREIGN}
    assert (offers[OWN].yiaddr, offers[OWN].file) == (IPv4Address(0), b"ipxe.efi")
    leased = offers[FOREIGN].yiaddr
    assert leased in {IPv4Address(f"10.66.0.{host}") for host in range(100, 151)}
    # The lease is the other server's affair alone; ours does not mix in.
    client.ask(message(MessageType.REQUEST, PXE | {54: FOREIGN.packed, 50: leased.packed}, xid=2))
    assert [server_identifier(packet) for packet, _ in client.replies(2, count=2, timeout_s=1)] == [FOREIGN]
    # A machine that asks the proxy itself does so on the PXE port, from its new address.
    subprocess.run(["ip", "-n", network.name("cli"), "addr", "add", f"{leased}/24", "dev", "lan"], check=True)
    boot = client.reply(message(MessageType.REQUEST, PXE | {54: OWN.packed}, xid=3, ciaddr=leased), to=(str(OWN), 4011))
    assert (boot.message_type, boot.file) == (MessageType.ACK, b"ipxe.efi")


def test_a_machine_without_netboot_is_left_to_the_other_server_in_proxy_mode(network: Any, tmp_path: Path) -> None:
    network.add("srv", f"{OWN}/24")
    network.add("other", f"{FOREIGN}/24")
    network.add("cli", mac=MAC)
    dnsmasq(network, "--dhcp-range=10.66.0.100,10.66.0.150,255.255.255.0,1h")
    network.serve("srv", tmp_path, [machine()], mode="proxy")
    client = network.client("cli")
    client.ask(message(MessageType.DISCOVER))
    assert [server_identifier(packet) for packet, _ in client.replies(0x1234, count=2, timeout_s=1)] == [FOREIGN]


async def _probe(network: Any, host: str, timeout_s: float) -> list[IPv4Address]:
    def run() -> list[IPv4Address]:
        return asyncio.run(probe_for_servers("lan", timeout_s=timeout_s))

    found: list[IPv4Address] = await asyncio.to_thread(network.within, host, run)
    return found


@pytest.mark.parametrize("address", ["10.66.0.1/24", None], ids=["with an address", "without an address"])
async def test_the_probe_finds_another_server(network: Any, address: str | None) -> None:
    network.add("srv", *([address] if address else []))
    network.add("other", f"{FOREIGN}/24")
    dnsmasq(network, "--dhcp-range=10.66.0.100,10.66.0.150,255.255.255.0,1h")
    assert await _probe(network, "srv", 1.5) == [FOREIGN]


async def test_the_probe_finds_nothing_on_a_quiet_network(network: Any) -> None:
    network.add("srv", f"{OWN}/24")
    assert await _probe(network, "srv", 0.3) == []


async def test_the_probe_names_an_interface_that_cannot_be_asked(network: Any) -> None:
    network.add("srv", f"{OWN}/24")
    subprocess.run(["ip", "-n", network.name("srv"), "link", "set", "lan", "down"], check=True)
    with pytest.raises(SocketError, match="lan"):
        await _probe(network, "srv", 0.3)


def test_the_server_survives_its_interface_going_down_and_up(network: Any, tmp_path: Path) -> None:
    network.add("srv", f"{OWN}/24")
    network.add("cli", mac=MAC)
    network.serve("srv", tmp_path, [machine()])
    client = network.client("cli")
    assert client.reply(message(MessageType.DISCOVER, xid=1))
    for state in ("down", "up"):
        subprocess.run(["ip", "-n", network.name("srv"), "link", "set", "lan", state], check=True)
    for xid in range(2, 40):
        client.ask(message(MessageType.DISCOVER, xid=xid))
        if client.replies(xid, timeout_s=0.5):
            return
    pytest.fail("the server no longer answers")
