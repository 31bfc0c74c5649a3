"""A Kind becomes a complete CustomResourceDefinition, and definitions can be compared."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from ironbell.api import bmc, cluster, tinkerbell
from ironbell.api.crd.document import crd_document, crd_yaml
from ironbell.api.kind import Column, Kind, Scale
from ironbell.api.meta import Resource
from ironbell.app.registry import KINDS, UnknownGroupError, groups, kinds_of
from ironbell.codec import goyaml
from support.api.crdfacts import crd_facts


class Thing(Resource, frozen=True):
    """A thing."""

    spec: dict[str, str] = {}  # noqa: RUF012  (msgspec gives every struct its own copy)


THING: Kind[Thing] = Kind(group="things.test", version="v1", kind="Thing", plural="things", model=Thing)


def test_fills_in_names_that_follow_from_the_kind() -> None:
    assert crd_document(THING)["metadata"] == {"name": "things.things.test"}
    assert crd_document(THING)["spec"]["names"] == {
        "kind": "Thing",
        "listKind": "ThingList",
        "plural": "things",
        "singular": "thing",
    }


def test_leaves_out_what_the_kind_does_not_have() -> None:
    version = crd_document(THING)["spec"]["versions"][0]
    assert set(version) == {"name", "served", "storage", "schema"}


def test_carries_everything_that_the_kind_has() -> None:
    column = Column("Age", ".metadata.age", type="date", priority=1, format="date-time", description="How old.")
    kind = replace(
        THING,
        namespaced=False,
        short_names=("t",),
        categories=("all",),
        columns=(column,),
        has_status=True,
        scale=Scale(),
        crd_labels=(("a", ""),),
        description="Described.",
    )
    document = crd_document(kind)
    version = document["spec"]["versions"][0]
    assert document["metadata"]["labels"] == {"a": ""}
    assert document["spec"]["scope"] == "Cluster"
    assert document["spec"]["names"]["shortNames"] == ["t"]
    assert document["spec"]["names"]["categories"] == ["all"]
    assert version["subresources"]["status"] == {}
    assert version["subresources"]["scale"]["specReplicasPath"] == ".spec.replicas"
    assert version["schema"]["openAPIV3Schema"]["description"] == "Described."
    assert version["additionalPrinterColumns"] == [
        {
            "name": "Age",
            "type": "date",
            "jsonPath": ".metadata.age",
            "priority": 1,
            "format": "date-time",
            "description": "How old.",
        }
    ]


def test_yaml_stream_reads_back_as_the_documents() -> None:
    assert list(goyaml.load_all(crd_yaml(KINDS))) == [crd_document(kind) for kind in KINDS]


def test_facts_ignore_prose_but_not_fields_called_description() -> None:
    document = crd_document(THING)
    schema = document["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"] = {"type": "object", "properties": {"description": {"type": "string"}}}
    before = crd_facts(document)
    assert 'things.things.test/v1 .spec.description: type="string"' in before
    schema["description"] = "Changed."
    schema["properties"]["spec"]["properties"]["description"]["description"] = "Added."
    assert crd_facts(document) == before


@pytest.mark.parametrize(
    "change",
    [
        {"type": "integer"},
        {"default": 0},
        {"x-kubernetes-list-type": "set"},
        {"required": ["a"]},
        {"anyOf": [{"properties": {"a": {"minimum": 1}}}]},
        {"not": {"properties": {"a": {"minimum": 1}}}},
        {"items": {"type": "string"}},
        {"additionalProperties": {"type": "integer"}},
    ],
)
def test_facts_show_every_change_of_a_schema(change: dict[str, Any]) -> None:
    document = crd_document(THING)
    before = crd_facts(document)
    document["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] = {"type": "object"} | change
    assert crd_facts(document) != before


def test_facts_look_inside_combined_schemas() -> None:
    def facts(minimum: int) -> list[str]:
        document = crd_document(THING)
        schema = document["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        schema["oneOf"] = [{"properties": {"a": {"minimum": minimum, "description": f"At least {minimum}."}}}]
        return crd_facts(document)

    assert facts(1) != facts(2)
    assert not any("At least" in line for line in facts(1))


def _undescribed(schema: Mapping[str, Any], path: str = "") -> Iterator[str]:
    for name, child in schema.get("properties", {}).items():
        if "description" not in child:
            yield f"{path}.{name}"
        yield from _undescribed(child, f"{path}.{name}")
    for below in (schema.get("items"), schema.get("additionalProperties")):
        if isinstance(below, Mapping):
            yield from _undescribed(below, f"{path}[]")


def _stored_schema(kind: Kind[Any]) -> dict[str, Any]:
    versions = crd_document(kind)["spec"]["versions"]
    schema: dict[str, Any] = next(version for version in versions if version["storage"])["schema"]["openAPIV3Schema"]
    return schema


@pytest.mark.parametrize("kind", [*tinkerbell.KINDS, *bmc.KINDS], ids=str)
def test_every_field_is_described(kind: Kind[Any]) -> None:
    schema = _stored_schema(kind)
    assert schema["description"]
    assert list(_undescribed(schema)) == [".metadata"]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.group.endswith("cluster.x-k8s.io")], ids=str)
def test_every_object_of_cluster_api_is_described(kind: Kind[Any]) -> None:
    def undescribed(schema: Any, path: str) -> Iterator[str]:
        if isinstance(schema, Mapping):
            if "properties" in schema and "description" not in schema:
                yield path
            for name, child in schema.get("properties", {}).items():
                yield from undescribed(child, f"{path}.{name}")
            yield from undescribed(schema.get("items"), f"{path}[]")
            yield from undescribed(schema.get("additionalProperties"), f"{path}{{}}")

    assert list(undescribed(_stored_schema(kind), "")) == []


def test_older_versions_come_first_and_are_copies() -> None:
    versions = crd_document(cluster.CLUSTER)["spec"]["versions"]
    assert [(version["name"], version["served"], version["storage"]) for version in versions] == [
        ("v1beta1", True, False),
        ("v1beta2", True, True),
    ]
    versions[0]["schema"]["openAPIV3Schema"]["properties"]["spec"].clear()
    assert crd_document(cluster.CLUSTER)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]


def test_kinds_are_found_by_group() -> None:
    assert groups()[:3] == ["tinkerbell.org", "bmc.tinkerbell.org", "cluster.x-k8s.io"]
    assert kinds_of() == list(KINDS)
    assert [kind.kind for kind in kinds_of(["bmc.tinkerbell.org", "bmc.tinkerbell.org"])] == ["Machine", "Job", "Task"]


def test_unknown_group_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UnknownGroupError, match=r"'nobody\.test' is not known; known groups: tinkerbell\.org"):
        kinds_of(["nobody.test"])
