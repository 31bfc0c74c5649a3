"""Built-in names, machine identity, notes, lines, durations, check sums, attributes."""

from __future__ import annotations

import ctypes
import hashlib
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ironbell.agent import attributes, builtins, machine, messages, power
from ironbell.agent.actions.context import ActionError
from ironbell.agent.actions.streams.checksum import Checksum
from ironbell.agent.actions.streams.download import without_secrets
from ironbell.agent.execution import LineSplitter
from ironbell.agent.loop import duration_text
from ironbell.agent.messages import AfterMessage, Power, ProgressMessage


@pytest.mark.parametrize(
    ("image", "name"),
    [
        ("quay.io/tinkerbell/actions/image2disk:latest", "image2disk"),
        ("quay.io:5000/a/WriteFile@sha256:abc", "writefile"),
        ("ghcr.io/tinkerbell/actions/cexec:v1@sha256:abc", "cexec"),
        ("kexec", "kexec"),
        ("registry:5000/rootio", "rootio"),
        ("wipedisk:1", "wipedisk"),
    ],
)
def test_images_mean_built_ins_whatever_registry_and_tag(image, name):
    assert builtins.resolve(image, command=(), environment={}).name == name


@pytest.mark.parametrize(
    ("environment", "command", "expected"),
    [
        ({"IMAGE": "quay.io/tinkerbell/actions/kexec", "WAIT_SECONDS": "5"}, (), ("kexec", "5")),
        ({"IMAGE": "reboot:1"}, (), ("reboot", "10")),
        ({"IMAGE": "alpine"}, ("/sbin/reboot",), ("reboot", "10")),
        ({"IMAGE": "busybox"}, ("poweroff",), ("poweroff", "10")),
    ],
)
def test_the_wrapper_starts_what_it_names(environment, command, expected):
    found = builtins.resolve("ghcr.io/jacobweinstock/waitdaemon:latest", command=command, environment=environment)
    assert (found.name, found.environment["WAIT_SECONDS"]) == expected


@pytest.mark.parametrize("environment", [{}, {"IMAGE": "alpine"}, {"IMAGE": "waitdaemon"}])
def test_a_wrapper_of_nothing_known_fails(environment):
    with pytest.raises(builtins.UnknownActionError):
        builtins.resolve("waitdaemon", command=("ls",), environment=environment)


def test_an_unknown_image_is_answered_with_the_known_ones():
    with pytest.raises(builtins.UnknownActionError, match=r"archive2disk.*image2disk.*writefile"):
        builtins.resolve("nginx:1", command=(), environment={})


UUID = "4c4c4544-0051-3810-8057-b4c04f4a4232"
SWAPPED = "44454c4c-5100-1038-8057-b4c04f4a4232"
MACHINE = machine.Machine(uuid=UUID, macs=frozenset({"02:00:00:00:00:01"}))


@pytest.mark.parametrize(
    "expected",
    [
        {},
        {"IRONBELL_MACHINE_UUID": UUID.upper()},
        {"IRONBELL_MACHINE_UUID": SWAPPED},
        {"IRONBELL_MACHINE_UUID": f"other, {UUID}"},
        {"IRONBELL_MACHINE_MAC": "02-00-00-00-00-01"},
        {"IRONBELL_MACHINE_MAC": "02:00:00:00:00:09,02:00:00:00:00:01"},
        {"IRONBELL_MACHINE_MAC": ""},
    ],
)
def test_the_right_machine_is_recognised(expected):
    assert machine.mismatch(expected, MACHINE) is None


@pytest.mark.parametrize(
    "expected",
    [{"IRONBELL_MACHINE_UUID": "5" + UUID[1:]}, {"IRONBELL_MACHINE_MAC": "02:00:00:00:00:02"}],
)
def test_another_machine_is_refused_with_both_values(expected):
    reason = machine.mismatch(expected, MACHINE)
    assert reason is not None
    assert "rejected" in reason
    assert next(iter(expected.values())) in reason


def test_identity_and_attributes_come_from_sysfs(tmp_path):
    sys, proc = a_sysfs(tmp_path)
    assert machine.detect(sys) == machine.Machine(uuid=UUID, macs=frozenset({"02:00:00:00:00:01"}))
    assert machine.disk_serial("sda", sys) == "SERIAL80"
    assert machine.disk_serial("vda", sys) == "virtual-1"
    assert machine.disk_serial("none", sys) == ""
    found = attributes.detect(sys, proc)
    assert (found.cpu.total_cores, found.cpu.total_threads, found.cpu.processors[0].cores) == (2, 4, 1)
    assert (found.memory.total, found.memory.usable) == ("2GB", "2GB")
    assert [(block.name, block.size, block.drive_type) for block in found.block] == [
        ("sda", "239GB", "HDD"),
        ("vda", "1GB", "SSD"),
    ]
    assert [(network.name, network.speed) for network in found.network] == [("eno1", "1000Mb/s")]
    assert (found.pci[0].driver, found.gpu[0].product) == ("e1000", "0x9999")
    assert found.chassis.HasField("serial")
    assert found.product.uuid == UUID
    assert [block.size_bytes for block in found.block] == [500118192 * 512, 1 << 30]
    assert (found.memory.usable_bytes, found.network[0].driver) == (2_000_000 * 1024, "e1000")
    assert not found.network[0].lldp_neighbours
    assert not found.lldp_complete


