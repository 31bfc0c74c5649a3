"""A stand-in for firmware and iPXE: DHCP, TFTP, DHCP again, the script, kernel and initramfs.

Runs in the machine's own network namespace. Failure modes: `FirmwareError` with the step that failed.

Source: PXE specification 2.1; RFC 2131, 4578 (options), 1350 (TFTP); ipxe.org/howto/dhcpd, ipxe.org/cmd.
"""

from __future__ import annotations

import http.client
import re
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ironbell.codec.dhcp import DecodeError, MessageType, Op, Option, Packet, decode, encode
from ironbell.codec.dhcp.addresses import server_identifier
from ironbell.codec.dhcp.numbers import BROADCAST_FLAG
from ironbell.codec.tftp import Retransmission
from ironbell.lab.tftpclient import TftpFailedError, fetch

Log = Callable[[str], None]

_DISCOVER_S = (1.0, 2.0, 4.0, 8.0)
_PATIENCE = Retransmission(first_s=0.5, tries=6)
_HTTP_S = 30.0
_HTTP_TRIES = 6
_HTTP_PAUSE_S = 1.0
_SCRIPTS = 4
_ARCHITECTURES = {
    "uefi": (b"\0\7", b"PXEClient:Arch:00007:UNDI:003016"),
    "bios": (b"\0\0", b"PXEClient:Arch:00000:UNDI:002001"),
}
_SETTING = re.compile(r"\$\{([^}]+)\}")
_CHAINED = re.compile(r"\s*(?:&&|\|\|).*$")
_REQUESTED = bytes((Option.SUBNET_MASK, Option.ROUTERS, Option.SERVER_IDENTIFIER, 66, 67))


class FirmwareError(Exception):
    """This attempt to boot over the network has failed."""


@dataclass(frozen=True, slots=True)
class InMemory:
    """A kernel with its initramfs and arguments."""

    kernel: str
    initrd: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Disk:
    """The script leaves the boot to the disk."""


@dataclass(frozen=True, slots=True)
class Chain:
    """Another script continues."""

    url: str


def outcome(script: str, settings: dict[str, str]) -> InMemory | Disk | Chain:
    """The system that an iPXE script boots. `settings` are the machine's own, such as `mac`.

    Understands `set`, `kernel`, `initrd`, `chain`, `boot`, `sanboot` and `exit`, with `${name}` of what was set. Lines
    are taken as if every command succeeded, which is the way through a script that ends in a boot.

    Raises:
        ValueError: the text is not a script, or it ends without booting anything.
    """
    if not script.startswith("#!ipxe"):
        raise ValueError(f"the served file is not an iPXE script: {script[:40]!r}")
    known = dict(settings)
    kernel = arguments = initrd = ""
    for raw in script.splitlines()[1:]:
        line = _CHAINED.sub("", raw.strip())
        line = _SETTING.sub(lambda match: known.get(match[1].partition(":")[0], ""), line)
        command, _, rest = line.partition(" ")
        words = [word for word in rest.split() if not word.startswith("--")]
        if command == "set" and len(words) > 1:
            known[words[0].partition(":")[0]] = " ".join(words[1:])
        elif command == "kernel" and words:
            kernel, arguments = words[0], " ".join(rest.split()[rest.split().index(words[0]) + 1 :])
        elif command == "initrd" and words:
            initrd = words[0]
        elif command == "chain" and words:
            return Chain(words[0])
        elif command == "boot" and kernel:
            return InMemory(kernel, initrd, arguments)
        elif command in {"sanboot", "exit"} and not kernel:
            return Disk()
    raise ValueError("the iPXE script ends without booting anything")


def network_boot(*, mac: str, uuid: str, firmware: str, interface: str, target: Path, log: Log) -> InMemory | None:
    """Boot over the network: what to start, with its initramfs downloaded to `target`; None for the disk.

    Raises:
        FirmwareError: a step failed; the next boot device is tried.
    """
    kind, vendor = _ARCHITECTURES[firmware]
    options = {60: vendor, 93: kind, 94: b"\1\3\20", 97: b"\0" + bytes.fromhex(uuid.replace("-", ""))}
    try:
        return _boot(mac, options, interface, target, log)
    except (OSError, ValueError, TftpFailedError, urllib.error.URLError, http.client.HTTPException) as error:
        raise FirmwareError(str(error)) from error
    finally:
        subprocess.run(["ip", "address", "flush", "dev", interface, "scope", "global"], check=False)


