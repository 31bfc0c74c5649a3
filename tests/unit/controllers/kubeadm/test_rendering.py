"""Bootstrap data: what the three roles get. Every byte is compared with upstream's in tests/compat/kubeadm."""

from __future__ import annotations

from typing import Any

import pytest

from ironbell.codec import goyaml
from ironbell.codec.durations import seconds_text
from ironbell.contract.clusters.secrets import Purpose
from ironbell.contract.pki import KeyPair
from ironbell.controllers.kubeadm.config.rendering.kubeadm import (
    ClusterFacts,
    UnsupportedVersionError,
    init_configuration,
    join_configuration,
    kubeadm_api,
)
from ironbell.controllers.kubeadm.config.rendering.render import Inputs, bootstrap_data
from ironbell.controllers.kubeadm.config.rendering.userdata import Role, WriteFile
from ironbell.provisioner.installed_system import hides_failure

FACTS = ClusterFacts("one", "v1.36.2", "192.0.2.10:6443", "cluster.local", "10.96.0.0/12", "10.244.0.0/16")

WORKER = """\
## template: jinja
#cloud-config

write_files:
-   path: /etc/motd
    owner: root:root
    permissions: '0644'
    content: |
      rack 7
-   path: /run/kubeadm/kubeadm-join-config.yaml
    owner: root:root
    permissions: '0640'
    content: |
      ---
      apiVersion: kubeadm.k8s.io/v1beta4
      discovery:
        bootstrapToken:
          apiServerEndpoint: 192.0.2.10:6443
          caCertHashes:
          - sha256:0f1e
          token: a1b2c3.0123456789abcdef
      kind: JoinConfiguration
      nodeRegistration:
        taints:
        - effect: NoSchedule
          key: node.cluster.x-k8s.io/uninitialized
@BLANKS@
-   path: /run/cluster-api/placeholder
    owner: root:root
    permissions: '0640'
    content: "Makes the folder that the sentinel file is written to."
runcmd:
  - "hostnamectl set-hostname node-7"
  - kubeadm join --config /run/kubeadm/kubeadm-join-config.yaml  && @SUCCESS@
""".replace("@BLANKS@", " " * 6).replace("@SUCCESS@", "echo success > /run/cluster-api/bootstrap-success.complete")


def test_a_worker_that_joins() -> None:
    discovery = {
        "token": "a1b2c3.0123456789abcdef",
        "apiServerEndpoint": "192.0.2.10:6443",
        "caCertHashes": ["sha256:0f1e"],
    }
    taints = [{"key": "node.cluster.x-k8s.io/uninitialized", "effect": "NoSchedule"}]
    spec = {
        "joinConfiguration": {
            "discovery": {"bootstrapToken": discovery},
            "nodeRegistration": {"taints": taints},
        },
        "preKubeadmCommands": ["hostnamectl set-hostname node-7"],
    }
    motd = WriteFile("/etc/motd", "rack 7", owner="root:root", permissions="0644")
    assert bootstrap_data(Inputs(Role.WORKER, spec, (1, 36, 2), FACTS, files=[motd])) == WORKER


def loaded(spec: dict[str, Any], *, role: Role = Role.INIT, version: tuple[int, ...] = (1, 36, 2)) -> Any:
    pairs = {Purpose.CLUSTER_CA: KeyPair(b"crt\n", b"key\n"), Purpose.SERVICE_ACCOUNT: KeyPair(b"pub\n", b"key\n")}
    return goyaml.load(bootstrap_data(Inputs(role, spec, version, FACTS, pairs=pairs)))


def documents(spec: dict[str, Any], *, role: Role = Role.INIT, version: tuple[int, ...] = (1, 36, 2)) -> list[Any]:
    files = {file["path"]: file for file in loaded(spec, role=role, version=version)["write_files"]}
    name = "kubeadm.yaml" if role is Role.INIT else "kubeadm-join-config.yaml"
    return [document for document in goyaml.load_all(files[f"/run/kubeadm/{name}"]["content"]) if document]


def test_the_first_control_plane_gets_what_the_cluster_says() -> None:
    cluster, init = documents({})
    assert cluster == {
        "apiVersion": "kubeadm.k8s.io/v1beta4",
        "kind": "ClusterConfiguration",
        "clusterName": "one",
        "kubernetesVersion": "v1.36.2",
        "controlPlaneEndpoint": "192.0.2.10:6443",
        "networking": {"dnsDomain": "cluster.local", "podSubnet": "10.244.0.0/16", "serviceSubnet": "10.96.0.0/12"},
        **{name: {} for name in ("apiServer", "controllerManager", "dns", "etcd", "proxy", "scheduler")},
    }
    assert init == {
        "apiVersion": "kubeadm.k8s.io/v1beta4",
        "kind": "InitConfiguration",
        "localAPIEndpoint": {},
        "nodeRegistration": {"taints": None},
    }


def test_an_endpoint_in_the_spec_goes_first() -> None:
    cluster, _ = documents({"clusterConfiguration": {"controlPlaneEndpoint": "api.example.org:443"}})
    assert cluster["controlPlaneEndpoint"] == "api.example.org:443"


