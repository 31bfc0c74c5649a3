"""The documented Templates, each booted: what is on the disk comes up with the network that its Hardware says."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from ironbell.demo.artefacts import cache_folder
from ironbell.demo.run import NODE
from ironbell.image import archive
from ironbell.image.debian import chosen_sources
from support.servers.captinstallation import MACHINE, CaptMachine, capt_machine, documents
from support.servers.installation import Artefacts, Installation, installation

pytestmark = [pytest.mark.root, pytest.mark.qemu]

TEMPLATES = Path(__file__).parents[2] / "docs" / "examples" / "templates"
ARCHIVE = cache_folder() / "images" / "debian-root.tar.zst"
INSTALL_S, FINISH_S = 1800, 900
MIB = 2048
STORAGE: dict[str, Any] = {
    "disks": [
        {
            "device": "/dev/vda",
            "wipe_table": True,
            "partitions": [
                {"number": 1, "label": "EFI", "size": 256 * MIB},
                {"number": 2, "label": "BIOS", "size": MIB},
                {"number": 3, "label": "ROOT", "size": 0},
            ],
        }
    ],
    "filesystems": [
        {
            "mount": {
                "device": "/dev/vda1",
                "format": "vfat",
                "point": "/boot/efi",
                "create": {"options": ["-n", "ESP"]},
            }
        },
        {"mount": {"device": "/dev/vda3", "format": "ext4", "point": "/", "create": {"options": ["-L", "root"]}}},
    ],
}
SERVERS = ["192.168.77.1", "192.168.77.2", "192.168.77.3", "192.168.77.4"]
ASKS = {
    "addresses": "ip -brief -4 address show | tr '\\n' ';'",
    "servers": "resolvectl dns | tr '\\n' ';'",
    "leases": "ls /run/systemd/netif/leases | wc -l",
    "bond": "cat /proc/net/bonding/bond0 | tr '\\n' ';'",
    "kubelet": "kubelet --version 2>/dev/null || echo none",
}


def user_data() -> str:
    """cloud-config that prints what is looked for on the console."""
    lines = [f'echo "CHECK {name} $({command})" > /dev/console' for name, command in ASKS.items()]
    commands: list[Any] = [["sh", "-c", line] for line in lines]
    return "#cloud-config\n" + yaml.safe_dump({"runcmd": commands})


def shown(seen: Installation, name: str) -> str:
    """What the installed system printed; empty as long as it has not."""
    found = re.findall(rf"CHECK {name} ([^\r\n]*)", seen.console)
    return found[-1] if found else ""


def template(name: str, seen: Installation, **values: str) -> dict[str, Any]:
    """The documented Template with this site's values in its first lines."""
    document: dict[str, Any] = yaml.safe_load((TEMPLATES / f"{name}.yaml").read_text())
    text: str = document["spec"]["data"]
    for variable, value in {"site": seen.base_url, **values}.items():
        text, count = re.subn(rf'(?<=\{{\{{- \${variable} := )"[^"]*"', json.dumps(value), text)
        assert count == 1, variable
    document["spec"]["data"] = text
    document["metadata"]["namespace"] = "default"
    return document


def hardware_with_a_bond_and_a_vlan(seen: Installation, **metadata: Any) -> list[dict[str, Any]]:
    objects = seen.objects()
    (hardware,) = [document for document in objects if document["kind"] == "Hardware"]
    hardware["metadata"]["annotations"]["ironbell.dev/bonds"] = json.dumps([{"mode": "active-backup"}])
    first = hardware["spec"]["interfaces"][0]["dhcp"]
    first["name_servers"] = SERVERS
    vlan = {"mac": first["mac"], "vlan_id": "42", "ip": {"address": "198.51.100.10", "netmask": "255.255.255.0"}}
    hardware["spec"]["interfaces"].append({"dhcp": vlan})
    hardware["spec"]["metadata"]["instance"] |= metadata
    return objects


async def until_installed(seen: Installation, machine: CaptMachine, made: dict[str, Any]) -> None:
    """The machine by this Template, up to what its system prints."""
    override = {"templateOverrideRef": {"name": made["metadata"]["name"]}}
    await machine.apply(*documents("unused.example/none:v1", user_data(), cluster=override))
    await machine.until(lambda: machine.is_ready or machine.reason == "Retrying", within_s=INSTALL_S, what="installed")
    assert machine.is_ready, machine.said
    assert "InstalledSystemUp" in seen.reasons()
    await seen.until(lambda: bool(shown(seen, "kubelet")), within_s=FINISH_S, what="what the system prints")
    assert all(server in shown(seen, "servers") for server in SERVERS)
    assert shown(seen, "leases") == "0", "nothing asked for an address"