def _boot(mac: str, options: dict[int, bytes], interface: str, target: Path, log: Log) -> InMemory | None:
    rom = _lease(mac, interface, options)
    _configure(interface, rom)
    name = rom.file.decode() or rom.options.get(67, b"").decode()
    if not name:
        raise FirmwareError("the DHCP server names no boot file: this machine may not boot over the network")
    log(f"PXE: {rom.yiaddr} from {rom.siaddr}, boot file {name}")
    if not name.startswith("http"):
        log(f"PXE: {len(fetch(str(rom.siaddr), name, patience=_PATIENCE))} bytes by TFTP")
    ipxe = _lease(mac, interface, options | {77: b"iPXE"})
    url = ipxe.file.decode() or ipxe.options.get(67, b"").decode()
    for _ in range(_SCRIPTS):
        log(f"iPXE: {url}")
        result = outcome(_get(url).decode(), {"mac": mac, "net0/mac": mac, "buildarch": "x86_64", "platform": "efi"})
        if isinstance(result, Disk):
            log("iPXE: the script leaves the boot to the disk")
            return None
        if isinstance(result, InMemory):
            log(f"iPXE: {result.kernel} (this kernel stands in for it)")
            _get(result.kernel)
            target.write_bytes(_get(result.initrd))
            return result
        assert isinstance(result, Chain)  # noqa: S101 - the three outcomes
        url = result.url
    raise FirmwareError(f"more than {_SCRIPTS} scripts chain to each other")


def _message(mac: str, kind: MessageType, options: dict[int, bytes], *, xid: int = 0) -> Packet:
    return Packet(
        op=Op.REQUEST,
        xid=xid or int(time.monotonic_ns() & 0xFFFFFFFF),
        flags=BROADCAST_FLAG,
        chaddr=bytes.fromhex(mac.replace(":", "")),
        options={int(Option.MESSAGE_TYPE): bytes((kind,)), int(Option.PARAMETER_LIST): _REQUESTED, **options},
    )


def _lease(mac: str, interface: str, options: dict[int, bytes]) -> Packet:
    """DISCOVER to ACK."""
    with _dhcp_socket(interface) as sock:
        for wait_s in _DISCOVER_S:
            offer = _exchange(sock, _message(mac, MessageType.DISCOVER, options), wait_s)
            if offer is None:
                continue
            chosen = {54: (server_identifier(offer) or offer.siaddr).packed, 50: offer.yiaddr.packed}
            ack = _exchange(sock, _message(mac, MessageType.REQUEST, options | chosen, xid=offer.xid), wait_s)
            if ack is not None and ack.message_type == MessageType.ACK:
                return ack
    raise FirmwareError("no DHCP server answered")


def _dhcp_socket(interface: str) -> socket.socket:
    """Bound to this interface alone, which is inside the machine's namespace."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, interface.encode())
    sock.bind(("", 68))
    return sock


def _exchange(sock: socket.socket, packet: Packet, wait_s: float) -> Packet | None:
    sock.sendto(encode(packet), ("255.255.255.255", 67))
    deadline = time.monotonic() + wait_s
    while (left := deadline - time.monotonic()) > 0:
        sock.settimeout(left)
        try:
            answer = decode(sock.recv(4096))
        except (TimeoutError, DecodeError):
            continue
        if answer.op == Op.REPLY and answer.xid == packet.xid:
            return answer
    return None


def _configure(interface: str, ack: Packet) -> None:
    mask = bytes(ack.options[int(Option.SUBNET_MASK)])
    prefix = sum(byte.bit_count() for byte in mask)
    subprocess.run(["ip", "address", "replace", f"{ack.yiaddr}/{prefix}", "dev", interface], check=True)
    routers = bytes(ack.options.get(int(Option.ROUTERS), b""))[:4]
    if routers:
        subprocess.run(["ip", "route", "replace", "default", "via", socket.inet_ntoa(routers)], check=False)


def _get(url: str) -> bytes:
    """A file, tried again as iPXE's scripts do."""
    if not re.match(r"https?://", url):
        raise FirmwareError(f"{url!r} is not an address that this firmware can fetch")
    for left in reversed(range(_HTTP_TRIES)):
        try:
            with urllib.request.urlopen(url, timeout=_HTTP_S) as answer:  # noqa: S310 - the scheme is checked above
                return bytes(answer.read())
        except (OSError, http.client.HTTPException):
            if not left:
                raise
            time.sleep(_HTTP_PAUSE_S)
    raise FirmwareError(f"{url} was not tried")
