"""Rows of Kubernetes' own kinds, as kubectl prints them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ironbell.apiserver.tables.columns import built_in_kinds, printer

NOW = datetime(2026, 1, 2, tzinfo=UTC)
CREATED = "2026-01-01T23:00:00Z"
CONTAINERS = {"containers": [{"name": "a", "image": "i:1"}, {"name": "b", "image": "i:2"}]}
STARTER = {"initContainers": [{"name": "s"}]}
WEB = {"matchLabels": {"app": "web"}}


def cells(group: str, kind: str, **fields: Any) -> list[Any]:
    meta = {"name": "one", "creationTimestamp": CREATED} | fields.pop("metadata", {})
    return printer(group, kind).row({"metadata": meta, **fields}, NOW)


def test_deployments_tell_how_many_are_ready() -> None:
    row = cells(
        "apps", "Deployment", spec={"replicas": 3, "selector": WEB, "template": {"spec": CONTAINERS}},
        status={"readyReplicas": 2, "updatedReplicas": 1, "availableReplicas": 2},
    )  # fmt: skip
    assert row == ["one", "2/3", 1, 2, "60m", "a,b", "i:1,i:2", "app=web"]


@pytest.mark.parametrize(
    ("status", "shown"),
    [
        ({"phase": "Pending"}, ("0/2", "Pending", "0")),
        ({"phase": "Failed", "reason": "Evicted"}, ("0/2", "Evicted", "0")),
        (
            {"phase": "Running", "containerStatuses": [{"ready": True, "state": {"running": {}}, "restartCount": 1}]},
            ("1/2", "Running", "1"),
        ),
        (
            {
                "phase": "Running",
                "containerStatuses": [
                    {
                        "restartCount": 3,
                        "state": {"waiting": {"reason": "CrashLoopBackOff"}},
                        "lastState": {"terminated": {"finishedAt": CREATED}},
                    }
                ],
            },
            ("0/2", "CrashLoopBackOff", "3 (60m ago)"),
        ),
        ({"containerStatuses": [{"state": {"terminated": {"exitCode": 2}}}]}, ("0/2", "ExitCode:2", "0")),
        ({"containerStatuses": [{"state": {"terminated": {"signal": 9}}}]}, ("0/2", "Signal:9", "0")),
        (
            {
                "containerStatuses": [
                    {"state": {"terminated": {"reason": "Completed", "exitCode": 0}}},
                    {"ready": True, "state": {"running": {}}},
                ]
            },
            ("1/2", "NotReady", "0"),
        ),
        ({"initContainerStatuses": [{"state": {"running": {}}}]}, ("0/2", "Init:0/1", "0")),
        (
            {"initContainerStatuses": [{"restartCount": 4, "state": {"waiting": {"reason": "ErrImagePull"}}}]},
            ("0/2", "Init:ErrImagePull", "4"),
        ),
        ({"initContainerStatuses": [{"state": {"terminated": {"exitCode": 1}}}]}, ("0/2", "Init:ExitCode:1", "0")),
        (
            {"phase": "Running", "initContainerStatuses": [{"state": {"terminated": {"exitCode": 0}}}]},
            ("0/2", "Running", "0"),
        ),
    ],
)
def test_pods_tell_what_their_containers_are_at(status: dict[str, Any], shown: tuple[str, ...]) -> None:
    row = cells("", "Pod", spec=CONTAINERS | STARTER, status=status)
    assert tuple(row[1:4]) == shown


def test_pods_that_are_deleted_say_so() -> None:
    meta = {"deletionTimestamp": CREATED}
    assert cells("", "Pod", metadata=meta, spec=CONTAINERS, status={"phase": "Running"})[2] == "Terminating"
    assert cells("", "Pod", metadata=meta, spec=CONTAINERS, status={"phase": "Succeeded"})[2] == "Succeeded"
    assert cells("", "Pod", metadata=meta, spec=CONTAINERS, status={"reason": "NodeLost"})[2] == "Unknown"


def test_jobs_tell_how_far_they_are() -> None:
    spec = {"completions": 3, "template": {"spec": CONTAINERS}}
    status = {"succeeded": 1, "startTime": CREATED}
    assert cells("batch", "Job", spec=spec, status=status)[1:5] == ["Running", "1/3", "60m", "60m"]
    done = {"conditions": [{"type": "Complete", "status": "True"}], "succeeded": 3, "startTime": CREATED}
    ended = done | {"completionTime": "2026-01-01T23:00:05Z"}
    assert cells("batch", "Job", spec=spec, status=ended)[1:4] == ["Complete", "3/3", "5s"]
    assert cells("batch", "Job", spec={"parallelism": 2}, status={})[2:4] == ["0/1 of 2", ""]


@pytest.mark.parametrize(
    ("spec", "status", "shown"),
    [
        (
            {"type": "ClusterIP", "clusterIPs": ["10.0.0.1"], "ports": [{"port": 80, "protocol": "TCP"}]}, {},
            ["ClusterIP", "10.0.0.1", "<none>", "80/TCP"],
        ),
        ({"type": "ClusterIP", "clusterIP": "None"}, {}, ["ClusterIP", "None", "<none>", "<none>"]),
        ({"type": "ExternalName", "externalName": "a.b"}, {}, ["ExternalName", "<none>", "a.b", "<none>"]),
        (
            {"type": "LoadBalancer", "ports": [{"port": 80, "nodePort": 30080, "protocol": "TCP"}]},
            {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}},
            ["LoadBalancer", "<none>", "192.0.2.1", "80:30080/TCP"],
        ),
        ({"type": "LoadBalancer"}, {}, ["LoadBalancer", "<none>", "<pending>", "<none>"]),
    ],
)  # fmt: skip
def test_services_tell_where_they_are(spec: dict[str, Any], status: dict[str, Any], shown: list[str]) -> None:
    assert cells("", "Service", spec=spec, status=status)[1:5] == shown


def test_bindings_tell_who_gets_what() -> None:
    row = cells(
        "rbac.authorization.k8s.io", "RoleBinding", roleRef={"kind": "Role", "name": "r"},
        subjects=[{"kind": "User", "name": "jo"}, {"kind": "ServiceAccount", "name": "s", "namespace": "n"}],
    )  # fmt: skip
    assert row == ["one", "Role/r", "60m", "jo", "", "n/s"]


def test_requests_tell_what_became_of_them() -> None:
    status = {"conditions": [{"type": "Approved"}], "certificate": "x"}
    row = cells("certificates.k8s.io", "CertificateSigningRequest", spec={"expirationSeconds": 3600}, status=status)
    assert row == ["one", "60m", "<none>", "", "60m", "Approved,Issued"]


def test_events_of_either_group_read_the_same() -> None:
    old = {"source": {"component": "c"}, "firstTimestamp": CREATED, "count": 2, "message": "m"}
    new = {
        "deprecatedSource": {"component": "c"}, "deprecatedFirstTimestamp": CREATED, "deprecatedCount": 2, "note": "m",
    }  # fmt: skip
    assert cells("", "Event", **old) == cells("events.k8s.io", "Event", **new)


_PARTS = st.recursive(
    st.none() | st.booleans() | st.integers(0, 5) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=8), inner, max_size=2),
    max_leaves=4,
)
_ODD = st.fixed_dictionaries({}, optional=dict.fromkeys(("spec", "status", "metadata", "rules", "subjects"), _PARTS))


@given(st.sampled_from(built_in_kinds()), _ODD)
def test_any_object_has_a_cell_for_each_column(kind: tuple[str, str], item: dict[str, Any]) -> None:
    result = printer(*kind)
    assert len(result.row(item, NOW)) == len(result.columns)
