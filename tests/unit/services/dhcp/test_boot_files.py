"""Every name that DHCP hands out can be fetched; another is not handed out, and the reason is reported."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from ironbell.api.tinkerbell.interface import Ipxe
from ironbell.codec.dhcp import MessageType
from ironbell.contract.servers.boot_files import BOOT_FILES, BY_ARCHITECTURE, NOT_ALLOWED, NotServedError
from ironbell.services.boot.binaries import IpxeBinaries
from ironbell.services.dhcp import MacFormat, Mode, PlainIpxe
from ironbell.services.dhcp.answers import Decision, Ignore, IgnoreReason, Known, Reply
from ironbell.services.dhcp.settings import DhcpSettings, endpoints
from ironbell.services.tftp.server import served_path
from support.network.dhcp import MAC, OWN, SCRIPT, ask, known, pxe, request

RASPBERRY_PI = "b8:27:eb:00:00:01"
HTTP_BINARIES = f"http://{OWN}:7080/ipxe/binary/"
TFTP_BINARIES = f"tftp://{OWN}:69/"
NOTHING = "netboot-not-allowed"
OWN_NAME = "rescue.efi"
HERE = (*(file.name for file in BOOT_FILES if file.target), OWN_NAME)
"""What `ironbell ipxe build` makes, and a file of the user's own."""


@pytest.fixture
def binaries(tmp_path: Path) -> IpxeBinaries:
    for name in HERE:
        (tmp_path / name).write_bytes(b"MZ")
    return IpxeBinaries((tmp_path,))


def can_be_fetched(name: str, binaries: IpxeBinaries) -> bool:
    """As the routes over HTTP and TFTP do it."""
    if name.endswith("/auto.ipxe"):
        return True
    path = (
        name.removeprefix(HTTP_BINARIES)
        if name.startswith("http://")
        else served_path(name.removeprefix(TFTP_BINARIES))
    )
    try:
        return bool(binaries.read(path))
    except NotServedError:
        return False


@pytest.mark.parametrize("mode", list(Mode))
def test_every_name_that_is_handed_out_can_be_fetched(mode: Mode, binaries: IpxeBinaries) -> None:
    vendors, classes = (b"PXEClient", b"HTTPClient"), (b"", b"iPXE", b"Tinkerbell")
    subjects: list[Known | None] = [
        known(),
        *(known(ipxe=Ipxe(binary=name)) for name in (*(file.name for file in BOOT_FILES), OWN_NAME, "x.efi")),
    ]
    subjects += [None] if mode is Mode.AUTO_PROXY else []
    handed_out = set()
    for arch, vendor, user_class, mac, plain, mac_format, subject in product(
        (*range(37), 255),
        vendors,
        classes,
        (MAC, RASPBERRY_PI),
        PlainIpxe,
        (MacFormat.COLON, MacFormat.EMPTY),
        subjects,
    ):
        message = request(MessageType.REQUEST, pxe(arch, vendor=vendor, user_class=user_class), mac=mac)
        case = (arch, vendor, user_class, mac, plain, mac_format, subject)
        decision = ask(message, subject, mode=mode, plain_ipxe=plain, mac_format=mac_format, is_served=binaries.has)
        if isinstance(decision, Ignore):
            assert decision.reason is IgnoreReason.NO_BINARY, case
            assert decision.problem is not None, case
            continue
        assert isinstance(decision, Reply)
        if decision.boot_file.endswith(NOTHING):
            assert decision.rejection, case
            assert decision.problems or not (subject and subject.plan.allowed), case
            continue
        assert can_be_fetched(decision.boot_file, binaries), (case, decision.boot_file)
        handed_out.add(decision.boot_file)
    assert {SCRIPT, "ipxe.efi", "undionly.kpxe", f"{HTTP_BINARIES}{MAC}/ipxe.efi", OWN_NAME} <= handed_out
    assert not any("arm64" in name for name in handed_out)


