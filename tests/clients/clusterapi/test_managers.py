"""Upstream's Cluster API, unchanged: its managers are installed, elect leaders, serve their webhooks, and bring a
cluster of one class up and away again, with infrastructure that the test plays. `make soak` has the same on a
real kube-apiserver to compare with."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.api.kubeapi import APPLY, KubeApi, connect
from support.api.realcluster import RealCluster
from support.capi.managers import Manager, managers
from support.programs.catalog import CLUSTERCTL, build_program
from support.programs.gobuild import CannotBuild
from support.site.embeddedcluster import EmbeddedCluster
from support.skips import missing_program
from support.waiting import eventually

OBJECTS = Path(__file__).parent / "objects.yaml"
NAMESPACE = "fleet"
INFRASTRUCTURE = f"/apis/infrastructure.cluster.x-k8s.io/v1/namespaces/{NAMESPACE}"
CLUSTERS = f"/apis/cluster.x-k8s.io/v1beta2/namespaces/{NAMESPACE}"
CONTROL_PLANES = f"/apis/controlplane.cluster.x-k8s.io/v1beta2/namespaces/{NAMESPACE}/kubeadmcontrolplanes"
CONFIGS = f"/apis/bootstrap.cluster.x-k8s.io/v1beta2/namespaces/{NAMESPACE}/kubeadmconfigs"
SECRETS = f"/api/v1/namespaces/{NAMESPACE}/secrets"
IN_CONTROL_PLANE = "?labelSelector=cluster.x-k8s.io/control-plane"
WAIT_S = 60
WITHOUT = ("--without=cluster-api", "--without=kubeadm-bootstrap", "--without=kubeadm-control-plane")


@pytest.fixture(scope="module", params=["embedded", pytest.param("real", marks=pytest.mark.soak)])
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The kubeconfig of a cluster of its own: its webhooks would be in the way of others."""
    folder = tmp_path_factory.mktemp(f"cluster-api-{request.param}")
    server = EmbeddedCluster(folder, WITHOUT) if request.param == "embedded" else RealCluster(folder)
    try:
        server.start()
        yield server.kubeconfig if isinstance(server, EmbeddedCluster) else server.kubeconfig()
    except CannotBuild as error:
        missing_program(f"real Kubernetes: {error}")
    finally:
        server.stop()


@pytest.fixture(scope="module")
def api(cluster: Path) -> KubeApi:
    return connect("", cluster)


@pytest.fixture(scope="module")
def running(api: KubeApi, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Manager]]:
    """All managers, ready."""
    authority = Path(api.pool.connection_pool_kw["ca_certs"]).read_bytes()
    folder = tmp_path_factory.mktemp("managers")
    try:
        with managers(api, kubectl=build_program("kubectl"), authority=authority, folder=folder) as found:
            yield found
    except CannotBuild as error:
        missing_program(f"Cluster API managers: {error}")


def items(api: KubeApi, path: str) -> list[dict[str, Any]]:
    answer = api.get(path)
    assert answer.status == 200, answer.body
    found: list[dict[str, Any]] = answer.json["items"]
    return found


def condition(value: dict[str, Any], name: str) -> str:
    found = (one["status"] for one in value.get("status", {}).get("conditions", ()) if one["type"] == name)
    return next(found, "")


def test_each_manager_leads(api: KubeApi, running: dict[str, Manager]) -> None:
    for manager in running.values():
        path = f"/apis/coordination.k8s.io/v1/namespaces/{manager.namespace}/leases"

        def is_led(path: str = path) -> bool:
            return any(one["spec"].get("holderIdentity") for one in items(api, path))

        eventually(is_led)


def test_their_webhooks_refuse(api: KubeApi, running: dict[str, Manager]) -> None:
    wrong = {
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": "wrong"},
        "spec": {"topology": {"classRef": {"name": "none"}, "version": "not-a-version"}},
    }  # fmt: skip

    def refused() -> bool:
        answer = api.post("/apis/cluster.x-k8s.io/v1beta2/namespaces/default/clusters", wrong)
        return answer.status == 422 and "version must be a valid semantic version" in answer.message

    eventually(refused)


