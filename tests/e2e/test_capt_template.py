"""Upstream's cluster template of the Tinkerbell provider, unchanged: real kubeadm, and kube-vip that holds its address.

The servers are namespace machines; the image is what `ironbell image build --kubernetes` makes. Nothing is patched:
only the template's variables are set. Where upstream's text is not at hand, the one command in it is ours, which does
the same.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from ironbell.codec import goyaml
from ironbell.demo import clustermanifests
from support.kubeadm.cluster import RELEASE, KubeadmSite
from support.kubeadm.sharedplant import SPARE_ADDRESS, TEMPLATE, SharedPlant, in_namespace
from support.programs.upstream import published
from support.skips import needs_root

pytestmark = [
    pytest.mark.root,
    needs_root,
    pytest.mark.asyncio(loop_scope="session"),
]

MANIFEST = published("capt/cluster-template.yaml")
POD_NETWORK = Path(__file__).parents[2] / "docs" / "examples" / "pod-network.yaml"
NAME = "upstream"
ADDRESS = SPARE_ADDRESS.format(6)
POD_CIDR = "10.244.0.0/16"
"""The default covers the lab's network."""
COMMAND_S, API_S, NODES_S, SETTLED_S = 60, 300, 180, 60
KUBE_SYSTEM = ("-n", "kube-system")
LEASE = "plndr-cp-lock"
"""kube-vip's, unless it is told another name."""


async def test_it_becomes_a_cluster_behind_the_address_that_kube_vip_holds(tmp_path: Path, plant: SharedPlant) -> None:
    async with plant.part(tmp_path, TEMPLATE, cluster=NAME, namespace=NAME) as site:
        servers = {machine.name for machine in site.site.lab.machines}
        await site.apply(*in_namespace(site.hardware(), NAME))
        await _create(site)
        await _is_as_written(site)
        await site.until(
            lambda: _has_nodes(site, servers), within_s=API_S, what="the API behind the address, and Nodes"
        )
        assert site.inside is not None
        assert f"server: https://{ADDRESS}:6443\n" in site.inside.kubeconfig.read_text()
        assert ADDRESS not in {machine.address for machine in site.site.lab.machines}
        network = POD_NETWORK.read_text().replace("${PAUSE_IMAGE}", site.artefacts.pause_image(RELEASE))
        await site.inside.ok("apply", "-f", "-", stdin=network)
        await site.until(lambda: _are_ready(site, servers), within_s=NODES_S, what="Nodes Ready")
        await site.until(lambda: _is_held(site, servers), within_s=SETTLED_S, what="the address held")


async def _create(site: KubeadmSite) -> None:
    """As a person does with upstream's file."""
    options = ["--from", str(MANIFEST), "--namespace", NAME, "--kubernetes-version", RELEASE]
    options += ["--control-planes", "1", "--workers", "1"]
    options += ["--set", f"CONTROL_PLANE_VIP={ADDRESS}", "--set", f"POD_CIDR={POD_CIDR}"]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "ironbell.cli.main", "cluster", "create", NAME, *options,
        env={**os.environ, "KUBECONFIG": str(site.kubectl.kubeconfig)},
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    async with asyncio.timeout(COMMAND_S):
        out, _ = await process.communicate()
    assert process.returncode == 0, out.decode()


async def _is_as_written(site: KubeadmSite) -> None:
    """What runs before kubeadm, and the machines' templates, are the file's."""
    [command] = [
        document["spec"]["kubeadmConfigSpec"]["preKubeadmCommands"]
        for document in goyaml.load_all(MANIFEST.read_text())
        if document["kind"] == "KubeadmControlPlane"
    ]
    assert len(command) == 1
    control_plane = await site.get("kubeadmcontrolplane", f"{NAME}-control-plane")
    run = control_plane["spec"]["kubeadmConfigSpec"]["preKubeadmCommands"]
    assert run == [command[0].replace("${CONTROL_PLANE_VIP}", ADDRESS)]
    templates = (await site.get("tinkerbellmachinetemplates"))["items"]
    assert [one["spec"]["template"]["spec"] for one in templates] == [{}, {}]


async def _has_nodes(site: KubeadmSite, names: set[str]) -> bool:
    return {node["metadata"]["name"] for node in (await site.get_inside("nodes")).get("items", [])} == names


async def _are_ready(site: KubeadmSite, names: set[str]) -> bool:
    machines = (await site.get("machines.cluster.x-k8s.io"))["items"]
    has_nodes = {machine["status"].get("nodeRef", {}).get("name") for machine in machines} == names
    return has_nodes and await site.ready_nodes() == dict.fromkeys(names, RELEASE)


async def _is_held(site: KubeadmSite, names: set[str]) -> bool:
    """kube-vip has the lease, and runs from the image that came with the system."""
    lease = await site.get_inside("lease", LEASE, *KUBE_SYSTEM)
    holder = lease.get("spec", {}).get("holderIdentity", "")
    pod: dict[str, Any] = await site.get_inside("pod", f"kube-vip-{holder}", *KUBE_SYSTEM) if holder in names else {}
    if pod.get("status", {}).get("phase") != "Running":
        return False
    paths = [volume["hostPath"]["path"] for volume in pod["spec"]["volumes"] if "hostPath" in volume]
    images = {container["image"] for container in pod["spec"]["containers"]}
    here = {one.reference for one in clustermanifests.container_images(site.artefacts.images[RELEASE])}
    return images <= here and paths == ["/etc/kubernetes/kube-vip.conf"]
