"""`ironbell cluster list`: one row for each Cluster."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from ironbell.cli.objects.tables import clusters_table
from ironbell.operations.cluster.listing import Summary

NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)


def cluster(name: str, **status: Any) -> dict[str, Any]:
    meta = {"name": name, "namespace": "lab", "creationTimestamp": "2026-01-01T11:55:00Z"}
    return {"kind": "Cluster", "metadata": meta, "spec": {}, "status": status}


READY = Summary(
    cluster(
        "one",
        controlPlane={"readyReplicas": 1, "desiredReplicas": 1},
        workers={"readyReplicas": 1, "desiredReplicas": 2},
        conditions=[{"type": "Available", "status": "False", "reason": "NotAvailable", "message": "* x:\n  * y"}],
    ),
    "v1.34.2",
)
NEW = Summary(cluster("two"))


def test_a_row_has_what_is_ready_the_version_and_the_state() -> None:
    assert clusters_table([READY, NEW], NOW, with_namespace=True).splitlines() == [
        "NAMESPACE   NAME   CONTROL PLANE   WORKERS   VERSION   AVAILABLE   REASON         AGE",
        "lab         one    1/1             1/2       v1.34.2   False       NotAvailable   5m",
        "lab         two    0/0             0/0                                            5m",
    ]
    assert clusters_table([NEW], NOW, with_namespace=False).splitlines()[0].startswith("NAME   ")


def test_none_is_a_sentence() -> None:
    assert clusters_table([], NOW, with_namespace=False).startswith("There are no clusters; ")


def test_json_has_values() -> None:
    plain = READY.plain()
    assert (plain["namespace"], plain["name"], plain["version"]) == ("lab", "one", "v1.34.2")
    assert plain["workers"] == {"readyReplicas": 1, "desiredReplicas": 2}
    assert (plain["condition"], plain["status"], plain["reason"]) == ("Available", "False", "NotAvailable")
