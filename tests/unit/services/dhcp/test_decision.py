"""What the server answers: tables over messages, modes and Hardware."""

from __future__ import annotations

from ipaddress import IPv4Address
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ironbell.api.tinkerbell.interface import Ipxe
from ironbell.codec.dhcp import DecodeError, MessageType, Op, Packet, decode, encode
from ironbell.codec.dhcp.pxe import vendor_suboptions
from ironbell.codec.dhcp.user_class import user_class_bytes
from ironbell.services.dhcp import DhcpSettings, MacFormat, Mode, PlainIpxe, decide
from ironbell.services.dhcp.answers import Ignore, IgnoreReason, Problem, Reply, Subject, Unusable
from ironbell.services.dhcp.settings import endpoints
from support.network.dhcp import ADDRESS, MAC, OTHER, OWN, SCRIPT, ask, known, pxe, request


def served(message: Packet, subject: Subject, **settings: Any) -> Packet:
    decision = ask(message, subject, **settings)
    assert isinstance(decision, Reply), decision
    assert decode(encode(decision.packet)) == decision.packet
    return decision.packet


def ignored(message: Packet, subject: Subject, **settings: Any) -> IgnoreReason:
    decision = ask(message, subject, **settings)
    assert isinstance(decision, Ignore), decision
    return decision.reason


def test_offers_the_reserved_address_with_its_options() -> None:
    subject = known(
        hostname="node-1", domain_name="lab.example", name_servers=["1.1.1.1", "8.8.8.8"], time_servers=["10.0.0.9"],
        lease_time=3600,
    )  # fmt: skip
    reply = served(request(), subject, log_server="{address}")
    assert (reply.yiaddr, reply.siaddr, reply.op, reply.xid) == (ADDRESS, OWN, Op.REPLY, 7)
    assert reply.options == {
        53: b"\x02",
        54: OWN.packed,
        51: (3600).to_bytes(4, "big"),
        1: bytes((255, 255, 255, 0)),
        3: bytes((192, 168, 2, 254)),
        28: bytes((192, 168, 2, 255)),
        6: bytes((1, 1, 1, 1, 8, 8, 8, 8)),
        7: OWN.packed,
        12: b"node-1",
        15: b"lab.example",
        42: bytes((10, 0, 0, 9)),
        119: b"\x03lab\x07example\0",
    }
    assert reply.file == b""


def test_an_interface_without_netboot_still_gets_a_lease() -> None:
    reply = served(request(options=pxe()), known(netboot=False))
    assert reply.yiaddr == ADDRESS
    assert reply.file == b"/netboot-not-allowed"


@pytest.mark.parametrize("lease_time", [None, 0, -1, 2**32])
def test_the_lease_is_a_week_where_none_or_an_impossible_one_is_given(lease_time: int | None) -> None:
    assert served(request(), known(lease_time=lease_time)).options[51] == (604800).to_bytes(4, "big")


@pytest.mark.parametrize(
    ("options", "fields"),
    [
        ({54: OWN.packed, 50: ADDRESS.packed}, {}),
        ({50: ADDRESS.packed}, {}),
        ({}, {"ciaddr": ADDRESS}),
    ],
    ids=["selecting", "init-reboot", "renewing"],
)
def test_acknowledges_a_request_for_the_reserved_address(options: dict[int, bytes], fields: dict[str, Any]) -> None:
    reply = served(request(MessageType.REQUEST, options, **fields), known())
    assert reply.message_type == MessageType.ACK
    assert (reply.yiaddr, reply.ciaddr) == (ADDRESS, fields.get("ciaddr", IPv4Address(0)))


@pytest.mark.parametrize(
    ("options", "fields"),
    [
        ({54: OWN.packed, 50: OTHER.packed}, {}),
        ({50: OTHER.packed}, {}),
        ({}, {"ciaddr": OTHER}),
    ],
    ids=["selecting", "init-reboot", "renewing"],
)
def test_refuses_a_wrong_address_with_nak(options: dict[int, bytes], fields: dict[str, Any]) -> None:
    reply = served(request(MessageType.REQUEST, {**options, 61: b"id"}, **fields), known())
    assert reply.message_type == MessageType.NAK
    assert (reply.yiaddr, reply.ciaddr, reply.siaddr) == (IPv4Address(0),) * 3
    assert set(reply.options) == {53, 54, 56, 61}


