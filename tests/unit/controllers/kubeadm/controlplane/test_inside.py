"""What the control plane controller reads and does inside a workload cluster, against an API and etcd in memory."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeVar, cast

import msgspec
import pytest

from ironbell.api.client import Api, Conflict, PatchType
from ironbell.api.cluster.machine import MACHINE
from ironbell.api.core.secret import SECRET
from ironbell.api.kind import Collection
from ironbell.api.meta import OwnerReference
from ironbell.api.unstructured import dynamic_kind
from ironbell.base.clock import ManualClock
from ironbell.codec import goyaml
from ironbell.contract import pki
from ironbell.contract.clusters.kubeconfig import client_certificate_ends, server_of
from ironbell.contract.clusters.secrets import (
    VALUE,
    Purpose,
    encoded,
    key_pair_of,
    key_pair_secret,
    kubeconfig_secret,
    secret_name,
)
from ironbell.contract.pki import KeyAlgorithm
from ironbell.controllers.kubeadm.controlplane.workload.addons import CoreDnsChange
from ironbell.controllers.kubeadm.controlplane.workload.certificates import CreateCertificates, CreateKubeconfig
from ironbell.controllers.kubeadm.controlplane.workload.effects import (
    CoreDnsArguments,
    KubeProxyArguments,
    LeaderArguments,
    MemberArguments,
    UpgradeArguments,
)
from ironbell.controllers.kubeadm.controlplane.workload.performers import Operator
from ironbell.controllers.kubeadm.controlplane.workload.queries import (
    Addons,
    Components,
    EtcdCluster,
    KubeadmConfigMap,
    KubeconfigEnd,
)
from ironbell.controllers.kubeadm.controlplane.workload.resolvers import (
    CONFIG_MAPS,
    DAEMON_SETS,
    DEPLOYMENTS,
    KUBE_SYSTEM,
    NODES,
    PODS,
    EtcdAccess,
    Inspector,
)
from ironbell.kube.decision import Create, Key, MergePatch
from ironbell.kube.testing import MemoryApi
from ironbell.workload.access import Workloads
from ironbell.workload.clusterkey import ClusterKey
from ironbell.workload.etcd import Alarm, EtcdError, EtcdUnreachableError, Member, MemberStatus

V = TypeVar("V")
CLUSTER = ClusterKey("default", "c1", "u1")
OWNER = OwnerReference("controlplane.cluster.x-k8s.io/v1beta2", "KubeadmControlPlane", "c1", "1", controller=True)
BINDINGS = Collection("rbac.authorization.k8s.io", "v1", "clusterrolebindings", False)
EC = KeyAlgorithm.ECDSA_P256
CONFIGURATION = """\
apiServer: {}
apiVersion: kubeadm.k8s.io/v1beta4
caCertificateValidityPeriod: 87600h0m0s
certificateValidityPeriod: 8760h0m0s
certificatesDir: /etc/kubernetes/pki
clusterName: c1
controlPlaneEndpoint: 10.0.0.1:6443
controllerManager: {}
dns: {}
encryptionAlgorithm: RSA-2048
etcd:
  local:
    dataDir: /var/lib/etcd
imageRepository: registry.k8s.io
kind: ClusterConfiguration
kubernetesVersion: v1.33.0
networking:
  dnsDomain: cluster.local
  podSubnet: 10.244.0.0/16
  serviceSubnet: 10.96.0.0/12
