"""DHCP messages of machines that boot, the Hardware of one, and what the server decides about both."""

from __future__ import annotations

from ipaddress import IPv4Address
from typing import Any

from ironbell.api.meta import ObjectMeta
from ironbell.api.tinkerbell.hardware import Hardware, HardwareSpec
from ironbell.api.tinkerbell.interface import Dhcp, Interface, Ip, Ipxe, Netboot
from ironbell.codec.dhcp import MessageType, Op, Option, Packet
from ironbell.contract.servers.netboot import NetbootSettings, netboot_plan
from ironbell.services.dhcp import DhcpSettings, decide
from ironbell.services.dhcp.answers import Decision, Known, Subject
from ironbell.services.dhcp.reservation import reservation_of
from ironbell.services.dhcp.settings import endpoints

MAC = "01:02:03:04:05:06"
ADDRESS = IPv4Address("192.168.2.50")
OWN = IPv4Address("192.168.2.1")
OTHER = IPv4Address("192.168.2.250")
SCRIPT = f"http://{OWN}:7080/ipxe/script/{MAC}/auto.ipxe"
NETBOOT = NetbootSettings(osie_url="http://{address}:7173", grpc_authority="{address}:42113")


def known(
    *, allow: bool | None = True, ipxe: Ipxe | None = None, netboot: bool = True, disable: bool = False, **dhcp: Any
) -> Known:
    fields = {
        "mac": MAC,
        "ip": Ip(address=str(ADDRESS), netmask="255.255.255.0", gateway="192.168.2.254"),
        **dhcp,
    }
    interface = Interface(
        dhcp=Dhcp(**fields),
        disable_dhcp=disable,
        netboot=Netboot(allow_pxe=allow, ipxe=ipxe) if netboot else None,
    )
    hardware = Hardware(metadata=ObjectMeta(name="node-1", namespace="lab"), spec=HardwareSpec(interfaces=[interface]))
    plan = netboot_plan(hardware, interface, NETBOOT, address=str(OWN))
    return Known("lab/node-1", reservation_of(interface), plan)


def request(
    kind: MessageType | int | None = MessageType.DISCOVER,
    options: dict[int, bytes] | None = None,
    *,
    mac: str = MAC,
    **fields: Any,
) -> Packet:
    given_options = {} if kind is None else {int(Option.MESSAGE_TYPE): bytes((kind,))}
    return Packet(
        op=fields.pop("op", Op.REQUEST),
        xid=7,
        chaddr=bytes.fromhex(mac.replace(":", "")),
        options={**given_options, **(options or {})},
        **fields,
    )


def pxe(
    arch: int = 7, *, vendor: bytes = b"PXEClient:Arch:00007:UNDI:003016", user_class: bytes = b"", **more: bytes
) -> dict[int, bytes]:
    options = {60: vendor, 93: arch.to_bytes(2, "big"), 94: b"\1\3\0", 97: b"\0" + b"u" * 16}
    if user_class:
        options[77] = user_class
    return options | {int(code[1:]): value for code, value in more.items()}


def ask(message: Packet, subject: Subject, **settings: Any) -> Decision:
    site = DhcpSettings(**settings)
    return decide(message, subject, settings=site, own=endpoints(site, OWN))
