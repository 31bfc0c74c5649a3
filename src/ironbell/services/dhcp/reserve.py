"""Reservation mode: every machine with Hardware gets its address, its options and, if it may netboot, its boot file.

Unlike upstream, this mode follows RFC 2131: a request for another server is ignored, a wrong address is rejected with
NAK, INFORM gets a reply, and no lease has zero seconds.

Source: RFC 2131, sections 4.3.1 to 4.3.5 and table 3; tinkerbell/tinkerbell: smee/internal/dhcp/handler/reservation.
"""

from __future__ import annotations

from ipaddress import IPv4Address

from msgspec.structs import replace

from ironbell.codec.dhcp import MessageType, Option, Packet, reply_to
from ironbell.codec.dhcp.addresses import requested_address, server_identifier
from ironbell.codec.dhcp.numbers import BROADCAST_FLAG
from ironbell.codec.dhcp.packet import ZERO
from ironbell.codec.dhcp.relay import server_override
from ironbell.services.dhcp.answers import Decision, Ignore, IgnoreReason, Known, Problem, Reply, fitted, place_file
from ironbell.services.dhcp.bootfile import HTTP_CLIENT, BootAnswer, boot_answer, boot_client, missing, rejected
from ironbell.services.dhcp.reservation import Reservation
from ironbell.services.dhcp.settings import DhcpSettings, Endpoints


def answer(request: Packet, known: Known | None, *, settings: DhcpSettings, own: Endpoints) -> Decision:
    """Return the reply to a DISCOVER, REQUEST or INFORM; a DECLINE or RELEASE is ignored, and logged.

    Raises:
        OptionError: a relevant option is malformed.
    """
    chosen = server_identifier(request)
    override = server_override(request) if request.giaddr != ZERO else None
    if chosen is not None and chosen not in own.identities and chosen != override:
        return Ignore(IgnoreReason.OTHER_SERVER, f"the client chose {chosen}")
    if known is None:
        return Ignore(IgnoreReason.UNKNOWN_MACHINE)
    match request.message_type:
        case MessageType.DECLINE:
            return _declined(request, known)
        case MessageType.RELEASE:
            return Ignore(IgnoreReason.RELEASED, f"{request.ciaddr} by {known.name}")
        case MessageType.DISCOVER | MessageType.REQUEST | MessageType.INFORM:
            return _served(request, known, settings=settings, own=own, identifier=override or own.address)
        case _:
            return Ignore(IgnoreReason.MESSAGE_TYPE, str(request.message_type))


def _declined(request: Packet, known: Known) -> Ignore:
    address = requested_address(request) or known.reservation.address
    message = f"The machine reports that {address} is in use by another machine. Find the second user of the address."
    problem = Problem("AddressInUse", message, known.reservation.mac, (known.name,))
    return Ignore(IgnoreReason.DECLINED, message, problem)


def _served(
    request: Packet, known: Known, *, settings: DhcpSettings, own: Endpoints, identifier: IPv4Address
) -> Decision:
    reservation = known.reservation
    if request.message_type == MessageType.INFORM:
        return _informed(request, known, own=own, identifier=identifier)
    if reservation.address is None:
        message = "dhcp.ip.address has no IPv4 address to offer."
        problem = Problem("NoAddressReserved", message, reservation.mac, (known.name,))
        return Ignore(IgnoreReason.NO_ADDRESS, message, problem)
    if request.message_type == MessageType.REQUEST:
        requested = requested_address(request) or request.ciaddr
        if requested not in {ZERO, reservation.address}:
            return _rejected_address(request, known, requested=requested, identifier=identifier)
    return _leased(request, known, settings=settings, own=own, identifier=identifier)


