"""The DHCP server on one socket: reads, looks up, decides, answers.

It keeps no state about clients, so any number may run and a restart loses nothing. A datagram that is no DHCP message
is counted and forgotten; a socket error (interface down, buffers full) is counted and the server goes on, after a
pause when reading fails.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from ipaddress import IPv4Address

import structlog
from prometheus_client import Counter

from ironbell.base.clock import Clock
from ironbell.base.repeats import Repeats
from ironbell.codec.dhcp import DecodeError, EncodeError, MessageType, Packet, decode, encode, summary
from ironbell.codec.dhcp.numbers import Op, type_name
from ironbell.codec.dhcp.packet import ZERO, address_of
from ironbell.services.dhcp.answers import Decision, Ignore, Reply
from ironbell.services.dhcp.decision import decide
from ironbell.services.dhcp.destination import destination
from ironbell.services.dhcp.problems import Problem, ProblemReporter, ProblemSink
from ironbell.services.dhcp.reservation import Reservation
from ironbell.services.dhcp.settings import DhcpSettings, Endpoints, endpoints
from ironbell.services.dhcp.sockets import Datagram, address_toward, receive, send
from ironbell.services.dhcp.subjects import MachineDirectory, PlanFunction, Subjects

MESSAGES = Counter("dhcp", "DHCP messages received and sent.", ["op", "type"])
IGNORED = Counter("ironbell_dhcp_ignored", "DHCP messages that got no answer, by reason.", ["reason"])
MALFORMED = Counter("ironbell_dhcp_malformed", "Datagrams on the DHCP port that are no DHCP message.")
FAILURES = Counter("ironbell_dhcp_failures", "Messages whose handling failed unexpectedly.")
SOCKET_ERRORS = Counter("ironbell_dhcp_socket_errors", "Failures to receive or send.", ["op"])
PROBLEMS = Counter("ironbell_dhcp_problems", "Findings about machines that are served wrongly or not.", ["reason"])


DRAIN = 64
"""Datagrams read per wake-up, so that a flood cannot hold the event loop."""
PAUSE_S = 1.0
ROUTE_AGE_S = 30.0
_MAX_ROUTES = 65_536


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A reply's bytes and its way."""

    data: bytes
    to: tuple[str, int]
    interface: int
    local: bytes


@dataclass(slots=True)
class _Routes:
    """Which address of ours a machine reaches, asked of the kernel at most every half minute."""

    interface: str
    clock: Clock
    _known: dict[IPv4Address, tuple[float, IPv4Address | None]] = field(default_factory=dict)

    def toward(self, client: IPv4Address) -> IPv4Address | None:
        now = self.clock.monotonic()
        entry = self._known.get(client)
        if entry is None or now - entry[0] > ROUTE_AGE_S:
            if len(self._known) >= _MAX_ROUTES:
                self._known.clear()
            entry = (now, address_toward(client, self.interface))
            self._known[client] = entry
        return entry[1]