async def installed(seen: Installation, machine: CaptMachine, made: dict[str, Any], **metadata: Any) -> None:
    await machine.apply(*hardware_with_a_bond_and_a_vlan(seen, **metadata), made)
    await until_installed(seen, machine, made)
    address = seen.site.lab.machine(NODE).address
    assert re.search(rf"bond0 +UP +{address}/24", shown(seen, "addresses"))
    assert re.search(r"vlan42@bond0 +UP +198\.51\.100\.10/24", shown(seen, "addresses"))
    assert "active-backup" in shown(seen, "bond")
    obj = await machine.get("tinkerbellmachine", MACHINE)
    assert obj["status"]["instanceState"] == "Running"


@pytest.mark.soak
async def test_baked_image(tmp_path: Path, artefacts: Artefacts, kubectl_binary: Path) -> None:
    async with (
        installation(tmp_path, artefacts, firmware="uefi") as seen,
        capt_machine(seen, kubectl_binary, tmp_path) as machine,
    ):
        checksum = seen.image.with_name(f"{seen.image.name}.sha256").read_text().split()[0]
        made = template("baked-image", seen, image=seen.image.name, checksum=f"sha256:{checksum}")
        await installed(seen, machine, made)


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    """A repository with a kubelet that only tells its version."""
    folder, tree = tmp_path / "repository", tmp_path / "kubelet"
    for place in (folder, tree / "DEBIAN", tree / "usr/bin"):
        place.mkdir(parents=True)
    control = {
        "Package": "kubelet",
        "Version": "1.34.2-1",
        "Architecture": "all",
        "Maintainer": "nobody <nobody@example.org>",
        "Description": "stands in for a kubelet",
    }
    text = "".join(f"{key}: {value}\n" for key, value in control.items())
    (tree / "DEBIAN/control").write_text(text)
    program = tree / "usr/bin/kubelet"
    program.write_text("#!/bin/sh\necho Kubernetes v1.34.2\n")
    program.chmod(0o755)
    package = folder / "kubelet.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "--build", str(tree), str(package)], check=True)
    body = package.read_bytes()
    index = f"{text}Filename: ./kubelet.deb\nSize: {len(body)}\nSHA256: {hashlib.sha256(body).hexdigest()}\n"
    (folder / "Packages").write_text(index)
    return folder


def archived(seen: Installation) -> dict[str, Any]:
    """The Template of a Debian from packages, with the archive that this machine's user has."""
    checksum = ARCHIVE.with_name(f"{ARCHIVE.name}.sha256").read_text().split()[0]
    return template("debian-packages", seen, archive=ARCHIVE.name, checksum=f"sha256:{checksum}")


@pytest.fixture
def root_archive() -> None:
    """The root archive, built once per user."""
    archive.build(archive.Options(ARCHIVE, only_if_changed=True), chosen_sources(None, ""), progress=print)


@pytest.mark.usefixtures("root_archive")
async def test_debian_from_packages_on_a_machine_made_of_namespaces(
    tmp_path: Path, artefacts: Artefacts, kubectl_binary: Path, packages: Path
) -> None:
    """Everything but the firmware's part: that host may know neither VFAT nor bonds."""
    async with (
        installation(tmp_path, artefacts, firmware="bios", kind="namespace", packages=packages) as seen,
        capt_machine(seen, kubectl_binary, tmp_path) as machine,
    ):
        objects, disks, root = seen.objects(), STORAGE["disks"], STORAGE["filesystems"][1]
        (hardware,) = [document for document in objects if document["kind"] == "Hardware"]
        hardware["spec"]["interfaces"][0]["dhcp"]["name_servers"] = SERVERS
        plain = [{**part, "label": "LINUX"} if part["label"] == "EFI" else part for part in disks[0]["partitions"]]
        storage = {"disks": [{**disks[0], "partitions": plain}], "filesystems": [root]}
        hardware["spec"]["metadata"]["instance"]["storage"] = storage
        made = archived(seen)
        await machine.apply(*objects, made)
        await until_installed(seen, machine, made)
        assert f"{seen.site.lab.machine(NODE).address}/24" in shown(seen, "addresses")
        assert "Kubernetes v1.34.2" in shown(seen, "kubelet")


@pytest.mark.soak
@pytest.mark.usefixtures("root_archive")
@pytest.mark.parametrize("firmware", ["uefi", "bios"])
async def test_debian_from_packages(
    tmp_path: Path, artefacts: Artefacts, kubectl_binary: Path, packages: Path, firmware: str
) -> None:
    async with (
        installation(tmp_path, artefacts, firmware=firmware, packages=packages) as seen,
        capt_machine(seen, kubectl_binary, tmp_path) as machine,
    ):
        await installed(seen, machine, archived(seen), storage=STORAGE)
        assert "Kubernetes v1.34.2" in shown(seen, "kubelet")
