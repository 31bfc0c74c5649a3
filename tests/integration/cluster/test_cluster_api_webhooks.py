"""Cluster API's kinds on a real API server: converted, completed and checked by our webhooks, over TLS."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from support.clusterapisite import cluster_api
from support.components import OnCluster, Process
from support.kubeapi import Answer, eventually

OLD, NEW = "cluster.x-k8s.io/v1beta1", "cluster.x-k8s.io/v1beta2"


def _machines(version: str, name: str = "") -> str:
    path = f"/apis/{version}/namespaces/default/machines"
    return f"{path}/{name}" if name else path


@pytest.fixture(scope="module")
def webhooks(on_cluster: OnCluster) -> Iterator[Process]:
    """A replica that serves them."""
    with cluster_api(on_cluster) as (serving,):
        yield serving


def _machine(api_version: str, name: str, **spec: Any) -> dict[str, Any]:
    reference = {"apiVersion": "hosts.test/v1alpha3"} if api_version == OLD else {"apiGroup": "hosts.test"}
    return {
        "apiVersion": api_version,
        "kind": "Machine",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "clusterName": "nobodys",
            "bootstrap": {"dataSecretName": "s"},
            "infrastructureRef": {**reference, "kind": "Host", "name": "h"},
            **spec,
        },
    }


def test_an_object_is_stored_converted_and_completed(on_cluster: OnCluster, webhooks: Process) -> None:
    def created() -> Answer | None:
        body = _machine(OLD, "older", version="1.36.0", nodeDrainTimeout="1m30s")
        answer = on_cluster.api.post(_machines(OLD), body)
        return answer if answer.status == 201 else None

    assert eventually(created)
    stored = on_cluster.api.get(_machines(NEW, "older")).json
    assert stored["spec"]["version"] == "v1.36.0"
    assert stored["spec"]["deletion"]["nodeDrainTimeoutSeconds"] == 90
    assert stored["spec"]["infrastructureRef"] == {"apiGroup": "hosts.test", "kind": "Host", "name": "h"}
    assert stored["metadata"]["labels"]["cluster.x-k8s.io/cluster-name"] == "nobodys"
    shown = on_cluster.api.get(_machines(OLD, "older")).json
    assert shown["spec"]["nodeDrainTimeout"] == "1m30s"
    assert shown["spec"]["infrastructureRef"]["apiVersion"] == "hosts.test/v1beta1"
    listed = on_cluster.api.get(_machines(OLD)).json["items"]
    assert [item["apiVersion"] for item in listed if item["metadata"]["name"] == "older"] == [OLD]

    def written() -> bool:
        # the controllers beside the webhooks write too
        read = on_cluster.api.get(_machines(OLD, "older")).json
        read["spec"]["version"] = "v1.36.1"
        return on_cluster.api.put(_machines(OLD, "older"), read).status == 200

    assert eventually(written)
    again = on_cluster.api.get(_machines(NEW, "older")).json
    assert again["spec"] == {**stored["spec"], "version": "v1.36.1"}
    assert "cluster.x-k8s.io/conversion-data" not in again["metadata"].get("annotations", {})


@pytest.mark.parametrize("version", [OLD, NEW], ids=["older", "stored"])
def test_what_breaks_the_rules_is_refused(on_cluster: OnCluster, webhooks: Process, version: str) -> None:
    def refused() -> Answer | None:
        answer = on_cluster.api.post(_machines(version), _machine(version, "refused", version="one"))
        return answer if answer.status == 422 else None

    said = eventually(refused).json["message"]
    assert 'denied the request: Machine.cluster.x-k8s.io "refused" is invalid' in said
    assert "spec.version: Invalid value" in said
