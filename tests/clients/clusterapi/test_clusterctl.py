"""Upstream's `clusterctl` on Ironbell alone: what users of Cluster API type every day. It asks no network: where it
would look for releases of providers, a folder of the test is named."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from support.capi.mixtures import CONTROL_PLANES, CORE, Site, conditions, mixture
from support.capi.site import cluster_documents
from support.programs.catalog import CLUSTERCTL, build_program, cluster_api_sources
from support.programs.gobuild import CannotBuild
from support.skips import missing_program

WITHIN_S = 60
DEPLOYMENT, CONTROL_PLANE = f"{CORE}/machinedeployments/one-md-0", f"{CONTROL_PLANES}/one-control-plane"
PROVIDERS = "/apis/clusterctl.cluster.x-k8s.io/v1alpha3/providers"
TINKERBELL = """\
apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3
kind: Metadata
releaseSeries:
- {major: 0, minor: 7, contract: v1beta2}
"""
Clusterctl = Callable[..., str]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with mixture("OOO", tmp_path_factory.mktemp("clusterctl")) as made:
        made.apply(cluster_documents(control_planes=1, workers=2, vm="0s"))
        made.runs(3)
        yield made


def newer(version: str) -> str:
    """A later release of the same series."""
    return f"{version.rpartition('.')[0]}.9"


@pytest.fixture(scope="module")
def releases(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Configuration that names a folder with the releases of all providers that are listed: what runs, and one more."""
    folder = tmp_path_factory.mktemp("releases")
    try:
        metadata = (cluster_api_sources() / "metadata.yaml").read_text()
    except CannotBuild as error:
        missing_program(f"clusterctl: {error}")
    providers = []
    for listed in site.items(PROVIDERS):
        label = listed["metadata"]["name"]
        for version in (listed["version"], newer(listed["version"])):
            release = folder / label / version
            release.mkdir(parents=True)
            (release / "metadata.yaml").write_text(TINKERBELL if "tinkerbell" in label else metadata)
            (release / "components.yaml").touch()
        url = str(folder / label / "latest" / "components.yaml")
        providers.append({"name": listed["providerName"], "type": listed["type"], "url": url})
    (folder / "clusterctl.yaml").write_text(yaml.safe_dump({"providers": providers}))
    return folder / "clusterctl.yaml"


@pytest.fixture
def clusterctl(site: Site, releases: Path, tmp_path: Path) -> Clusterctl:
    """Runs it, and gives what it prints."""
    environment = {
        "HOME": str(tmp_path), "KUBECONFIG": str(site.api.kubeconfig), "CLUSTERCTL_DISABLE_VERSIONCHECK": "true"
    }  # fmt: skip
    try:
        program = build_program(CLUSTERCTL)
    except CannotBuild as error:
        missing_program(f"clusterctl: {error}")

    def run(*words: str | Path, given: str = "") -> str:
        command = [program, *map(str, words), "--config", str(releases)]
        done = subprocess.run(
            command, env=environment, input=given, capture_output=True, text=True, timeout=WITHIN_S, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_describe_shows_every_condition(clusterctl: Clusterctl) -> None:
    lines = clusterctl("describe", "cluster", "one", "--show-conditions", "all", "--grouping=false").splitlines()
    text = "\n".join(lines)
    assert lines[1].split()[:3] == ["Cluster", "default/one", "3/3"]
    for kind in ("DevCluster", "KubeadmControlPlane", "Machine", "MachineDeployment"):
        assert f"{kind} default/one" in text
    said = [line.split("─")[1].split() for line in lines if "─" in line and "default/" not in line and "   " in line]
    told = {words[0]: words[1] for words in said if len(words) > 2}
    for name in ("Available", "ControlPlaneInitialized", "EtcdClusterHealthy", "NodeHealthy", "APIServerPodHealthy"):
        assert told[name] == "True", text
    for name in ("RollingOut", "ScalingUp", "Remediating", "Paused", "Deleting"):
        assert told[name] == "False", text
    assert "Unknown" not in text


def test_the_kubeconfig_is_the_clusters(site: Site, clusterctl: Clusterctl) -> None:
    kubeconfig = yaml.safe_load(clusterctl("get", "kubeconfig", "one"))
    endpoint = site.get(f"{CORE}/clusters/one")["spec"]["controlPlaneEndpoint"]
    assert kubeconfig["clusters"][0]["cluster"]["server"] == f"https://{endpoint['host']}:{endpoint['port']}"


TEMPLATE = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: "${CLUSTER_NAME}", namespace: "${NAMESPACE}"}
data:
  sizes: "${CONTROL_PLANE_MACHINE_COUNT}+${WORKER_MACHINE_COUNT}"
  version: "${KUBERNETES_VERSION}"
  colour: "${COLOUR:=grey}"
"""


def test_generate_fills_in_a_template(clusterctl: Clusterctl) -> None:
    words = ("generate", "cluster", "two", "--from", "-")
    sizes = ("--kubernetes-version", "v1.35.0", "--control-plane-machine-count", "3", "--worker-machine-count", "5")
    made = yaml.safe_load(clusterctl(*words, *sizes, given=TEMPLATE))
    assert made["metadata"] == {"name": "two", "namespace": "default"}
    assert made["data"] == {"sizes": "3+5", "version": "v1.35.0", "colour": "grey"}
    listed = clusterctl(*words, "--list-variables", given=TEMPLATE)
    assert "Required Variables:\n  - KUBERNETES_VERSION" in listed
    assert '- COLOUR                       (defaults to "grey")' in listed


def test_the_plan_of_an_upgrade_knows_what_runs(site: Site, clusterctl: Clusterctl) -> None:
    lines = [line.split() for line in clusterctl("upgrade", "plan").splitlines()]
    listed = site.items(PROVIDERS)
    assert {"cluster-api", "bootstrap-kubeadm", "control-plane-kubeadm"} <= {one["metadata"]["name"] for one in listed}
    for one in listed:
        meta = one["metadata"]
        assert [meta["name"], meta["namespace"], one["type"], one["version"], newer(one["version"])] in lines


def is_paused(site: Site, path: str) -> bool:
    """A deployment is told by a field of its own, a control plane by the annotation, which it confirms."""
    found = site.get(path)
    if found["kind"] == "MachineDeployment":
        return bool(found["spec"].get("paused"))
    return conditions(found).get("Paused") == "True"


def test_rollouts_are_paused_resumed_and_begun(site: Site, clusterctl: Clusterctl) -> None:
    resources = {"machinedeployment/one-md-0": DEPLOYMENT, "kubeadmcontrolplane/one-control-plane": CONTROL_PLANE}
    for resource, path in resources.items():
        for command, paused in (("pause", True), ("resume", False)):
            clusterctl("alpha", "rollout", command, resource)
            site.reached(lambda path=path, paused=paused: is_paused(site, path) == paused)
    before = [one["metadata"]["name"] for one in site.machines()]
    for resource in resources:
        clusterctl("alpha", "rollout", "restart", resource)
    site.runs(3, without=before)
