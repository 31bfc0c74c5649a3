"""`ironbell cluster` and `ironbell why`, from a template to a cluster that is gone, on simulated machines."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

from ironbell.base.errors import IronbellError
from ironbell.cli.main import cli
from ironbell.codec.goyaml import load
from support.site.embeddedcluster import EmbeddedCluster

WITHIN_S = 60.0
NOT_YET = "has no kind"
JSON = ("-o", "json")
ONE = ("Cluster", "default", "one")
TEMPLATE = """
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: "${CLUSTER_NAME}"}
spec:
  clusterNetwork: {pods: {cidrBlocks: ["${POD_CIDR}"]}}
  controlPlaneRef: {apiGroup: controlplane.cluster.x-k8s.io, kind: KubeadmControlPlane, name: "${CLUSTER_NAME}"}
  infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: DevCluster, name: "${CLUSTER_NAME}"}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: DevCluster
metadata: {name: "${CLUSTER_NAME}"}
spec: {backend: {inMemory: {}}}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: DevMachineTemplate
metadata: {name: "${CLUSTER_NAME}"}
spec: {template: {spec: {backend: {inMemory: {}}}}}
---
apiVersion: controlplane.cluster.x-k8s.io/v1beta2
kind: KubeadmControlPlane
metadata: {name: "${CLUSTER_NAME}"}
spec:
  replicas: ${CONTROL_PLANE_MACHINE_COUNT}
  version: ${KUBERNETES_VERSION}
  machineTemplate:
    spec:
      infrastructureRef:
        {apiGroup: infrastructure.cluster.x-k8s.io, kind: DevMachineTemplate, name: "${CLUSTER_NAME}"}
  kubeadmConfigSpec: {clusterConfiguration: {encryptionAlgorithm: ECDSA-P256}}
---
apiVersion: bootstrap.cluster.x-k8s.io/v1beta2
kind: KubeadmConfigTemplate
metadata: {name: "${CLUSTER_NAME}"}
spec: {template: {spec: {joinConfiguration: {nodeRegistration: {taints: []}}}}}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: MachineDeployment
metadata: {name: "${CLUSTER_NAME}"}
spec:
  clusterName: ${CLUSTER_NAME}
  replicas: ${WORKER_MACHINE_COUNT}
  template:
    spec:
      clusterName: ${CLUSTER_NAME}
      version: ${KUBERNETES_VERSION}
      bootstrap:
        configRef: {apiGroup: bootstrap.cluster.x-k8s.io, kind: KubeadmConfigTemplate, name: "${CLUSTER_NAME}"}
      infrastructureRef:
        {apiGroup: infrastructure.cluster.x-k8s.io, kind: DevMachineTemplate, name: "${CLUSTER_NAME}"}
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    site = EmbeddedCluster(tmp_path_factory.mktemp("commands"), ("--simulate",))
    try:
        site.start()
        yield site
    finally:
        site.stop()


class Ironbell:
    """The command in this process: seventeen starts of an interpreter would cost more than the clusters."""

    def __init__(self, kubeconfig: Path) -> None:
        self._kubeconfig = kubeconfig

    def __call__(self, *arguments: str, stdin: str = "") -> Result:
        return CliRunner().invoke(cli, [*arguments, "--kubeconfig", str(self._kubeconfig)], input=stdin)

    def ok(self, *arguments: str, stdin: str = "") -> str:
        done = self(*arguments, stdin=stdin)
        assert done.exit_code == 0, (done.exception, done.stderr)
        return done.stdout

    def refused(self, *arguments: str, stdin: str = "") -> str:
        done = self(*arguments, stdin=stdin)
        assert isinstance(done.exception, IronbellError | SystemExit), (done.exception, done.stdout)
        return f"{done.stderr}{done.exception}"


