"""Real Kubernetes clusters by kubeadm on namespace machines: the site, the manifests, and what is seen of the nodes."""

from __future__ import annotations

import base64
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import yaml

from ironbell.demo import clustermanifests, clusterplan
from ironbell.demo.artefacts import NODE_RELEASE, ensure_node_image, ensure_osie
from ironbell.demo.clustermanifests import CORE, INFRASTRUCTURE, POOL, ClusterRequest, document
from ironbell.demo.clusterplan import Group, Plan
from ironbell.demo.run import HTTP_PORT
from ironbell.demo.site import RunningSite, running_site
from ironbell.image.debian import BuildError
from ironbell.lab.files import read_state
from support.programs.kubectl import Kubectl
from support.skips import missing_program, require_program
from support.waiting import until

RELEASE = NODE_RELEASE
RELEASE_BEFORE = "v1.35.4"
"""One minor version before."""
# What a cluster runs on every node of either release while it is upgraded, and that no registry gives them here.
_ON_ALL_NODES = {"kube-proxy", "coredns", "pause"}
CLUSTER = "plant"
SUBNET = "192.168.{0}.0/24"
_POLL_S = 1.0
WRITTEN = "7c5e20b8-written-by-a-pod"
TENANT_IMAGE = "tenant.example/pause:1"
# The one image that every node has by one name, whatever its release is.
_NAME_TENANT = (
    "ctr -n k8s.io images tag $(ctr -n k8s.io images list -q | grep /pause: | head -n 1) " + TENANT_IMAGE + " || true"
)
_KEEPALIVED = """\
global_defs {{
    script_user root
    enable_script_security
}}
vrrp_script api {{
    script "/usr/bin/bash /etc/keepalived/api-answers"
    interval 2
    fall 2
    rise 1
    weight 50
}}
vrrp_instance endpoint {{
    state BACKUP
    interface eth0
    virtual_router_id 51
    priority 100
    advert_int 1
    virtual_ipaddress {{
        {address}/32
    }}
    track_script {{
        api
    }}
}}
"""


@dataclass(frozen=True)
class NodeArtefacts:
    """What is served to machines."""

    osie: Path
    images: dict[str, Path]

    def pause_image(self, release: str) -> str:
        """The reference of the pause image in the node image of a release."""
        return clustermanifests.pause_image(self.images[release])

    def image(self, release: str, name: str) -> str:
        """The reference of a container image in the node image of a release."""
        found = clustermanifests.container_images(self.images[release])
        return next(image.reference for image in found if image.name == name)

    def upgraded(self, before: str, after: str) -> dict[str, str]:
        """What kubeadm of the release after asks for, by name of the container image, where it is another."""
        old = clustermanifests.container_images(self.images[before])
        new = clustermanifests.container_images(self.images[after])
        return {image.name: image.reference for image in new if image not in old}


def node_artefacts(*releases: str) -> NodeArtefacts:
    """In-memory OS and node images; the test is skipped where they cannot be built."""
    require_program("mmdebstrap")
    try:
        return NodeArtefacts(ensure_osie(print), {one: ensure_node_image(one, print) for one in releases})
    except BuildError as error:
        missing_program(f"node image: {error}")


def upgrade_artefacts(before: str, after: str) -> NodeArtefacts:
    """For an upgrade without a registry: nodes of the release after also have what nodes of the one before run."""
    found = node_artefacts()
    try:
        old = ensure_node_image(before, print, folder="images/upgrade")
        kept = [image.reference for image in clustermanifests.container_images(old) if image.name in _ON_ALL_NODES]
        new = ensure_node_image(after, print, folder="images/upgrade", further_images=kept)
    except BuildError as error:
        missing_program(f"node image: {error}")
    return replace(found, images={before: old, after: new})


def lab_file(*, control_planes: int, workers: int, subnet: str) -> dict[str, Any]:
    """The lab's machines, `cp-1` and on and `w-1` and on."""
    plan = Plan(Group("cp", "namespace", control_planes), (Group("w", "namespace", workers),))
    return clusterplan.lab_file(plan, name=CLUSTER, subnet=subnet)


