"""The same manifests on the embedded API."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.api.kubeapi import connect
from support.site.components import NAMESPACE, OnCluster, ironbell
from support.site.embeddedcluster import EmbeddedCluster
from support.waiting import eventually

CONDITIONS = {"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}
HARDWARE = "/apis/tinkerbell.org/v1alpha1/namespaces/default/hardware"


@pytest.fixture
def embedded(tmp_path: Path) -> Iterator[OnCluster]:
    cluster = EmbeddedCluster(tmp_path)
    cluster.start()
    yield OnCluster(tmp_path, cluster.kubeconfig, connect("embedded", cluster.kubeconfig))
    cluster.stop()


def test_what_it_has_is_applied_and_what_it_has_not_is_told(embedded: OnCluster) -> None:
    words = ("--kubeconfig", embedded.admin, "--output", "json")

    def results(command: str, *more: str) -> dict[tuple[str, str], str]:
        found = json.loads(ironbell(command, *words, *more))["objects"]
        return {(each["kind"], each["name"]): each["result"] for each in found}

    refused = ironbell("install", *words, status=1)
    assert "runs no pods: nothing that is installed here would start" in refused
    first, second = results("install", "--without-pods"), results("install", "--without-pods")
    unserved = {kind for (kind, _), result in first.items() if result == "not served"}
    assert unserved <= CONDITIONS
    assert set(second.values()) <= {"unchanged", "not served"}
    for word in ("smee", "wire"):
        may_only_annotate(embedded, word)
    assert "deleted" in set(results("uninstall", "--yes").values())
    assert embedded.api.get(f"/api/v1/namespaces/{NAMESPACE}").status == 404
    assert embedded.api.get(HARDWARE).json["items"]


def may_only_annotate(embedded: OnCluster, word: str) -> None:
    """Servers toward machines, by whichever account."""
    hardware = {"apiVersion": "tinkerbell.org/v1alpha1", "kind": "Hardware", "metadata": {"name": f"for-{word}"}}
    embedded.api.made(HARDWARE, hardware)
    user = f"system:serviceaccount:{NAMESPACE}:ironbell-{word}"
    binding = {
        "metadata": {"name": f"test-{word}"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "ironbell-wire"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    }
    embedded.api.made("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding)
    server = embedded.api.with_headers(Impersonate_User=user)
    path = f"{HARDWARE}/for-{word}"
    up = {"metadata": {"annotations": {"ironbell.dev/installed-system-up": "now"}}}
    eventually(lambda: server.patch(path, up).status == 200)
    for metadata in ({"labels": {"a": "b"}}, {"annotations": {"a": "b"}}):
        answer = server.patch(path, {"metadata": metadata})
        assert answer.status == 403
        # the policy that was installed speaks first where it is for the account, else the API's own limit
        by_policy = "ValidatingAdmissionPolicy 'ironbell-limit-servers'" in answer.message
        assert by_policy or f"{user} may not change metadata." in answer.message
