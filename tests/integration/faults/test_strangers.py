"""Who is not known, not allowed, or known twice; and bytes that are no protocol at all."""

from __future__ import annotations

import asyncio
import random
import socket
import urllib.error
import zlib
from collections.abc import Callable
from contextlib import closing

import pytest

from ironbell.api.tinkerbell import HARDWARE
from ironbell.codec.dhcp import MessageType, encode
from support.lab.faults import OURS, FaultLab
from support.network import firmware
from support.network.machine import NetMachine
from support.network.namespaces import within
from support.site.up import BOOT, WORKFLOWS, Seen, seen
from support.waiting import until

pytestmark = pytest.mark.root

STRANGER = "02:00:00:00:99:99"


async def known(watching: Seen, machine: NetMachine, *, allow: bool) -> None:
    await watching.apply(machine.hardware(allow=allow))
    await watching.until(lambda: watching.find(HARDWARE, machine.name), within_s=10, what="hardware")


async def test_machine_that_may_not_netboot_gets_its_lease_and_boots_its_disk(lab: FaultLab) -> None:
    machine = lab.machine("from-disk", disk_mib=1)
    async with seen(lab.site) as watching:
        await known(watching, machine, allow=False)
        ask = firmware.message(machine.mac, MessageType.DISCOVER, firmware.BIOS)
        answer = await asyncio.to_thread(within, machine.namespace, lambda: firmware.exchange(ask))
        assert answer is not None
        assert str(answer.yiaddr) == machine.address
        assert b"/netboot-not-allowed" in answer.file or not answer.file
        machine.give_address()
        script = await asyncio.to_thread(fetch, machine, f"/ipxe/script/{machine.mac}/auto.ipxe")
        assert "boots from its disk" in script
        assert "allowPXE" in script
        assert "sanboot" in script
        assert "kernel http" not in script
        await watching.until(
            lambda: "BootFromDisk" in watching.reasons("Hardware", machine.name), within_s=10, what="an Event"
        )


def fetch(machine: NetMachine, path: str) -> str:
    return within(machine.namespace, lambda: firmware.get(f"http://{OURS}:7080{path}")).decode()


async def test_unknown_machine_gets_nothing(lab: FaultLab) -> None:
    machine = lab.machine("known", disk_mib=1)
    async with seen(lab.site) as watching:
        await known(watching, machine, allow=True)

    def ask() -> set[str]:
        """Who is answered, where both ask; the known one asks last."""
        stranger = firmware.message(STRANGER, MessageType.DISCOVER, firmware.BIOS, xid=7)
        listed = firmware.message(machine.mac, MessageType.DISCOVER, firmware.BIOS, xid=7)
        return {answer.mac for answer in firmware.answers([stranger, listed], until=machine.mac)}

    assert await asyncio.to_thread(within, machine.namespace, ask) == {machine.mac}
    with pytest.raises(urllib.error.HTTPError, match="404") as refused:
        await asyncio.to_thread(lab.site.get, f"/ipxe/script/{STRANGER}/auto.ipxe")
    refused.value.close()
    with pytest.raises(urllib.error.HTTPError, match="404") as refused:
        await asyncio.to_thread(lab.site.get, "/2009-04-04/user-data")
    refused.value.close()


async def test_two_hardware_with_one_mac_are_reported_and_neither_is_served(lab: FaultLab) -> None:
    first, other = lab.machine("twin-a", disk_mib=1), lab.machine("other", disk_mib=1)
    second = {**first.hardware(allow=True), "metadata": {"name": "twin-b", "namespace": "default"}}
    async with seen(lab.site) as watching:
        await watching.apply(first.hardware(allow=True), second)
        await known(watching, other, allow=True)
        for name, twin in (("twin-a", "twin-b"), ("twin-b", "twin-a")):
            await watching.until(
                lambda name=name: (found := watching.find(HARDWARE, name)) and found.status.state == "Error",
                within_s=10,
                what=f"state of {name}",
            )
            assert twin in watching.find(HARDWARE, name).metadata.annotations["ironbell.dev/error"]
            await watching.until(
                lambda name=name, twin=twin: any(
                    event.type == "Warning" and twin in event.message for event in watching.events("Hardware", name)
                ),
                within_s=10,
                what=f"an Event on {name}",
            )

        def ask() -> set[str]:
            twins = firmware.message(first.mac, MessageType.DISCOVER, firmware.BIOS, xid=7)
            listed = firmware.message(other.mac, MessageType.DISCOVER, firmware.BIOS, xid=7)
            return {answer.mac for answer in firmware.answers([twins, listed], until=other.mac)}

        assert await asyncio.to_thread(within, first.namespace, ask) == {other.mac}
        with pytest.raises(urllib.error.HTTPError, match="409") as refused:
            await asyncio.to_thread(lab.site.get, f"/ipxe/script/{first.mac}/auto.ipxe")
        refused.value.close()
        await watching.client.delete(HARDWARE, "default", "twin-b")
        await watching.until(
            lambda: watching.find(HARDWARE, "twin-a").status.state == "Ready", within_s=10, what="the one left"
        )
        answer = await asyncio.to_thread(
            within,
            first.namespace,
            lambda: firmware.exchange(firmware.message(first.mac, MessageType.DISCOVER, firmware.BIOS)),
        )
        assert answer is not None