@dataclass
class KubeadmSite:
    """A site, and after `kubeconfig` its cluster."""

    site: RunningSite
    artefacts: NodeArtefacts
    kubectl: Kubectl
    folder: Path
    inside: Kubectl | None = None
    cluster: str = CLUSTER
    """Whose nodes are seen."""

    @property
    def base_url(self) -> str:
        return f"http://{self.site.lab.gateway}:{HTTP_PORT}"

    def address(self, machine: str) -> str:
        return self.site.lab.machine(machine).address

    def disk(self, machine: str) -> Path:
        return Path(self.site.lab.machine(machine).console).with_name("disk0.raw")

    def power(self, machine: str) -> str:
        return read_state(self.site.data_dir).machine(machine).power

    async def apply(self, *documents: dict[str, Any]) -> None:
        await self.kubectl.ok("apply", "-f", "-", stdin=yaml.safe_dump_all(documents))

    async def get(self, *words: str) -> dict[str, Any]:
        """kubectl get in the management cluster."""
        return _document(await self.kubectl.ok("get", *words, "-o", "json"))

    async def get_inside(self, *words: str) -> dict[str, Any]:
        """kubectl get in the cluster; nothing while its API does not answer."""
        if self.inside is None:
            await self._connect()
        if self.inside is None:
            return {}
        result = await self.inside.run("get", *words, "-o", "json", "--request-timeout=5s")
        return _document(result.out) if result.code == 0 else {}

    async def ready_nodes(self) -> dict[str, str]:
        """Names of nodes that are Ready, and their kubelet's version."""
        nodes = (await self.get_inside("nodes")).get("items", [])
        return {
            node["metadata"]["name"]: node["status"]["nodeInfo"]["kubeletVersion"]
            for node in nodes
            if any(c["type"] == "Ready" and c["status"] == "True" for c in node["status"].get("conditions", []))
        }

    async def until(self, holds: Callable[[], Awaitable[bool]], *, within_s: float, what: str) -> float:
        """Wait for a condition; gives how long it took. Fails with what the objects and consoles say."""
        started = time.monotonic()
        await until(holds, what, within_s=within_s, every_s=_POLL_S, seen=self._state)
        return time.monotonic() - started

    def hardware(self) -> list[dict[str, Any]]:
        """Secrets, BMCs and Hardware of all machines, labelled with their roles."""
        return clustermanifests.servers(self.site.lab)

    async def _connect(self) -> None:
        result = await self.kubectl.run("get", "secret", f"{self.cluster}-kubeconfig", "-o", "json")
        if result.code == 0:
            path = self.folder / "cluster.kubeconfig"
            path.write_bytes(base64.b64decode(_document(result.out)["data"]["value"]))
            self.inside = Kubectl(self.kubectl.binary, path, self.folder)

    async def _state(self) -> str:
        shown = [
            (await self.kubectl.run("get", "machines.cluster.x-k8s.io,tinkerbellmachines,workflows,hardware")).out,
            (await self.inside.run("get", "nodes,pods", "-A", "-o", "wide")).out if self.inside else "no kubeconfig",
        ]
        for machine in self.site.lab.machines:
            lines = Path(machine.console).read_text(errors="replace").splitlines()[-15:]
            shown += [f"--- {machine.name}", *lines]
        return "\n".join(shown)


def _document(text: str) -> dict[str, Any]:
    return msgspec.json.decode(text, type=dict[str, Any])


@asynccontextmanager
async def kubeadm_site(
    folder: Path, kubectl: Path, artefacts: NodeArtefacts, lab: dict[str, Any]
) -> AsyncIterator[KubeadmSite]:
    """A site with powered-off machines; nothing is applied yet."""
    path = folder / "lab.yaml"
    path.write_text(yaml.safe_dump(lab))
    images = next(iter(artefacts.images.values())).parent
    async with running_site(folder, path, osie=artefacts.osie, node_images=images) as site:
        yield KubeadmSite(site, artefacts, Kubectl(kubectl, site.kubeconfig, folder), folder)


def cluster(
    site: KubeadmSite,
    *,
    endpoint: str,
    control_planes: int = 1,
    workers: int = 1,
    release: str = RELEASE,
    shared_endpoint: bool = False,
) -> list[dict[str, Any]]:
    """A Cluster with everything that belongs to it.

    With `shared_endpoint` the endpoint is an address that keepalived moves to a control plane whose API answers.
    """
    request = ClusterRequest(
        CLUSTER,
        endpoint,
        "",
        release,
        site.artefacts.pause_image(release),
        {"w": workers},
        control_planes=control_planes,
        commands=(_NAME_TENANT,),
    )
    if shared_endpoint:
        request = replace(
            request,
            control_plane_files=_endpoint_files(endpoint),
            control_plane_commands=("systemctl enable --now keepalived.service",),
        )
    return clustermanifests.cluster(request)


