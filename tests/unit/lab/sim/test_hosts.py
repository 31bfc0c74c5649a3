"""Simulated machines: they boot, read real bootstrap data, and are let into the cluster or not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta

import msgspec
import pytest

from ironbell.api.client import NotFound, TooManyRequests, Unauthorized, Unavailable
from ironbell.api.core.node import NODE
from ironbell.api.core.secret import SECRET
from ironbell.base.clock import ManualClock
from ironbell.base.randomness import SeededRandomness
from ironbell.contract.clusters.secrets import VALUE, encoded
from ironbell.controllers.kubeadm.config.rendering.userdata import Role
from ironbell.kube.decision import Key
from ironbell.lab.sim.cluster import objects
from ironbell.lab.sim.cluster.eviction import BUDGETS, PODS
from ironbell.lab.sim.cluster.host import HostFault
from ironbell.lab.sim.serving.links import Links
from ironbell.lab.sim.timing import Timing
from ironbell.workload.access import Workloads
from ironbell.workload.clusterkey import ClusterKey
from ironbell.workload.etcd import EtcdError, EtcdUnreachableError
from support.lab.simulation import CLUSTER, SimSite, admin_kubeconfig
from support.waiting import until


@pytest.fixture
async def site() -> AsyncIterator[SimSite]:
    site = SimSite()
    async with site.cloud:
        yield site


def now() -> float:
    return asyncio.get_running_loop().time()


async def test_the_first_machine_makes_a_cluster(site: SimSite) -> None:
    await site.up("cp0", Role.INIT, vm=Timing(10), node=Timing(2), etcd=Timing(3), api_server=Timing(4))
    assert now() == 19
    node = await site.node("cp0")
    assert (node.provider_id, node.node_info.kubelet_version) == ("in-memory://cp0", "v1.34.0")
    assert objects.CONTROL_PLANE in node.labels
    assert [taint.key for taint in node.taints] == [objects.CONTROL_PLANE]
    assert node.condition("Ready").status == "True"
    async with site.cluster.inside() as api:
        pods = [msgspec.json.decode(body) for body in (await api.list(objects.PODS, "kube-system")).items]
        assert sorted(pod["metadata"]["name"] for pod in pods) == [
            f"{one}-cp0" for one in ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
        ]
        assert {pod["status"]["phase"] for pod in pods} == {"Running"}
        config = msgspec.json.decode(await api.get(objects.CONFIG_MAPS, "kube-system", "kubeadm-config"))
        assert "clusterName: one" in config["data"]["ClusterConfiguration"]
        proxy = msgspec.json.decode(await api.get(objects.DAEMON_SETS, "kube-system", "kube-proxy"))
        assert proxy["spec"]["template"]["spec"]["containers"][0]["image"] == "registry.k8s.io/kube-proxy:v1.34.0"
        await api.get(objects.DEPLOYMENTS, "kube-system", "coredns")
        await api.get(objects.CONFIG_MAPS, "kube-public", "cluster-info")
        await api.get(objects.CLUSTER_ROLES, "", "kubeadm:get-nodes")


async def test_a_machine_stays_the_same_when_another_object_speaks_of_it(site: SimSite) -> None:
    await site.up("cp0", Role.INIT)
    host = site.cloud.hosts["cp0"]
    moved = replace(host.plan, uid="other", known=True)
    site.cloud.power_on(replace(moved, provider_id="in-memory://another"))
    assert site.cloud.hosts["other"] is not host
    await site.cloud.release("other")
    site.cloud.power_on(moved)
    assert site.cloud.hosts == {"other": host}
    assert (await site.until("other", lambda state: state.joined)).node == "cp0"
    await site.cloud.release("cp0")
    assert site.cloud.state("other") is not None


async def test_machines_join_with_the_token_of_their_bootstrap_data(site: SimSite) -> None:
    await site.up("cp0", Role.INIT)
    await site.token()
    await asyncio.gather(site.up("cp1", Role.CONTROL_PLANE), site.up("w0", Role.WORKER))
    assert set(site.cluster.etcd.running) == {"cp0", "cp1"}
    assert objects.CONTROL_PLANE not in (await site.node("w0")).labels


async def test_machines_read_ignition_as_well(site: SimSite) -> None:
    init, worker = site.plan("cp0", Role.INIT), site.plan("w0", Role.WORKER)
    site.bootstrap("cp0", Role.INIT, data_format="ignition")
    site.bootstrap("w0", Role.WORKER, data_format="ignition")
    site.cloud.power_on(init)
    await site.until("cp0", lambda state: state.joined or state.error)
    await site.token()
    site.cloud.power_on(worker)
    assert (await site.until("w0", lambda state: state.joined or state.error)).joined


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\xff", "is not text"),
        (b"#!/bin/sh", "is not a #cloud-config"),
        (b"#cloud-config\na: [", "is not YAML"),
        (b"#cloud-config\nruncmd: [reboot]", "runs neither kubeadm init nor kubeadm join"),
        (b"#cloud-config\nruncmd: [kubeadm init --config /x]", "kubeadm init: /x does not exist"),
        (
            b"#cloud-config\nwrite_files: [{path: /x, content: 'a: 1'}]\nruncmd: [kubeadm join --config /x]",
            "/x has no JoinConfiguration",
        ),
    ],
)
async def test_bootstrap_data_that_no_host_could_use_are_said(site: SimSite, data: bytes, message: str) -> None:
    plan = site.plan("cp0", Role.INIT)
    site.secrets["n", "cp0"] = SECRET.decode(msgspec.json.encode({"data": encoded({VALUE: data})}))
    site.cloud.power_on(plan)
    assert message in (await site.until("cp0", lambda state: state.error)).error


async def test_certificates_may_stand_in_a_folder_of_their_own(site: SimSite) -> None:
    plan = site.plan("cp0", Role.INIT)
    site.bootstrap(
        "cp0", Role.INIT, {"clusterConfiguration": {"certificatesDir": "/elsewhere"}, "initConfiguration": {}}
    )
    site.cloud.power_on(plan)
    await site.until("cp0", lambda state: state.joined)


@pytest.mark.parametrize(
    ("token", "message"),
    [
        ({"token": "zzzzzz.0123456789abcdef"}, "there is no JWS signed with token ID 'zzzzzz'"),
        ({"token": "abcdef.0000000000000000"}, "token 'abcdef' is not the cluster's"),
        ({"caCertHashes": ["sha256:00"]}, "is not among caCertHashes"),
        ({"apiServerEndpoint": "192.0.2.1:6443"}, "192.0.2.1:6443 does not answer"),
    ],
)
async def test_a_machine_with_the_wrong_papers_is_not_let_in(
    site: SimSite, token: dict[str, object], message: str
) -> None:
    await site.up("cp0", Role.INIT)
    await site.token()
    plan = site.plan("w0", Role.WORKER)
    site.bootstrap("w0", Role.WORKER, site.spec(Role.WORKER, **token))
    site.cloud.power_on(plan)
    state = await site.until("w0", lambda state: state.error)
    assert message in state.error
    assert now() == 300
    with pytest.raises(NotFound):
        await site.node("w0")


async def test_an_expired_token_is_not_good_and_a_new_one_is(site: SimSite) -> None:
    await site.up("cp0", Role.INIT)
    await site.token(seconds=10)
    await asyncio.sleep(10)
    site.cloud.power_on(site.plan("w0", Role.WORKER))
    await asyncio.sleep(60)
    assert not site.cloud.state("w0").joined
    async with site.cluster.inside() as api:
        await api.delete(SECRET.collection, "kube-system", "bootstrap-token-abcdef")
    await site.token()
    await site.until("w0", lambda state: state.joined)


async def test_a_second_init_is_an_error(site: SimSite) -> None:
    await site.up("cp0", Role.INIT)
    site.cloud.power_on(site.plan("cp1", Role.INIT))
    state = await site.until("cp1", lambda state: state.error)
    assert "answers already as another cluster" in state.error


async def test_the_last_hosts_take_their_cluster_with_them_when_erased_together(site: SimSite) -> None:
    await site.up("cp0", Role.INIT)
    await site.token()
    await site.up("cp1", Role.CONTROL_PLANE)
    cluster = site.cluster
    await asyncio.gather(site.cloud.forget("cp0"), site.cloud.forget("cp1"))
    assert cluster.key not in site.cloud.clusters
    await site.up("cp2", Role.INIT)


@pytest.mark.parametrize(
    ("fault", "running", "error"),
    [
        (HostFault(never_boots=True), False, ""),
        (HostFault(kubeadm_fails="error execution phase kubelet-start"), True, "error execution phase kubelet-start"),
    ],
)
async def test_faults_of_hosts(site: SimSite, fault: HostFault, running: bool, error: str) -> None:
    site.cloud.power_on(site.plan("cp0", Role.INIT, fault=fault))
    await asyncio.sleep(3600)
    state = site.cloud.state("cp0")
    assert (state.running, state.joined, state.error) == (running, False, error)


async def test_a_host_without_bootstrap_data_says_so(site: SimSite) -> None:
    plan = site.plan("cp0", Role.INIT)
    site.secrets.clear()
    site.cloud.power_on(plan)
    assert "bootstrap data was deleted" in (await site.until("cp0", lambda state: state.error)).error


async def test_a_quorum_that_is_lost_takes_the_api_along(site: SimSite) -> None:
    await site.up("cp0", Role.INIT)
    await site.token()
    await site.up("cp1", Role.CONTROL_PLANE)
    await site.cloud.release("cp0")
    assert not site.cluster.answers
    with pytest.raises(EtcdUnreachableError):
        async with site.cloud.etcd_connect(ClusterKey(*CLUSTER, "u"), "cp1"):
            pass
    site.cluster.etcd.start("cp0")
    site.cluster.changed()
    assert site.cluster.answers


async def test_members_and_leaders_of_etcd(site: SimSite) -> None:
    await site.up("cp0", Role.INIT)
    await site.token()
    await site.up("cp1", Role.CONTROL_PLANE)
    await site.up("cp2", Role.CONTROL_PLANE)
    async with site.cloud.etcd_connect(ClusterKey(*CLUSTER, "u"), "cp0") as etcd:
        members = {member.name: member.id for member in await etcd.members()}
        assert set(members) == {"cp0", "cp1", "cp2"}
        await etcd.move_leader(members["cp1"])
        assert site.cluster.etcd.leader == "cp1"
        with pytest.raises(EtcdError, match="not leader"):
            await etcd.move_leader(members["cp2"])
        await etcd.remove_member(members["cp0"])
        with pytest.raises(EtcdUnreachableError):
            await etcd.members()
    await site.cloud.release("cp0")
    assert site.cluster.answers


async def test_the_node_of_a_machine_that_is_gone_is_called_unknown(site: SimSite) -> None:
    await site.up("cp0", Role.INIT)
    await site.token()
    await site.up("w0", Role.WORKER)
    await site.cloud.release("w0")
    await asyncio.sleep(40)
    assert (await site.node("w0")).condition("Ready").status == "True"
    await asyncio.sleep(20)
    assert (await site.node("w0")).condition("Ready").status == "Unknown"


async def test_pods_of_a_deleted_node_go(site: SimSite) -> None:
    await site.up("cp0", Role.INIT)
    async with site.cluster.inside() as api:
        await api.delete(NODE.collection, "", "cp0")

        async def are_deleted() -> bool:
            return not (await api.list(PODS)).items

        await until(are_deleted, within_s=10)


async def test_eviction_honours_budgets(site: SimSite) -> None:
    await site.up("cp0", Role.INIT)
    async with site.cluster.inside() as api:
        for name in ("a", "b"):
            pod = {
                "metadata": {"name": name, "labels": {"app": "x"}},
                "spec": {"nodeName": "cp0", "containers": [{"name": "c", "image": "i"}]},
                "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
            }
            await api.create(PODS, "default", msgspec.json.encode(pod))
            await api.replace(PODS, "default", name, msgspec.json.encode(pod), subresource="status")
        budget = {"metadata": {"name": "x"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}}}
        await api.create(BUDGETS, "default", msgspec.json.encode(budget))
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a", "namespace": "default"}}
        await api.act(PODS, "default", "a", msgspec.json.encode(eviction), subresource="eviction")
        with pytest.raises(TooManyRequests, match="would violate the pod's disruption budget"):
            await api.act(PODS, "default", "b", msgspec.json.encode(eviction), subresource="eviction")


async def test_a_real_kubeconfig_opens_the_cluster_and_a_foreign_one_does_not(site: SimSite) -> None:
    await site.up("cp0", Role.INIT)
    endpoint = site.cluster.endpoint
    links = Links(site.cloud, site.clock)
    link = links(CLUSTER, admin_kubeconfig(endpoint))
    await link.probe()
    assert await link.api.get(NODE.collection, "", "cp0")
    with pytest.raises(Unavailable, match="signed by unknown authority"):
        await links(CLUSTER, admin_kubeconfig(endpoint, "other")).probe()
    a_year_later = ManualClock(site.clock.now() + timedelta(days=366))
    with pytest.raises(Unauthorized):
        await Links(site.cloud, a_year_later)(CLUSTER, admin_kubeconfig(endpoint)).probe()


async def test_watches_end_when_the_api_goes_down(site: SimSite) -> None:
    await site.up("cp0", Role.INIT)

    async def kubeconfig(_cluster: Key) -> bytes:
        return admin_kubeconfig(site.cluster.endpoint)

    links, randomness = Links(site.cloud, site.clock), SeededRandomness(1)
    async with Workloads(links, kubeconfig, clock=site.clock, randomness=randomness) as workloads:
        workloads.follow(ClusterKey(*CLUSTER, "u"), "1")
        await asyncio.sleep(1)
        assert workloads.state(ClusterKey(*CLUSTER, "u")).healthy
        site.cluster.set_down(True)
        await asyncio.sleep(100)
        assert not workloads.state(ClusterKey(*CLUSTER, "u")).connected
        site.cluster.set_down(False)
        await asyncio.sleep(60)
        assert workloads.state(ClusterKey(*CLUSTER, "u")).healthy


async def test_a_server_that_is_claimed_again_at_once_stays_ready(site: SimSite) -> None:
    """Its node has the same name: the silence of its former lifetime says nothing about the new one."""
    await site.up("cp0", Role.INIT)
    await site.token()
    await site.up("w0", Role.WORKER)
    await site.cloud.release("w0")
    await asyncio.sleep(20)
    await site.up("w0", Role.WORKER)
    await asyncio.sleep(120)
    assert (await site.node("w0")).condition("Ready").status == "True"
    await site.cloud.release("w0")
    await asyncio.sleep(120)
    assert (await site.node("w0")).condition("Ready").status == "Unknown"
