"""Connections to workload clusters: coming, going, being forgotten; what is known of nodes, and who is told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from ironbell.api.client import Forbidden, Unauthorized, Unavailable
from ironbell.api.core.node import NODE
from ironbell.base.randomness import SeededRandomness
from ironbell.kube.decision import Query
from ironbell.kube.testing.memory import LoopClock
from ironbell.workload.access import NotConnected, Workloads, resolvers
from ironbell.workload.clusterkey import ClusterKey
from ironbell.workload.queries import AllNodes, Connection, NodeByName, NodeByProviderId
from ironbell.workload.session import Settings, until_attempt_s, until_probe_s
from support.kubeadm.workloads import FakeCluster, FakeClusters
from support.waiting import until

ONE, TWO = ClusterKey("n", "one", "1"), ClusterKey("n", "two", "2")


class Site:
    """Workloads over clusters in memory, and what they have told."""

    def __init__(self) -> None:
        self.clusters = FakeClusters({ONE.key: FakeCluster(), TWO.key: FakeCluster()})
        self.workloads = Workloads(
            self.clusters, self.clusters.kubeconfig, clock=LoopClock(), randomness=SeededRandomness(1)
        )
        self.told: list[Query[Any]] = []
        self.news = asyncio.Event()
        self.unsubscribe = self.workloads.feed(self._tell)

    @property
    def one(self) -> FakeCluster:
        return self.clusters.clusters[ONE.key]

    def _tell(self, query: Query[Any]) -> None:
        self.told.append(query)
        self.news.set()

    async def ask(self, query: Query[Any]) -> Any:
        return await resolvers(self.workloads)[type(query)](query)

    async def until(self, query: Query[Any], is_it: Callable[[Any], bool]) -> Any:
        """Ask again whenever told that the answer has changed, until it is right; a bound of virtual time."""
        async with asyncio.timeout(600):
            while True:
                self.news.clear()
                try:
                    answer = await self.ask(query)
                    if is_it(answer):
                        return answer
                except NotConnected:
                    pass
                await self.news.wait()

    async def connected(self, cluster: ClusterKey = ONE) -> None:
        self.workloads.follow(cluster, "1")
        await self.until(Connection(cluster), lambda state: state.connected)
        await self.until(AllNodes(cluster), lambda _nodes: True)


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    site = Site()
    async with site.workloads:
        yield site
    assert all(not cluster.links for cluster in site.clusters.clusters.values())


def now() -> float:
    return asyncio.get_running_loop().time()


async def test_without_a_kubeconfig_there_is_no_connection(site: Site) -> None:
    assert site.workloads.state(ONE).error == "the cluster has no kubeconfig yet"
    with pytest.raises(NotConnected, match="n/one: the cluster has no kubeconfig yet"):
        await site.workloads.api(ONE)
    with pytest.raises(NotConnected):
        await site.ask(NodeByName(ONE, "a"))


async def test_a_cluster_is_connected_and_its_nodes_are_read(site: Site) -> None:
    await site.one.add_node("a", "metal://1")
    await site.connected()
    (node,) = await site.ask(NodeByProviderId(ONE, "metal://1"))
    assert (node.name, node.provider_id) == ("a", "metal://1")
    assert await site.ask(NodeByProviderId(ONE, "metal://2")) == ()
    assert await site.ask(NodeByName(ONE, "b")) is None
    assert await (await site.workloads.api(ONE)).get(NODE.collection, "", "a")


async def test_only_those_are_told_whose_answer_has_changed(site: Site) -> None:
    await site.one.add_node("a", "metal://1")
    await site.connected()
    for query in (NodeByProviderId(ONE, "metal://1"), NodeByProviderId(ONE, "metal://2"), NodeByName(ONE, "a")):
        await site.ask(query)
    site.told.clear()
    await site.one.add_node("b", "metal://2")
    await site.until(NodeByProviderId(ONE, "metal://2"), bool)
    assert NodeByProviderId(ONE, "metal://2") in site.told
    assert not {NodeByProviderId(ONE, "metal://1"), NodeByName(ONE, "a"), Connection(ONE)} & set(site.told)


async def test_a_provider_id_that_comes_late_is_told_to_who_waits_for_it(site: Site) -> None:
    await site.one.add_node("a")
    await site.connected()
    assert await site.ask(NodeByProviderId(ONE, "metal://1")) == ()
    await site.one.patch_node("a", {"spec": {"providerID": "metal://1"}})
    await site.until(NodeByProviderId(ONE, "metal://1"), bool)
    await site.one.remove_node("a")
    assert await site.until(NodeByProviderId(ONE, "metal://1"), lambda nodes: not nodes) == ()


async def test_that_a_kubelet_was_heard_again_is_told_to_nobody(site: Site) -> None:
    await site.one.add_node("a", "metal://1")
    await site.connected()

    def ready(status: str, second: int) -> dict[str, object]:
        heard = f"2026-01-01T00:00:{second:02d}Z"
        return {"status": {"conditions": [{"type": "Ready", "status": status, "lastHeartbeatTime": heard}]}}

    await site.one.patch_node("a", ready("True", 1), subresource="status")
    await site.until(NodeByName(ONE, "a"), lambda node: bool(node.conditions))
    site.told.clear()
    for second in (2, 3):
        await site.one.patch_node("a", ready("True", second), subresource="status")
    await site.one.patch_node("a", ready("False", 4), subresource="status")
    await site.until(
        NodeByName(ONE, "a"),
        lambda node: node.conditions[0].status == "False",
    )
    assert site.told == [NodeByName(ONE, "a")]


async def test_five_failed_probes_end_a_connection_and_it_comes_back(site: Site) -> None:
    await site.connected()
    began_s = now()
    site.one.hangs = True
    await site.until(Connection(ONE), lambda state: state.consecutive_failures == 1)
    state = site.workloads.state(ONE)
    assert state.connected
    assert not state.healthy
    await site.until(Connection(ONE), lambda state: not state.connected)
    assert 5 * 5 + 4 * 10 <= now() - began_s <= 5 * 5 + 5 * 10
    assert site.workloads.state(ONE).error == "no response within 5 s"
    assert site.workloads.state(ONE).silent_for(LoopClock().now()) is not None
    with pytest.raises(NotConnected, match="no response within 5 s"):
        await site.ask(NodeByName(ONE, "a"))
    site.one.hangs = False
    await site.until(Connection(ONE), lambda state: state.healthy)


async def test_one_failed_probe_ends_nothing(site: Site) -> None:
    await site.connected()
    site.one.broken = Unavailable("busy")
    await site.until(Connection(ONE), lambda state: not state.healthy)
    site.one.broken = None
    await site.until(Connection(ONE), lambda state: state.healthy)
    assert site.one.links == 1


async def test_that_a_lost_connection_came_back_is_told_and_a_renewed_one_is_not(site: Site) -> None:
    await site.connected()
    site.workloads.follow(ONE, "2")
    await asyncio.sleep(0.1)
    await site.until(Connection(ONE), lambda state: state.connected and state.restored is None)
    site.one.broken = Unavailable("gone")
    await site.until(Connection(ONE), lambda state: not state.connected)
    site.one.broken = None
    state = await site.until(Connection(ONE), lambda state: state.connected)
    assert state.restored == state.since
    await asyncio.sleep(1)
    site.workloads.follow(ONE, "3")
    await asyncio.sleep(0.1)
    renewed = await site.until(Connection(ONE), lambda state: state.connected)
    assert renewed.restored == state.restored != renewed.since


@pytest.mark.parametrize("refusal", [Unauthorized("who are you?"), Forbidden("not you")])
async def test_who_is_not_known_any_more_connects_anew_at_once(site: Site, refusal: Unauthorized | Forbidden) -> None:
    await site.connected()
    site.one.broken = refusal
    await site.until(Connection(ONE), lambda state: not state.connected)
    lost_s = now()
    site.one.broken, site.one.kubeconfig, site.clusters.handed[ONE.key] = None, b"rotated", b"rotated"
    site.workloads.follow(ONE, "2")
    await site.until(Connection(ONE), lambda state: state.healthy)
    assert now() == lost_s


async def test_a_replaced_kubeconfig_is_used_at_once(site: Site) -> None:
    await site.connected()
    site.one.kubeconfig = site.clusters.handed[ONE.key] = b"rotated"
    began_s, since = now(), site.workloads.state(ONE).since
    await asyncio.sleep(1)
    site.workloads.follow(ONE, "2")
    await site.until(Connection(ONE), lambda state: state.connected and state.since != since)
    assert now() == began_s + 1


async def test_a_kubeconfig_that_cannot_be_used_is_said_and_waited_out(site: Site) -> None:
    site.clusters.handed[ONE.key] = b"bad"
    site.workloads.follow(ONE, "1")
    await site.until(Connection(ONE), lambda state: state.error == "one: not the right kubeconfig")
    site.clusters.handed[ONE.key] = b"good"
    site.workloads.follow(ONE, "2")
    await site.until(Connection(ONE), lambda state: state.healthy)


async def test_a_cluster_that_comes_up_later_is_tried_again_and_at_once_when_nudged(site: Site) -> None:
    site.one.broken = Unavailable("not there yet")
    site.workloads.follow(ONE, "1")
    await site.until(Connection(ONE), lambda state: state.error == "not there yet")
    await asyncio.sleep(300)
    assert site.one.probes <= 300 / 15 + 6
    site.one.broken = None
    began_s = now()
    site.workloads.nudge(ONE.key)
    await site.until(Connection(ONE), lambda state: state.healthy)
    assert now() == began_s


async def test_a_forgotten_cluster_leaves_nothing(site: Site) -> None:
    await site.connected()
    await site.ask(NodeByName(ONE, "a"))
    site.workloads.forget(ONE.key)
    with pytest.raises(NotConnected):
        await site.workloads.api(ONE)
    await until(lambda: not site.one.links, every_s=0)
    site.workloads.forget(ONE.key)


async def test_a_cluster_of_the_same_name_has_nothing_of_the_deleted_one(site: Site) -> None:
    await site.one.add_node("a", "metal://1")
    await site.connected()
    assert (await site.ask(NodeByName(ONE, "a"))).name == "a"
    successor = ClusterKey("n", "one", "another")
    with pytest.raises(NotConnected):
        await site.workloads.api(successor)
    old, site.clusters.clusters[ONE.key] = site.one, FakeCluster()
    site.told.clear()
    site.workloads.follow(successor, "2")
    assert {NodeByName(ONE, "a"), Connection(ONE)} <= set(site.told)
    with pytest.raises(NotConnected):
        await site.ask(NodeByName(ONE, "a"))
    assert await site.until(NodeByName(successor, "a"), lambda node: node is None) is None
    site.told.clear()
    await old.add_node("b", "metal://1")
    await asyncio.sleep(10)
    assert not site.told
    assert not old.links


async def test_a_dead_cluster_does_not_slow_another(site: Site) -> None:
    site.one.hangs = True
    site.workloads.follow(ONE, "1")
    await site.connected(TWO)
    assert now() == 0


async def test_after_a_nudge_a_cluster_is_tried_often_again(site: Site) -> None:
    site.one.broken = Unavailable("not there yet")
    site.workloads.follow(ONE, "1")
    await asyncio.sleep(300)
    site.workloads.nudge(ONE.key)
    await asyncio.sleep(0)
    before = site.one.probes
    await asyncio.sleep(7)
    assert site.one.probes - before >= 3
    site.one.broken = None
    began_s = now()
    await site.until(Connection(ONE), lambda state: state.healthy)
    assert now() - began_s <= 8


async def test_a_cluster_that_cannot_be_there_yet_is_tried_seldom_and_at_each_step_toward_it(site: Site) -> None:
    site.one.broken = Unavailable("not there yet")
    site.workloads.follow(ONE, "1")
    await asyncio.sleep(14)
    assert site.one.probes == 1
    for step in range(2, 5):
        site.workloads.try_once(ONE.key)
        await asyncio.sleep(7)
        assert site.one.probes == step
    site.one.broken = None
    site.workloads.try_once(ONE.key)
    began_s = now()
    await site.until(Connection(ONE), lambda state: state.healthy)
    assert now() == began_s


async def test_a_cluster_that_is_lost_is_tried_often_again(site: Site) -> None:
    await site.connected()
    site.one.broken = Unavailable("gone")
    await site.until(Connection(ONE), lambda state: not state.connected)
    before = site.one.probes
    await asyncio.sleep(7)
    assert site.one.probes - before >= 3


async def test_nudges_without_end_cost_two_attempts_a_second(site: Site) -> None:
    site.one.broken = Unavailable("not there yet")
    site.workloads.follow(ONE, "1")
    for _nudge in range(1_000):
        site.workloads.nudge(ONE.key)
        await asyncio.sleep(0.01)
    assert site.one.probes <= 10 / 0.5 + 1


async def test_a_nudge_costs_a_cluster_that_is_well_nothing(site: Site) -> None:
    await site.connected()
    before = site.one.probes
    site.workloads.nudge(ONE.key)
    await asyncio.sleep(0.1)
    assert site.one.probes == before


async def test_attempts_use_the_same_way_until_the_kubeconfig_is_another_or_refused(site: Site) -> None:
    site.one.broken = Unavailable("not there yet")
    site.workloads.follow(ONE, "1")
    await asyncio.sleep(300)
    assert (site.clusters.read, site.one.links) == (1, 1)
    site.one.broken = Unauthorized("who are you?")
    site.workloads.nudge(ONE.key)
    await site.until(Connection(ONE), lambda state: state.error == "who are you?")
    assert site.one.links == 0
    site.one.broken = Unavailable("not there yet")
    site.workloads.nudge(ONE.key)
    await site.until(Connection(ONE), lambda state: state.error == "not there yet")
    assert site.clusters.read == 2
    site.workloads.follow(ONE, "2")
    await asyncio.sleep(0)
    site.one.broken = None
    await site.until(Connection(ONE), lambda state: state.healthy)
    assert (site.clusters.read, site.one.links) == (3, 1)


async def test_a_thousand_dead_clusters_cost_next_to_nothing_and_slow_nobody(site: Site) -> None:
    dead = [ClusterKey("n", f"dead-{number}", str(number)) for number in range(1_000)]
    for number, key in enumerate(dead):
        refuses = Unavailable("connection refused") if number % 2 else None
        site.clusters.clusters[key.key] = FakeCluster(hangs=not refuses, broken=refuses)
        site.workloads.follow(key, "1")
    await asyncio.sleep(45)
    before = sum(site.clusters.clusters[key.key].probes for key in dead)
    await asyncio.sleep(60)
    attempts = sum(site.clusters.clusters[key.key].probes for key in dead) - before
    # one each every 50 to 100 s, and 5 s more for those that hang
    assert 1_000 * 60 / 110 <= attempts <= 1_000 * 60 / 45
    assert site.clusters.read == 1_000
    began_s = now()
    await site.connected(TWO)
    assert now() - began_s <= 0.5
    assert site.workloads._turns.silent == 1_000, "those that answer make none wait longer"
    for key in dead:
        site.workloads.forget(key.key)
    await asyncio.sleep(1)
    assert site.workloads._turns.silent == 0


async def test_a_thousand_clusters_that_come_up_together_are_tried_a_few_at_a_time() -> None:
    keys = [ClusterKey("n", f"up-{number}", str(number)) for number in range(1_000)]
    clusters = FakeClusters({key.key: FakeCluster(slow_s=0.1) for key in keys})
    settings = Settings(probe_every_s=1e6)
    workloads = Workloads(
        clusters, clusters.kubeconfig, clock=LoopClock(), randomness=SeededRandomness(1), settings=settings
    )
    async with workloads, asyncio.timeout(10):
        for key in keys:
            workloads.follow(key, "1")
        while not all(workloads.state(key).connected for key in keys):
            assert clusters.probing <= 32
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("clusters", [1, 300, 1_000])
def test_very_many_clusters_that_never_answered_are_tried_more_seldom(clusters: int) -> None:
    settings = Settings()
    cap_s = settings.retry.cap_s
    for delay_s in (1.0, 8.0, 0.5 * cap_s, cap_s):
        is_rare = clusters > 300 and delay_s > 8
        found = until_attempt_s(settings, delay_s, silent=clusters)
        assert found == pytest.approx(clusters / 10 * delay_s / cap_s if is_rare else delay_s)


@pytest.mark.parametrize("clusters", [1, 250, 500, 1000, 20_000])
def test_very_many_clusters_are_probed_more_seldom_and_given_up_after_the_same_time(clusters: int) -> None:
    settings = Settings()
    well_s = until_probe_s(settings, clusters=clusters, healthy=True)
    again_s = until_probe_s(settings, clusters=clusters, healthy=False)
    assert well_s == {1: 10, 250: 10, 500: 20}.get(clusters, 40)
    assert well_s + (settings.failures - 1) * again_s == pytest.approx(50)
