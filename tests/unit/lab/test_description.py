"""Lab files: defaults that stay the same, and errors that name the field."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ironbell.cli.lab import EXAMPLE
from ironbell.codec import goyaml
from ironbell.lab.description import LabFileError, parse, parse_size, read
from ironbell.lab.files import LabFolder, LabState, MachineState
from ironbell.lab.machine import BootOverride, Target
from ironbell.lab.manifests import manifests
from ironbell.lab.qemu import Boot, command


def machines(*entries: dict[str, Any], **lab: Any) -> dict[str, Any]:
    return {"machines": list(entries), **lab}


def test_example_is_right_and_defaults_follow_from_the_names() -> None:
    lab = parse(goyaml.load(EXAMPLE))
    assert lab == parse(goyaml.load(EXAMPLE))
    (machine,) = lab.machines
    assert machine.mac.startswith("52:54:00:")
    assert machine.address == "192.168.77.10"
    assert machine.disks[0].bytes == 4 << 30
    assert machine.disks[0].serial
    assert lab.network.gateway == "192.168.77.1"


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({}, "at least one machine"),
        ([], "Expected `object`"),
        (machines({}), "name"),
        (machines({"name": "A"}), r"machines\[0\].name"),
        (machines({"name": "a", "firmware": "coreboot"}), "firmware"),
        (machines({"name": "a", "memory": 10}), "memory"),
        (machines({"name": "a", "cpus": 0}), "cpus"),
        (machines({"name": "a", "mac": "AA:BB"}), "mac"),
        (machines({"name": "a", "address": "10.0.0.1"}), "is not in"),
        (machines({"name": "a", "disks": [{"size": "many"}]}), "size"),
        (machines({"name": "a", "unknown": 1}), "unknown"),
        (machines({"name": "a"}, {"name": "a"}), "name 'a' is used twice"),
        (machines({"name": "a", "mac": "52:54:00:00:00:01"}, {"name": "b", "mac": "52:54:00:00:00:01"}), "mac"),
        (machines({"name": "a"}, network={"subnet": "192.0.2.0/29"}), "too small"),
        (machines({"name": "a"}, network={"subnet": "x"}), "network.subnet"),
    ],
)
def test_what_is_wrong_is_named(document: Any, message: str) -> None:
    with pytest.raises(LabFileError, match=message):
        parse(document)


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(LabFileError, match="nowhere"):
        read(tmp_path / "nowhere.yaml")


@given(
    st.recursive(
        st.none() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_any_document_is_a_lab_or_refused(document: Any) -> None:
    try:
        parse(document)
    except LabFileError as error:
        assert error.message  # noqa: PT017


@pytest.mark.parametrize(("text", "size"), [("1", 1), ("512M", 512 << 20), ("4GiB", 4 << 30), ("2 tb", 2 << 40)])
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


def test_boot_order_follows_the_override_and_a_one_time_override_is_used_up() -> None:
    override = BootOverride(Target.PXE, "Once")
    assert override.take().order == ("pxe", "hdd")
    assert override.take().order == ("hdd", "pxe")
    lasting = BootOverride(Target.PXE, "Continuous")
    assert [lasting.take().order for _ in range(2)] == [("pxe", "hdd")] * 2


@pytest.mark.parametrize("firmware", ["uefi", "bios"])
def test_command_line(firmware: str, tmp_path: Path) -> None:
    lab = parse(machines({"name": "a", "firmware": firmware}))
    words = command(
        lab.machines[0],
        LabFolder(tmp_path),
        tap="tap0",
        boot=Boot(("pxe", "hdd")),
        has_kvm=False,
        uefi_code=Path("/code"),
    )
    text = " ".join(words)
    assert "accel=tcg" in text
    assert ("if=pflash" in text) is (firmware == "uefi")
    assert f"mac={lab.machines[0].mac}" in text
    assert "bootindex=1" in next(word for word in words if word.startswith("virtio-net"))
    assert "bootindex=2" in next(word for word in words if word.startswith("virtio-blk"))
    assert "reboot=shutdown" in text


def test_manifests_are_complete_and_keep_the_password_in_the_secret() -> None:
    machine = MachineState(
        name="a", firmware="uefi", mac="52:54:00:00:00:01", address="192.0.2.10", uuid="u", memory=1, cpus=1,
        power="Off", starts=0, bmc_host="127.0.0.1", bmc_port=1234, bmc_user="admin", password_file="/x",
        console="/y", disk_serial="S1",
    )  # fmt: skip
    lab = LabState(
        name="l", pid=1, network_namespace="/n", bridge="br0", subnet="192.0.2.0/24", gateway="192.0.2.1",
        authority="/a", machines=(machine,),
    )  # fmt: skip
    documents = manifests(lab, {"a": "geheim"})
    assert [document["kind"] for document in documents] == ["Secret", "Machine", "Hardware"]
    assert documents[0]["stringData"]["password"] == "geheim"
    assert "geheim" not in str(documents[1:])
    hardware = documents[2]
    assert hardware["spec"]["interfaces"][0]["dhcp"]["uefi"] is True
    assert hardware["metadata"]["annotations"]["ironbell.dev/disk-serial"] == "S1"
    # upstream's CAPT takes it as the agent's id, which is the MAC
    assert hardware["spec"]["metadata"]["instance"]["id"] == machine.mac
