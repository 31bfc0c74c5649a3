"""Real kubeadm that fails on namespace machines: what is reported of it, and that the Machines are replaced.

The cluster's own control plane is installed by a template without a report, as upstream's default is.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ironbell.base.clock import parse_rfc3339
from ironbell.demo import clustermanifests
from ironbell.demo.clustermanifests import CORE, ClusterRequest, document
from ironbell.provisioner.default_template import Inputs, default_template
from support.kubeadm.cluster import RELEASE, KubeadmSite
from support.kubeadm.sharedplant import FAILING, SharedPlant, in_namespace
from support.skips import needs_root

pytestmark = [
    pytest.mark.root,
    needs_root,
    pytest.mark.asyncio(loop_scope="session"),
]

READY_S, FAILED_S, REPLACED_S = 300, 240, 20
WITHIN_S, AT_ONCE_S = 30, 5
TINKERBELL_MACHINES, MACHINES, CONFIGS = "tinkerbellmachines", "machines.cluster.x-k8s.io", "kubeadmconfigs"
WATCHED = (TINKERBELL_MACHINES, MACHINES, CONFIGS)
CLUSTER, OTHER, NAMESPACE = "failing", "broken", "failing"
OWN = "own-1"
NOWHERE = "127.0.0.1:9/nothing"


@dataclass(frozen=True)
class Failure:
    """How kubeadm is made to fail on one server, and what must be told of it."""

    server: str
    cluster: str
    cause: str


PREFLIGHT = Failure("pre-1", CLUSTER, "FileAvailable--etc-kubernetes-kubelet.conf")
REFUSED = Failure("ref-1", CLUSTER, "connection refused")
IMAGES = Failure("img-1", OTHER, NOWHERE)
FAILURES = (PREFLIGHT, REFUSED, IMAGES)


async def test_a_bootstrap_that_fails_is_reported_and_replaced(tmp_path: Path, plant: SharedPlant) -> None:
    """Three ways: a preflight check, images that cannot be pulled, and an API that refuses the connection."""
    part = plant.part(tmp_path, FAILING, cluster=CLUSTER, namespace=NAMESPACE)
    async with part as site, _story(site) as story:
        clusters = [*_failing_control_plane(site), *_cluster(site), *_health_checks()]
        await site.apply(*in_namespace([*site.hardware(), *clusters], NAMESPACE))
        await _is_ready_by_its_node(site)
        await asyncio.gather(*(_fails(site, story, failure) for failure in FAILURES))


class Story:
    """Every state of the objects since the beginning: a remediation takes less than a second."""

    def __init__(self, folder: Path) -> None:
        self.files = {kind: folder / f"{kind}.watched" for kind in WATCHED}

    def states(self, kind: str) -> list[dict[str, Any]]:
        text, decoder, found, at = self.files[kind].read_text().strip(), json.JSONDecoder(), [], 0
        while at < len(text):
            try:
                state, at = decoder.raw_decode(text, at)
            except json.JSONDecodeError:
                break  # the last one is being written
            found.append(state)
            at += len(text[at:]) - len(text[at:].lstrip())
        return found


@asynccontextmanager
async def _story(site: KubeadmSite) -> AsyncIterator[Story]:
    story = Story(site.folder)
    watches = []
    for kind, path in story.files.items():
        command = [site.kubectl.binary, "--kubeconfig", site.kubectl.kubeconfig, "get", kind, "--watch", "-o", "json"]
        with path.open("wb") as file:
            watches.append(await asyncio.create_subprocess_exec(*map(str, command), stdout=file))
    try:
        yield story
    finally:
        for watch in watches:
            watch.terminate()
            await watch.wait()


async def _is_ready_by_its_node(site: KubeadmSite) -> None:
    """Nothing reports, and the machine is Ready soon after its Node is there."""

    async def is_ready() -> bool:
        return bool(await _ready_since(site))

    await site.until(is_ready, within_s=READY_S, what="the control plane's machine Ready")
    server = await site.get("hardware", OWN)
    assert "ironbell.dev/installed-system-up" not in server["metadata"]["annotations"]

    async def has_node() -> bool:
        return bool(await site.get_inside("nodes", OWN))

    await site.until(has_node, within_s=60, what="the control plane's Node")
    node = await site.get_inside("nodes", OWN)
    joined = parse_rfc3339(node["metadata"]["creationTimestamp"])
    assert (parse_rfc3339(await _ready_since(site)) - joined).total_seconds() <= WITHIN_S


async def _ready_since(site: KubeadmSite) -> str:
    for machine in (await site.get("tinkerbellmachines"))["items"]:
        if machine["spec"].get("hardwareName") == OWN:
            ready = _condition(machine, "Ready")
            return str(ready["lastTransitionTime"]) if ready.get("status") == "True" else ""
    return ""


async def _fails(site: KubeadmSite, story: Story, failure: Failure) -> None:
    """The cause is on the TinkerbellMachine, the KubeadmConfig and the Machine; the Machine is replaced at once."""

    def machines() -> list[dict[str, Any]]:
        found = story.states(TINKERBELL_MACHINES)
        return [one for one in found if one["spec"].get("hardwareName") == failure.server and _tells(one, failure)]

    async def is_reported() -> bool:
        return bool(machines())

    await site.until(is_reported, within_s=READY_S + FAILED_S, what=f"{failure.server}: {failure.cause}")
    ready = [_condition(one, "Ready") for one in machines()]
    assert any(one["reason"] == "BootstrapFailed" and failure.cause in one["message"] for one in ready)
    name = machines()[0]["metadata"]["ownerReferences"][0]["name"]

    def owners() -> list[dict[str, Any]]:
        return [one for one in story.states(MACHINES) if one["metadata"]["name"] == name and _tells(one, failure)]

    async def is_replaced() -> bool:
        return any("deletionTimestamp" in one["metadata"] for one in owners())

    await site.until(is_replaced, within_s=REPLACED_S, what=f"Machine {name} replaced")
    last = owners()[-1]
    failed, checked = _condition(last, "BootstrapSucceeded"), _condition(last, "HealthCheckSucceeded")
    assert (checked["status"], checked["reason"]) == ("False", "BootstrapFailed")
    waited = parse_rfc3339(last["metadata"]["deletionTimestamp"]) - parse_rfc3339(failed["lastTransitionTime"])
    assert waited.total_seconds() <= AT_ONCE_S

    async def is_on_config() -> bool:
        config = last["spec"]["bootstrap"]["configRef"]["name"]
        states = [one for one in story.states(CONFIGS) if one["metadata"]["name"] == config]
        return any(_tells(one, failure) for one in states)

    await site.until(is_on_config, within_s=REPLACED_S, what=f"KubeadmConfig of {name}")
    server = await site.get("hardware", failure.server)
    history = json.loads(server["metadata"]["annotations"]["ironbell.dev/history"])
    kept = next(entry["systemFailure"] for entry in history if "systemFailure" in entry)
    assert failure.cause in "\n".join(kept["output"])


def _tells(obj: dict[str, Any], failure: Failure) -> bool:
    found = _condition(obj, "BootstrapSucceeded")
    return found.get("status") == "False" and failure.cause in found["message"]


def _condition(obj: dict[str, Any], type_: str) -> dict[str, str]:
    found: list[dict[str, str]] = obj.get("status", {}).get("conditions", [])
    return next((one for one in found if one["type"] == type_), {})


def _cluster(site: KubeadmSite) -> list[dict[str, Any]]:
    """One control plane that nothing reports of, and two workers whose kubeadm fails."""
    documents = clustermanifests.cluster(_request(site, CLUSTER, OWN, {"pre": 1, "ref": 1}))
    image = f"{site.base_url}/images/debian-kubernetes-{RELEASE}.raw.zst"
    text = default_template(Inputs("install", image, "{{ index .Hardware.Disks 0 }}", site.base_url))
    silent = text.replace("reporting:", "unreported:")
    assert silent != text
    commands = {
        f"{CLUSTER}-pre": ["mkdir -p /etc/kubernetes", "touch /etc/kubernetes/kubelet.conf"],
        f"{CLUSTER}-ref": ["sed -i s/:6443/:6444/ /run/kubeadm/kubeadm-join-config.yaml"],
    }
    for made in documents:
        name = made["metadata"]["name"]
        if made["kind"] == "TinkerbellMachineTemplate" and name == f"{CLUSTER}-cp":
            made["spec"]["template"]["spec"] |= {"templateOverride": silent, "hardwareAffinity": _affinity("own")}
        if made["kind"] == "KubeadmConfigTemplate":
            joining = made["spec"]["template"]["spec"]
            joining["preKubeadmCommands"] = commands[name]
            joining["joinConfiguration"]["timeouts"] = {"discoverySeconds": 15}
    return documents


def _failing_control_plane(site: KubeadmSite) -> list[dict[str, Any]]:
    """Its images are where nobody serves any."""
    documents = clustermanifests.cluster(_request(site, OTHER, IMAGES.server, {}))
    for made in documents:
        if made["kind"] == "TinkerbellMachineTemplate":
            made["spec"]["template"]["spec"]["hardwareAffinity"] = _affinity("img")
        if made["kind"] == "KubeadmControlPlane":
            made["spec"]["kubeadmConfigSpec"]["clusterConfiguration"] = {"imageRepository": NOWHERE}
    return documents


def _affinity(role: str) -> dict[str, Any]:
    return {"required": [{"labelSelector": {"matchLabels": {"role": role}}}]}


def _request(site: KubeadmSite, name: str, endpoint: str, pools: dict[str, int]) -> ClusterRequest:
    return ClusterRequest(
        name,
        site.address(endpoint),
        f"{site.base_url}/images/debian-kubernetes-{{{{.KubernetesVersion}}}}.raw.zst",
        RELEASE,
        site.artefacts.pause_image(RELEASE),
        pools,
    )


def _health_checks() -> list[dict[str, Any]]:
    """As a person writes them: nothing in them speaks of the bootstrap."""
    return [
        document(CORE, "v1beta2", "MachineHealthCheck", name, {
            "clusterName": name,
            "selector": {"matchLabels": {"cluster.x-k8s.io/cluster-name": name}},
            "checks": {"nodeStartupTimeoutSeconds": 1800},
        })
        for name in (CLUSTER, OTHER)
    ]  # fmt: skip
