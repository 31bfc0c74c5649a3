"""docs/guide/first-cluster.md, followed command by command, from servers that are off to Ready nodes by real kubeadm.

The servers are namespace machines. `ironbell up` serves the lab's network in place of an interface, and the smallest
form has one control plane and one worker; every other command is the page's, with the servers' own values. Both forms
of the cluster are followed, plain and by ClusterClass.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
from pathlib import Path

import pytest

from ironbell.lab.files import MachineState
from support.kubeadm.cluster import RELEASE, SUBNET, KubeadmSite, kubeadm_site, lab_file, node_artefacts
from support.kubeadm.sharedplant import LAB, SPARE_ADDRESS, SharedPlant
from support.kubeadm.sharedplant import PAGE as OF_THE_PAGE
from support.skips import needs_root

pytestmark = [pytest.mark.root, needs_root]

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "guide" / "first-cluster.md").read_text()
BLOCKS = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
ENDPOINT = SPARE_ADDRESS.format(5)
STEP_S = 900
OF_PAGE = "--control-planes 3 --workers 2"
SMALLEST = "--control-planes 1 --workers 1 --set CONTROL_PLANE_SURGE=1"
ROLES = {"cp": "control-plane", "w": "worker"}


def replaced(text: str, values: dict[str, str]) -> str:
    """The text with the page's values replaced; each of them is there."""
    for old, new in values.items():
        assert old in text, old
        text = text.replace(old, new)
    return text


def described(site: KubeadmSite, machine: MachineState) -> str:
    """The example of a server, filled in as the page says."""
    values = {
        "node-1": machine.name,
        "username: admin": f"username: {machine.bmc_user}",
        "change-me": Path(machine.password_file).read_text().strip(),
        "192.168.10.11": machine.bmc_host,
        "port: 443": f"port: {machine.bmc_port}",
        "role: control-plane": f"role: {ROLES[machine.name.partition('-')[0]]}",
        "6c540ee9-63d3-40f8-87e8-f0f7cb08e744": machine.uuid,
        "S4EVNX0R123456": machine.disk_serial,
        "/dev/sda": "/dev/vda",
        "52:54:00:6c:54:0e": machine.mac,
        "192.168.20.11": machine.address,
        "192.168.20.1": site.site.lab.gateway,
    }
    return replaced((DOCS / "examples" / "server.yaml").read_text(), values)


def commands(site: KubeadmSite, form: str, size: str) -> dict[str, str]:
    """The page's blocks from the servers' description on, by their first word or two."""
    images = str(site.artefacts.images[RELEASE].parent)
    apply, network, plain, by_class, nodes = BLOCKS[-5:]
    create = {"plain": plain, "by class": by_class}[form]
    assert f"--kubernetes-version {RELEASE}" in create
    return {
        "servers": apply,
        "network": replaced(network, {"/srv/images": images}),
        "cluster": replaced(create, {OF_PAGE: size, "192.168.20.5": ENDPOINT}),
        "nodes": nodes,
    }


async def run(site: KubeadmSite, folder: Path, text: str) -> str:
    """What a shell prints of these commands; the first that fails ends the test."""
    path = f"{Path(sys.executable).parent}:{Path(site.kubectl.binary).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "KUBECONFIG": str(site.site.kubeconfig), "HOME": str(folder)}
    process = await asyncio.create_subprocess_exec(
        "bash", "-euo", "pipefail", "-c", text, cwd=folder, env=environment,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    try:
        async with asyncio.timeout(STEP_S):
            out, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, f"{text}\n{out.decode()[-4000:]}"
    return out.decode()


@pytest.mark.asyncio(loop_scope="session")
async def test_the_page_leads_from_servers_that_are_off_to_ready_nodes(tmp_path: Path, plant: SharedPlant) -> None:
    """Its smallest form."""
    async with plant.part(tmp_path, OF_THE_PAGE, cluster="plant") as site:
        await followed(site, "plain", SMALLEST, tmp_path)


@pytest.mark.kubeadm
@pytest.mark.parametrize("form", ["plain", "by class"])
async def test_the_page_as_it_is_written(form: str, tmp_path: Path, kubectl_binary: Path) -> None:
    lab = lab_file(control_planes=3, workers=2, subnet=SUBNET.format(LAB))
    async with kubeadm_site(tmp_path, kubectl_binary, node_artefacts(RELEASE), lab) as site:
        await followed(site, form, OF_PAGE, tmp_path)


async def followed(site: KubeadmSite, form: str, size: str, tmp_path: Path) -> None:
    """From servers that are off to Ready nodes."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    (folder / "docs").symlink_to(DOCS)
    assert {machine.power for machine in site.site.lab.machines} == {"Off"}
    servers = [described(site, machine) for machine in site.site.lab.machines]
    (folder / "servers.yaml").write_text("---\n".join(servers))
    steps = commands(site, form, size)
    shown = await run(site, folder, steps["servers"])
    assert all(machine.name in shown for machine in site.site.lab.machines)
    await run(site, folder, steps["network"])
    waited = await run(site, folder, steps["cluster"])
    assert "plant" in waited
    nodes = await run(site, folder, steps["nodes"])
    rows = [row.split() for row in nodes.splitlines()[1:]]
    names = sorted(machine.name for machine in site.site.lab.machines)
    assert sorted((row[0], row[1], row[-1]) for row in rows) == [(name, "Ready", RELEASE) for name in names]
