"""The DHCP server's decision for one message: pure, total, without memory.

Nothing is leased: a machine's address is written in its Hardware, so every replica gives the same answer and a
restart forgets nothing. `decide` chooses by mode; the rules of the two kinds of server are in `reserve` and `proxy`.

Source: RFC 2131, sections 3 and 4.3; tinkerbell/tinkerbell: smee/internal/dhcp/handler.
"""

from __future__ import annotations

from ironbell.codec.dhcp import MessageType, Op, OptionError, Packet
from ironbell.codec.dhcp.packet import ZERO
from ironbell.services.dhcp import proxy, reserve
from ironbell.services.dhcp.answers import Decision, Ignore, IgnoreReason, Known, Subject, Unusable
from ironbell.services.dhcp.client import boot_client
from ironbell.services.dhcp.problems import Problem
from ironbell.services.dhcp.settings import DhcpSettings, Endpoints, Mode

_NO_OWN_ADDRESS = Problem(
    "NoServerAddress",
    "the interface that requests come in on has no IPv4 address, so no machine could reach us; "
    "give it one or set the address to advertise",
)


def decide(request: Packet, subject: Subject, *, settings: DhcpSettings, own: Endpoints) -> Decision:
    """The answer to one message from `subject`. `own` is us, as the asking machine reaches us."""
    try:
        refused = _unanswerable(request, subject, settings)
        if refused is not None:
            return refused
        if own.address == ZERO:
            return Ignore(IgnoreReason.NO_OWN_ADDRESS, _NO_OWN_ADDRESS.message, _NO_OWN_ADDRESS)
        known = subject if isinstance(subject, Known) else None
        serve = reserve.answer if settings.mode is Mode.RESERVATION else proxy.answer
        return serve(request, known, settings=settings, own=own)
    except OptionError as error:
        return Ignore(IgnoreReason.MALFORMED_OPTION, error.message)


def _unanswerable(request: Packet, subject: Subject, settings: DhcpSettings) -> Ignore | None:
    """What no mode answers."""
    if request.op != Op.REQUEST:
        return Ignore(IgnoreReason.NOT_A_REQUEST)
    if not request.mac:
        return Ignore(IgnoreReason.NO_ETHERNET_ADDRESS, f"hardware type {request.htype}")
    if not request.message_type:
        return Ignore(IgnoreReason.BOOTP)
    if not MessageType.DISCOVER <= request.message_type <= MessageType.INFORM:
        return Ignore(IgnoreReason.MESSAGE_TYPE, str(request.message_type))
    if isinstance(subject, Unusable):
        return Ignore(IgnoreReason.UNUSABLE_HARDWARE, subject.problem.message, subject.problem)
    if isinstance(subject, Known) and subject.reservation.is_disabled:
        return _disabled(request, subject, settings)
    return None


def _disabled(request: Packet, subject: Known, settings: DhcpSettings) -> Ignore:
    """The field says that DHCP is off for this interface, and netboot by DHCP is a part of it, whoever gives addresses.

    Upstream's proxy modes ignore the field. A machine that netboots there and does not here needs a word about it.
    """
    why = f"disableDhcp is set on {subject.name}"
    if settings.mode is Mode.RESERVATION or boot_client(request, settings) is None:
        return Ignore(IgnoreReason.DISABLED, why)
    message = (
        f"The machine asks to netboot in DHCP mode {settings.mode.value} and gets no answer, since disableDhcp is set: "
        "set it to false. This mode gives out no addresses."
    )
    mac = subject.reservation.mac
    return Ignore(IgnoreReason.DISABLED, why, Problem("DhcpDisabled", message, mac, (subject.name,)))