def test_a_nak_through_a_relay_asks_the_relay_to_broadcast() -> None:
    message = request(MessageType.REQUEST, {50: OTHER.packed}, giaddr=IPv4Address("10.9.0.1"))
    assert served(message, known()).needs_broadcast


def test_a_request_for_another_server_is_left_alone() -> None:
    message = request(MessageType.REQUEST, {54: OTHER.packed, 50: ADDRESS.packed})
    assert ignored(message, known()) is IgnoreReason.OTHER_SERVER


def test_stays_silent_for_unknown_machines() -> None:
    for kind in (MessageType.DISCOVER, MessageType.REQUEST, MessageType.INFORM):
        assert ignored(request(kind, {50: OTHER.packed}, ciaddr=OTHER), None) is IgnoreReason.UNKNOWN_MACHINE


def test_inform_gets_configuration_without_address_and_lease() -> None:
    reply = served(request(MessageType.INFORM, ciaddr=OTHER), known(hostname="node-1"))
    assert (reply.message_type, reply.yiaddr, reply.ciaddr) == (MessageType.ACK, IPv4Address(0), OTHER)
    assert reply.options[12] == b"node-1"
    assert 51 not in reply.options
    assert ignored(request(MessageType.INFORM), known()) is IgnoreReason.NO_ADDRESS


def test_decline_is_reported_and_release_recorded() -> None:
    decision = ask(request(MessageType.DECLINE, {54: OWN.packed, 50: ADDRESS.packed}), known())
    assert isinstance(decision, Ignore)
    assert decision.problem is not None
    assert (decision.problem.reason, decision.problem.hardware) == ("AddressInUse", ("lab/node-1",))
    assert ignored(request(MessageType.RELEASE, ciaddr=ADDRESS), known()) is IgnoreReason.RELEASED


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (request(op=Op.REPLY), IgnoreReason.NOT_A_REQUEST),
        (request(None), IgnoreReason.BOOTP),
        (request(MessageType.OFFER, {54: OTHER.packed}), IgnoreReason.OTHER_SERVER),
        (request(MessageType.ACK), IgnoreReason.MESSAGE_TYPE),
        (request(13), IgnoreReason.MESSAGE_TYPE),
        (request(mac="0102030405"), IgnoreReason.NO_ETHERNET_ADDRESS),
        (request(htype=32), IgnoreReason.NO_ETHERNET_ADDRESS),
        (request(options={54: b"\1"}), IgnoreReason.MALFORMED_OPTION),
        (request(MessageType.REQUEST, {50: b"\1"}), IgnoreReason.MALFORMED_OPTION),
        (request(options=pxe() | {93: b"\1"}), IgnoreReason.MALFORMED_OPTION),
    ],
)
def test_what_gets_no_answer(message: Packet, reason: IgnoreReason) -> None:
    assert ignored(message, known()) is reason


@pytest.mark.parametrize("mode", list(Mode))
def test_hardware_that_cannot_be_served_is_reported_and_not_answered(mode: Mode) -> None:
    problem = Problem("AmbiguousHardware", "two", MAC, ("lab/a", "lab/b"))
    decision = ask(request(options=pxe()), Unusable(problem), mode=mode)
    assert isinstance(decision, Ignore)
    assert (decision.reason, decision.problem) == (IgnoreReason.UNUSABLE_HARDWARE, problem)


@pytest.mark.parametrize("mode", list(Mode))
def test_disable_dhcp_holds_in_every_mode(mode: Mode) -> None:
    decision = ask(request(options=pxe()), known(disable=True), mode=mode)
    assert isinstance(decision, Ignore)
    assert decision.reason is IgnoreReason.DISABLED
    # upstream's proxy modes ignore the field: whoever relies on it there is told
    assert (decision.problem is not None) == (mode is not Mode.RESERVATION)
    assert decision.problem is None or "Set it to false" in decision.problem.message
    silent = ask(request(), known(disable=True), mode=mode)
    assert isinstance(silent, Ignore)
    assert (silent.reason, silent.problem) == (IgnoreReason.DISABLED, None), "a lease of another server's"


