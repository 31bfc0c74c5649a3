"""GRUB configurations, storage layouts, command lines, paths inside a mounted system."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ironbell.agent.actions.cexec import command_lines
from ironbell.agent.actions.context import ActionError, Context
from ironbell.agent.actions.disks import grubcfg, mounts
from ironbell.agent.actions.disks.rootio_plan import (
    Disk,
    LogicalVolume,
    Mount,
    Partition,
    VolumeGroup,
    format_command,
    parse,
    partition_script,
    volume_commands,
)
from ironbell.agent.actions.kexec import choose

GRUB = """
set default="0"
if [ "${next_entry}" ] ; then
   set default="${next_entry}"
fi
menuentry 'Debian GNU/Linux' --class debian $menuentry_id_option 'gnulinux-simple-1' {
        insmod ext2
        echo    'Loading Linux ...'
        linux   /boot/vmlinuz-6.1 root=UUID=1 ro  quiet
        initrd  /boot/early.img /boot/initrd.img-6.1
}
submenu 'Advanced options' $menuentry_id_option 'adv' {
        menuentry 'Recovery' --id rescue {
                linuxefi /vmlinuz-old single
                initrdefi /initrd-old
        }
}
menuentry 'Firmware' {
        fwsetup
}
"""


def test_the_default_entry_has_kernel_initrds_and_arguments():
    entry = grubcfg.default_entry(GRUB)
    assert (entry.kernel, entry.initrds) == ("/boot/vmlinuz-6.1", ["/boot/early.img", "/boot/initrd.img-6.1"])
    assert entry.arguments == "root=UUID=1 ro quiet"


@pytest.mark.parametrize(
    ("default", "title"),
    [
        ("1", "Recovery"),
        ("rescue", "Recovery"),
        ("adv>rescue", "Recovery"),
        ("7", "Debian GNU/Linux"),
        ("no", "Debian GNU/Linux"),
    ],
)
def test_defaults_by_number_title_and_id(default, title):
    assert grubcfg.default_entry(GRUB.replace('default="0"', f'default="{default}"')).title == title


@given(st.text())
def test_any_configuration_is_read(text):
    grubcfg.default_entry(text)
    grubcfg.default_entry("menuentry 'x' {\n" + text)


class Silent:
    def log(self, text: str) -> None: ...
    def note(self, note: object) -> None: ...


def test_kexec_s_arguments_replace_grub_s(tmp_path):
    (tmp_path / "boot/grub").mkdir(parents=True)
    (tmp_path / "boot/grub/grub.cfg").write_text(GRUB)
    assert choose(Context({"CMD_LINE": "mine"}, Silent()), tmp_path).arguments == "mine"
    given_kernel = choose(Context({"KERNEL_PATH": "/k", "INITRD_PATH": "/i"}, Silent()), tmp_path)
    assert (given_kernel.kernel, given_kernel.initrds) == ("/k", ["/i"])
    (tmp_path / "boot/grub/grub.cfg").write_text("nothing")
    with pytest.raises(ActionError, match="no menu entry"):
        choose(Context({}, Silent()), tmp_path)


@pytest.mark.parametrize(
    ("line", "interpreter", "expected"),
    [
        ("apt update; apt  upgrade", "", [["apt", "update"], ["apt", "upgrade"]]),
        ("echo 'a b'; x", "/bin/sh -c", [["/bin/sh", "-c", "echo 'a b'; x"]]),
        (" ; ", "", []),
    ],
)
def test_command_lines_are_split_as_upstream_splits_them(line, interpreter, expected):
    assert command_lines(line, interpreter) == expected


def test_a_gpt_layout():
    disk = Disk(
        device="/dev/sda",
        partitions=[
            Partition(label="BIOS", number=1, size=4096),
            Partition(label="SWAP", number=2, size=7993344),
            Partition(label='RO"OT', number=3, size=0),
        ],
    )
    assert partition_script(disk, mbr=False, sector_size=512) == (
        "label: gpt\nunit: sectors\n"
        '1 : start=2048, size=4096, type=21686148-6449-6E6F-744E-656564454649, name="BIOS"\n'
        '2 : start=6144, size=7993344, type=0657FD6D-A4AB-43C4-84E5-0933C84B4F4F, name="SWAP"\n'
        '3 : start=7999488, type=0FC63DAF-8483-4772-8E79-3D69D8477DE4, name="ROOT"\n'
    )
    assert "start=256, size=512" in partition_script(disk, mbr=False, sector_size=4096)


def test_an_mbr_layout():
    disk = Disk(device="d", partitions=[Partition(label="LINUX_ACTIVE", size=10), Partition(label="FAT32", number=3)])
    script = partition_script(disk, mbr=True, sector_size=512)
    assert "1 : start=2048, size=10, type=83, bootable\n3 : start=2058, type=c\n" in script


@pytest.mark.parametrize(
    "partitions",
    [
        [Partition(number=1, size=1), Partition(number=1, size=1)],
        [Partition(size=0), Partition(size=5)],
        [Partition(size=-1)],
        [Partition(size=1, type_guid="x; y")],
    ],
)
def test_impossible_layouts_are_refused(partitions):
    with pytest.raises(ActionError):
        partition_script(Disk(device="d", partitions=partitions), mbr=False, sector_size=512)


def test_formats_and_volumes():
    assert format_command(Mount(device="/dev/a", format="swap")) == ["mkswap", "/dev/a"]
    assert format_command(Mount(device="/dev/a", format="xfs")) == ["mkfs.xfs", "-f", "/dev/a"]
    with pytest.raises(ActionError, match="ext4"):
        format_command(Mount(device="/dev/a", format="ntfs"))
    group = VolumeGroup(
        name="vg",
        physical_volumes=["/dev/a"],
        tags=["t"],
        logical_volumes=[LogicalVolume(name="x", size=2048), LogicalVolume(name="y")],
    )
    assert volume_commands(group)[1:] == [
        ["vgcreate", "--addtag", "t", "vg", "/dev/a"],
        ["lvcreate", "--yes", "--name", "x", "--size", "1048576b", "vg"],
        ["lvcreate", "--yes", "--name", "y", "--extents", "100%FREE", "vg"],
    ]


@given(st.binary() | st.builds(msgspec.json.encode, st.recursive(st.none() | st.text() | st.integers(), st.lists)))
def test_any_metadata_gives_a_layout_or_a_reason(data):
    with pytest.raises(ActionError):
        parse(data)


def test_numbers_in_metadata_may_be_text():
    body = {"metadata": {"instance": {"storage": {"disks": [{"device": "d", "partitions": [{"size": "12"}]}]}}}}
    assert parse(msgspec.json.encode(body)).disks[0].partitions[0].size == 12


def test_paths_stay_inside(tmp_path):
    root = tmp_path / "root"
    (root / "usr/lib").mkdir(parents=True)
    (root / "lib").symlink_to("usr/lib")
    (root / "abs").symlink_to("/usr")
    (root / "out").symlink_to("../../../../etc")
    (root / "loop").symlink_to("loop")
    assert mounts.inside(root, "/lib/x") == root / "usr/lib/x"
    assert mounts.inside(root, "/abs/lib/../y") == root / "usr/y"
    assert mounts.inside(root, "out/passwd") == root / "etc/passwd"
    assert mounts.inside(root, "/../../a") == root / "a"
    with pytest.raises(ActionError, match="too many"):
        mounts.inside(root, "/loop/a")


@given(st.text(alphabet="/.ab", max_size=30))
def test_no_path_leads_out(path):
    root = mounts.Path("/root-that-is-not-there")
    assert mounts.inside(root, path).is_relative_to(root)