def _rejected_address(request: Packet, known: Known, *, requested: IPv4Address, identifier: IPv4Address) -> Reply:
    """Reply with NAK: the client drops the wrong address and starts again with DISCOVER."""
    options = {
        int(Option.SERVER_IDENTIFIER): identifier.packed,
        int(Option.MESSAGE): f"{requested} is not the address reserved for this machine".encode(),
    }
    packet = reply_to(request, MessageType.NAK, options)
    if request.giaddr != ZERO:
        # The client may not be reachable at the address that it uses (RFC 2131, section 4.3.2).
        packet = replace(packet, flags=packet.flags | BROADCAST_FLAG)
    return Reply(packet, MessageType.NAK, known.name)


def _informed(request: Packet, known: Known, *, own: Endpoints, identifier: IPv4Address) -> Decision:
    """Reply to a machine that has an address from another source, without address and lease time."""
    if request.ciaddr == ZERO:
        return Ignore(IgnoreReason.NO_ADDRESS, "the INFORM has no client address")
    options = _configuration(known, own=own, identifier=identifier)
    packet = reply_to(request, MessageType.ACK, options, ciaddr=request.ciaddr, siaddr=own.address)
    return Reply(fitted(packet, request), MessageType.ACK, known.name)


def _configuration(known: Known, *, own: Endpoints, identifier: IPv4Address) -> dict[int, bytes]:
    options = {**known.reservation.options, int(Option.SERVER_IDENTIFIER): identifier.packed}
    if own.log_server is not None:
        options[int(Option.LOG_SERVERS)] = own.log_server.packed
    return options


def _leased(request: Packet, known: Known, *, settings: DhcpSettings, own: Endpoints, identifier: IPv4Address) -> Reply:
    """Reply with OFFER to a DISCOVER, and with ACK to a REQUEST, with netboot options for boot clients."""
    kind = MessageType.OFFER if request.message_type == MessageType.DISCOVER else MessageType.ACK
    reservation = known.reservation
    options = _configuration(known, own=own, identifier=identifier)
    options[int(Option.LEASE_TIME)] = reservation.lease_s.to_bytes(4, "big")
    if request.options.get(Option.VENDOR_CLASS, b"").startswith(HTTP_CLIENT):
        options[int(Option.VENDOR_CLASS)] = HTTP_CLIENT
    boot = _boot(request, known, settings=settings, own=own)
    if boot.is_missing:
        for code in (Option.TFTP_SERVER_NAME, Option.BOOT_FILE_NAME):
            options.pop(int(code), None)
    if boot.vendor:
        options[int(Option.VENDOR_SPECIFIC)] = boot.vendor
    file, problems = place_file(boot.file, options, mac=reservation.mac, hardware=known.name)
    packet = reply_to(
        request, kind, options, ciaddr=request.ciaddr if kind is MessageType.ACK else ZERO, yiaddr=reservation.address,
        siaddr=boot.next_server, file=file,
    )  # fmt: skip
    problems += missing(boot, mac=reservation.mac, hardware=known.name)
    return Reply(fitted(packet, request), kind, known.name, boot.file, boot.rejection, problems)


def _boot(request: Packet, known: Known, *, settings: DhcpSettings, own: Endpoints) -> BootAnswer:
    """Return the user's own boot file, else ours; none for a client that only requests an address."""
    reservation = known.reservation
    if reservation.boot_file:
        return _own_boot_file(reservation, settings=settings, own=own)
    client = boot_client(request, settings) if settings.netboot_options else None
    if client is None:
        return BootAnswer("", own.address)
    return boot_answer(client, known.plan, vlan_id=reservation.vlan_id, settings=settings, own=own)


def _own_boot_file(reservation: Reservation, *, settings: DhcpSettings, own: Endpoints) -> BootAnswer:
    """Return the boot file that the Hardware names; whether another server has it is not known."""
    name, server = reservation.boot_file, reservation.options.get(Option.TFTP_SERVER_NAME, b"").decode()
    if server in {str(own.tftp_address), str(own.address)} and not settings.is_served(name):
        return rejected(
            f'The boot file "{name}" of dhcp.boot_file_name is missing: dhcp.tftp_server_name {server} is this server, '
            "which only serves iPXE binaries. Name the server that has it.",
            is_missing=True,
        )
    return BootAnswer(name, own.address)