def install(api: KubeApi) -> None:
    """The fake infrastructure's definitions, then a class and a cluster of it."""
    api.made("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    for value in yaml.safe_load_all(OBJECTS.read_text()):
        group, _, version = value["apiVersion"].partition("/")
        plural = {"ClusterClass": "clusterclasses"}.get(value["kind"], f"{value['kind'].lower()}s")
        scope = "" if value["kind"] == "CustomResourceDefinition" else f"/namespaces/{NAMESPACE}"
        path = f"/apis/{group}/{version}{scope}/{plural}/{value['metadata']['name']}"

        def is_applied(path: str = path, value: dict[str, Any] = value) -> bool:
            body = yaml.safe_dump(value).encode()
            answer = api.call("PATCH", path, body, content_type=APPLY, fieldManager="user", force=True)
            assert answer.status in {200, 201}, answer.body
            return True

        eventually(is_applied)


def test_a_cluster_comes_up_and_goes(api: KubeApi, running: dict[str, Manager], tmp_path: Path) -> None:
    install(api)
    [infrastructure] = eventually(lambda: items(api, f"{INFRASTRUCTURE}/testclusters"), within_s=WAIT_S)
    assert infrastructure["metadata"]["labels"]["cluster.x-k8s.io/cluster-name"] == "one"
    assert infrastructure["spec"]["region"] == "north", "the class's patch was not applied"
    cluster = eventually(lambda: has_control_plane(api), within_s=WAIT_S)
    assert cluster["spec"]["controlPlaneRef"]["kind"] == "KubeadmControlPlane"
    assert "cluster.cluster.x-k8s.io" in cluster["metadata"]["finalizers"]

    provide(api, "testclusters", infrastructure, {"controlPlaneEndpoint": {"host": "127.0.0.1", "port": 1}})
    eventually(
        lambda: condition(api.get(f"{CLUSTERS}/clusters/one").json, "InfrastructureReady") == "True", within_s=WAIT_S
    )
    eventually(
        lambda: (
            {f"one-{part}" for part in ("ca", "etcd", "proxy", "sa", "kubeconfig")}
            <= {one["metadata"]["name"] for one in items(api, SECRETS)}
        ),
        within_s=WAIT_S,
    )
    [control_plane] = items(api, CONTROL_PLANES)
    [machine] = eventually(lambda: items(api, f"{INFRASTRUCTURE}/testmachines{IN_CONTROL_PLANE}"), within_s=WAIT_S)
    owner = machine["metadata"]["ownerReferences"][0]
    assert owner["kind"] in {"Machine", "KubeadmControlPlane"}

    def bootstrap_data() -> list[dict[str, Any]]:
        return [
            one
            for one in items(api, SECRETS)
            if one["type"] == "cluster.x-k8s.io/secret"
            and "value" in one["data"]
            and one["metadata"]["name"].startswith(control_plane["metadata"]["name"])
        ]

    eventually(bootstrap_data, within_s=WAIT_S)
    [config] = items(api, f"{CONFIGS}{IN_CONTROL_PLANE}")
    assert eventually(lambda: condition(api.get(f"{CONFIGS}/{config['metadata']['name']}").json, "Ready")) == "True"

    provide(api, "testmachines", machine, {"providerID": "test://one"})

    def is_provisioned() -> bool:
        found = [one for one in items(api, f"{CLUSTERS}/machines") if one["spec"].get("providerID") == "test://one"]
        return bool(found) and found[0]["status"]["phase"] == "Provisioned"

    eventually(is_provisioned, within_s=WAIT_S)
    [deployment] = items(api, f"{CLUSTERS}/machinedeployments")
    assert deployment["spec"]["replicas"] == 2

    old = api.get(f"{CLUSTERS.replace('v1beta2', 'v1beta1')}/clusters/one").json
    assert (old["apiVersion"], old["spec"]["topology"]["class"]) == ("cluster.x-k8s.io/v1beta1", "plain")

    tree = clusterctl(api, "describe", "cluster", "one", "--namespace", NAMESPACE, folder=tmp_path)
    assert f"Cluster {NAMESPACE}/one" in tree
    assert f"KubeadmControlPlane {NAMESPACE}/{control_plane['metadata']['name']}" in tree
    kubeconfig = yaml.safe_load(clusterctl(api, "get", "kubeconfig", "one", "--namespace", NAMESPACE, folder=tmp_path))
    assert kubeconfig["clusters"][0]["cluster"]["server"] == "https://127.0.0.1:1"

    assert api.delete(f"{CLUSTERS}/clusters/one").status == 200
    eventually(lambda: api.get(f"{CLUSTERS}/clusters/one").status == 404, within_s=WAIT_S)
    assert items(api, f"{INFRASTRUCTURE}/testmachines") == []
    assert items(api, CONTROL_PLANES) == []


def has_control_plane(api: KubeApi) -> dict[str, Any] | None:
    """The Cluster, once its class has been made into objects."""
    found: dict[str, Any] = api.get(f"{CLUSTERS}/clusters/one").json
    return found if "controlPlaneRef" in found["spec"] else None


def clusterctl(api: KubeApi, *arguments: str, folder: Path) -> str:
    """What a command prints; it asks nobody for newer versions of itself."""
    environment = {"HOME": str(folder), "KUBECONFIG": str(api.kubeconfig), "CLUSTERCTL_DISABLE_VERSIONCHECK": "true"}
    done = subprocess.run(
        [build_program(CLUSTERCTL), *arguments], env=environment, capture_output=True, text=True, timeout=WAIT_S
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def provide(api: KubeApi, plural: str, value: dict[str, Any], spec: dict[str, Any]) -> None:
    """What an infrastructure provider would do: say where the thing is, and that it is there."""
    path = f"{INFRASTRUCTURE}/{plural}/{value['metadata']['name']}"
    assert api.patch(path, {"spec": spec}).status == 200
    status = {"status": {"initialization": {"provisioned": True}}}
    assert api.patch(f"{path}/status", status).status == 200
