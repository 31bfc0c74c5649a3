"""`ironbell up --interface` on networks that it did not make: alone, beside dnsmasq, with a relay, from a file."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import urllib.error
from collections.abc import Iterator
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import pytest

from ironbell.api.tinkerbell import HARDWARE
from ironbell.codec.dhcp import MessageType, Packet, decode, encode
from ironbell.codec.dhcp.addresses import server_identifier
from ironbell.services.dhcp.sockets import open_dhcp_socket
from support.network import firmware
from support.network.namespaces import Lan, lan, within
from support.site.up import UP, Site, seen, site
from support.skips import require_program
from support.waiting import eventually, until

pytestmark = pytest.mark.root

OURS, THEIRS = "192.0.2.1", "192.0.2.2"
MAC, FAR_MAC = "02:00:00:00:03:01", "02:00:00:00:03:02"
HTTP = f"{OURS}:7080"


@pytest.fixture
def network() -> Iterator[Lan]:
    """A bridge in a namespace that this thread is in, and a machine on it."""
    with lan(f"{OURS}/24") as made:
        made.add("machine", mac=MAC)
        yield made


@contextlib.contextmanager
def dnsmasq(network: Lan, folder: Path) -> Iterator[str]:
    """Another DHCP server on the bridge, as an office router has it; the name of its log."""
    require_program("dnsmasq")
    namespace = network.add("other", f"{THEIRS}/24")
    log = folder / "dnsmasq.log"
    command = [
        "ip", "netns", "exec", namespace, "dnsmasq", "--keep-in-foreground", "--port=0", "--interface=lan", "--no-ping",
        "--conf-file=/dev/null", "--leasefile-ro", "--pid-file=", "--user=root", f"--log-facility={log}", "--log-dhcp",
        "--dhcp-range=192.0.2.100,192.0.2.150,255.255.255.0,1h",
    ]  # fmt: skip
    process = subprocess.Popen(command)
    try:
        eventually(lambda: log.exists() and "DHCP, IP range" in log.read_text(), within_s=10, what="dnsmasq")
        yield str(log)
    finally:
        process.terminate()
        process.wait(10)


def hardware(mac: str = MAC, address: str = "192.0.2.10", *, name: str = "node-1") -> dict[str, Any]:
    dhcp = {"mac": mac, "lease_time": 600, "ip": {"address": address, "netmask": "255.255.255.0"}}
    return {
        "apiVersion": "tinkerbell.org/v1alpha1",
        "kind": "Hardware",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"interfaces": [{"dhcp": dhcp, "netboot": {"allowPXE": True}}]},
    }


async def known(running: Site, *documents: dict[str, Any]) -> None:
    async with seen(running) as watching:
        await watching.apply(*documents)
        for document in documents:
            name = document["metadata"]["name"]
            await watching.until(lambda name=name: watching.find(HARDWARE, name), within_s=10, what=name)


async def served(running: Site, path: str) -> bytes:
    """What is answered once the servers, too, have heard of the machine."""
    return await until(lambda: asyncio.to_thread(running.get, path), ignored=(urllib.error.HTTPError,))


def ask(network: Lan, packet: Packet, host: str = "machine", *, wait_s: float = 5.0) -> Packet | None:
    return within(network.name(host), lambda: firmware.exchange(packet, wait_s=wait_s))


def boots(network: Lan, mac: str = MAC) -> Packet:
    """Both packets of a PXE ROM; the ACK."""
    return within(network.name("machine"), lambda: firmware.lease(mac, "lan", firmware.BIOS))


def test_reservation_mode_refuses_to_start_where_another_server_answers(network: Lan, tmp_path: Path) -> None:
    with dnsmasq(network, tmp_path):
        command = [*UP, "--data-dir", str(tmp_path / "a"), "--interface", "br0"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert THEIRS in done.stderr
    assert "--dhcp proxy" in done.stderr
    assert "--force" in done.stderr
    assert "Traceback" not in done.stderr


async def test_reservation_mode_serves_there_when_it_is_forced(network: Lan, tmp_path: Path) -> None:
    with dnsmasq(network, tmp_path), site(tmp_path / "a", "--interface", "br0", "--force", http=HTTP) as running:
        await known(running, hardware())
        offers = await asyncio.to_thread(within, network.name("machine"), lambda: both_offers({OURS, THEIRS}))
        assert offers[OURS].yiaddr == IPv4Address("192.0.2.10")


def both_offers(wanted: set[str]) -> dict[str, Packet]:
    """Offers to a PXE ROM, by server, once all wanted servers have answered."""
    found: dict[str, Packet] = {}
    sock = open_dhcp_socket("lan", 68)
    try:
        for attempt in range(5):
            packet = firmware.message(MAC, MessageType.DISCOVER, firmware.BIOS, xid=1000 + attempt)
            sock.sendto(encode(packet), ("255.255.255.255", 67))
            sock.settimeout(1.0)
            with contextlib.suppress(TimeoutError):
                while wanted - set(found):
                    answer = decode(sock.recv(4096))
                    found[str(server_identifier(answer))] = answer
            if not wanted - set(found):
                break
    finally:
        sock.close()
    assert wanted <= set(found), found
    return found


async def test_reservation_mode_starts_on_a_quiet_network(network: Lan, tmp_path: Path) -> None:
    with site(tmp_path / "a", "--interface", "br0", http=HTTP) as running:
        await known(running, hardware())
        ack = await asyncio.to_thread(boots, network)
        assert (str(ack.yiaddr), ack.file) == ("192.0.2.10", b"undionly.kpxe")


async def test_proxy_mode_leaves_addresses_to_dnsmasq_and_gives_the_boot_file(network: Lan, tmp_path: Path) -> None:
    """A PXE client merges both answers: its address is dnsmasq's, its boot file ours; then its iPXE gets the script."""
    with (
        dnsmasq(network, tmp_path) as log,
        site(tmp_path / "a", "--interface", "br0", "--dhcp", "proxy", http=HTTP) as running,
    ):
        await known(running, hardware())
        offers = await asyncio.to_thread(within, network.name("machine"), lambda: both_offers({OURS, THEIRS}))
        ours, theirs = offers[OURS], offers[THEIRS]
        assert (str(ours.yiaddr), ours.file) == ("0.0.0.0", b"undionly.kpxe")
        assert str(theirs.yiaddr).startswith("192.0.2.1")
        assert not theirs.file
        chosen = {54: IPv4Address(THEIRS).packed, 50: theirs.yiaddr.packed}
        ack = await asyncio.to_thread(
            ask, network, firmware.message(MAC, MessageType.REQUEST, firmware.BIOS | chosen, xid=theirs.xid)
        )
        assert ack is not None
        assert server_identifier(ack) == IPv4Address(THEIRS)
        address = str(ack.yiaddr)
        subprocess.run(
            ["ip", "-n", network.name("machine"), "address", "add", f"{address}/24", "dev", "lan"], check=True
        )
        binary = await asyncio.to_thread(
            within, network.name("machine"), lambda: firmware.tftp(OURS, ours.file.decode())
        )
        assert len(binary) > 50_000
        script = await asyncio.to_thread(within, network.name("machine"), script_of_ipxe)
        assert "starts the in-memory OS" in script
        assert f"grpc_authority={OURS}:42113" in script
        # dnsmasq never saw a second server: what it handed out is its own affair.
        assert address in Path(log).read_text()


