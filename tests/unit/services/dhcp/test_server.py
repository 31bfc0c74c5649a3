"""The server without a network: datagrams in, datagrams out, problems told."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from functools import partial
from ipaddress import IPv4Address

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import REGISTRY

from ironbell.api.meta import ObjectMeta
from ironbell.api.tinkerbell.hardware import Hardware, HardwareSpec
from ironbell.api.tinkerbell.interface import Dhcp, Interface, Ip, Netboot
from ironbell.base.clock import ManualClock
from ironbell.codec.dhcp import MessageType, Op, Option, Packet, decode, encode
from ironbell.codec.dhcp.packet import ZERO
from ironbell.contract.servers.directory import HardwareDirectory
from ironbell.contract.servers.netboot import NetbootPlan, NetbootSettings, netboot_plan
from ironbell.services.dhcp import DhcpServer, DhcpSettings, Mode, Problem
from ironbell.services.dhcp.answers import Reply
from ironbell.services.dhcp.server import ProblemReporter
from ironbell.services.dhcp.settings import DhcpSettingsError
from ironbell.services.dhcp.sockets import Datagram, destination

LOCAL = IPv4Address("127.0.0.1")
NETBOOT = NetbootSettings(osie_url="", grpc_authority="")


def plan(hardware: Hardware, interface: Interface, address: str) -> NetbootPlan:
    return netboot_plan(hardware, interface, NETBOOT, address=address)


def hardware(name: str, mac: str, address: str = "127.0.0.50", *, allow: bool = True) -> Hardware:
    interface = Interface(
        dhcp=Dhcp(mac=mac, ip=Ip(address=address, netmask="255.255.255.0")), netboot=Netboot(allow_pxe=allow)
    )
    return Hardware(metadata=ObjectMeta(name=name, namespace="lab"), spec=HardwareSpec(interfaces=[interface]))


class Bench:
    """A server on a socket that is never read, with its directory, clock and what it reported."""

    def __init__(self, settings: DhcpSettings | None = None) -> None:
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.directory = HardwareDirectory()
        self.clock = ManualClock()
        self.problems: list[Problem] = []
        self.replies: list[Reply] = []
        self.server = DhcpServer(
            self.socket,
            interface="",
            settings=settings or DhcpSettings(),
            directory=self.directory,
            plan=plan,
            clock=self.clock,
            on_problem=self.problems.append,
            on_reply=self.replies.append,
        )

    def ask(self, mac: str = "02:00:00:00:00:01", *, source: str = "0.0.0.0", **fields: object) -> Packet | None:
        message = Packet(
            op=Op.REQUEST,
            xid=1,
            chaddr=bytes.fromhex(mac.replace(":", "")),
            options={int(Option.MESSAGE_TYPE): bytes((MessageType.DISCOVER,))},
            **fields,  # type: ignore[arg-type]
        )
        outgoing = self.server.handle(Datagram(encode(message), source, 68, 1, LOCAL.packed))
        return decode(outgoing.data) if outgoing else None


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    made.socket.close()


def metric(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, labels) or 0.0


def test_serves_a_machine_and_follows_its_hardware(bench: Bench) -> None:
    assert bench.ask() is None
    bench.directory.upsert(hardware("a", "02:00:00:00:00:01"))
    first = bench.ask()
    assert first is not None
    assert first.yiaddr == IPv4Address("127.0.0.50")
    bench.directory.upsert(hardware("a", "02:00:00:00:00:01", "127.0.0.60"))
    second = bench.ask()
    assert second is not None
    assert second.yiaddr == IPv4Address("127.0.0.60")
    bench.directory.remove("lab", "a")
    assert bench.ask() is None
    assert [reply.hardware for reply in bench.replies] == ["lab/a", "lab/a"]


def test_two_hardware_with_one_mac_are_reported_once_and_neither_is_served(bench: Bench) -> None:
    bench.directory.upsert(hardware("a", "02:00:00:00:00:01"))
    bench.directory.upsert(hardware("b", "02:00:00:00:00:01", "127.0.0.51"))
    assert bench.ask() is None
    assert bench.ask() is None
    assert [(problem.reason, problem.hardware) for problem in bench.problems] == [
        ("AmbiguousHardware", ("lab/a", "lab/b"))
    ]
    bench.clock.advance(601)
    assert bench.ask() is None
    assert len(bench.problems) == 2
    bench.directory.remove("lab", "b")
    assert bench.ask() is not None


def test_two_hardware_with_one_address_are_reported_and_neither_is_served(bench: Bench) -> None:
    bench.directory.upsert(hardware("a", "02:00:00:00:00:01"))
    assert bench.ask() is not None
    bench.directory.upsert(hardware("b", "02:00:00:00:00:02"))
    bench.clock.advance(6)
    assert bench.ask() is None
    assert bench.ask("02:00:00:00:00:02") is None
    assert {problem.reason for problem in bench.problems} == {"AmbiguousHardware"}
    bench.directory.remove("lab", "a")
    bench.clock.advance(6)
    assert bench.ask("02:00:00:00:00:02") is not None


def test_wrong_hardware_is_reported_with_the_field(bench: Bench) -> None:
    interface = Interface(dhcp=Dhcp(mac="02:00:00:00:00:01", ip=Ip(address="127.0.0.5")))
    bench.directory.upsert(Hardware(metadata=ObjectMeta(name="a"), spec=HardwareSpec(interfaces=[interface])))
    assert bench.ask() is None
    assert [problem.reason for problem in bench.problems] == ["InvalidDhcpData"]
    assert "dhcp.ip.netmask" in bench.problems[0].message


def test_an_ipv6_address_is_reported_and_does_no_harm(bench: Bench) -> None:
    interface = Interface(dhcp=Dhcp(mac="02:00:00:00:00:01", ip=Ip(address="fd00::5")))
    bench.directory.upsert(Hardware(metadata=ObjectMeta(name="a"), spec=HardwareSpec(interfaces=[interface])))
    assert bench.ask() is None
    assert [problem.reason for problem in bench.problems] == ["DhcpDataIgnored", "NoAddressReserved"]


def test_malformed_datagrams_are_counted(bench: Bench) -> None:
    before = metric("ironbell_dhcp_malformed_total")
    assert bench.server.handle(Datagram(b"nonsense", "10.0.0.1", 68)) is None
    assert bench.server.handle(Datagram(b"", "10.0.0.1", 68, is_truncated=True)) is None
    assert metric("ironbell_dhcp_malformed_total") == before + 2


def test_messages_are_counted_by_type_and_reason(bench: Bench) -> None:
    received = partial(metric, "dhcp_total", op="recv", type="DHCPDISCOVER")
    sent = partial(metric, "dhcp_total", op="send", type="DHCPOFFER")
    unknown = partial(metric, "ironbell_dhcp_ignored_total", reason="unknown_machine")
    before = (received(), sent(), unknown())
    bench.ask()
    bench.directory.upsert(hardware("a", "02:00:00:00:00:01"))
    bench.ask()
    assert (received(), sent(), unknown()) == (before[0] + 2, before[1] + 1, before[2] + 1)


@given(st.binary(max_size=500))
def test_any_datagram_is_survived(data: bytes) -> None:
    made = Bench(DhcpSettings(mode=Mode.AUTO_PROXY))
    try:
        made.server.handle(Datagram(data, "10.0.0.1", 68, 1, LOCAL.packed))
    finally:
        made.socket.close()


RELAY = IPv4Address("10.9.0.1")
CLIENT = IPv4Address("10.0.0.5")


@pytest.mark.parametrize(
    ("giaddr", "ciaddr", "source", "kind", "to"),
    [
        (RELAY, ZERO, "10.9.0.1", MessageType.OFFER, ("10.9.0.1", 67)),
        (RELAY, ZERO, "10.9.0.1", MessageType.NAK, ("10.9.0.1", 67)),
        (ZERO, ZERO, "0.0.0.0", MessageType.OFFER, ("255.255.255.255", 68)),
        (ZERO, CLIENT, "0.0.0.0", MessageType.ACK, ("10.0.0.5", 68)),
        (ZERO, CLIENT, "10.0.0.5", MessageType.ACK, ("10.0.0.5", 68)),
        (ZERO, CLIENT, "10.0.0.5", MessageType.NAK, ("255.255.255.255", 68)),
    ],
)
def test_destination_is_that_of_rfc_2131(
    giaddr: IPv4Address, ciaddr: IPv4Address, source: str, kind: MessageType, to: tuple[str, int]
) -> None:
    message = Packet(op=Op.REQUEST, xid=1, chaddr=b"\x02" * 6, giaddr=giaddr, ciaddr=ciaddr)
    assert destination(message, kind, source=source, source_port=68) == to


def test_a_reporter_forgets_before_it_grows_without_end() -> None:
    told: list[Problem] = []
    reporter = ProblemReporter(told.append, ManualClock())
    for number in range(10_500):
        reporter.report(Problem("R", "m", str(number)))
    assert len(told) == 10_500
    assert len(reporter._reported_at) <= 10_000


@pytest.mark.parametrize("text", ["proxy", "Proxy", " PROXY "])
def test_modes_are_named_in_any_case(text: str) -> None:
    assert Mode.parse(text) is Mode.PROXY


def test_an_unknown_mode_names_the_known_ones() -> None:
    with pytest.raises(DhcpSettingsError, match="reservation, proxy, auto-proxy"):
        Mode.parse("relay")
