"""`ironbell install` and `uninstall` on a real API server, and what it grants."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
import yaml

from ironbell.app.install.apply import REMINDED_AT
from support.api.kubeapi import KubeApi
from support.site.components import IRONBELL, NAMESPACE, OnCluster, ironbell
from support.waiting import eventually

HARDWARE = "/apis/tinkerbell.org/v1alpha1/namespaces/default/hardware"
WORKFLOWS = "/apis/tinkerbell.org/v1alpha1/namespaces/default/workflows"


def results(text: str) -> dict[str, str]:
    """What became of each object, from the JSON answer."""
    return {f"{found['kind']}/{found['name']}": found["result"] for found in json.loads(text)["objects"]}


def test_again_changes_nothing_and_an_option_only_what_it_is_about(on_cluster: OnCluster) -> None:
    words = ("install", "--kubeconfig", on_cluster.admin, "--output", "json")
    again = results(ironbell(*words))
    assert set(again.values()) == {"unchanged"}
    printed = yaml.safe_load_all(ironbell("install", "--print"))
    assert [f"{document['kind']}/{document['metadata']['name']}" for document in printed] == list(again)
    changed = {name for name, result in results(ironbell(*words, "--replicas", "3")).items() if result != "unchanged"}
    assert changed == {f"Deployment/ironbell-{name}" for name in ("tink-controller", "rufio", "wire")}
    dry = results(ironbell(*words, "--dry-run"))
    assert {name for name, result in dry.items() if result == "configured"} == changed
    assert results(ironbell(*words)) == dry


def test_what_others_have_set_is_a_conflict_that_says_what_to_do(on_cluster: OnCluster) -> None:
    path = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/ironbell-rufio"
    other = {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": 5}}
    answer = on_cluster.api.apply(path, other, manager="someone", force=True)
    assert answer.status == 200, answer.body
    said = ironbell("install", "--kubeconfig", on_cluster.admin, status=1)
    assert "Deployment ironbell-rufio" in said
    assert "spec.replicas" in said
    assert "--force-conflicts" in said
    ironbell("install", "--kubeconfig", on_cluster.admin, "--force-conflicts")
    assert on_cluster.api.get(path).json["spec"]["replicas"] == 2


def test_a_definition_that_is_being_deleted_is_waited_for(on_cluster: OnCluster) -> None:
    """Applied to, it would be taken for installed and go."""
    pools = [
        f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{plural}.ipam.cluster.x-k8s.io"
        for plural in ("globalinclusterippools", "inclusterippools")
    ]
    words = ("install", "--kubeconfig", str(on_cluster.admin), "--components", "tink-controller,rufio,wire,ipam")
    ironbell(*words)
    try:
        before = on_cluster.api.get(pools[0]).json["metadata"]["uid"]
        kept = [*on_cluster.api.get(pools[0]).json["metadata"].get("finalizers", ()), "example.com/kept"]
        assert on_cluster.api.patch(pools[0], {"metadata": {"finalizers": kept}}).status == 200
        on_cluster.api.delete(pools[0])
        would = results(ironbell(*words, "--dry-run", "--output", "json"))
        assert would["CustomResourceDefinition/globalinclusterippools.ipam.cluster.x-k8s.io"] == "created"
        installing = subprocess.Popen([*IRONBELL, *words], stdout=subprocess.PIPE, text=True)
        try:
            assert installing.stdout is not None
            said = next(line for line in installing.stdout if line.startswith("waiting"))
            assert said.split() == ["waiting", "CustomResourceDefinition", pools[0].rpartition("/")[2]]
            # a deletion that takes long may have been forgotten
            assert eventually(
                lambda: REMINDED_AT in on_cluster.api.get(pools[0]).json["metadata"].get("annotations", ())
            )
            assert installing.poll() is None
            assert on_cluster.api.patch(pools[0], {"metadata": {"finalizers": kept[:-1]}}).status == 200
            rest = installing.stdout.read()
            assert installing.wait(60) == 0, rest
        finally:
            installing.kill()
            installing.communicate()
        assert re.search(r"^created +CustomResourceDefinition +globalinclusterippools", rest, re.MULTILINE), rest
        after = on_cluster.api.get(pools[0]).json["metadata"]
        assert after["uid"] != before
        assert "deletionTimestamp" not in after
    finally:
        for path in pools:
            on_cluster.api.delete(path)


@pytest.fixture
def hardware(on_cluster: OnCluster) -> Iterator[str]:
    name = f"m-{uuid4().hex[:8]}"
    body = {
        "apiVersion": "tinkerbell.org/v1alpha1",
        "kind": "Hardware",
        "metadata": {"name": name, "labels": {"a": "b"}, "annotations": {"a": "b"}},
        "spec": {"metadata": {"instance": {"id": "x"}}},
    }
    on_cluster.api.made(HARDWARE, body)
    yield f"{HARDWARE}/{name}"
    on_cluster.api.delete(f"{HARDWARE}/{name}")


@pytest.fixture(scope="module")
def wire(on_cluster: OnCluster) -> KubeApi:
    """The API as the servers toward machines see it."""
    token = yaml.safe_load(on_cluster.token("ironbell-wire").read_text())["users"][0]["user"]["token"]
    return on_cluster.api.with_token(token)


UP = {"ironbell.dev/installed-system-up": "now"}


def test_servers_may_change_their_annotations(wire: KubeApi, hardware: str) -> None:
    answer = wire.patch(hardware, {"metadata": {"annotations": UP}})
    assert answer.status == 200, answer.body


@pytest.mark.parametrize(
    "change",
    [
        {"spec": {"metadata": {"instance": {"id": "other"}}}},
        {"spec": {"interfaces": [{"netboot": {"allowPXE": True}}]}},
        {"spec": None},
        {"metadata": {"labels": {"a": "c"}}},
        {"metadata": {"labels": None}},
        {"metadata": {"finalizers": ["x.example/y"]}},
        {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}]}},
        {"metadata": {"annotations": UP, "labels": {"new": "label"}}},
        {"metadata": {"annotations": {"ironbell.dev/x": "y"}}},
        {"metadata": {"annotations": {"a": None}}},
    ],
)
def test_servers_may_change_nothing_else(
    on_cluster: OnCluster, wire: KubeApi, hardware: str, change: dict[str, Any]
) -> None:
    def refused() -> bool:
        answer = wire.patch(hardware, change, dryRun="All")
        assert answer.status in {200, 403}, answer.body
        return answer.status == 403 and "may change only metadata.annotations[" in answer.message

    eventually(refused)  # a new policy takes the server a moment
    assert on_cluster.api.patch(hardware, change, dryRun="All").status == 200


def test_servers_may_not_touch_what_their_role_does_not_name(wire: KubeApi, hardware: str) -> None:
    assert wire.delete(hardware).status == 403
    assert wire.get("/api/v1/secrets").status == 403
    assert wire.get(f"/api/v1/namespaces/{NAMESPACE}/configmaps").status == 403
    assert wire.get("/apis/bmc.tinkerbell.org/v1alpha1/machines").status == 403
    assert wire.post(HARDWARE, {"metadata": {"name": "x"}}).status == 403


@pytest.fixture
def workflow(on_cluster: OnCluster) -> Iterator[str]:
    """One whose first action runs."""
    name = f"w-{uuid4().hex[:8]}"
    body = {"apiVersion": "tinkerbell.org/v1alpha1", "kind": "Workflow", "metadata": {"name": name}, "spec": {}}
    on_cluster.api.made(WORKFLOWS, body)
    path = f"{WORKFLOWS}/{name}"
    assert on_cluster.api.patch(f"{path}/status", {"status": running()}).status == 200
    yield path
    on_cluster.api.delete(path)


def running(**action: Any) -> dict[str, Any]:
    made = {"id": "1", "name": "write", "image": "image2disk", "environment": {"A": "b"}, "state": "RUNNING", **action}
    return {
        "state": "RUNNING", "agentID": "agent", "conditions": [],
        "tasks": [{"id": "t", "name": "t", "agentID": "agent", "actions": [made]}],
    }  # fmt: skip


@pytest.mark.parametrize(
    "change",
    [
        {"state": "PREPARING"},
        {"state": "SUCCESS"},
        {"state": "PENDING"},
        {"agentID": "another"},
        {"conditions": [{"type": "Succeeded", "status": "True"}]},
        {"bootOptions": {"allowNetboot": {"toggledTrue": True}}},
        {"templateRendering": "successful"},
        {"tasks": []},
        *(
            {"tasks": running(**{name: value})["tasks"]}
            for name, value in (
                ("image", "other"), ("command", ["sh"]), ("environment", {"A": "c"}), ("environment", {}),
                ("volumes", ["/:/host"]), ("name", "other"), ("timeout", 1), ("pid", "host"),
                ("namespaces", {"pid": "host"}),
            )
        ),
    ],
    ids=str,
)  # fmt: skip
def test_servers_change_only_the_progress_of_a_workflow(
    on_cluster: OnCluster, wire: KubeApi, workflow: str, change: dict[str, Any]
) -> None:
    def refused() -> bool:
        answer = wire.patch(f"{workflow}/status", {"status": change}, dryRun="All")
        assert answer.status in {200, 403}, answer.body
        return answer.status == 403 and "may change only status.state, " in answer.message

    eventually(refused)
    assert on_cluster.api.patch(f"{workflow}/status", {"status": change}, dryRun="All").status == 200


def test_servers_report_progress_and_never_begin_a_finished_workflow_anew(
    on_cluster: OnCluster, wire: KubeApi, workflow: str
) -> None:
    """FAILED to PREPARING would have the machine netboot and its disks erased again."""
    status = f"{workflow}/status"
    progress = {"tasks": running(state="SUCCESS", message="done", executionDuration="1s")["tasks"], "state": "POST"}
    answer = wire.patch(status, {"status": progress}, dryRun="All")
    assert answer.status == 200, answer.body
    again = {"status": {"state": "PENDING", "currentState": None}}
    assert wire.patch(status, again, dryRun="All").status == 403
    assert on_cluster.api.patch(workflow, {"metadata": {"annotations": {"ironbell.dev/on-reboot": "restart"}}})
    assert wire.patch(status, again, dryRun="All").status == 200
    assert wire.patch(workflow, {"metadata": {"annotations": {"ironbell.dev/on-reboot": "resume"}}}).status == 403
    for ended in ("SUCCESS", "FAILED", "TIMEOUT", "STATE_FAILED"):
        assert on_cluster.api.patch(status, {"status": {"state": ended}}).status == 200
        for state in ("PREPARING", "PENDING", "RUNNING", "POST", "FAILED", "SUCCESS"):
            if state != ended:
                assert wire.patch(status, {"status": {"state": state}}, dryRun="All").status == 403
        assert wire.patch(status, {"status": {"tasks": progress["tasks"]}}, dryRun="All").status == 403