def a_sysfs(folder: Path) -> tuple[Path, Path]:
    def write(path: str, text: str | bytes) -> None:
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text.encode() if isinstance(text, str) else text)

    write("sys/class/dmi/id/product_uuid", UUID.upper() + "\n")
    write("sys/class/net/eno1/address", "02:00:00:00:00:01\n")
    write("sys/class/net/eno1/speed", "1000\n")
    write("sys/class/net/lo/address", "00:00:00:00:00:00\n")
    write("sys/class/block/sda/device/vpd_pg80", b"\x00\x80\x00\x08SERIAL80")
    write("sys/class/block/vda/serial", "virtual-1")
    write("sys/block/sda/size", "500118192\n")
    write("sys/block/sda/queue/rotational", "1")
    write("sys/block/vda/size", "2097152\n")
    write("sys/block/loop0/size", "8\n")
    write("sys/bus/pci/devices/0000:00:01.0/class", "0x020000")
    write("sys/bus/pci/devices/0000:00:02.0/class", "0x030000")
    write("sys/bus/pci/devices/0000:00:02.0/device", "0x9999")
    (folder / "sys/drivers/e1000").mkdir(parents=True)
    (folder / "sys/bus/pci/devices/0000:00:01.0/driver").symlink_to(folder / "sys/drivers/e1000")
    (folder / "sys/class/net/eno1/device").mkdir(parents=True)
    (folder / "sys/class/net/eno1/device/driver").symlink_to(folder / "sys/drivers/e1000")
    threads = [
        f"processor\t: {number}\nphysical id\t: {number // 2}\ncore id\t: 0\nvendor_id\t: V\nflags\t: a b"
        for number in range(4)
    ]
    write("proc/cpuinfo", "\n\n".join(threads) + "\n\n")
    write("proc/meminfo", "MemTotal:        2000000 kB\n")
    return folder / "sys", folder / "proc"


@pytest.mark.parametrize(
    ("count", "text"), [(0, ""), (1, "1B"), (1024, "1KB"), (1025, "2KB"), (256060514304, "239GB"), (1 << 60, "1EB")]
)
def test_sizes_are_written_as_upstream_writes_them(count, text):
    assert attributes.size_text(count) == text


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (62_000_000_000, "1m2s"),
        (3_250_000_000, "3s250ms"),
        (3_605_000_000_000, "1h5s"),
        (1_500, "1us500ns"),
        (0, "0s"),
        (3_723_004_000_000, "1h2m"),
    ],
)
def test_durations_have_their_two_largest_units(nanoseconds, text):
    assert duration_text(nanoseconds) == text


@given(st.binary())
def test_any_bytes_are_a_note_or_none(data):
    note = messages.decode(data)
    assert note is None or messages.decode(messages.encode(note)) == note


def test_notes_survive_the_pipe():
    for note in (ProgressMessage(done_bytes=1, percent=2.5), AfterMessage(power=Power.KEXEC, delay_s=1.5)):
        assert messages.decode(messages.encode(note)) == note


@given(st.lists(st.binary(max_size=20), max_size=20))
def test_lines_do_not_depend_on_how_the_bytes_came(chunks):
    whole, pieces = LineSplitter(), LineSplitter()
    expected = whole.feed(b"".join(chunks), final=True)
    found = [line for chunk in chunks for line in pieces.feed(chunk)]
    found += pieces.feed(b"", final=True)
    assert found == expected
    assert all("\n" not in line and "\r" not in line for line in found)


def test_long_lines_are_cut_and_progress_bars_are_lines():
    splitter = LineSplitter()
    assert splitter.feed(b"10%\r20%\r\nx\n\n") == ["10%", "20%", "x"]
    assert [len(line) for line in splitter.feed(b"y" * 10000, final=True)] == [4096, 4096, 1808]


def test_check_sums_name_both_values():
    right = hashlib.sha256(b"data").hexdigest()
    for text in (f"sha256:{right}", right, f" SHA256:{right.upper()} "):
        given_sum = Checksum("IMG_CHECKSUM", text)
        assert b"".join(given_sum.over([b"da", b"ta"])) == b"data"
        given_sum.verify("the file")
    wrong = Checksum("IMG_CHECKSUM", "0" * 64)
    list(wrong.over([b"data"]))
    with pytest.raises(ActionError, match=right):
        wrong.verify("the file")


@pytest.mark.parametrize("text", ["sha256:12", "crc32:12345678", "zz" * 32, "sha1:" + "0" * 64])
def test_what_is_no_check_sum_is_refused(text):
    with pytest.raises(ActionError, match="IMG_CHECKSUM"):
        Checksum("IMG_CHECKSUM", text)


def test_addresses_are_shown_without_secrets():
    assert without_secrets("https://user:pass@host:1/a/b?token=x#y") == "https://host:1/a/b?…"
    assert without_secrets("http://host/a") == "http://host/a"


def test_only_a_machine_that_was_booted_for_the_agent_is_switched():
    assert power.permitted({"worker_id": "x"}, {})
    assert power.permitted({}, {"IRONBELL_POWER": "real"})
    assert not power.permitted({"root": "/dev/sda"}, {"IRONBELL_POWER": "1"})


def test_a_disk_that_hangs_does_not_keep_the_machine_from_leaving(monkeypatch):
    released = threading.Event()
    calls: list[int] = []

    class Libc:
        def reboot(self, command: ctypes.c_uint) -> int:
            calls.append(command.value)
            return 0

    monkeypatch.setattr(power.os, "sync", lambda: released.wait(10))
    monkeypatch.setattr(power.ctypes, "CDLL", lambda *_args, **_more: Libc())
    monkeypatch.setattr(power, "SYNC_S", 0.01)
    power.switch(Power.REBOOT)
    released.set()
    assert calls == [0x01234567]