def test_hardware_without_an_ipv4_address_is_reported() -> None:
    decision = ask(request(), known(ip=None))
    assert isinstance(decision, Ignore)
    assert decision.reason is IgnoreReason.NO_ADDRESS
    assert decision.problem is not None


BOOT_TABLE = [
    # (arch, vendor class, user class, settings, file, siaddr)
    (0, b"PXEClient", b"", {}, "undionly.kpxe", OWN),
    (6, b"PXEClient", b"", {}, "ipxe.efi", OWN),
    (7, b"PXEClient", b"", {}, "ipxe.efi", OWN),
    (9, b"PXEClient", b"", {}, "ipxe.efi", OWN),
    (10, b"PXEClient", b"", {}, "snp-arm64.efi", OWN),
    (11, b"PXEClient", b"", {}, "snp-arm64.efi", OWN),
    (12, b"PXEClient", b"", {}, "/netboot-not-allowed", IPv4Address(0)),
    (17, b"PXEClient", b"", {}, "/netboot-not-allowed", IPv4Address(0)),
    (27, b"PXEClient", b"", {}, "/netboot-not-allowed", IPv4Address(0)),
    (41, b"PXEClient", b"", {}, "/netboot-not-allowed", IPv4Address(0)),
    (20, b"PXEClient", b"", {}, "undionly.kpxe", OWN),
    (16, b"HTTPClient:Arch:00016", b"", {}, f"http://{OWN}:7080/ipxe/binary/{MAC}/ipxe.efi", OWN),
    (
        19, b"HTTPClient:Arch:00016:UNDI:003001", b"", {"binary_url": "http://127.0.0.1:8181"},
        f"http://127.0.0.1:8181/{MAC}/snp-arm64.efi", IPv4Address("127.0.0.1"),
    ),
    (
        16, b"HTTPClient", b"", {"mac_format": MacFormat.DASH},
        f"http://{OWN}:7080/ipxe/binary/01-02-03-04-05-06/ipxe.efi", OWN,
    ),
    (16, b"HTTPClient", b"", {"mac_format": MacFormat.EMPTY}, f"http://{OWN}:7080/ipxe/binary/ipxe.efi", OWN),
    (0, b"PXEClient", b"iPXE", {}, SCRIPT, OWN),
    (0, b"PXEClient", user_class_bytes(b"iPXE"), {}, SCRIPT, OWN),
    (
        0, b"PXEClient", b"iPXE", {"plain_ipxe": PlainIpxe.BINARY, "tftp_address": IPv4Address("192.168.6.5")},
        f"tftp://192.168.6.5:69/{MAC}/undionly.kpxe", IPv4Address("192.168.6.5"),
    ),
    (7, b"PXEClient", b"Tinkerbell", {"plain_ipxe": PlainIpxe.BINARY}, SCRIPT, OWN),
    (7, b"PXEClient", user_class_bytes(b"Tinkerbell"), {}, SCRIPT, OWN),
    (22, b"PXEClient", b"Tinkerbell", {}, "/netboot-not-allowed", IPv4Address(0)),
    (7, b"PXEClient", b"", {"binaries": {7: "snp-x86_64.efi"}}, "snp-x86_64.efi", OWN),
]  # fmt: skip


@pytest.mark.parametrize(("arch", "vendor", "user_class", "settings", "file", "next_server"), BOOT_TABLE)
def test_boot_file_by_client(
    arch: int, vendor: bytes, user_class: bytes, settings: dict[str, Any], file: str, next_server: IPv4Address
) -> None:
    reply = served(request(options=pxe(arch, vendor=vendor, user_class=user_class)), known(), **settings)
    assert (reply.file.decode(), reply.siaddr) == (file, next_server)
    assert (43 in reply.options) is (next_server != IPv4Address(0))
    assert reply.options.get(60) == (b"HTTPClient" if vendor.startswith(b"HTTPClient") else None)


