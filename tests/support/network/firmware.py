"""A stand-in for a machine's firmware and its iPXE: DHCP, TFTP, script, kernel and initramfs, as a BIOS machine asks.

It follows the script's own retries, and knows a hook for every stage, so that a test can break something exactly
there. A boot that fails begins again from the start, as firmware that is told to boot from the network alone does.
"""

from __future__ import annotations

import contextlib
import http.client
import re
import socket
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

from ironbell.codec.dhcp import DecodeError, MessageType, Op, Option, Packet, decode, encode
from ironbell.codec.dhcp.addresses import server_identifier
from ironbell.codec.dhcp.numbers import BROADCAST_FLAG
from ironbell.codec.tftp import Retransmission
from ironbell.lab.tftpclient import TftpFailedError, fetch
from ironbell.services.dhcp.sockets import open_dhcp_socket

Hook = Callable[[str], None]

DISCOVER_S = (1.0, 2.0, 4.0, 8.0)
HTTP_S = 10.0
CHUNK = 1 << 16
BIOS = {60: b"PXEClient:Arch:00000:UNDI:002001", 93: b"\0\0", 94: b"\1\2\1", 97: b"\0" + b"u" * 16}
WANTED = bytes((Option.SUBNET_MASK, Option.ROUTERS, Option.SERVER_IDENTIFIER, 66, 67))


class BootFailedError(Exception):
    """This attempt is over."""


@dataclass(frozen=True)
class Boot:
    """How a boot ended."""

    script: str
    arguments: dict[str, str]
    """Of the kernel; empty for a machine that was told to boot its disk."""
    sizes: tuple[int, ...] = ()
    attempts: int = 1

    @property
    def from_disk(self) -> bool:
        return not self.arguments


def boot(mac: str, *, interface: str = "lan", at: Hook = lambda _stage: None, attempts: int = 5) -> Boot:
    """Boot over the network, in the namespace that the thread is in."""
    failure = ""
    for attempt in range(1, attempts + 1):
        try:
            return _boot(mac, interface, at, attempt)
        except (BootFailedError, OSError, http.client.HTTPException) as error:
            failure = f"attempt {attempt}: {error!r}"
    raise BootFailedError(f"no boot in {attempts} attempts; the last: {failure}")


def _boot(mac: str, interface: str, at: Hook, attempt: int) -> Boot:
    rom = lease(mac, interface, BIOS)
    _configure(interface, rom)
    at("after DHCP")
    name, server = rom.file.decode(), str(rom.siaddr)
    tftp(server, name)
    at("after the boot file")
    ipxe = lease(mac, interface, BIOS | {77: b"iPXE"})
    at("before the script")
    text = get(ipxe.file.decode()).decode()
    at("after the script")
    kernel = re.search(r"^kernel (\S+) (.*?) && ", text, re.MULTILINE)
    initrd = re.search(r"^initrd (\S+) && ", text, re.MULTILINE)
    if kernel is None or initrd is None:
        return Boot(text, {}, attempts=attempt)
    tries = 1 + int(_setting(text, "retries:int32"))
    delay_s = float(_setting(text, "retry_delay"))
    sizes = tuple(
        _fetch(url, tries, delay_s, lambda stage, what=what: at(f"{stage} the {what}"))
        for what, url in (("kernel", kernel[1]), ("initramfs", initrd[1]))
    )
    arguments = dict(word.split("=", 1) for word in kernel[2].split() if "=" in word)
    return Boot(text, arguments, sizes, attempt)


def _setting(script: str, name: str) -> str:
    found = re.search(rf"^set {re.escape(name)} (\S+)$", script, re.MULTILINE)
    assert found, f"the script does not set {name}"
    return found[1]


def message(mac: str, kind: MessageType, options: dict[int, bytes], *, xid: int = 0, **fields: object) -> Packet:
    """A client's message, to be answered by broadcast."""
    return Packet(
        op=Op.REQUEST,
        xid=xid or int(time.monotonic_ns() & 0xFFFFFFFF),
        flags=BROADCAST_FLAG,
        chaddr=bytes.fromhex(mac.replace(":", "")),
        options={int(Option.MESSAGE_TYPE): bytes((kind,)), int(Option.PARAMETER_LIST): WANTED, **options},
        **fields,  # type: ignore[arg-type]
    )


