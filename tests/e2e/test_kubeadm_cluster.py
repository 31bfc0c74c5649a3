"""A Cluster applied to powered-off servers becomes a real Kubernetes cluster, is scaled down, and its server is wiped.

The servers are namespace machines: firmware is a stand-in, everything from the in-memory OS on is real.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ironbell.demo.disks import holds, is_blank
from support.kubeadm.cluster import (
    CLUSTER,
    RELEASE,
    SUBNET,
    KubeadmSite,
    cluster,
    kubeadm_site,
    lab_file,
    node_artefacts,
)
from support.skips import needs_root

pytestmark = [pytest.mark.root, needs_root]

NODES_S, PODS_S, WIPE_S = 300, 120, 180
CONTROL_PLANE, WORKER = "cp-1", "w-1"


async def test_powered_off_servers_become_a_cluster_and_one_is_given_back_wiped(
    tmp_path: Path, kubectl_binary: Path
) -> None:
    """One control plane whose own address is the endpoint, one worker, pods on routes by a ClusterResourceSet."""
    artefacts = node_artefacts(RELEASE)
    lab = lab_file(control_planes=1, workers=1, subnet=SUBNET.format(78))
    async with kubeadm_site(tmp_path, kubectl_binary, artefacts, lab) as site:
        assert {machine.power for machine in site.site.lab.machines} == {"Off"}
        await site.apply(*site.hardware())
        await site.apply(*cluster(site, endpoint=site.address(CONTROL_PLANE)))
        await site.until(lambda: _nodes_are(site, {CONTROL_PLANE, WORKER}), within_s=NODES_S, what="both nodes Ready")
        assert set((await site.ready_nodes()).values()) == {RELEASE}
        await _identities_agree(site)
        await site.until(lambda: _has_names(site), within_s=PODS_S, what="CoreDNS ready: pods reach the API")
        await _runs_a_pod(site)
        await _user_data_is_withdrawn(site)
        serial = f"tinkerbell://default/{WORKER}".encode()
        assert holds(site.disk(WORKER), serial)
        await site.kubectl.ok("scale", "machinedeployment", f"{CLUSTER}-w", "--replicas=0")
        await site.until(lambda: _nodes_are(site, {CONTROL_PLANE}), within_s=WIPE_S, what="the worker's node gone")
        await site.until(lambda: _is_free(site, WORKER), within_s=WIPE_S, what="the worker's server free")
        assert site.power(WORKER) == "Off"
        assert is_blank(site.disk(WORKER))


async def _nodes_are(site: KubeadmSite, names: set[str]) -> bool:
    known = {node["metadata"]["name"] for node in (await site.get_inside("nodes")).get("items", [])}
    return known == names == set(await site.ready_nodes())


async def _identities_agree(site: KubeadmSite) -> None:
    """Server, Machine and node are each other's."""
    machines = (await site.get("machines.cluster.x-k8s.io"))["items"]
    owners = {machine["spec"]["providerID"]: machine["status"]["nodeRef"]["name"] for machine in machines}
    assert owners == {f"tinkerbell://default/{name}": name for name in (CONTROL_PLANE, WORKER)}


async def _has_names(site: KubeadmSite) -> bool:
    found = await site.get_inside("deployment", "coredns", "-n", "kube-system")
    return bool(found) and found["status"].get("readyReplicas") == found["spec"]["replicas"]


async def _runs_a_pod(site: KubeadmSite) -> None:
    assert site.inside is not None
    image = site.artefacts.pause_image(RELEASE)
    await site.inside.ok("run", "tenant", f"--image={image}", "--image-pull-policy=IfNotPresent")
    await site.inside.ok("wait", "pod/tenant", "--for=condition=Ready", "--timeout=50s")
    pod = await site.get_inside("pod", "tenant")
    assert pod["spec"]["nodeName"] == WORKER
    worker = await site.get_inside("node", WORKER)
    assert pod["status"]["podIP"].rpartition(".")[0] == worker["spec"]["podCIDR"].rpartition(".")[0]


async def _user_data_is_withdrawn(site: KubeadmSite) -> None:
    async def withdrawn() -> bool:
        found = (await site.get("hardware"))["items"]
        return not any("userData" in one["spec"] for one in found)

    await site.until(withdrawn, within_s=60, what="user data withdrawn once the nodes are Ready")


async def _is_free(site: KubeadmSite, name: str) -> bool:
    annotations = (await site.get("hardware", name))["metadata"]["annotations"]
    if "ironbell.dev/claimed-by" in annotations or "ironbell.dev/wiped" not in annotations:
        return False
    return json.loads(annotations["ironbell.dev/wiped"])["wiped"] is True