def test_upstreams_binary_override_for_http_boot() -> None:
    message = request(options=pxe(16, vendor=b"HTTPClient:xxxxx"))
    reply = served(message, known(ipxe=Ipxe(binary="snp-x86_64.efi")), binary_url="http://localhost:8181/ipxe")
    assert reply.file.decode() == f"http://localhost:8181/ipxe/{MAC}/snp-x86_64.efi"
    assert reply.siaddr == OWN


@pytest.mark.parametrize("mode", list(Mode))
def test_ipxe_url_replaces_the_script_in_every_mode(mode: Mode) -> None:
    subject = known(ipxe=Ipxe(url="https://boot.example/my.ipxe"))
    reply = served(request(options=pxe(user_class=b"Tinkerbell")), subject, mode=mode)
    assert reply.file == b"https://boot.example/my.ipxe"


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("user_class", [b"", b"iPXE", b"Tinkerbell", b"somebody"])
@pytest.mark.parametrize("arch", [0, 7, 11, 16])
def test_no_chain_loops(mode: Mode, user_class: bytes, arch: int) -> None:
    """Whatever a binary of ours comes back as, iPXE never gets a binary again."""
    options = pxe(arch, user_class=user_class)
    if user_class:
        options[175] = b"\xb1\x01\x01"
    reply = served(request(options=options), known(), mode=mode)
    assert (reply.file.decode() == SCRIPT) is bool(user_class)


@pytest.mark.parametrize("allow", [False, None])
def test_a_rom_that_may_not_netboot_is_sent_to_its_disk(allow: bool | None) -> None:
    decision = ask(request(options=pxe()), known(allow=allow))
    assert isinstance(decision, Reply)
    assert (decision.packet.yiaddr, decision.packet.siaddr) == (ADDRESS, IPv4Address(0))
    assert decision.packet.file == b"/netboot-not-allowed"
    assert 43 not in decision.packet.options
    assert "allowPXE" in decision.rejection


def test_an_ipxe_that_may_not_netboot_gets_the_script_that_boots_the_disk() -> None:
    decision = ask(request(options=pxe(user_class=b"iPXE")), known(allow=False))
    assert isinstance(decision, Reply)
    assert decision.packet.file.decode() == SCRIPT
    assert "allowPXE" in decision.rejection


@pytest.mark.parametrize("missing", [60, 93, 94])
def test_only_boot_clients_get_boot_files(missing: int) -> None:
    options = pxe()
    del options[missing]
    reply = served(request(options=options), known())
    assert (reply.file, 43 in reply.options) == (b"", False)


@pytest.mark.parametrize("identifier", [b"\1" + b"u" * 16, b"\0" * 5])
def test_a_wrong_machine_identifier_makes_no_boot_client(identifier: bytes) -> None:
    assert served(request(options=pxe(o97=identifier)), known()).file == b""


def test_netboot_options_can_be_switched_off() -> None:
    assert served(request(options=pxe()), known(), netboot_options=False).file == b""
    for mode in (Mode.PROXY, Mode.AUTO_PROXY):
        assert ignored(request(options=pxe()), known(), netboot_options=False, mode=mode) is IgnoreReason.NETBOOT_OFF


def test_vendor_options_in_reservation_mode() -> None:
    reply = served(request(options=pxe()), known(vlan_id="400"))
    assert vendor_suboptions(reply) == {6: b"\x08", 69: bytes(26), 116: b"400"}
    assert 116 not in vendor_suboptions(served(request(options=pxe()), known(vlan_id="400,401")))


@pytest.mark.parametrize("mode", list(Mode))
def test_a_raspberry_pi_is_known_by_its_maker(mode: Mode) -> None:
    mac = "d8:3a:dd:00:00:01"
    reply = served(request(options=pxe(0), mac=mac), known(mac=mac), mode=mode)
    assert reply.file == b"snp-arm64.efi"
    suboptions = vendor_suboptions(reply)
    assert suboptions[9] == b"\0\0\x11Raspberry Pi Boot"
    assert suboptions[10] == b"\0PXE"