class DhcpServer:
    """Serves one socket from `open_dhcp_socket`; the socket stays the caller's to close."""

    def __init__(
        self,
        sock: socket.socket,
        *,
        interface: str,
        settings: DhcpSettings,
        directory: MachineDirectory,
        plan: PlanFunction,
        clock: Clock,
        on_problem: ProblemSink | None = None,
        on_reply: Callable[[Reply], None] | None = None,
    ) -> None:
        self._sock = sock
        self._log = structlog.get_logger().bind(interface=interface)
        self._has_debug_log = self._log.is_enabled_for(logging.DEBUG)
        self._settings = settings
        self._routes = _Routes(interface, clock)
        self._clock = clock
        self._repeats = Repeats()
        self._reporter = ProblemReporter(on_problem, clock)
        self._on_reply = on_reply
        self._subjects = Subjects(
            directory, plan, clock=clock, default_lease_s=settings.default_lease_s, on_problem=self._report
        )
        self._endpoints: dict[tuple[IPv4Address, IPv4Address], Endpoints] = {}
        self._pause: asyncio.TimerHandle | None = None

    async def run(self) -> None:
        """Serve until cancelled."""
        loop = asyncio.get_running_loop()
        loop.add_reader(self._sock, self._drain, loop)
        try:
            await loop.create_future()
        finally:
            if self._pause is not None:
                self._pause.cancel()
            loop.remove_reader(self._sock)

    def _drain(self, loop: asyncio.AbstractEventLoop) -> None:
        for _ in range(DRAIN):
            try:
                datagram = receive(self._sock)
            except BlockingIOError:
                return
            except OSError as error:
                SOCKET_ERRORS.labels("recv").inc()
                self._log.warning("dhcp receive failed", error=str(error), retry_s=PAUSE_S)
                loop.remove_reader(self._sock)
                self._pause = loop.call_later(PAUSE_S, loop.add_reader, self._sock, self._drain, loop)
                return
            try:
                outgoing = self.handle(datagram)
            except Exception as error:  # noqa: BLE001 - one message must not stop the server for all machines
                FAILURES.inc()
                self._log.error("dhcp message failed", source=datagram.source, error=repr(error))
                continue
            if outgoing is not None:
                self._send(outgoing)

    def _send(self, outgoing: Outgoing) -> None:
        try:
            send(self._sock, outgoing.data, outgoing.to, interface=outgoing.interface, local=outgoing.local)
        except OSError as error:
            SOCKET_ERRORS.labels("send").inc()
            self._log.warning("dhcp reply not sent", to=outgoing.to[0], error=str(error))

    def handle(self, datagram: Datagram) -> Outgoing | None:
        """What to send for one datagram; no I/O except asking the kernel for a route."""
        try:
            if datagram.is_truncated:
                raise DecodeError("the datagram is longer than any DHCP message")
            request = decode(datagram.data)
        except DecodeError as error:
            MALFORMED.inc()
            self._log.debug("dhcp message malformed", source=datagram.source, error=error.message)
            return None
        if request.op == Op.REQUEST:
            _count("recv", request.message_type)
        decision = self._decide(request, datagram)
        if isinstance(decision, Ignore):
            self._ignored(request, decision)
            return None
        return self._answered(request, datagram, decision)

    def _decide(self, request: Packet, datagram: Datagram) -> Decision:
        local = address_of(datagram.local)
        chosen = local

        def own_address_for(reservation: Reservation | None) -> IPv4Address:
            nonlocal chosen
            chosen = self._own_address(request, local, reservation)
            return chosen

        subject = self._subjects.find(request.mac, own_address_for) if request.mac else None
        return decide(request, subject, settings=self._settings, own=self._own_endpoints(chosen, local))

    def _own_address(self, request: Packet, local: IPv4Address, reservation: Reservation | None) -> IPv4Address:
        """The address that the machine will reach once it has its own."""
        if self._settings.advertise is not None:
            return self._settings.advertise
        # A relay has an address of ours that works across its network: the one that it sends to.
        if request.giaddr != ZERO or reservation is None or reservation.address is None:
            return local
        return self._routes.toward(reservation.address) or local

    def _own_endpoints(self, address: IPv4Address, local: IPv4Address) -> Endpoints:
        key = (address, local)
        found = self._endpoints.get(key)
        if found is None:
            found = self._endpoints[key] = endpoints(self._settings, address, also=local)
        return found

    def _ignored(self, request: Packet, ignored: Ignore) -> None:
        IGNORED.labels(ignored.reason.value).inc()
        self._log.debug("dhcp message ignored", reason=ignored.reason.value, detail=ignored.detail, mac=request.mac)
        if ignored.problem is not None:
            self._report(ignored.problem)

    def _answered(self, request: Packet, datagram: Datagram, reply: Reply) -> Outgoing | None:
        for problem in reply.problems:
            self._report(problem)
        try:
            data = encode(reply.packet)
        except EncodeError as error:
            self._report(Problem(error.reason, error.message, request.mac, (reply.hardware,)))
            return None
        _count("send", reply.kind)
        to = destination(request, reply.kind, source=datagram.source, source_port=datagram.source_port)
        self._tell(request, reply, to)
        if self._on_reply is not None:
            self._on_reply(reply)
        # Through a relay the way back is the routing's affair; otherwise it is the way that the request came.
        interface = datagram.interface if request.giaddr == ZERO else 0
        return Outgoing(data, to, interface, datagram.local)

    def _tell(self, request: Packet, reply: Reply, to: tuple[str, int]) -> None:
        """Offers are routine; what changes a machine's life is told."""
        if reply.kind is MessageType.OFFER:
            # A summary costs more than the whole reply.
            if self._has_debug_log:
                self._log.debug("dhcp offer", to=to[0], request=summary(request), reply=summary(reply.packet))
            return
        skipped = self._repeats.skipped((request.mac, reply.kind), self._clock.monotonic())
        if skipped is None:
            return
        self._log.info(
            "dhcp reply",
            type=reply.kind.name,
            mac=request.mac,
            hardware=reply.hardware,
            address=str(reply.packet.yiaddr),
            boot_file=reply.boot_file,
            refusal=reply.refusal,
            to=to[0],
            **({"skipped": skipped} if skipped else {}),
        )

    def _report(self, problem: Problem) -> None:
        PROBLEMS.labels(problem.reason).inc()
        self._reporter.report(problem)


_COUNTERS = {
    (op, kind): MESSAGES.labels(op, type_name(kind)) for op in ("recv", "send") for kind in range(max(MessageType) + 2)
}


def _count(op: str, kind: int) -> None:
    """Counts a message; the label children are made once, since looking one up costs more than counting."""
    counter = _COUNTERS.get((op, kind)) or _COUNTERS[(op, 0)]
    counter.inc()
