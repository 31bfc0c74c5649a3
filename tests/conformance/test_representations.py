"""Tables and metadata: objects in other forms than their own."""

from __future__ import annotations

import pytest

from support.api.kubeapi import KubeApi
from support.api.kubeobjects import config_map, refusal, thing

TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}
ONE = {"Accept": "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"}
LIST = {"Accept": "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"}


@pytest.fixture
def one(api: KubeApi, config_maps: str) -> str:
    api.made(config_maps, config_map(data={"a": "1"}))
    return f"{config_maps}/one"


def test_a_list_as_a_table(api: KubeApi, config_maps: str, one: str) -> None:
    table = api.get(config_maps, headers=TABLE, fieldSelector="metadata.name=one").json
    assert (table["kind"], table["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    assert table["metadata"]["resourceVersion"]
    columns = table["columnDefinitions"]
    assert [(column["name"], column["type"], column["format"], column["priority"]) for column in columns] == [
        ("Name", "string", "name", 0),
        ("Data", "string", "", 0),
        ("Age", "string", "", 0),
    ]
    (row,) = table["rows"]
    assert row["cells"][:2] == ["one", 1]
    assert row["object"]["kind"] == "PartialObjectMetadata"
    assert row["object"]["metadata"]["name"] == "one"
    assert "data" not in row["object"]


def test_an_object_as_a_table(api: KubeApi, one: str) -> None:
    table = api.get(one, headers=TABLE).json
    assert (table["kind"], len(table["rows"])) == ("Table", 1)


def test_what_is_written_as_a_table(api: KubeApi, config_maps: str) -> None:
    answer = api.post(config_maps, config_map(), headers=TABLE)
    assert (answer.status, answer.json["kind"]) == (201, "Table")


def test_pages_of_tables(api: KubeApi, config_maps: str) -> None:
    for name in ("a", "b", "c"):
        api.made(config_maps, config_map(name, {"labels": {"x": "y"}}))
    table = api.get(config_maps, headers=TABLE, limit=2, labelSelector="x=y").json
    assert [row["cells"][0] for row in table["rows"]] == ["a", "b"]
    rest = api.get(
        config_maps, headers=TABLE, limit=2, labelSelector="x=y", **{"continue": table["metadata"]["continue"]}
    )
    assert [row["cells"][0] for row in rest.json["rows"]] == ["c"]


@pytest.mark.parametrize(
    ("include", "kind"), [("None", None), ("Metadata", "PartialObjectMetadata"), ("Object", "ConfigMap")]
)
def test_what_rows_carry(api: KubeApi, one: str, include: str, kind: str | None) -> None:
    (row,) = api.get(one, headers=TABLE, includeObject=include).json["rows"]
    carried = row["object"]
    assert (carried.get("kind") if carried else None) == kind


def test_rows_carry_nothing_else(api: KubeApi, one: str) -> None:
    assert api.get(one, headers=TABLE, includeObject="Foo").status == 400


def test_a_table_of_nothing(api: KubeApi, namespace: str) -> None:
    table = api.get(f"/api/v1/namespaces/{namespace}/secrets", headers=TABLE).json
    assert table["rows"] == []
    assert table["columnDefinitions"]


def test_columns_of_custom_resources(api: KubeApi, things: str) -> None:
    api.made(things, thing(spec={"size": 7}))
    table = api.get(things, headers=TABLE).json
    columns = table["columnDefinitions"]
    assert [(column["name"], column["type"], column["format"]) for column in columns] == [
        ("Name", "string", "name"),
        ("Size", "integer", ""),
        ("Age", "date", ""),
    ]
    assert table["rows"][0]["cells"][:2] == ["one", 7]


def test_metadata_of_an_object(api: KubeApi, one: str) -> None:
    whole = api.get(one).json
    assert api.get(one, headers=ONE).json == {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": whole["metadata"],
    }


def test_metadata_of_a_list(api: KubeApi, config_maps: str, one: str) -> None:
    found = api.get(config_maps, headers=LIST, fieldSelector="metadata.name=one").json
    assert (found["kind"], found["apiVersion"]) == ("PartialObjectMetadataList", "meta.k8s.io/v1")
    assert found["metadata"]["resourceVersion"]
    assert found["items"][0]["metadata"] == api.get(one).json["metadata"]
    assert "data" not in found["items"][0]


def test_one_is_no_list_and_a_list_is_not_one(api: KubeApi, config_maps: str, one: str) -> None:
    status, reason, message = refusal(api.get(one, headers=LIST))
    assert (status, reason) == (406, "NotAcceptable")
    assert message.startswith("you requested PartialObjectMetadataList, but the requested object is not a list (")
    status, reason, message = refusal(api.get(config_maps, headers=ONE))
    assert (status, reason) == (406, "NotAcceptable")
    assert message.startswith("you requested PartialObjectMetadata, but the requested object is a list (")


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_versions_of_the_forms(api: KubeApi, one: str, version: str) -> None:
    for kind in ("Table", "PartialObjectMetadata"):
        accept = {"Accept": f"application/json;as={kind};v={version};g=meta.k8s.io"}
        found = api.get(one, headers=accept).json
        assert (found["kind"], found["apiVersion"]) == (kind, f"meta.k8s.io/{version}")


def test_other_versions_are_not_there(api: KubeApi, one: str) -> None:
    accept = {"Accept": "application/json;as=Table;v=v2;g=meta.k8s.io"}
    assert (api.get(one, headers=accept).status, api.get(one, headers=accept).reason) == (406, "NotAcceptable")