def test_the_users_own_boot_file_replaces_ours() -> None:
    subject = known(tftp_server_name="192.168.1.200", boot_file_name="http://example.com/boot.ipxe")
    reply = served(request(options=pxe()), subject)
    assert reply.file == b"http://example.com/boot.ipxe"
    assert (reply.options[66], reply.options[67]) == (b"192.168.1.200", b"http://example.com/boot.ipxe")
    assert (43 in reply.options, reply.siaddr) == (False, OWN)


@pytest.mark.parametrize("mode", list(Mode))
def test_a_boot_file_too_long_for_the_header_goes_into_option_67_and_is_reported(mode: Mode) -> None:
    url = "http://boot.example/" + "x" * 120
    decision = ask(request(options=pxe(user_class=b"Tinkerbell")), known(ipxe=Ipxe(url=url)), mode=mode)
    assert isinstance(decision, Reply)
    assert (decision.packet.file, decision.packet.options[67]) == (b"", url.encode())
    assert [problem.reason for problem in decision.problems] == ["BootFileTooLong"]


def test_client_and_relay_identifiers_are_handed_back() -> None:
    relay = b"\x01\x04port"
    message = request(options={61: b"\xffid", 82: relay}, giaddr=IPv4Address("10.9.0.1"), flags=0x8000)
    reply = served(message, known())
    assert (reply.options[61], reply.options[82]) == (b"\xffid", relay)
    assert (reply.giaddr, reply.flags) == (IPv4Address("10.9.0.1"), 0x8000)


def test_a_relay_may_put_itself_in_our_place() -> None:
    override = IPv4Address("10.9.0.1")
    options = {82: b"\x0b\x04" + override.packed}
    reply = served(request(options=options, giaddr=override), known())
    assert reply.options[54] == override.packed
    chosen = request(MessageType.REQUEST, options | {54: override.packed, 50: ADDRESS.packed}, giaddr=override)
    assert served(chosen, known()).message_type == MessageType.ACK
    direct = request(MessageType.REQUEST, options | {54: override.packed, 50: ADDRESS.packed})
    assert ignored(direct, known()) is IgnoreReason.OTHER_SERVER


def test_a_reply_never_exceeds_what_the_client_takes() -> None:
    subject = known(
        hostname="n" * 60, domain_name=".".join(["d" * 30] * 6), name_servers=["1.1.1.1"] * 3,
        time_servers=["2.2.2.2"] * 20,
    )  # fmt: skip
    small = served(request(options=pxe()), subject)
    assert len(encode(small)) <= 576 - 28
    assert {1, 3, 6, 43, 51, 53, 54} <= set(small.options)
    assert 119 not in small.options
    large = served(request(options=pxe(o57=(1500).to_bytes(2, "big"))), subject)
    assert {119, 42} <= set(large.options)


def test_a_proxy_tells_boot_clients_what_to_boot_and_nothing_else() -> None:
    reply = served(request(options=pxe()), known(hostname="node-1"), mode=Mode.PROXY)
    assert reply.options == {
        53: b"\x02",
        54: OWN.packed,
        60: b"PXEClient",
        43: b"\x06\x01\x08",
        97: b"\0" + b"u" * 16,
    }
    assert (reply.yiaddr, reply.siaddr, reply.sname, reply.file) == (
        IPv4Address(0), OWN, str(OWN).encode(), b"ipxe.efi",
    )  # fmt: skip


def test_a_proxy_does_not_invent_a_machine_identifier() -> None:
    options = pxe()
    del options[97]
    assert 97 not in served(request(options=options), known(), mode=Mode.PROXY).options


@pytest.mark.parametrize(
    ("message", "subject", "reason"),
    [
        (request(), known(), IgnoreReason.NOT_A_BOOT_CLIENT),
        (request(options=pxe()), None, IgnoreReason.UNKNOWN_MACHINE),
        (request(options=pxe(12)), known(), IgnoreReason.NO_BINARY),
        (request(MessageType.REQUEST, pxe(o54=OTHER.packed)), known(), IgnoreReason.OTHER_SERVER),
        (request(MessageType.INFORM, pxe(), ciaddr=OTHER), known(), IgnoreReason.NOT_A_BOOT_CLIENT),
        (request(MessageType.RELEASE), known(), IgnoreReason.NOT_A_BOOT_CLIENT),
    ],
)
def test_what_a_proxy_leaves_to_the_other_server(message: Packet, subject: Subject, reason: IgnoreReason) -> None:
    assert ignored(message, subject, mode=Mode.PROXY) is reason


