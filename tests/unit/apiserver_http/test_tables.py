"""Tables look as the real API server's: cells, priorities, ages, what rows carry."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ironbell.api.kind import Column
from ironbell.apiserver.tables.cells import age
from ironbell.apiserver.tables.columns import printer
from ironbell.apiserver.tables.table import Include, partial_metadata, partial_metadata_list, resource_version, table
from ironbell.base.wording import human_duration

NOW = datetime(2026, 1, 2, tzinfo=UTC)
CREATED = "2026-01-01T23:00:00Z"


def encoded(**fields: Any) -> bytes:
    metadata = {"name": "one", "creationTimestamp": CREATED, "resourceVersion": "7"} | fields.pop("metadata", {})
    return msgspec.json.encode({"apiVersion": "v1", "kind": "X", "metadata": metadata} | fields)


def cells(group: str, kind: str, columns: tuple[Column, ...] = (), **fields: Any) -> list[Any]:
    created = msgspec.json.decode(table(printer(group, kind, columns), [encoded(**fields)], list_meta={}, now=NOW))
    assert len(created["columnDefinitions"]) == len(created["rows"][0]["cells"])
    return list(created["rows"][0]["cells"])


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "<invalid>"), (-1, "0s"), (0, "0s"), (119, "119s"), (120, "2m"), (125, "2m5s"), (600, "10m"), (605, "10m"),
        (10799, "179m"), (10800, "3h"), (11000, "3h3m"), (28800, "8h"), (100000, "27h"), (172800, "2d"),
        (180000, "2d2h"), (700000, "8d"), (63072000, "2y"), (63072000 + 86400, "2y1d"), (315360000, "10y"),
    ],
)  # fmt: skip
def test_durations_read_like_kubectl(seconds: float, text: str) -> None:
    assert human_duration(seconds) == text


def test_ages_of_no_and_of_wrong_times() -> None:
    assert age(None, NOW) == "<unknown>"
    assert age("soon", NOW) == "<invalid>"
    assert age(5, NOW) == "<invalid>"
    assert age((NOW - timedelta(hours=1)).isoformat(), NOW) == "60m"


def test_default_columns_are_name_and_age() -> None:
    assert cells("example.org", "Thing") == ["one", "60m"]


@pytest.mark.parametrize(
    ("column_type", "value", "cell"),
    [
        ("string", "a", "a"), ("string", 3, "3"), ("string", True, "true"), ("string", 1.5, "1.5"),
        ("string", {"a": 1}, '{"a":1}'), ("integer", 3, 3), ("integer", 3.7, 3), ("integer", "3", None),
        ("number", 3, 3.0), ("boolean", True, True), ("boolean", "true", None), ("date", CREATED, "60m"),
        ("date", "x", "<invalid>"), ("string", None, None), ("date", 5, None),
    ],
)  # fmt: skip
def test_declared_columns_are_typed(column_type: str, value: Any, cell: Any) -> None:
    columns = (Column("Value", ".spec.value", type=column_type),)
    assert cells("example.org", "Thing", columns, spec={"value": value}) == ["one", cell]


def test_a_missing_field_and_an_unknown_path_are_empty_cells() -> None:
    columns = (Column("A", ".spec.none"), Column("B", "..spec"))
    assert cells("example.org", "Thing", columns) == ["one", None, None]


def test_wide_columns_keep_their_priority() -> None:
    columns = (Column("Value", ".spec.value", priority=1, format="int32"),)
    created = msgspec.json.decode(table(printer("e", "T", columns), [], list_meta={"resourceVersion": "9"}, now=NOW))
    assert [c["priority"] for c in created["columnDefinitions"]] == [0, 1]
    assert created["columnDefinitions"][0]["format"] == "name"
    assert created["metadata"]["resourceVersion"] == "9"
    assert created["rows"] == []


def test_built_in_kinds() -> None:
    assert cells("", "Namespace", status={"phase": "Active"}) == ["one", "Active", "60m"]
    assert cells("", "Secret", type="Opaque", data={"a": "", "b": ""}) == ["one", "Opaque", 2, "60m"]
    assert cells("", "ConfigMap", data={"a": ""}, binaryData={"b": ""}) == ["one", 2, "60m"]
    assert cells("", "ServiceAccount") == ["one", "60m"]
    assert cells("coordination.k8s.io", "Lease", spec={"holderIdentity": "me"}) == ["one", "me", "60m"]
    assert cells("apiextensions.k8s.io", "CustomResourceDefinition") == ["one", CREATED]


def test_events_tell_when_what_and_about_which_object() -> None:
    row = cells(
        "", "Event", type="Warning", reason="Failed", message="it broke\n", count=4,
        lastTimestamp=CREATED, firstTimestamp="2026-01-01T00:00:00Z",
        involvedObject={"kind": "Hardware", "name": "m1"}, source={"component": "rufio", "host": "h"},
    )  # fmt: skip
    assert row == ["60m", "Warning", "Failed", "hardware/m1", "", "rufio, h", "it broke", "24h", 4, "one"]


def test_nodes_tell_readiness_roles_and_addresses() -> None:
    row = cells(
        "", "Node", metadata={"labels": {"node-role.kubernetes.io/control-plane": "", "kubernetes.io/role": "x"}},
        spec={"unschedulable": True},
        status={
            "conditions": [{"type": "Ready", "status": "True"}], "addresses": [{"type": "InternalIP", "address": "1"}],
            "nodeInfo": {"kubeletVersion": "v1.32.0"},
        },
    )  # fmt: skip
    assert row[:6] == ["one", "Ready,SchedulingDisabled", "control-plane,x", "60m", "v1.32.0", "1"]
    assert cells("", "Node", status={"conditions": ["odd"], "addresses": 3})[1] == "Unknown"


def test_rows_carry_metadata_or_the_object_or_nothing() -> None:
    body = encoded(spec={"a": 1})
    created = {
        include: msgspec.json.decode(table(printer("e", "T"), [body], list_meta={}, now=NOW, include=include))
        for include in Include
    }
    assert created[Include.NONE]["rows"][0]["object"] is None
    assert created[Include.OBJECT]["rows"][0]["object"] == msgspec.json.decode(body)
    partial = created[Include.METADATA]["rows"][0]["object"]
    assert partial == msgspec.json.decode(partial_metadata(body))
    assert partial["kind"] == "PartialObjectMetadata"
    assert "spec" not in partial


def test_headers_can_be_left_out() -> None:
    created = msgspec.json.decode(table(printer("e", "T"), [encoded()], list_meta={}, now=NOW, headers=False))
    assert created["columnDefinitions"] is None


def test_metadata_lists() -> None:
    created = msgspec.json.decode(partial_metadata_list([encoded(), encoded()], {"resourceVersion": "4"}))
    assert created["metadata"] == {"resourceVersion": "4"}
    assert [item["metadata"]["name"] for item in created["items"]] == ["one", "one"]
    assert resource_version(encoded()) == "7"


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from(["conditions", "addresses", "type", "labels", "data"]), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@given(st.sampled_from(["Node", "Event", "Secret", "ConfigMap", "Namespace", "ServiceAccount", "Other"]), _JSON, _JSON)
def test_any_object_prints(kind: str, first: Any, second: Any) -> None:
    body = msgspec.json.encode(
        {"metadata": {"name": "x", "labels": first}, "spec": second, "status": first, "data": second, "source": first}
    )
    columns = (Column("V", ".status.conditions[*].type"), Column("D", ".spec", type="date"))
    table(printer("" if kind != "Other" else "e", kind, columns), [body], list_meta={}, now=NOW)