def test_no_taints_at_all_is_not_the_same_as_not_saying() -> None:
    _, init = documents({"initConfiguration": {"nodeRegistration": {"taints": []}}})
    assert init["nodeRegistration"] == {"taints": []}


def test_the_older_version_has_maps_and_its_timeouts_elsewhere() -> None:
    spec = {
        "clusterConfiguration": {
            "apiServer": {"extraArgs": [{"name": "v", "value": "2"}, {"name": "v", "value": "4"}]}
        },
        "initConfiguration": {"timeouts": {"controlPlaneComponentHealthCheckSeconds": 100}},
    }
    old, init = documents(spec, version=(1, 30, 9))
    assert old["apiServer"] == {"extraArgs": {"v": "4"}, "timeoutForControlPlane": "1m40s"}
    assert "timeouts" not in init
    new, init = documents(spec, version=(1, 31, 0))
    assert new["apiServer"] == {"extraArgs": [{"name": "v", "value": "2"}, {"name": "v", "value": "4"}]}
    assert init["timeouts"] == {"controlPlaneComponentHealthCheck": "1m40s"}


def test_control_planes_carry_certificates_and_workers_do_not() -> None:
    for role in (Role.INIT, Role.CONTROL_PLANE):
        files = {file["path"]: file for file in loaded({}, role=role)["write_files"]}
        assert files["/etc/kubernetes/pki/ca.crt"]["permissions"] == "0640"
        assert files["/etc/kubernetes/pki/ca.key"]["permissions"] == "0600"
        assert files["/etc/kubernetes/pki/sa.pub"]["content"] == "pub\n"
    assert not [file for file in loaded({}, role=Role.WORKER)["write_files"] if "pki" in file["path"]]


@pytest.mark.parametrize(
    ("version", "api"),
    [
        ((1, 15, 0), "v1beta2"),
        ((1, 21, 5), "v1beta2"),
        ((1, 22, 0), "v1beta3"),
        ((1, 30, 99), "v1beta3"),
        ((1, 31, 0), "v1beta4"),
        ((2, 0), "v1beta4"),
    ],
)
def test_the_version_of_kubeadms_api(version: tuple[int, ...], api: str) -> None:
    assert kubeadm_api(version) == f"kubeadm.k8s.io/{api}"


def test_too_old_versions_are_refused() -> None:
    with pytest.raises(UnsupportedVersionError, match=r"v1\.14\.9 is not supported"):
        kubeadm_api((1, 14, 9))


def test_fields_that_old_kubeadms_do_not_know_are_left_out() -> None:
    registration = {"name": "one", "imagePullPolicy": "Always"}
    spec = {"nodeRegistration": registration, "skipPhases": ["addon"], "patches": {"directory": "/p"}}
    for write in (init_configuration, join_configuration):
        old, new = (goyaml.load(write(spec, kubeadm_api(version))) for version in ((1, 17), (1, 22)))
        assert {"skipPhases", "patches"} <= set(new)
        assert not {"skipPhases", "patches"} & set(old)
        assert old["nodeRegistration"] == {"name": "one", "taints": None}
        assert new["nodeRegistration"]["imagePullPolicy"] == "Always"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (59, "59s"), (60, "1m0s"), (3600, "1h0m0s"), (3661, "1h1m1s"), (31536000, "8760h0m0s")],
)
def test_durations(seconds: int, text: str) -> None:
    assert seconds_text(seconds) == text


def test_the_key_of_an_external_etcds_authority_stays_here() -> None:
    """Upstream writes it as a file without a path, with which cloud-init can do nothing."""
    external = {"endpoints": ["https://192.0.2.5:2379"], "caFile": "/e/ca", "certFile": "/e/crt", "keyFile": "/e/key"}
    spec = {"clusterConfiguration": {"etcd": {"external": external}}}
    pairs = {Purpose.ETCD_CA: KeyPair(b"crt\n", b"key\n"), Purpose.API_SERVER_ETCD_CLIENT: KeyPair(b"c\n", b"k\n")}
    data = goyaml.load(bootstrap_data(Inputs(Role.INIT, spec, (1, 36, 2), FACTS, pairs=pairs)))
    paths = [file["path"] for file in data["write_files"] if not file["path"].startswith("/run")]
    assert paths == ["/e/ca", "/e/crt", "/e/key"]


@pytest.mark.parametrize("role", list(Role))
def test_it_is_seen_whether_commands_follow_kubeadm(role: Role) -> None:
    """Then the result of kubeadm is not that of the script."""
    pairs = {Purpose.CLUSTER_CA: KeyPair(b"crt\n", b"key\n"), Purpose.SERVICE_ACCOUNT: KeyPair(b"pub\n", b"key\n")}
    for commands, hides in (([], False), (["echo done"], True)):
        spec = {"preKubeadmCommands": ["echo first"], "postKubeadmCommands": commands, "ntp": {"servers": ["a"]}}
        text = bootstrap_data(Inputs(role, spec, (1, 36, 2), FACTS, pairs=pairs))
        assert hides_failure(text) is hides