def test_a_proxy_refuses_netboot_by_a_name_of_the_machines_own() -> None:
    reply = served(request(options=pxe()), known(allow=False), mode=Mode.PROXY)
    assert (reply.file.decode(), reply.siaddr) == (f"/{MAC}/netboot-not-allowed", OWN)
    assert 43 not in reply.options


def test_a_proxy_acknowledges_a_request_that_is_for_it() -> None:
    reply = served(request(MessageType.REQUEST, pxe(o54=OWN.packed)), known(), mode=Mode.PROXY)
    assert (reply.message_type, reply.file) == (MessageType.ACK, b"ipxe.efi")


def test_auto_proxy_serves_unknown_machines_with_the_defaults() -> None:
    assert served(request(options=pxe()), None, mode=Mode.AUTO_PROXY).file == b"ipxe.efi"
    script = served(request(options=pxe(user_class=b"Tinkerbell")), None, mode=Mode.AUTO_PROXY)
    assert script.file.decode() == SCRIPT


def test_without_an_address_of_our_own_nothing_is_answered() -> None:
    site = DhcpSettings()
    decision = decide(request(), known(), settings=site, own=endpoints(site, IPv4Address(0)))
    assert isinstance(decision, Ignore)
    assert decision.reason is IgnoreReason.NO_OWN_ADDRESS
    assert decision.problem is not None


def test_an_advertised_address_is_used_everywhere() -> None:
    public = IPv4Address("203.0.113.7")
    reply = served(request(options=pxe()), known(), advertise=public)
    assert (reply.options[54], reply.siaddr) == (public.packed, public)
    script = served(request(options=pxe(user_class=b"Tinkerbell")), known(), advertise=public)
    assert script.file.decode() == f"http://{public}:7080/ipxe/script/{MAC}/auto.ipxe"


option_values = st.one_of(st.binary(max_size=20), st.sampled_from([OWN.packed, ADDRESS.packed, b"PXEClient", b"iPXE"]))
option_codes = st.sampled_from([50, 54, 57, 60, 61, 77, 82, 93, 94, 97, 175]) | st.integers(1, 51)
requests = st.builds(
    lambda kind, options, giaddr, ciaddr, flags: request(
        kind, options, giaddr=IPv4Address(giaddr), ciaddr=IPv4Address(ciaddr), flags=flags
    ),
    st.integers(0, 20),
    st.dictionaries(option_codes, option_values, max_size=8),
    st.sampled_from([0, 0x0A090001]),
    st.sampled_from([0, int(ADDRESS), int(OTHER)]),
    st.integers(0, 65535),
)
subjects = st.sampled_from([
    None,
    known(),
    known(allow=False),
    known(ip=None),
    known(ipxe=Ipxe(url="http://x/" + "y" * 200)),
    Unusable(Problem("AmbiguousHardware", "two", MAC)),
])  # fmt: skip


@given(requests, subjects, st.sampled_from(list(Mode)))
def test_every_message_gets_a_decision_that_can_be_sent(message: Packet, subject: Subject, mode: Mode) -> None:
    decision = ask(message, subject, mode=mode)
    if isinstance(decision, Reply):
        assert decode(encode(decision.packet)) == decision.packet
        assert decision.packet.message_type == decision.kind
        assert decision.packet.xid == message.xid
        assert decision.kind in {MessageType.OFFER, MessageType.ACK, MessageType.NAK}


@given(st.binary(min_size=0, max_size=300))
def test_any_options_from_the_wire_get_a_decision(raw: bytes) -> None:
    try:
        message = decode(encode(request(None))[:240] + b"\x35\x01\x01" + raw)
    except DecodeError:
        return
    assert isinstance(ask(message, known()), Reply | Ignore)
