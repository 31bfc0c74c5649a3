"""Several replicas of the controllers on a real API server: who works, how it changes hands, what must not happen."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from uuid import uuid4

import pytest

from support.site.components import FAST_LEASE, NAMESPACE, OnCluster, Process
from support.waiting import eventually

LEASE_S = 4.0
TEMPLATES = "/apis/tinkerbell.org/v1alpha1/namespaces/default/templates"
LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/ironbell-tink-controller"


@pytest.fixture
def replicas(on_cluster: OnCluster) -> Iterator[tuple[Process, Process]]:
    """A leader and one that waits."""
    leader = on_cluster.run("tink-controller", *FAST_LEASE, name="a")
    eventually(lambda: leader.leads)
    other = on_cluster.run("tink-controller", *FAST_LEASE, name="b")
    assert not other.leads
    yield leader, other
    for process in (leader, other):
        process.kill()
    eventually(lambda: on_cluster.api.delete(LEASE).status in {200, 404})


def template(on_cluster: OnCluster) -> str:
    """A new Template; its path."""
    name = f"t-{uuid4().hex[:8]}"
    body = {
        "apiVersion": "tinkerbell.org/v1alpha1",
        "kind": "Template",
        "metadata": {"name": name},
        "spec": {"data": 'version: "0.1"\nname: x\nglobal_timeout: 60\ntasks: []\n'},
    }
    on_cluster.api.made(TEMPLATES, body)
    return f"{TEMPLATES}/{name}"


def is_looked_at(on_cluster: OnCluster, path: str) -> bool:
    return bool(on_cluster.api.get(path).json.get("status", {}).get("state"))


def holder(on_cluster: OnCluster) -> str:
    return str(on_cluster.api.get(LEASE).json["spec"].get("holderIdentity") or "")


def test_a_clean_stop_hands_over_at_once(on_cluster: OnCluster, replicas: tuple[Process, Process]) -> None:
    leader, other = replicas
    path = template(on_cluster)
    eventually(lambda: is_looked_at(on_cluster, path))
    start = time.monotonic()
    assert leader.stop() == 0
    eventually(lambda: other.leads, within_s=2)
    path = template(on_cluster)
    eventually(lambda: is_looked_at(on_cluster, path))
    assert time.monotonic() - start < 3
    before, after = leader.said("leading"), other.said("leading")
    assert holder(on_cluster) == after[0]["identity"] != before[0]["identity"]


def test_a_killed_leader_is_replaced_within_the_lease(on_cluster: OnCluster, replicas: tuple[Process, Process]) -> None:
    leader, other = replicas
    start = time.monotonic()
    leader.kill()
    path = template(on_cluster)
    eventually(lambda: is_looked_at(on_cluster, path), within_s=LEASE_S + 4)
    assert other.leads
    assert time.monotonic() - start < LEASE_S + 3


def test_a_leader_that_was_held_up_leaves_instead_of_working_on(
    on_cluster: OnCluster, replicas: tuple[Process, Process]
) -> None:
    leader, other = replicas
    os.kill(leader.pid, signal.SIGSTOP)
    try:
        eventually(lambda: other.leads, within_s=LEASE_S + 4)
    finally:
        os.kill(leader.pid, signal.SIGCONT)
    eventually(lambda: not leader.is_running)
    assert leader.stop() == 1
    assert "lost its lease" in leader.said("process failed")[0]["why"]
    assert other.leads
    assert holder(on_cluster) == other.said("leading")[0]["identity"]


def test_health_and_metrics_tell_the_leader_from_the_one_that_waits(
    on_cluster: OnCluster, replicas: tuple[Process, Process]
) -> None:
    leader, other = replicas
    for process in replicas:
        assert process.get("/readyz") == (200, "[+]api ok\n[+]tink-controller ok\n")
        assert process.get("/healthz") == (200, "ok")
    path = template(on_cluster)
    eventually(lambda: is_looked_at(on_cluster, path))
    lease = {"name": "ironbell-tink-controller"}
    assert leader.metric("leader_election_master_status", **lease) == 1
    assert other.metric("leader_election_master_status", **lease) == 0
    host = on_cluster.api.server.removeprefix("https://").partition(":")[0]
    assert leader.metric("rest_client_requests_total", code="200", method="PATCH", host=host) > 0
    of = {"controller": "tink-template"}
    assert leader.metric("controller_runtime_reconcile_total", **of, result="success") > 0
    assert leader.metric("controller_runtime_reconcile_time_seconds_count", **of) > 0
    assert leader.metric("controller_runtime_max_concurrent_reconciles", **of) == 4
    text = leader.get("/metrics")[1]
    for name in (
        "controller_runtime_reconcile_errors_total",
        "controller_runtime_active_workers",
        "controller_runtime_terminal_reconcile_errors_total",
        "controller_runtime_reconcile_panics_total",
    ):
        assert f'{name}{{controller="tink-template"}}' in text
    for name in (
        "workqueue_depth",
        "workqueue_adds_total",
        "workqueue_queue_duration_seconds_bucket",
        "workqueue_work_duration_seconds_bucket",
        "workqueue_unfinished_work_seconds",
        "workqueue_longest_running_processor_seconds",
        "workqueue_retries_total",
    ):
        assert f'{name}{{controller="tink-template"' in text
