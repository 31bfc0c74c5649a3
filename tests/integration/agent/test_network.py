"""The action network on real file systems: which files a system gets, and what else would configure a card."""

from __future__ import annotations

import json
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

MAC = "02:00:00:00:00:0a"
INTERFACES = json.dumps(
    [
        {
            "dhcp": {
                "mac": MAC,
                "ip": {"address": "192.0.2.10", "netmask": "255.255.255.0", "gateway": "192.0.2.1"},
                "name_servers": ["192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4"],
                "domain_name": "site.example",
            }
        }
    ]
)


@pytest.fixture
def system(loop_disk: Callable[[int], str], tmp_path: Path) -> Callable[..., Any]:
    """A disk whose second partition holds a system of these files; gives the disk, and a way to look at it."""

    def make(**files: str) -> tuple[str, Callable[[Callable[[Path], Any]], Any]]:
        disk = loop_disk(48)
        subprocess.run(["sfdisk", "--quiet", disk], input="label: gpt\n2048,8MiB\n,32MiB\n", text=True, check=True)
        subprocess.run(["partx", "--update", disk], check=True)
        subprocess.run(["mkfs.ext4", "-q", f"{disk}p2"], check=True)

        def inside(look: Callable[[Path], Any]) -> Any:
            point = tmp_path / "m"
            point.mkdir(exist_ok=True)
            subprocess.run(["mount", f"{disk}p2", str(point)], check=True)
            try:
                return look(point)
            finally:
                subprocess.run(["umount", str(point)], check=True)

        def fill(root: Path) -> None:
            for name, text in {"etc/os-release": "ID=x\n", **files}.items():
                place = root / name
                place.parent.mkdir(parents=True, exist_ok=True)
                if text.startswith("-> "):
                    place.symlink_to(text[3:])
                else:
                    place.write_text(text)

        inside(fill)
        return disk, inside

    return make


def text_of(name: str) -> Callable[[Path], str]:
    return lambda root: (root / name).read_text()


def test_a_system_with_networkd_alone(system, run_action) -> None:
    disk, inside = system(**{
        "usr/lib/systemd/systemd-networkd": "",
        "etc/network/interfaces": "iface eth0 inet dhcp\n",
        "etc/cloud/cloud.cfg": "",
        "etc/resolv.conf": "-> /run/systemd/resolve/stub-resolv.conf",
        "etc/systemd/network/05-ironbell-nic7.network": "of an earlier attempt",
        "etc/systemd/network/80-dhcp.network": "[Network]\nDHCP=yes\n",
    })  # fmt: skip
    for _ in range(2):
        result = run_action("network", DEST_DISK=disk, INTERFACES=INTERFACES)
        assert result.status == 0, result.said
    assert "192.0.2.10/24" in result.said[-1]

    def look(root: Path) -> None:
        assert sorted(path.name for path in (root / "etc/systemd/network").iterdir()) == [
            "05-ironbell-nic0.network",
            "80-dhcp.network",
        ]
        text = (root / "etc/systemd/network/05-ironbell-nic0.network").read_text()
        assert f"MACAddress={MAC}" in text
        assert [line for line in text.splitlines() if line.startswith("DNS=")] == [
            f"DNS=192.0.2.{n}" for n in (1, 2, 3, 4)
        ]
        assert (root / "etc/systemd/system/multi-user.target.wants/systemd-networkd.service").is_symlink()
        assert "dhcp" not in (root / "etc/network/interfaces").read_text()
        assert "disabled" in (root / "etc/cloud/cloud.cfg.d/99-ironbell-network.cfg").read_text()
        resolver = root / "etc/resolv.conf"
        assert not resolver.is_symlink()
        assert resolver.read_text().splitlines() == [
            *(f"nameserver 192.0.2.{number}" for number in (1, 2, 3, 4)),
            "search site.example",
        ]

    inside(look)


def test_a_system_with_netplan_and_a_resolver_of_its_own(system, run_action) -> None:
    disk, inside = system(**{
        "usr/sbin/netplan": "",
        "usr/lib/systemd/systemd-resolved": "",
        "etc/resolv.conf": "-> /run/systemd/resolve/stub-resolv.conf",
        "etc/netplan/50-cloud-init.yaml": "network: {ethernets: {eth0: {dhcp4: true}}}\n",
    })  # fmt: skip
    result = run_action("network", DEST_DISK=disk, INTERFACES=INTERFACES)
    assert result.status == 0, result.said

    def look(root: Path) -> None:
        assert [path.name for path in (root / "etc/netplan").iterdir()] == ["60-ironbell.yaml"]
        written = root / "etc/netplan/60-ironbell.yaml"
        assert stat.S_IMODE(written.stat().st_mode) == 0o600
        assert "192.0.2.10/24" in written.read_text()
        assert not (root / "etc/systemd").exists()
        assert not (root / "etc/cloud").exists()
        assert (root / "etc/resolv.conf").is_symlink()

    inside(look)


def test_a_system_that_nothing_is_known_of(system, run_action) -> None:
    disk, inside = system()
    asked = {"DEST_DISK": disk, "INTERFACES": INTERFACES}
    assert "neither netplan nor systemd-networkd" in run_action("network", **asked).failure
    assert "FORMAT is 'ifcfg'" in run_action("network", FORMAT="ifcfg", **asked).failure
    assert inside(lambda root: sorted(path.name for path in (root / "etc").iterdir())) == ["os-release"]
    named = {"INTERFACES": INTERFACES, "DEST_DISK": f"{disk}p2", "FS_TYPE": "ext4", "FORMAT": "networkd"}
    assert run_action("network", **named).status == 0
    assert inside(text_of("etc/resolv.conf")).startswith("nameserver 192.0.2.1\n")
