"""The parts of a namespace machine that need no privilege: script, initramfs, cgroups, settings."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest
from backports import zstd

from ironbell.contract.servers.netboot import InMemoryOs
from ironbell.lab.description import LabFileError, parse
from ironbell.lab.namespace import adaptations
from ironbell.lab.namespace.cgroups import Hierarchy, hierarchies
from ironbell.lab.namespace.firmware import Chain, Disk, InMemory, outcome
from ironbell.lab.namespace.host import desired_connections, node_host
from ironbell.lab.namespace.initramfs import unpack
from ironbell.lab.network import LabNetwork
from ironbell.osie import cpio
from ironbell.services.boot.script import boot_from_disk, boot_in_memory_os

MIXED = """\
40 30 0:25 / /sys/fs/cgroup rw shared:9 - tmpfs tmpfs rw,mode=755
41 40 0:26 / /sys/fs/cgroup/cpu rw,relatime shared:10 - cgroup cgroup rw,cpu
42 40 0:27 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd
43 40 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
"""


def test_the_script_of_the_boot_service_is_understood() -> None:
    boot = InMemoryOs(
        kernel_url="http://192.0.2.1/vmlinuz-${arch}",
        initrd_url="http://192.0.2.1/initramfs",
        initrd_name="initramfs",
        kernel_arguments=("worker_id=a", "console=tty0"),
        arch="x86_64",
        syslog_host="192.0.2.1",
        retries=3,
        retry_delay_s=1,
    )
    script = boot_in_memory_os(boot, machine="one")
    assert outcome(script, {}) == InMemory(
        "http://192.0.2.1/vmlinuz-x86_64", "http://192.0.2.1/initramfs", "worker_id=a console=tty0"
    )


def test_a_script_that_hands_over_to_the_disk_is_understood() -> None:
    script = boot_from_disk("one", "it is installed")
    assert outcome(script, {"platform": "efi"}) == Disk()


def test_a_script_may_chain_to_another_by_the_machines_settings() -> None:
    assert outcome("#!ipxe\nchain --autofree http://x/${mac}.ipxe ||\n", {"mac": "52:54"}) == Chain(
        "http://x/52:54.ipxe"
    )


@pytest.mark.parametrize("text", ["<html>", "#!ipxe\necho nothing\n"])
def test_what_boots_nothing_is_said_to(text: str) -> None:
    with pytest.raises(ValueError, match="script"):
        outcome(text, {})


def _tree(root: Path) -> Path:
    (root / "etc").mkdir(parents=True)
    (root / "etc/motd").write_text("hello\n")
    (root / "init").write_text("#!/bin/sh\n")
    (root / "init").chmod(0o755)
    (root / "bin").symlink_to("usr/bin")
    return root


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstd.compress])
def test_an_initramfs_is_unpacked_as_the_kernel_does(tmp_path: Path, pack: object) -> None:
    plain = b"".join(cpio.archive(_tree(tmp_path / "tree")))
    (tmp_path / "root").mkdir()
    unpack(pack(plain), tmp_path / "root")  # type: ignore[operator]
    assert (tmp_path / "root/etc/motd").read_text() == "hello\n"
    assert (tmp_path / "root/init").stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "root/bin").readlink() == Path("usr/bin")


def test_a_later_archive_of_an_initramfs_wins(tmp_path: Path) -> None:
    first = zstd.compress(b"".join(cpio.archive(_tree(tmp_path / "tree"))))
    second = zstd.compress(cpio.member("etc/motd", b"later\n") + cpio.trailer())
    (tmp_path / "root").mkdir()
    unpack(first + b"\0" * (-len(first) % 4) + second, tmp_path / "root")
    assert (tmp_path / "root/etc/motd").read_text() == "later\n"


@pytest.mark.parametrize("data", [b"", b"no archive at all"])
def test_what_is_no_initramfs_is_refused(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(ValueError, match="initramfs"):
        unpack(data, tmp_path)


def test_an_initramfs_cannot_write_outside(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    with pytest.raises(ValueError, match="outside"):
        unpack(cpio.member("../escaped", b"x"), tmp_path / "root")
    assert not (tmp_path / "escaped").exists()


def test_where_version_1_is_there_version_2_counts_for_nothing() -> None:
    assert hierarchies(MIXED) == [
        Hierarchy(Path("/sys/fs/cgroup/cpu"), "cgroup", "cpu"),
        Hierarchy(Path("/sys/fs/cgroup/systemd"), "cgroup", "none,name=systemd"),
    ]


def test_a_host_with_version_2_alone_has_one_hierarchy() -> None:
    line = "30 20 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
    assert hierarchies(line) == [Hierarchy(Path("/sys/fs/cgroup"), "cgroup2", "")]


def test_containerd_is_told_what_a_shared_kernel_needs() -> None:
    text = (Path(adaptations.__file__).parents[2] / "image/kubernetes/files/containerd.toml").read_text()
    changed = adaptations.containerd_settings(text)
    assert "SystemdCgroup = false" in changed
    assert '[plugins."io.containerd.grpc.v1.cri"]\n  restrict_oom_score_adj = true\n' in changed
    assert changed.count("restrict_oom_score_adj") == 1


def test_a_hosts_own_setting_comes_back(tmp_path: Path) -> None:
    setting, folder = tmp_path / "nf_conntrack_max", tmp_path / "run"
    setting.write_text("262143\n")
    with node_host(setting, folder):
        assert int(setting.read_text()) >= 131072
    assert setting.read_text() == "262143\n"
    with node_host(tmp_path / "missing" / "setting", folder):
        pass
    assert desired_connections(2) == 131072
    assert desired_connections(8) == 262144


def test_the_last_of_several_labs_sets_the_host_back(tmp_path: Path) -> None:
    setting, folder = tmp_path / "nf_conntrack_max", tmp_path / "run"
    setting.write_text("262143\n")
    with node_host(setting, folder):
        wanted = setting.read_text()
        with node_host(setting, folder):
            pass
        assert setting.read_text() == wanted
    assert setting.read_text() == "262143\n"


def test_after_a_killed_lab_the_next_sets_the_host_back(tmp_path: Path) -> None:
    setting, folder = tmp_path / "nf_conntrack_max", tmp_path / "run"
    setting.write_text("262143\n")
    if (pid := os.fork()) == 0:
        with node_host(setting, folder):
            os._exit(0)
    os.waitpid(pid, 0)
    assert setting.read_text() != "262143\n"
    with node_host(setting, folder):
        pass
    assert setting.read_text() == "262143\n"


def test_a_lab_may_have_machines_of_both_kinds(tmp_path: Path) -> None:
    lab = parse({"machines": [{"name": "a"}, {"name": "b", "kind": "namespace"}]})
    assert [machine.kind for machine in lab.machines] == ["qemu", "namespace"]
    network = LabNetwork.of(lab, tmp_path)
    assert network.machine_path("b").name == f"{network.namespace}-1"
    with pytest.raises(LabFileError, match="kind"):
        parse({"machines": [{"name": "a", "kind": "cloud"}]})