def datagrams(port: int, *, count: int = 200) -> Callable[[], None]:
    """Send noise: random bytes of all lengths, and a proper DHCP message with every byte changed in turn."""
    source = random.Random(port)

    def send() -> None:
        proper = bytearray(encode(firmware.message(STRANGER, MessageType.DISCOVER, firmware.BIOS)))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            for number in range(count):
                sock.sendto(source.randbytes(source.randrange(1400)), (OURS, port))
                changed = proper.copy()
                changed[number % len(proper)] ^= 1 + source.randrange(255)
                sock.sendto(changed, (OURS, port))

    return send


def stream(port: int, *openings: bytes, half_closes: bool = False) -> Callable[[], None]:
    """Open connections with these bytes and read until they are closed. `half_closes`: the server does not end them
    itself, so that the client says that nothing more comes."""

    def send() -> None:
        for opening in openings:
            with closing(socket.create_connection((OURS, port), timeout=10)) as sock:
                sock.sendall(opening)
                if half_closes:
                    sock.shutdown(socket.SHUT_WR)
                while sock.recv(4096):
                    pass

    return send


H2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
NOISE = random.Random(0).randbytes(2000)
MALFORMED = {
    "dhcp": (datagrams(67), "ironbell_dhcp_malformed_total", {}),
    "tftp": (datagrams(69), "ironbell_tftp_strays_total", {}),
    "http": (
        stream(
            7080,
            # complete: a client that closes the connection is gone before its request is looked at, and is not counted
            NOISE + b"\r\n\r\n",
            b"GET / HTTP/9.9\r\n\r\n",
            b"GET /" + b"a" * 20000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
            b"GET /osie/vmlinuz-x86_64 HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        ),
        "ironbell_http_malformed_total",
        {},
    ),
    "grpc": (
        stream(
            42113,
            NOISE,
            b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
            H2 + NOISE,
            H2 + b"\0\0\4\4\0\0\0\0\1zzzz",
            half_closes=True,
        ),
        "ironbell_workflow_malformed_total",
        {"kind": "http2"},
    ),
}


@pytest.mark.parametrize("protocol", MALFORMED)
async def test_malformed_input_is_ignored_and_counted(lab: FaultLab, protocol: str) -> None:
    send, counter, labels = MALFORMED[protocol]
    machine = lab.machine(f"noise-{protocol}", disk_mib=1)
    machine.give_address()
    process = WORKFLOWS if protocol == "grpc" else BOOT
    serving, before = lab.site.child(process), await asyncio.to_thread(lab.site.metric, counter, **labels)
    await asyncio.to_thread(within, machine.namespace, send)
    assert lab.site.child(process) == serving

    async def counted() -> bool:
        return await asyncio.to_thread(lab.site.metric, counter, **labels) > before

    # what was sent may still be read
    await until(counted, f"more than {before:g} in {counter}", within_s=10)
    async with seen(lab.site) as watching:
        await known(watching, machine, allow=True)
        boot = await asyncio.to_thread(machine.netboot)
    assert boot.attempts == 1
    assert not boot.from_disk
    assert "Traceback" not in lab.site.log.read_text()


@pytest.mark.parametrize(
    "path",
    [
        "/osie/../../../etc/passwd",
        "/osie/%2e%2e/%2e%2e/token",
        "/osie/..%2f..%2ftoken",
        "/images//etc/passwd",
        "/osie/%00",
        "/ipxe/script/zz:zz/auto.ipxe",
        "/ipxe/binary/../../token",
    ],
)
async def test_no_path_leads_outside(lab: FaultLab, path: str) -> None:
    def ask() -> bytes:
        with closing(socket.create_connection((OURS, 7080), timeout=10)) as sock:
            sock.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
            answer = b""
            while chunk := sock.recv(4096):
                answer += chunk
        return answer

    machine = lab.machine(f"p{zlib.crc32(path.encode()) % 1000}", disk_mib=1)
    machine.give_address()
    answer = await asyncio.to_thread(within, machine.namespace, ask)
    assert answer.split(b" ")[1] in {b"400", b"404"}
    assert b"root:" not in answer