def lease(mac: str, interface: str, options: dict[int, bytes]) -> Packet:
    """DISCOVER to ACK."""
    sock = open_dhcp_socket(interface, 68)
    try:
        for wait_s in DISCOVER_S:
            offer = _ask(sock, message(mac, MessageType.DISCOVER, options), wait_s)
            if offer is None:
                continue
            chosen = {54: (server_identifier(offer) or offer.siaddr).packed, 50: offer.yiaddr.packed}
            ack = _ask(sock, message(mac, MessageType.REQUEST, options | chosen, xid=offer.xid), wait_s)
            if ack is not None and ack.message_type == MessageType.ACK:
                if not ack.file:
                    raise BootFailedError("no boot file")
                return ack
    finally:
        sock.close()
    raise BootFailedError("no DHCP answer")


def exchange(packet: Packet, *, interface: str = "lan", wait_s: float = 5.0) -> Packet | None:
    """Broadcast one message, again each second as firmware does; its answer, or None."""
    sock, deadline = open_dhcp_socket(interface, 68), time.monotonic() + wait_s
    try:
        while (left := deadline - time.monotonic()) > 0:
            if (answer := _ask(sock, packet, min(left, DISCOVER_S[0]))) is not None:
                return answer
        return None
    finally:
        sock.close()


def answers(packets: list[Packet], *, until: str, interface: str = "lan", wait_s: float = 5.0) -> list[Packet]:
    """Broadcast messages of one `xid`, again each second; what is answered until the MAC `until` has its answer."""
    sock, found, deadline = open_dhcp_socket(interface, 68), list[Packet](), time.monotonic() + wait_s
    try:
        while time.monotonic() < deadline:
            for packet in packets:
                sock.sendto(encode(packet), ("255.255.255.255", 67))
            again = min(deadline, time.monotonic() + DISCOVER_S[0])
            while (answer := _reply(sock, packets[0].xid, again)) is not None:
                found.append(answer)
                if answer.mac == until:
                    return found
        raise TimeoutError(f"no answer for {until} in {wait_s:g} s")
    finally:
        sock.close()


def _ask(sock: socket.socket, packet: Packet, wait_s: float) -> Packet | None:
    sock.sendto(encode(packet), ("255.255.255.255", 67))
    return _reply(sock, packet.xid, time.monotonic() + wait_s)


def _reply(sock: socket.socket, xid: int, deadline: float) -> Packet | None:
    while (left := deadline - time.monotonic()) > 0:
        sock.settimeout(left)
        try:
            answer = decode(sock.recv(4096))
        except (TimeoutError, DecodeError):
            continue
        if answer.op == Op.REPLY and answer.xid == xid:
            return answer
    return None


def _configure(interface: str, ack: Packet) -> None:
    mask = bytes(ack.options[int(Option.SUBNET_MASK)])
    prefix = sum(byte.bit_count() for byte in mask)
    command = ["ip", "address", "replace", f"{ack.yiaddr}/{prefix}", "dev", interface]
    subprocess.run(command, check=True)


def tftp(server: str, name: str) -> bytes:
    """Fetch a file as a PXE ROM does."""
    try:
        return fetch(server, name, patience=Retransmission(first_s=0.5, tries=4))
    except TftpFailedError as error:
        raise BootFailedError(error.message) from None


def _connected(
    url: str, headers: dict[str, str] | None = None
) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=HTTP_S)
    try:
        connection.request("GET", parts.path, headers=headers or {})
        answer = connection.getresponse()
    except BaseException:
        connection.close()
        raise
    if answer.status != 200:
        answer.close()
        connection.close()
        raise BootFailedError(f"{url}: {answer.status}")
    return connection, answer


def get(url: str, headers: dict[str, str] | None = None) -> bytes:
    """What a URL answers."""
    connection, answer = _connected(url, headers)
    with contextlib.closing(connection), contextlib.closing(answer):
        return answer.read()


def _fetch(url: str, tries: int, delay_s: float, at: Hook) -> int:
    """A large file, again from its start after an interruption: iPXE knows no Range."""
    for left in reversed(range(tries)):
        try:
            connection, answer = _connected(url)
            with contextlib.closing(connection), contextlib.closing(answer):
                size = int(answer.headers["content-length"])
                got = len(answer.read(size // 2))
                at("in the middle of")
                while chunk := answer.read(CHUNK):
                    got += len(chunk)
            if got == size:
                return size
        except (OSError, http.client.HTTPException, BootFailedError):
            if not left:
                raise
        if left:
            time.sleep(delay_s)
    raise BootFailedError(f"{url} was cut")