def _endpoint_files(address: str) -> list[dict[str, str]]:
    """The address is on a control plane whose API takes connections; while there is none, on any of them."""
    look = "exec 3<>/dev/tcp/127.0.0.1/6443\n"
    return [
        {
            "path": "/etc/keepalived/keepalived.conf",
            "permissions": "0600",
            "content": _KEEPALIVED.format(address=address),
        },
        {"path": "/etc/keepalived/api-answers", "permissions": "0700", "content": look},
    ]


def health_checks() -> list[dict[str, Any]]:
    """One for each role: a node that is gone for half a minute is replaced."""
    labels = {"cp": {"cluster.x-k8s.io/control-plane-name": f"{CLUSTER}-cp"}, "w": {POOL: "w"}}
    return [_health_check(role, matched) for role, matched in labels.items()]


def power_cycle_first() -> list[dict[str, Any]]:
    """One for the workers: the server of a node that is gone is switched off and on before anything else is done."""
    spec = {"powerCycle": {"attempts": 1, "timeoutSeconds": 300}}
    template = document(
        INFRASTRUCTURE, "v1beta1", "TinkerbellRemediationTemplate", CLUSTER, {"template": {"spec": spec}}
    )
    reference = {"apiVersion": template["apiVersion"], "kind": template["kind"], "name": CLUSTER}
    return [template, _health_check("w", {POOL: "w"}, remediation={"templateRef": reference})]


def _health_check(role: str, matched: dict[str, str], **more: Any) -> dict[str, Any]:
    gone = [{"type": "Ready", "status": status, "timeoutSeconds": 30} for status in ("Unknown", "False")]
    return document(CORE, "v1beta2", "MachineHealthCheck", f"{CLUSTER}-{role}", {
        "clusterName": CLUSTER,
        "selector": {"matchLabels": matched},
        "checks": {"nodeStartupTimeoutSeconds": 900, "unhealthyNodeConditions": gone},
        **more,
    })  # fmt: skip


def writer(image: str) -> list[dict[str, Any]]:
    """A Deployment of two replicas that write `WRITTEN` to their node's disk, and the budget that keeps one of them.

    It is etcd, which every node has as a container image: what it writes it writes through to the disk.
    """
    command = ["etcd", f"--name={WRITTEN}", "--data-dir=/data", "--listen-client-urls=http://0.0.0.0:2379"]
    container = {
        "name": "one",
        "image": image,
        "imagePullPolicy": "Never",
        "command": [*command, "--advertise-client-urls=http://localhost:2379"],
        "readinessProbe": {"httpGet": {"path": "/health", "port": 2379}, "periodSeconds": 2},
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    }
    pod = {"containers": [container], "volumes": [{"name": "data", "emptyDir": {}}], "terminationGracePeriodSeconds": 1}
    return _kept("writer", pod)


def tenant() -> list[dict[str, Any]]:
    """A Deployment of two replicas on two workers, and the budget that keeps one of them."""
    labels = {"app": "tenant"}
    elsewhere = {"labelSelector": {"matchLabels": labels}, "topologyKey": "kubernetes.io/hostname"}
    container = {"name": "one", "image": TENANT_IMAGE, "imagePullPolicy": "Never"}
    soon = [
        {"key": f"node.kubernetes.io/{what}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 15}
        for what in ("not-ready", "unreachable")
    ]
    spread = {
        "podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": elsewhere}]
        }
    }
    pod = {"containers": [container], "affinity": spread, "tolerations": soon, "terminationGracePeriodSeconds": 1}
    return _kept("tenant", pod)


def _kept(name: str, pod: dict[str, Any]) -> list[dict[str, Any]]:
    """Two replicas of a pod, of which one must be available."""
    labels = {"app": name}
    return [
        document("apps", "v1", "Deployment", name, {
            "replicas": 2,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        }),
        document("policy", "v1", "PodDisruptionBudget", name, {
            "minAvailable": 1, "selector": {"matchLabels": labels},
        }),
    ]  # fmt: skip