def test_every_binary_has_a_way_to_be_served(tmp_path: Path) -> None:
    """Whichever name is in the table, a folder that has only the file that the package calls so serves it."""
    for file in BOOT_FILES:
        for number, name in enumerate((file.name, *file.packaged)):
            folder = tmp_path / f"{file.name}-{number}"
            folder.mkdir()
            (folder / name).write_bytes(b"MZ")
            assert can_be_fetched(f"/{file.name}", IpxeBinaries((folder,))), (file.name, name)
    assert set(BY_ARCHITECTURE.values()) <= {file.name for file in BOOT_FILES}


def test_a_request_for_a_name_that_is_not_served_lists_those_that_are(binaries: IpxeBinaries) -> None:
    with pytest.raises(NotServedError) as caught:
        binaries.read("02:00:00:00:00:01/snp.efi")
    assert caught.value.message == (
        "snp.efi does not exist; served are ipxe.efi, rescue.efi, snp-x86_64.efi, undionly.kpxe"
    )
    with pytest.raises(NotServedError) as caught:
        binaries.read(f"/{NOT_ALLOWED}")
    assert "ipxe.efi" not in caught.value.message, "firmware was sent to its disk by this name"
    for odd in ("", "..", "x/..", ".", "a\0b"):
        assert not binaries.has(odd), odd


def reported(decision: Decision) -> str:
    problems = (decision.problem,) if isinstance(decision, Ignore) else decision.problems
    (problem,) = [problem for problem in problems if problem is not None]
    assert problem.reason == "BootFileMissing"
    assert problem.hardware == ("lab/node-1",)
    return problem.message


@pytest.mark.parametrize("mode", [Mode.RESERVATION, Mode.PROXY])
def test_an_arm_server_is_told_what_is_missing_until_it_is_there(mode: Mode, tmp_path: Path) -> None:
    binaries = IpxeBinaries((tmp_path,))
    message = request(options=pxe(11))
    said = reported(ask(message, known(), mode=mode, is_served=binaries.has))
    assert said == (
        'The iPXE binary "snp-arm64.efi" for client architecture 11 is missing: '
        "put it into the folder of --ipxe-dir and restart."
    )
    (tmp_path / "snp-arm64.efi").write_bytes(b"MZ")
    decision = ask(message, known(), mode=mode, is_served=binaries.has)
    assert isinstance(decision, Reply)
    assert decision.boot_file == "snp-arm64.efi"


def test_a_binary_that_the_hardware_names_and_nobody_serves() -> None:
    said = reported(ask(request(options=pxe(7)), known(ipxe=Ipxe(binary="snp.efi")), is_served=lambda _name: False))
    assert said.startswith('The iPXE binary "snp.efi", which netboot.ipxe.binary names, is missing: ')


def test_a_boot_file_of_the_users_own_on_our_server_has_to_be_there() -> None:
    own = {"tftp_server_name": str(OWN), "boot_file_name": "pxelinux.0"}
    decision = ask(request(options=pxe(0)), known(**own), is_served=lambda _name: False)
    assert isinstance(decision, Reply)
    assert decision.boot_file == f"/{NOTHING}"
    assert '"pxelinux.0" of dhcp.boot_file_name is missing' in reported(decision)
    assert not {66, 67} & set(decision.packet.options)
    elsewhere = {"tftp_server_name": "192.0.2.9", "boot_file_name": "pxelinux.0"}
    decision = ask(request(options=pxe(0)), known(**elsewhere), is_served=lambda _name: False)
    assert isinstance(decision, Reply)
    assert (decision.boot_file, decision.problems) == ("pxelinux.0", ())


def test_a_client_that_takes_the_script_needs_no_binary() -> None:
    decision = ask(request(options=pxe(11, user_class=b"Tinkerbell")), known(), is_served=lambda _name: False)
    assert isinstance(decision, Reply)
    assert decision.boot_file == SCRIPT


def test_names_are_not_checked_where_nothing_is_known_of_the_files() -> None:
    settings = DhcpSettings()
    assert settings.is_served("anything")
    assert endpoints(settings, OWN).tftp_address == OWN