def test_a_cluster_from_its_template_to_its_end(site: EmbeddedCluster) -> None:
    ironbell = Ironbell(site.kubeconfig)
    create = ("cluster", "create", "one", "--from", "-", "--kubernetes-version", "v1.34.2", "--workers", "1")
    given = (*create, "--set", "POD_CIDR=10.0.0.0/16")
    within = ("--timeout", f"{WITHIN_S}s")

    assert "no value for POD_CIDR: " in ironbell.refused(*create, stdin=TEMPLATE)
    deadline = time.monotonic() + WITHIN_S
    while NOT_YET in str((created := ironbell(*given, "--wait", *within, *JSON, stdin=TEMPLATE)).exception):
        assert time.monotonic() < deadline, "the simulation never defined its kinds"
    assert created.exit_code == 0, created.exception
    assert "Cluster default/one is available" in created.stderr
    made = msgspec.json.decode(created.stdout)
    assert (made["kind"], made["namespace"], made["name"], made["result"], made["status"]) == (*ONE, "created", "True")
    assert {"kind": "Cluster", "namespace": "default", "name": "one", "result": "applied"} in made["objects"]
    assert len(made["objects"]) == TEMPLATE.count("apiVersion:")
    assert "already exists" in ironbell.refused(*given, stdin=TEMPLATE)

    described = msgspec.json.decode(ironbell.ok("cluster", "describe", "one", "--output", "json"))
    assert (described["kind"], described["namespace"], described["name"]) == ONE
    assert (described["title"], described["status"], described["replicas"]) == ("Cluster default/one", "True", 2)
    assert load(ironbell.ok("cluster", "kubeconfig", "one").encode())["kind"] == "Config"
    nowhere, some = 'Namespace "other" does not exist. ', "Namespaces that have some: default (1). Use -n to select one"
    for words in (("get", "clusters"), ("cluster", "list")):
        assert f"{nowhere}{some}" in ironbell(*words, "-n", "other").stderr
    for words in (("cluster", "describe", "one"), ("get", "cluster", "one"), ("why", "cluster/one")):
        missing = ironbell.refused(*words, "-n", "other")
        assert f"{nowhere}Namespace default has an object of that name: use -n default." in missing

    assert "even number" in ironbell.refused("cluster", "scale", "one", "--control-planes", "2")
    scaled = msgspec.json.decode(ironbell.ok("cluster", "scale", "one", "--workers", "2", "--wait", *within, *JSON))
    assert (scaled["kind"], scaled["namespace"], scaled["name"], scaled["result"]) == (*ONE, "scaled")
    assert scaled["workers"] == {"readyReplicas": 2, "desiredReplicas": 2}
    (change,) = scaled["changes"]
    assert (change["kind"], change["field"], change["value"]) == ("MachineDeployment", "spec.replicas", 2)
    assert "upgrade to v1.35 first" in ironbell.refused("cluster", "upgrade", "one", "--kubernetes-version", "v1.36.0")
    to = ("--kubernetes-version", "v1.35.0")
    upgraded = msgspec.json.decode(ironbell.ok("cluster", "upgrade", "one", *to, *within, *JSON))
    assert (upgraded["result"], upgraded["version"], upgraded["status"]) == ("upgraded", "v1.35.0", "True")
    assert [change["kind"] for change in upgraded["changes"]] == ["KubeadmControlPlane", "MachineDeployment"]

    machines = ironbell.ok("get", "machines.cluster.x-k8s.io", "-o", "json")
    found = msgspec.json.decode(machines)["items"]
    assert [machine["spec"]["version"] for machine in found] == ["v1.35.0"] * 3
    name = found[0]["metadata"]["name"]
    (why,) = msgspec.json.decode(ironbell.ok("why", f"machine/{name}", "--output", "json"))
    assert (why["kind"], why["name"], why["isGood"]) == ("Machine", name, True)
    related = [(part["kind"], part["name"]) for part in why["related"]]
    assert related == [(kind, name) for kind in ("Machine", "DevMachine", "KubeadmConfig")] + [("Cluster", "one")]
    assert ironbell.ok("why", "machine", name) == f"Machine default/{name}: nothing blocks it; its state is Running.\n"
    assert ironbell.ok("why", "one").startswith("Cluster default/one: nothing blocks it")
    assert "machines.bmc.tinkerbell.org or machines.cluster.x-k8s.io" in ironbell.refused("why", "machine/none")

    assert "nothing was deleted" in ironbell.refused("cluster", "delete", "one", stdin="two\n")
    gone = ironbell("cluster", "delete", "one", *within, *JSON, stdin="one\n")
    assert gone.exit_code == 0, gone.exception
    left = msgspec.json.decode(gone.stdout)["left"]
    assert left[0] == {"kind": "DevMachineTemplate", "namespace": "default", "name": "one"}
    assert gone.stderr.splitlines()[-2:] == [
        "left: DevMachineTemplate default/one",
        "left: KubeadmConfigTemplate default/one",
    ]
    assert "Cluster default/one does not exist" in ironbell.refused("cluster", "describe", "one")


def test_a_mistake_in_one_object_leaves_nothing_behind(site: EmbeddedCluster) -> None:
    ironbell = Ironbell(site.kubeconfig)
    wrong = TEMPLATE.replace("inMemory: {}", "inMemory: {}, other: {}", 1)
    given = ("--from", "-", "--kubernetes-version", "v1.34.2", "--set", "POD_CIDR=10.0.0.0/16")
    refused = ironbell.refused("cluster", "create", "two", *given, stdin=wrong.replace("encryptionAlgorithm", "typo"))
    assert "two: " in refused
    left = ironbell.ok("get", "kubeadmcontrolplanes,clusters,machinedeployments", "-o", "name")
    assert left == ""


def test_a_cluster_comes_up_again_under_its_name(site: EmbeddedCluster) -> None:
    ironbell = Ironbell(site.kubeconfig)
    words = ("--from", "-", "--kubernetes-version", "v1.34.2", "--workers", "1", "--set", "POD_CIDR=10.0.0.0/16")
    within = ("--wait", "--timeout", f"{WITHIN_S}s")
    for _ in range(3):
        ironbell.ok("cluster", "create", "again", *words, *within, stdin=TEMPLATE)
        described = msgspec.json.decode(ironbell.ok("cluster", "describe", "again", "--output", "json"))
        assert (described["status"], described["replicas"]) == ("True", 2)
        ironbell.ok("cluster", "delete", "again", "--yes", *within)