proxy: {}
scheduler: {}
"""


def run(work: Coroutine[Any, Any, V]) -> V:
    return asyncio.run(work)


@dataclass
class Inside:
    """Reaches a workload cluster that is a `MemoryApi`."""

    memory: MemoryApi

    async def api(self, _cluster: Key) -> Api:
        return self.memory


@dataclass
class SmallEtcd:
    """Members by node, which of them answer, and who leads."""

    names: list[str]
    leader: str
    dead: set[str] = field(default_factory=set)
    lame: set[str] = field(default_factory=set)
    """Those that cannot lead."""
    asked: list[str] = field(default_factory=list)

    def id_of(self, name: str) -> int:
        return sum(map(ord, name))

    @asynccontextmanager
    async def connect(self, _cluster: Key, node: str) -> AsyncIterator[Any]:
        self.asked.append(node)
        if node not in self.names or node in self.dead:
            raise EtcdUnreachableError(f"{node} refuses")
        yield _Connection(self, node)


@dataclass
class _Connection:
    etcd: SmallEtcd
    node: str

    async def status(self) -> MemberStatus:
        leader = self.etcd.id_of(self.etcd.leader) if self.etcd.leader else 0
        return MemberStatus(self.etcd.id_of(self.node), leader)

    async def members(self) -> tuple[Member, ...]:
        return tuple(Member(self.etcd.id_of(name), name) for name in self.etcd.names)

    async def alarms(self) -> tuple[Alarm, ...]:
        return ()

    async def remove_member(self, member_id: int) -> None:
        name = next((name for name in self.etcd.names if self.etcd.id_of(name) == member_id), None)
        if name is None:
            raise EtcdError("member not found")
        self.etcd.names.remove(name)

    async def move_leader(self, member_id: int) -> None:
        assert self.node == self.etcd.leader, "not the leader is asked"
        name = next(name for name in self.etcd.names if self.etcd.id_of(name) == member_id)
        if name in self.etcd.lame:
            raise EtcdError(f"{name} is behind")
        self.etcd.leader = name


class Setting:
    """Both clusters, the etcd, and our hands."""

    def __init__(self, etcd: SmallEtcd | None = None) -> None:
        self.clock = ManualClock()
        self.management = MemoryApi(clock=self.clock)
        self.management.serve([SECRET])
        self.inside = MemoryApi(clock=self.clock)
        kinds = (
            (CONFIG_MAPS, "ConfigMap"),
            (PODS, "Pod"),
            (NODES, "Node"),
            (DAEMON_SETS, "DaemonSet"),
            (DEPLOYMENTS, "Deployment"),
            (BINDINGS, "ClusterRoleBinding"),
        )
        self.inside.serve(
            dynamic_kind(where.group, where.version, name, where.plural, namespaced=where.namespaced)
            for where, name in kinds
        )
        self.etcd = etcd or SmallEtcd(["a", "b", "c"], "a")
        workloads, access = cast("Workloads", Inside(self.inside)), EtcdAccess(self.etcd.connect)
        self.operator = Operator(self.management, workloads, access, self.clock)
        self.inspector = Inspector(self.management, workloads, access)

    def put(self, where: Collection, name: str, **body: Any) -> None:
        namespace = KUBE_SYSTEM if where.namespaced else ""
        metadata = {"name": name, **({"namespace": namespace} if namespace else {}), **body.pop("metadata", {})}
        run(self.inside.create(where, namespace, msgspec.json.encode({"metadata": metadata, **body})))

    def get(self, where: Collection, name: str) -> Any:
        return msgspec.json.decode(run(self.inside.get(where, KUBE_SYSTEM if where.namespaced else "", name)))

    def put_secret(self, body: dict[str, Any]) -> None:
        run(self.management.create(SECRET.collection, CLUSTER.namespace, msgspec.json.encode(body)))

    def put_configuration(self, text: str = CONFIGURATION) -> None:
        self.put(CONFIG_MAPS, "kubeadm-config", data={"ClusterConfiguration": text})

    def configuration(self) -> Any:
        return goyaml.load(self.get(CONFIG_MAPS, "kubeadm-config")["data"]["ClusterConfiguration"])


def _workload(name: str, image: str, **pod: Any) -> dict[str, Any]:
    containers = [{"name": "beside", "image": "beside:1"}, {"name": name, "image": image, "args": ["-x"]}]
    return {"spec": {"template": {"spec": {"containers": containers, **pod}}}}


def _created(actions: Any) -> dict[str, Any]:
    assert all(isinstance(action, Create) for action in actions)
    return {action.body["metadata"]["name"]: action.body for action in actions}


# Certificates


def test_missing_authorities_are_made_and_only_they() -> None:
    setting = Setting()
    purposes = (Purpose.CLUSTER_CA, Purpose.SERVICE_ACCOUNT)
    made = _created(
        run(setting.operator.create_certificates(CreateCertificates(CLUSTER.key, OWNER, purposes, EC, 100)))
    )
    assert set(made) == {"c1-ca", "c1-sa"}
    authority = key_pair_of(SECRET.decode(msgspec.json.encode(made["c1-ca"])))
    certificate, _key = pki.usable(authority)
    life = certificate.not_valid_after_utc - setting.clock.now()
    assert timedelta(days=99) < life <= timedelta(days=100)


def _with_kubeconfig() -> tuple[Setting, CreateKubeconfig]:
    setting = Setting()
    arguments = CreateKubeconfig(CLUSTER.key, OWNER, "https://10.0.0.1:6443", EC)
    authority = pki.create_authority(EC, setting.clock.now())
    setting.put_secret(key_pair_secret(CLUSTER.key, Purpose.CLUSTER_CA, authority, OWNER))
    (body,) = _created(run(setting.operator.create_kubeconfig(arguments))).values()
    setting.put_secret(body)
    return setting, arguments


def test_a_kubeconfig_is_good_for_a_year() -> None:
    setting, _arguments = _with_kubeconfig()
    end = run(setting.inspector.kubeconfig_end(KubeconfigEnd(CLUSTER, "1")))
    assert end is not None
    assert timedelta(days=364) < end - setting.clock.now() < timedelta(days=366)


def test_a_rotated_kubeconfig_lives_longer_and_points_where_it_did() -> None:
    setting, arguments = _with_kubeconfig()
    before = run(setting.inspector.kubeconfig_end(KubeconfigEnd(CLUSTER, "1")))
    setting.clock.advance(200 * 86400)
    moved = CreateKubeconfig(CLUSTER.key, OWNER, "https://elsewhere:6443", EC)
    (action,) = run(setting.operator.rotate_kubeconfig(moved))
    assert isinstance(action, MergePatch)
    assert action.resource_version
    assert before is not None
    secret = SECRET.decode(
        msgspec.json.encode(
            {"metadata": {"name": "c1-kubeconfig", "namespace": "default"}, "data": action.body["data"]}
        )
    )
    content = secret.data[VALUE]
    plain = base64.b64decode(content)
    assert server_of(plain, "c1") == arguments.server
    assert client_certificate_ends(plain) - before > timedelta(days=199)


def test_a_kubeconfig_that_is_gone_is_not_rotated() -> None:
    arguments = CreateKubeconfig(CLUSTER.key, OWNER, "https://10.0.0.1:6443", EC)
    assert run(Setting().operator.rotate_kubeconfig(arguments)) == []


def test_a_kubeconfig_of_the_user_is_read_and_what_is_no_kubeconfig_is_an_error() -> None:
    setting = Setting()
    assert run(setting.inspector.kubeconfig_end(KubeconfigEnd(CLUSTER, "1"))) is None
    body = kubeconfig_secret(CLUSTER.key, b"", OWNER)
    setting.put_secret({**body, "data": encoded({VALUE: b"[]"})})
    with pytest.raises(Exception, match="kubeconfig"):
        run(setting.inspector.kubeconfig_end(KubeconfigEnd(CLUSTER, "1")))
    assert secret_name("c1", Purpose.KUBECONFIG) == "c1-kubeconfig"


# etcd


def test_etcd_is_asked_where_it_answered_last() -> None:
    etcd = SmallEtcd(["a", "b", "c"], "b", dead={"a"})
    setting = Setting(etcd)
    query = EtcdCluster(CLUSTER, ("a", "b", "c"))
    view = run(setting.inspector.etcd_cluster(query))
    assert [member.name for member in view.members] == ["a", "b", "c"]
    assert view.leader is not None
    assert view.leader.name == "b"
    run(setting.inspector.etcd_cluster(query))
    assert etcd.asked == ["a", "b", "b"]


def test_an_etcd_without_leader_is_an_error_and_so_is_one_that_nobody_reaches() -> None:
    etcd = SmallEtcd(["a", "b", "c"], "")
    setting = Setting(etcd)
    with pytest.raises(EtcdError, match="no leader"):
        run(setting.inspector.etcd_cluster(EtcdCluster(CLUSTER, ("a",))))
    etcd.dead = {"a", "b"}
    with pytest.raises(EtcdUnreachableError, match="a refuses; b refuses"):
        run(setting.inspector.etcd_cluster(EtcdCluster(CLUSTER, ("a", "b"))))


def test_a_member_is_removed_once_and_its_machine_released() -> None:
    etcd = SmallEtcd(["a", "b", "c"], "a")
    setting = Setting(etcd)
    arguments = MemberArguments(CLUSTER, etcd.id_of("c"), ("a", "b"), released=("default", "m-c"))
    for _ in range(2):
        (action,) = run(setting.operator.remove_member(arguments))
        assert isinstance(action, MergePatch)
        assert (action.kind, action.name) == (MACHINE, "m-c")
        assert etcd.names == ["a", "b"]
    assert run(setting.operator.remove_member(MemberArguments(CLUSTER, 1, ("a",)))) == []


def test_the_last_member_stays() -> None:
    etcd = SmallEtcd(["a"], "a")
    with pytest.raises(EtcdError, match="last member"):
        run(Setting(etcd).operator.remove_member(MemberArguments(CLUSTER, etcd.id_of("a"), ("a",), ("default", "m"))))
    assert etcd.names == ["a"]


@pytest.mark.parametrize(
    ("lame", "candidates", "leader"),
    [((), ("b", "c"), "b"), (("b",), ("b", "c"), "c"), ((), ("stranger", "c"), "c")],
)
def test_the_leader_moves_to_the_first_that_can(
    lame: tuple[str, ...], candidates: tuple[str, ...], leader: str
) -> None:
    etcd = SmallEtcd(["a", "b", "c"], "a", lame=set(lame))
    setting = Setting(etcd)
    for _ in range(2):
        assert run(setting.operator.move_leader(LeaderArguments(CLUSTER, "a", candidates))) == []
        assert etcd.leader == leader


def test_a_leader_that_cannot_move_says_why() -> None:
    etcd = SmallEtcd(["a", "b"], "a", lame={"b"})
    with pytest.raises(EtcdError, match="b is behind"):
        run(Setting(etcd).operator.move_leader(LeaderArguments(CLUSTER, "a", ("b",))))
    with pytest.raises(EtcdError, match="none of z"):
        run(Setting(etcd).operator.move_leader(LeaderArguments(CLUSTER, "a", ("z",))))


# Static pods


def test_components_are_read_one_by_one() -> None:
    setting = Setting()
    setting.put(NODES, "n1", metadata={"labels": {"node-role.kubernetes.io/control-plane": ""}})
    setting.put(NODES, "worker")
    status = {
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": "False"}],
        "containerStatuses": [
            {"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": {"terminated": {"exitCode": 2}}}
        ],
    }
    setting.put(PODS, "kube-apiserver-n1")
    seen = msgspec.json.encode({"status": status})
    place = (PODS, KUBE_SYSTEM, "kube-apiserver-n1", seen)
    run(setting.inside.patch(*place, patch_type=PatchType.MERGE, subresource="status"))
    view = run(setting.inspector.components(Components(CLUSTER, ("n1",), etcd=True)))
    assert view.labelled == ("n1",)
    found = {answer.component: answer for answer in view.pods}
    assert set(found) == {"kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd"}
    server = found["kube-apiserver"].pod
    assert server is not None
    assert server.phase == "Running"
    assert (server.containers[0].waiting, server.containers[0].last_exit_code) == ("CrashLoopBackOff", 2)
    assert found["etcd"].pod is None
    assert not found["etcd"].error


# kubeadm-config, kube-proxy, CoreDNS


def _upgrade(setting: Setting, version: tuple[int, int, int], **wanted: Any) -> None:
    arguments = UpgradeArguments(CLUSTER, msgspec.json.encode(wanted), version)
    assert run(setting.operator.prepare_upgrade(arguments)) == []


def test_an_upgrade_writes_kubeadm_config_and_roles_and_a_second_time_nothing() -> None:
    setting = Setting()
    setting.put_configuration()
    _upgrade(setting, (1, 34, 1), apiServer={"extraArgs": [{"name": "v", "value": "4"}]}, featureGates={"A": True})
    found = setting.configuration()
    assert found["kubernetesVersion"] == "v1.34.1"
    assert found["apiServer"]["extraArgs"] == [{"name": "v", "value": "4"}]
    assert found["featureGates"]["A"] is True
    kept = ("clusterName", "controlPlaneEndpoint", "networking", "certificatesDir", "imageRepository")
    before = goyaml.load(CONFIGURATION)
    assert {name: found[name] for name in kept} == {name: before[name] for name in kept}
    binding = setting.get(BINDINGS, "kubeadm:cluster-admins")
    assert binding["subjects"][0]["kind"] == "Group"
    assert binding["roleRef"]["name"] == "cluster-admin"
    assert setting.get(BINDINGS, "kubeadm:apiserver-kubelet-client")["subjects"][0]["kind"] == "User"
    writes = setting.inside.writes
    _upgrade(setting, (1, 34, 1), apiServer={"extraArgs": [{"name": "v", "value": "4"}]}, featureGates={"A": True})
    assert setting.inside.writes == writes
    asked = run(setting.inspector.kubeadm_config(KubeadmConfigMap(CLUSTER)))
    assert asked is not None
    assert goyaml.load(asked) == found


def test_without_a_configuration_of_the_user_only_the_version_changes() -> None:
    setting = Setting()
    setting.put_configuration()
    _upgrade(setting, (1, 33, 7))
    assert setting.configuration() == {**goyaml.load(CONFIGURATION), "kubernetesVersion": "v1.33.7"}


def test_a_gate_that_the_user_took_away_goes() -> None:
    setting = Setting()
    setting.put_configuration(CONFIGURATION + "featureGates:\n  Old: true\n")
    _upgrade(setting, (1, 33, 7), clusterName="c1", featureGates={"New": True})
    assert "Old" not in setting.configuration()["featureGates"]


def test_kube_proxy_gets_its_image_once() -> None:
    setting = Setting()
    setting.put(DAEMON_SETS, "kube-proxy", **_workload("kube-proxy", "registry.k8s.io/kube-proxy:v1.33.0"))
    for _ in range(2):
        run(setting.operator.set_kube_proxy(KubeProxyArguments(CLUSTER, "registry.k8s.io/kube-proxy:v1.34.0")))
    containers = setting.get(DAEMON_SETS, "kube-proxy")["spec"]["template"]["spec"]["containers"]
    assert containers == [
        {"name": "beside", "image": "beside:1"},
        {"name": "kube-proxy", "image": "registry.k8s.io/kube-proxy:v1.34.0", "args": ["-x"]},
    ]
    assert setting.inside.writes == 2
    assert run(setting.inspector.addons(Addons(CLUSTER))).kube_proxy_image.endswith(":v1.34.0")


def _coredns(setting: Setting, key: str) -> None:
    volume = {"name": "config-volume", "configMap": {"name": "coredns", "items": [{"key": key, "path": "Corefile"}]}}
    pod = _workload("coredns", "registry.k8s.io/coredns/coredns:v1.11.1", volumes=[{"name": "other"}, volume])
    setting.put(DEPLOYMENTS, "coredns", **pod)
    setting.put(CONFIG_MAPS, "coredns", data={"Corefile": ".:53 {\n}\n"})


@pytest.mark.parametrize("key", ["Corefile", "Corefile-backup"])
def test_coredns_gets_its_image_and_kubeadm_hears_of_it(key: str) -> None:
    setting = Setting()
    setting.put_configuration()
    _coredns(setting, key)
    change = CoreDnsChange("registry.k8s.io/coredns/coredns:v1.11.1", "mirror/coredns:v1.12.0", (1, 11, 1), (1, 12, 0))
    wanted = {"dns": {"imageRepository": "mirror", "imageTag": "v1.12.0"}}
    arguments = CoreDnsArguments(CLUSTER, change, msgspec.json.encode(wanted), (1, 33, 0))
    run(setting.operator.set_coredns(arguments))
    writes = setting.inside.writes
    run(setting.operator.set_coredns(arguments))
    assert setting.inside.writes == writes
    pod = setting.get(DEPLOYMENTS, "coredns")["spec"]["template"]["spec"]
    assert [container["image"] for container in pod["containers"]] == ["beside:1", "mirror/coredns:v1.12.0"]
    assert pod["volumes"][1]["configMap"]["items"] == [{"key": "Corefile", "path": "Corefile"}]
    assert setting.get(CONFIG_MAPS, "coredns")["data"] == {
        "Corefile": ".:53 {\n}\n",
        "Corefile-backup": ".:53 {\n}\n",
    }
    assert setting.configuration()["dns"] == {"imageRepository": "mirror", "imageTag": "v1.12.0"}
    view = run(setting.inspector.addons(Addons(CLUSTER)))
    assert (view.coredns_image, view.corefile) == ("mirror/coredns:v1.12.0", ".:53 {\n}\n")


def test_a_configuration_that_changed_meanwhile_is_not_overwritten() -> None:
    setting = Setting()
    setting.put_configuration()
    read = setting.inside.get
    change = msgspec.json.encode({"data": {"more": "1"}})

    async def overtaken(where: Collection, namespace: str, name: str, *, subresource: str = "") -> bytes:
        body = await read(where, namespace, name, subresource=subresource)
        if where == CONFIG_MAPS:
            await setting.inside.patch(where, namespace, name, change, patch_type=PatchType.MERGE)
        return body

    setting.inside.get = overtaken  # type: ignore[method-assign]
    with pytest.raises(Conflict):
        _upgrade(setting, (1, 34, 0))


def test_a_cluster_without_addons_has_none_to_change() -> None:
    view = run(Setting().inspector.addons(Addons(CLUSTER)))
    assert (view.kube_proxy_image, view.coredns_image, view.corefile) == ("", "", "")
    assert run(Setting().inspector.kubeadm_config(KubeadmConfigMap(CLUSTER))) is None
