"""HorizontalPodAutoscalers in both of their versions: what v1 has no field for is carried in annotations."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.api.kubeapi import MERGE, KubeApi

TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
METRICS: list[dict[str, Any]] = [
    {
        "type": "Resource",
        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 55}},
    },
    {
        "type": "Resource",
        "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "100Mi"}},
    },
    {
        "type": "ContainerResource",
        "containerResource": {
            "name": "cpu", "container": "c", "target": {"type": "Utilization", "averageUtilization": 70},
        },
    },
    {
        "type": "Pods",
        "pods": {
            "metric": {"name": "hits", "selector": {"matchLabels": {"a": "b"}}},
            "target": {"type": "AverageValue", "averageValue": "10"},
        },
    },
    {
        "type": "Object",
        "object": {"describedObject": TARGET, "metric": {"name": "p"}, "target": {"type": "Value", "value": "5"}},
    },
    {
        "type": "External",
        "external": {"metric": {"name": "queue"}, "target": {"type": "AverageValue", "averageValue": "30"}},
    },
]  # fmt: skip
BEHAVIOUR = {
    "scaleUp": {
        "stabilizationWindowSeconds": 3,
        "selectPolicy": "Max",
        "policies": [{"type": "Pods", "value": 2, "periodSeconds": 60}],
    },
    "scaleDown": {
        "stabilizationWindowSeconds": 60,
        "selectPolicy": "Min",
        "policies": [{"type": "Percent", "value": 10, "periodSeconds": 60}],
        "tolerance": "100m",
    },
}
PREFIX = "autoscaling.alpha.kubernetes.io/"


def autoscaler(version: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": f"autoscaling/{version}",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "annotations": {"own": "kept"}},
        "spec": {"scaleTargetRef": TARGET, "maxReplicas": 5, **spec},
    }


@pytest.fixture
def places(namespace: str) -> dict[str, str]:
    """The path of the collection, by version."""
    return {
        version: f"/apis/autoscaling/{version}/namespaces/{namespace}/horizontalpodautoscalers"
        for version in ("v1", "v2")
    }


def test_one_of_the_old_version_is_whole_in_the_new_one(api: KubeApi, places: dict[str, str]) -> None:
    made = api.made(places["v1"], autoscaler("v1", targetCPUUtilizationPercentage=60))
    assert made["spec"] == {
        "scaleTargetRef": TARGET, "maxReplicas": 5, "minReplicas": 1, "targetCPUUtilizationPercentage": 60,
    }  # fmt: skip
    assert made["status"] == {"currentReplicas": 0, "desiredReplicas": 0}
    new = api.get(f"{places['v2']}/web").json
    assert new["apiVersion"] == "autoscaling/v2"
    assert new["spec"]["metrics"] == [
        {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}}}
    ]
    assert new["status"] == {"currentMetrics": None, "desiredReplicas": 0}
    assert new["metadata"]["annotations"] == {"own": "kept"}


def test_the_old_version_aims_at_the_usual_share(api: KubeApi, places: dict[str, str]) -> None:
    assert api.made(places["v1"], autoscaler("v1"))["spec"]["targetCPUUtilizationPercentage"] == 80


def test_annotations_carry_what_the_old_version_lacks(api: KubeApi, places: dict[str, str]) -> None:
    new = api.made(places["v2"], autoscaler("v2", metrics=METRICS, behavior=BEHAVIOUR))
    old = api.get(f"{places['v1']}/web").json
    assert old["spec"] == {
        "scaleTargetRef": TARGET, "maxReplicas": 5, "minReplicas": 1, "targetCPUUtilizationPercentage": 55,
    }  # fmt: skip
    annotations = old["metadata"]["annotations"]
    assert annotations.keys() == {"own", f"{PREFIX}metrics", f"{PREFIX}behavior"}
    assert json.loads(annotations[f"{PREFIX}metrics"]) == [
        {"type": "Resource", "resource": {"name": "memory", "targetAverageValue": "100Mi"}},
        {
            "type": "ContainerResource",
            "containerResource": {"name": "cpu", "targetAverageUtilization": 70, "container": "c"},
        },
        {
            "type": "Pods",
            "pods": {
                "metricName": "hits", "targetAverageValue": "10", "selector": {"matchLabels": {"a": "b"}},
            },
        },
        {"type": "Object", "object": {"target": TARGET, "metricName": "p", "targetValue": "5"}},
        {"type": "External", "external": {"metricName": "queue", "targetAverageValue": "30"}},
    ]  # fmt: skip
    assert json.loads(annotations[f"{PREFIX}behavior"]) == {
        "ScaleUp": {
            "StabilizationWindowSeconds": 3, "SelectPolicy": "Max", "Tolerance": None,
            "Policies": [{"Type": "Pods", "Value": 2, "PeriodSeconds": 60}],
        },
        "ScaleDown": {
            "StabilizationWindowSeconds": 60, "SelectPolicy": "Min", "Tolerance": "100m",
            "Policies": [{"Type": "Percent", "Value": 10, "PeriodSeconds": 60}],
        },
    }  # fmt: skip
    # who writes back what was read loses nothing, but the order of the metrics
    old["spec"]["maxReplicas"] = 6
    assert api.put(f"{places['v1']}/web", old).status == 200
    again = api.get(f"{places['v2']}/web").json
    assert again["spec"] == {**new["spec"], "maxReplicas": 6, "metrics": [*METRICS[1:], METRICS[0]]}
    assert again["metadata"]["annotations"] == {"own": "kept"}


def test_status_of_both_versions(api: KubeApi, places: dict[str, str]) -> None:
    api.made(places["v2"], autoscaler("v2"))
    condition = {
        "type": "AbleToScale", "status": "True", "lastTransitionTime": "2026-01-02T03:04:05Z", "reason": "r",
        "message": "m",
    }  # fmt: skip
    measured = {"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 7}}}
    status = {"currentReplicas": 2, "desiredReplicas": 3, "conditions": [condition], "currentMetrics": [measured]}
    assert api.patch(f"{places['v2']}/web/status", {"status": status}, MERGE).status == 200
    old = api.get(f"{places['v1']}/web").json
    assert old["status"] == {"currentReplicas": 2, "desiredReplicas": 3, "currentCPUUtilizationPercentage": 7}
    annotations = old["metadata"]["annotations"]
    assert json.loads(annotations[f"{PREFIX}conditions"]) == [condition]
    assert json.loads(annotations[f"{PREFIX}current-metrics"]) == [
        {
            "type": "Resource",
            "resource": {"name": "cpu", "currentAverageUtilization": 7, "currentAverageValue": "0"},
        }
    ]
    assert api.patch(f"{places['v1']}/web/status", {"status": {"desiredReplicas": 4}}, MERGE).status == 200
    new = api.get(f"{places['v2']}/web").json["status"]
    assert (new["desiredReplicas"], new["conditions"]) == (4, [condition])


def test_tables_of_both_versions(api: KubeApi, places: dict[str, str]) -> None:
    api.made(places["v2"], autoscaler("v2", metrics=[*METRICS[1:], METRICS[0]]))
    tables = [
        api.get(place, headers={"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}).json
        for place in places.values()
    ]
    cells = [table["rows"][0]["cells"][:5] for table in tables]
    assert cells[0] == cells[1]
    assert cells[0][:2] == ["web", "Deployment/web"]


def test_watches_of_the_old_version(api: KubeApi, places: dict[str, str]) -> None:
    made = api.made(places["v2"], autoscaler("v2", metrics=METRICS))
    with api.watch(places["v1"], resourceVersion=0) as watch:
        seen = watch.next()["object"]
    assert (seen["apiVersion"], seen["metadata"]["uid"]) == ("autoscaling/v1", made["metadata"]["uid"])
    assert seen["spec"]["targetCPUUtilizationPercentage"] == 55
