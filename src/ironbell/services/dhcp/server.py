"""The DHCP server on one socket: it reads messages, finds their machines, decides and replies.

It has no state about clients, so any number of servers may run and a restart loses nothing. Datagrams that are not DHCP
messages and socket errors (interface down, buffers full) are counted; if reading fails, the server pauses.
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
from ironbell.services.dhcp.answers import Decision, Ignore, Problem, Reply
from ironbell.services.dhcp.decision import decide
from ironbell.services.dhcp.reservation import Reservation
from ironbell.services.dhcp.settings import DhcpSettings, Endpoints, endpoints
from ironbell.services.dhcp.sockets import Datagram, address_toward, destination, receive, send
from ironbell.services.dhcp.subjects import MachineDirectory, PlanFunction, Subjects

MESSAGES = Counter("dhcp", "DHCP messages received and sent.", ["op", "type"])
IGNORED = Counter("ironbell_dhcp_ignored", "DHCP messages that got no answer, by reason.", ["reason"])
MALFORMED = Counter("ironbell_dhcp_malformed", "Datagrams on the DHCP port that are no DHCP message.")
FAILURES = Counter("ironbell_dhcp_failures", "Messages whose handling failed unexpectedly.")
SOCKET_ERRORS = Counter("ironbell_dhcp_socket_errors", "Failures to receive or send.", ["op"])
PROBLEMS = Counter("ironbell_dhcp_problems", "Findings about machines that are served wrongly or not.", ["reason"])

DRAIN = 64
"""Maximum number of datagrams per wake-up, so that a flood does not block the event loop."""
PAUSE_S = 1.0
QUIET_S = 600.0
"""Interval at which the same problem of a machine is reported again."""
ROUTE_AGE_S = 30.0
_MAX_ROUTES = 65_536
_MAX_PROBLEMS = 10_000

ProblemSink = Callable[[Problem], None]


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A reply, encoded, with its destination and route."""

    data: bytes
    to: tuple[str, int]
    interface: int
    local: bytes


@dataclass(slots=True)
class _Routes:
    """Our addresses that machines reach, each queried from the kernel at most every `ROUTE_AGE_S`."""

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


class ProblemReporter:
    """Logs problems and passes them on, each once per quiet time: machines repeat their packets every few seconds."""

    def __init__(self, sink: ProblemSink | None, clock: Clock, *, quiet_s: float = QUIET_S) -> None:
        self._sink = sink
        self._clock = clock
        self._quiet_s = quiet_s
        self._reported_at: dict[Problem, float] = {}

    def report(self, problem: Problem) -> None:
        now = self._clock.monotonic()
        reported_at = self._reported_at.get(problem)
        if reported_at is not None and now - reported_at < self._quiet_s:
            return
        if len(self._reported_at) >= _MAX_PROBLEMS:
            recent = {known: at for known, at in self._reported_at.items() if now - at < self._quiet_s}
            # MACs can be invented without end: the older half is dropped, and reported again if it is real.
            self._reported_at = dict(list(recent.items())[max(0, len(recent) - _MAX_PROBLEMS // 2) :])
        self._reported_at[problem] = now
        structlog.get_logger().warning(
            "dhcp problem", reason=problem.reason, message=problem.message, mac=problem.mac, hardware=problem.hardware
        )
        if self._sink is not None:
            self._sink(problem)


class DhcpServer:
    """Serves one socket from `open_dhcp_socket`, which the caller closes."""

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
        """Return the reply to one datagram, or None; no I/O except queries of the kernel's routes."""
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
        """Return our address that the machine reaches once it has its own."""
        if self._settings.advertise is not None:
            return self._settings.advertise
        # The address to which a relay sends is one that its network reaches.
        if request.giaddr != ZERO or reservation is None or reservation.address is None:
            return local
        return self._routes.toward(reservation.address) or local

    def _own_endpoints(self, address: IPv4Address, local: IPv4Address) -> Endpoints:
        key = (address, local)
        if key not in self._endpoints:
            self._endpoints[key] = endpoints(self._settings, address, also=local)
        return self._endpoints[key]

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
        self._log_reply(request, reply, to)
        if self._on_reply is not None:
            self._on_reply(reply)
        # A reply to a relay is routed; any other leaves through the interface of the request.
        interface = datagram.interface if request.giaddr == ZERO else 0
        return Outgoing(data, to, interface, datagram.local)

    def _log_reply(self, request: Packet, reply: Reply, to: tuple[str, int]) -> None:
        """Log a reply; offers only for debugging."""
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
            rejection=reply.rejection,
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
    """Count a message. The metric's children are created once, because looking them up costs more than counting."""
    (_COUNTERS.get((op, kind)) or _COUNTERS[(op, 0)]).inc()
