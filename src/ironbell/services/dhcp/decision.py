"""The DHCP server's decision about one message. Pure.

Nothing is leased: a machine's address is that of its Hardware, so every replica replies the same and a restart loses
nothing. `decide` selects the rules by mode: those of `reserve` or of `proxy`.

Source: RFC 2131, sections 3 and 4.3; tinkerbell/tinkerbell: smee/internal/dhcp/handler.
"""

from __future__ import annotations

from ironbell.codec.dhcp import MessageType, Op, OptionError, Packet
from ironbell.codec.dhcp.packet import ZERO
from ironbell.services.dhcp import proxy, reserve
from ironbell.services.dhcp.answers import Decision, Ignore, IgnoreReason, Known, Problem, Subject, Unusable
from ironbell.services.dhcp.bootfile import boot_client
from ironbell.services.dhcp.settings import DhcpSettings, Endpoints, Mode

_NO_OWN_ADDRESS = Problem(
    "NoServerAddress",
    "The interface on which requests arrive has no IPv4 address, so no machine can reach this server. "
    "Give it one, or set the address to advertise.",
)


def decide(request: Packet, subject: Subject, *, settings: DhcpSettings, own: Endpoints) -> Decision:
    """Return the decision about a message from `subject`. `own` has our addresses as the machine reaches them."""
    try:
        ignored = _ignored(request, subject, settings)
        if ignored is not None:
            return ignored
        if own.address == ZERO:
            return Ignore(IgnoreReason.NO_OWN_ADDRESS, _NO_OWN_ADDRESS.message, _NO_OWN_ADDRESS)
        known = subject if isinstance(subject, Known) else None
        serve = reserve.answer if settings.mode is Mode.RESERVATION else proxy.answer
        return serve(request, known, settings=settings, own=own)
    except OptionError as error:
        return Ignore(IgnoreReason.MALFORMED_OPTION, error.message)


def _ignored(request: Packet, subject: Subject, settings: DhcpSettings) -> Ignore | None:
    """Return the reason for which no mode replies, or None."""
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
    """Ignore an interface with DHCP disabled, which includes netboot by DHCP, in every mode.

    Upstream's proxy modes ignore the field. A machine that netboots there, and does not here, has a problem to report.
    """
    detail = f"disableDhcp is set on {subject.name}"
    if settings.mode is Mode.RESERVATION or boot_client(request, settings) is None:
        return Ignore(IgnoreReason.DISABLED, detail)
    message = (
        f"The machine requests to netboot in DHCP mode {settings.mode.value} and gets no reply, because disableDhcp is "
        "set. Set it to false: this mode assigns no addresses."
    )
    mac = subject.reservation.mac
    return Ignore(IgnoreReason.DISABLED, detail, Problem("DhcpDisabled", message, mac, (subject.name,)))