def script_of_ipxe() -> str:
    sock = open_dhcp_socket("lan", 68)
    try:
        for attempt in range(5):
            packet = firmware.message(MAC, MessageType.DISCOVER, firmware.BIOS | {77: b"iPXE"}, xid=2000 + attempt)
            sock.sendto(encode(packet), ("255.255.255.255", 67))
            sock.settimeout(1.0)
            with contextlib.suppress(TimeoutError):
                while True:
                    answer = decode(sock.recv(4096))
                    if answer.file.startswith(b"http://"):
                        return firmware.get(answer.file.decode()).decode()
    finally:
        sock.close()
    pytest.fail("no script for iPXE")


async def test_with_dhcp_off_everything_else_is_served(network: Lan, tmp_path: Path) -> None:
    with site(tmp_path / "a", "--interface", "br0", "--dhcp", "off", http=HTTP) as running:
        await known(running, hardware())
        assert await served(running, f"/ipxe/script/{MAC}/auto.ipxe")
        packet = firmware.message(MAC, MessageType.DISCOVER, firmware.BIOS)
        assert await asyncio.to_thread(ask, network, packet, wait_s=1.0) is None
        bound = subprocess.run(["ss", "-Hlnup"], capture_output=True, text=True, check=True).stdout
        assert ":67 " not in bound


