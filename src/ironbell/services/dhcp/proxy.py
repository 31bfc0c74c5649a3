"""Proxy modes: another server assigns addresses, and this one replies to boot clients only, with their boot files.

Upstream replies to every REQUEST of a boot client, even to one that names the other server; its reply then races with
that server's. Here such a request is ignored: our OFFER had the boot file, and clients send requests for the proxy to
port 4011 or with our identifier.

Source: PXE specification 2.1, section 2.2 (proxyDHCP);
tinkerbell/tinkerbell: smee/internal/dhcp/handler/proxy/proxy.go.
"""

from __future__ import annotations

from ironbell.codec.dhcp import MessageType, Option, Packet, reply_to
from ironbell.codec.dhcp.addresses import server_identifier
from ironbell.codec.dhcp.packet import ZERO
from ironbell.contract.servers.boot_files import NOT_ALLOWED
from ironbell.services.dhcp.answers import Decision, Ignore, IgnoreReason, Known, Reply, fitted, place_file
from ironbell.services.dhcp.bootfile import (
    HTTP_CLIENT,
    PXE_CLIENT,
    BootAnswer,
    BootClient,
    boot_answer,
    boot_client,
    missing,
)
from ironbell.services.dhcp.settings import DhcpSettings, Endpoints, Mode


def answer(request: Packet, known: Known | None, *, settings: DhcpSettings, own: Endpoints) -> Decision:
    """Return the reply to a boot client's DISCOVER or REQUEST.

    Raises:
        OptionError: a relevant option is malformed.
    """
    if not settings.netboot_options:
        return Ignore(IgnoreReason.NETBOOT_OFF)
    chosen = server_identifier(request)
    if chosen is not None and chosen not in own.identities:
        return Ignore(IgnoreReason.OTHER_SERVER, f"the client chose {chosen}")
    client = boot_client(request, settings)
    if client is None:
        return Ignore(IgnoreReason.NOT_A_BOOT_CLIENT)
    if known is None and settings.mode is not Mode.AUTO_PROXY:
        return Ignore(IgnoreReason.UNKNOWN_MACHINE)
    vlan_id = known.reservation.vlan_id if known else ""
    boot = boot_answer(client, known.plan if known else None, vlan_id=vlan_id, settings=settings, own=own)
    if boot.is_missing:
        # Another server may have a boot file for this machine.
        (problem,) = missing(boot, mac=client.mac, hardware=known.name if known else "")
        return Ignore(IgnoreReason.NO_BINARY, boot.rejection, problem)
    return _reply(request, client, boot, known=known, own=own)


def _reply(request: Packet, client: BootClient, boot: BootAnswer, *, known: Known | None, own: Endpoints) -> Reply:
    kind = MessageType.OFFER if request.message_type == MessageType.DISCOVER else MessageType.ACK
    server = boot.next_server if boot.next_server != ZERO else own.tftp_address
    options = {
        int(Option.SERVER_IDENTIFIER): server.packed,
        int(Option.VENDOR_CLASS): HTTP_CLIENT if client.is_http else PXE_CLIENT,
    }
    if boot.vendor:
        options[int(Option.VENDOR_SPECIFIC)] = boot.vendor
    if request.options.get(Option.MACHINE_IDENTIFIER):
        options[int(Option.MACHINE_IDENTIFIER)] = request.options[Option.MACHINE_IDENTIFIER]
    name = boot.file if boot.vendor else f"/{client.mac}/{NOT_ALLOWED}"
    hardware = known.name if known else ""
    file, problems = place_file(name, options, mac=client.mac, hardware=hardware)
    packet = reply_to(request, kind, options, siaddr=server, sname=str(server).encode(), file=file)
    return Reply(fitted(packet, request), kind, hardware, name, boot.rejection, problems)