async def test_configuration_file_and_advertised_address(network: Lan, tmp_path: Path) -> None:
    file = tmp_path / "ironbell.yaml"
    file.write_text(
        "interface: br0\nadvertise: 203.0.113.9\nforce: true\nhttp-port: 8080\n"
        "kernel-arguments: [site=one]\nconsoles: ['ttyS0,115200']\n"
    )
    with site(tmp_path / "a", "--config", str(file), http=f"{OURS}:8080") as running:
        await known(running, hardware())
        ack = await asyncio.to_thread(boots, network)
        assert (str(ack.siaddr), str(server_identifier(ack))) == ("203.0.113.9", "203.0.113.9")
        script = (await asyncio.to_thread(running.get, f"/ipxe/script/{MAC}/auto.ipxe")).decode()
        assert "http://203.0.113.9:8080/osie" in script
        assert "grpc_authority=203.0.113.9:42113" in script
        assert "site=one" in script
        assert "console=ttyS0,115200" in script


async def test_each_subnet_gets_the_address_that_it_reaches(network: Lan, tmp_path: Path) -> None:
    """Two subnets on the interface, and a relay in a third: each machine is told an address of ours that it reaches."""
    subprocess.run(["ip", "address", "add", "198.51.100.1/24", "dev", "br0"], check=True)
    network.add("relay", "192.0.2.3/24")
    documents = (
        hardware(),
        hardware(FAR_MAC, "198.51.100.10", name="node-2"),
        hardware("02:00:00:00:03:03", "203.0.113.10", name="node-3"),
    )
    with site(tmp_path / "a", "--interface", "br0", "--force", http=HTTP) as running:
        await known(running, *documents)
        ipxe = firmware.BIOS | {77: b"iPXE"}
        for mac, ours in ((MAC, OURS), (FAR_MAC, "198.51.100.1")):
            offer = await asyncio.to_thread(ask, network, firmware.message(mac, MessageType.DISCOVER, ipxe))
            assert offer is not None
            assert str(server_identifier(offer)) == ours
            assert offer.file.decode() == f"http://{ours}:7080/ipxe/script/{mac}/auto.ipxe"
        relayed = firmware.message(
            "02:00:00:00:03:03", MessageType.DISCOVER, ipxe, giaddr=IPv4Address("192.0.2.3"), hops=1
        )
        answer = await asyncio.to_thread(within, network.name("relay"), lambda: as_relay(relayed))
        assert (str(answer.yiaddr), str(answer.giaddr)) == ("203.0.113.10", "192.0.2.3")
        assert answer.file.decode().startswith(f"http://{OURS}:7080/")
        # The address given is one that answers from there.
        answers = await asyncio.to_thread(
            within, network.name("relay"), lambda: firmware.get(f"http://{OURS}:7080/healthz")
        )
        assert answers == b"ok"


def as_relay(packet: Packet) -> Packet:
    """Pass a message on to the server as a relay does; what comes back."""
    sock = open_dhcp_socket("lan", 67)
    try:
        sock.settimeout(5)
        sock.sendto(encode(packet), (OURS, 67))
        return decode(sock.recv(4096))
    finally:
        sock.close()


def test_an_interface_that_does_not_exist_is_named(network: Lan, tmp_path: Path) -> None:
    del network
    command = [*UP, "--data-dir", str(tmp_path / "a"), "--interface", "nosuch0", "--force"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "nosuch0" in done.stderr
    assert "Traceback" not in done.stderr
