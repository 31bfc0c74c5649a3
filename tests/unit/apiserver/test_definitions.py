"""CustomResourceDefinitions at run time."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ironbell.api.client import BadRequest, Invalid, PatchType, WriteOptions
from ironbell.api.kind import Collection
from ironbell.apiserver.access.identity import ADMIN
from ironbell.apiserver.core import ApiServer
from ironbell.apiserver.crds.keywords import definition_misfit, prune_definition
from ironbell.apiserver.crds.rules import CrdRules
from ironbell.apiserver.crds.served import served_resources, version_rank
from ironbell.apiserver.resources import Resources
from ironbell.apiserver.schema.compiled import compile_schema
from ironbell.base.clock import ManualClock
from ironbell.base.randomness import SeededRandomness


def gadgets(schema: Any = None, **spec: Any) -> dict[str, Any]:
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema if schema is not None else {"type": "object"}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "gadgets.example.org"},
        "spec": {
            "group": "example.org",
            "scope": "Cluster",
            "names": {"plural": "gadgets", "kind": "Gadget"},
            "versions": [version],
            **spec,
        },
    }


async def test_a_definition_is_served_once_it_is_answered(admin: Any, crds: Any, widgets: Any) -> None:
    created = await admin.create(crds, gadgets(), namespace="")
    assert {entry["type"]: entry["status"] for entry in created["status"]["conditions"]} == {
        "NamesAccepted": "True",
        "Established": "True",
    }
    assert created["status"]["storedVersions"] == ["v1"]
    assert created["spec"]["names"]["listKind"] == "GadgetList"
    info = admin.server.resources.get("example.org", "v1", "gadgets")
    assert (info.singular, info.namespaced, info.custom) == ("gadget", False, True)
    where = type(widgets)("example.org", "v1", "gadgets", namespaced=False)
    await admin.create(where, {"metadata": {"name": "g"}}, namespace="")


async def test_a_changed_schema_holds_at_once(admin: Any, crds: Any, widgets: Any) -> None:
    await admin.create(crds, gadgets(), namespace="")
    where = type(widgets)("example.org", "v1", "gadgets", namespaced=False)
    path = "/spec/versions/0/schema/openAPIV3Schema/properties"
    schema = {"spec": {"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}}}
    patch = [{"op": "add", "path": path, "value": schema}]
    await admin.patch(crds, "gadgets.example.org", patch, kind=PatchType.JSON, namespace="")
    with pytest.raises(Invalid, match=r"spec.a: Required value"):
        await admin.create(where, {"metadata": {"name": "g"}, "spec": {}}, namespace="")


async def test_names_that_are_taken_are_not_accepted(admin: Any, crds: Any) -> None:
    created = await admin.create(crds, gadgets(names={"plural": "gadgets", "kind": "Widget"}), namespace="")
    conditions = {entry["type"]: entry for entry in created["status"]["conditions"]}
    assert (conditions["NamesAccepted"]["status"], conditions["Established"]["status"]) == ("False", "False")
    assert '"Widget" is already in use' in conditions["NamesAccepted"]["message"]
    assert admin.server.resources.get("example.org", "v1", "gadgets") is None


def converted_at(service: dict[str, Any]) -> dict[str, Any]:
    webhook = {"clientConfig": {"service": service}, "conversionReviewVersions": ["v1"]}
    return {"strategy": "Webhook", "webhook": webhook}


FAULTS: list[tuple[dict[str, Any], str]] = [
    ({"metadata": {"name": "wrong"}}, "must be spec.names.plural"),
    (gadgets(scope="Galaxy"), 'Unsupported value: "Galaxy": supported values: "Cluster", "Namespaced"'),
    (gadgets(versions=[]), "must have exactly one version marked as storage version"),
    (gadgets({"type": "string"}), "must be object at the root"),
    (gadgets({"type": "object", "properties": {"a": {}}}), "must not be empty for specified object fields"),
    (gadgets({"type": "object", "properties": {"a": {"type": "array"}}}), "items: Required value"),
    (gadgets({"type": "object", "properties": {"a": {"type": "blob"}}}), 'Unsupported value: "blob"'),
    (gadgets({"type": "object", "properties": {"a": {"$ref": "#/b", "type": "string"}}}), "is not supported"),
    (
        gadgets({"type": "object", "properties": {"a": {"type": "string", "pattern": "("}}}),
        "must be a valid regular expression",
    ),
    (gadgets(conversion={"strategy": "Magic"}), 'Unsupported value: "Magic"'),
    (
        gadgets(conversion=converted_at({"name": "a", "namespace": "b", "path": "convert"})),
        "webhookClientConfig.service.path: Invalid value: \"convert\": must start with a '/'",
    ),
]


@pytest.mark.parametrize(("change", "text"), FAULTS)
async def test_faulty_definitions_are_refused(admin: Any, crds: Any, change: dict[str, Any], text: str) -> None:
    with pytest.raises(Invalid) as raised:
        await admin.create(crds, {**gadgets(), **change}, namespace="")
    assert text in raised.value.message


async def test_words_of_another_type_are_refused_undecoded(admin: Any, crds: Any) -> None:
    with pytest.raises(BadRequest, match=r"JSONSchemaProps\.spec\.versions.*required of type \[\]string"):
        await admin.create(crds, gadgets({"type": "object", "required": 5}), namespace="")


async def test_unknown_words_are_dropped(admin: Any, crds: Any) -> None:
    created = await admin.create(crds, gadgets({"type": "object", "bogus": 5, "nullable": False}), namespace="")
    assert created["spec"]["versions"][0]["schema"]["openAPIV3Schema"] == {"type": "object"}


async def test_what_a_kind_is_never_changes(admin: Any, crds: Any) -> None:
    created = await admin.create(crds, gadgets(), namespace="")
    created["spec"]["scope"] = "Namespaced"
    with pytest.raises(Invalid, match=r"spec.scope: Invalid value: .* field is immutable"):
        await admin.replace(crds, created)


async def test_all_served_versions_show_the_same_objects(admin: Any, crds: Any, widgets: Any) -> None:
    versions = [
        {"name": name, "served": True, "storage": name == "v1", "schema": {"openAPIV3Schema": {"type": "object"}}}
        for name in ("v1beta1", "v1")
    ]
    await admin.create(crds, gadgets(versions=versions), namespace="")
    older = type(widgets)("example.org", "v1beta1", "gadgets", namespaced=False)
    newer = type(widgets)("example.org", "v1", "gadgets", namespaced=False)
    start = admin.server.resource_version
    await admin.create(older, {"metadata": {"name": "g"}}, namespace="")
    assert (await admin.get(newer, "g", namespace=""))["apiVersion"] == "example.org/v1"
    await admin.patch(older, "g", {"metadata": {"labels": {"a": "b"}}}, namespace="")
    events = await admin.watch(older, after=start, count=2)
    assert {msgspec.json.decode(event.body)["apiVersion"] for event in events} == {"example.org/v1beta1"}
    listed = [info.version for info in admin.server.resources.versions("gadgets.example.org")]
    assert listed == ["v1", "v1beta1"]


async def test_a_conversion_brings_fields_from_version_to_version() -> None:
    def convert(value: dict[str, Any], api_version: str) -> dict[str, Any]:
        spec = value.get("spec", {})
        old, new = ("size", "length") if api_version.endswith("/v1") else ("length", "size")
        moved = {new if name == old else name: part for name, part in spec.items()}
        return {**value, "apiVersion": api_version, "spec": moved}

    def version(name: str, field: str) -> dict[str, Any]:
        spec = {"type": "object", "properties": {field: {"type": "integer"}}}
        schema = {"type": "object", "properties": {"spec": spec}}
        return {"name": name, "served": True, "storage": name == "v1", "schema": {"openAPIV3Schema": schema}}

    definition = gadgets(versions=[version("v1beta1", "size"), version("v1", "length")])
    older = Collection("example.org", "v1beta1", "gadgets", namespaced=False)
    newer = Collection("example.org", "v1", "gadgets", namespaced=False)
    async with ApiServer.open(
        None,
        clock=ManualClock(),
        randomness=SeededRandomness(1),
        definitions=[definition],
        conversions={"gadgets.example.org": convert},
    ) as server:
        api = server.client(ADMIN)
        body = b'{"metadata":{"name":"g"},"spec":{"size":3}}'
        created = msgspec.json.decode(await api.create(older, "", body))
        assert created["spec"] == {"size": 3}
        patched = await api.patch(newer, "", "g", b'{"spec":{"length":4}}', patch_type=PatchType.MERGE)
        assert msgspec.json.decode(patched)["spec"] == {"length": 4}
        listed = (await api.list(older)).items
        assert msgspec.json.decode(listed[0])["spec"] == {"size": 4}


def test_versions_are_ranked_as_kubernetes_ranks_them() -> None:
    names = ["v10beta3", "v1alpha1", "foo10", "v11beta2", "v2", "v3beta1", "v12alpha1", "v10", "v1", "foo1"]
    ranked = ["v10", "v2", "v1", "v11beta2", "v10beta3", "v3beta1", "v12alpha1", "v1alpha1", "foo1", "foo10"]
    assert sorted(names, key=version_rank) == ranked


async def test_definitions_given_at_start_are_created_and_updated() -> None:
    first, second = gadgets(), gadgets({"type": "object", "description": "newer"})
    for definitions in ([first], [first, second]):
        async with ApiServer.open(
            None, clock=ManualClock(), randomness=SeededRandomness(1), definitions=definitions
        ) as server:
            info = server.resources.get("example.org", "v1", "gadgets")
            assert info is not None
            assert info.schema == definitions[-1]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


KEYWORDS = st.sampled_from(
    [
        "type",
        "properties",
        "items",
        "required",
        "enum",
        "pattern",
        "minimum",
        "maxLength",
        "default",
        "additionalProperties",
        "anyOf",
        "not",
        "format",
        "nullable",
        "minItems",
        "multipleOf",
        "uniqueItems",
        "x-kubernetes-list-type",
        "x-kubernetes-list-map-keys",
        "x-kubernetes-validations",
        "x-kubernetes-preserve-unknown-fields",
    ]
)
JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from(["object", "array", "string", "map", "set", "(", "a"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYWORDS, inner, max_size=3),
    max_leaves=12,
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(KEYWORDS, JUNK, max_size=4), JUNK)
def test_any_schema_is_compiled_or_refused(keywords: dict[str, Any], value: Any) -> None:
    """A schema that passed the check never fails later, whatever object it meets."""
    version = {"schema": {"openAPIV3Schema": {**keywords, "type": "object"}}}
    rules = CrdRules(Resources(), ManualClock())
    if definition_misfit({"spec": {"versions": [version]}}):
        return
    prune_definition({"spec": {"versions": [version]}})
    if rules._schema_faults([version], {}):
        return
    schema = version["schema"]["openAPIV3Schema"]
    compiled = compile_schema(schema)
    whole = {"spec": value, **(value if isinstance(value, dict) else {})}
    compiled.prune(whole)
    compiled.default(whole)
    compiled.validate(whole)


async def test_strict_validation_finds_unknown_fields_of_definitions(admin: Any, crds: Any) -> None:
    strict = WriteOptions(field_validation="Strict")
    with pytest.raises(BadRequest, match=r'unknown field "spec.bogus"'):
        await admin.create(crds, gadgets(bogus=1), namespace="", options=strict)


def test_a_deprecated_version_names_the_best_that_is_not() -> None:
    def version(name: str, **more: Any) -> dict[str, Any]:
        schema = {"openAPIV3Schema": {"type": "object"}}
        return {"name": name, "served": True, "storage": name == "v1beta2", "schema": schema, **more}

    versions = [
        version("v1alpha1", deprecated=True),
        version("v1beta1", deprecated=True),
        version("v1beta2"),
        version("v1beta3", deprecated=True, deprecationWarning="do not"),
        version("v1", served=False),
    ]
    names = {"plural": "ts", "kind": "T"}
    crd = {"spec": {"group": "g", "scope": "Namespaced", "names": names, "versions": versions}}
    result = {entry.version: entry.deprecation_warning for entry in served_resources(crd, compile_rule=None)}
    assert result == {
        "v1alpha1": "g/v1alpha1 T is deprecated; use g/v1beta2 T",
        "v1beta1": "g/v1beta1 T is deprecated; use g/v1beta2 T",
        "v1beta2": "",
        "v1beta3": "do not",
    }
    for entry in versions[:2]:
        entry["served"] = entry["name"] == "v1beta1"
    versions[2]["served"] = False
    [beta1, *_] = [entry for entry in served_resources(crd, compile_rule=None) if entry.version == "v1beta1"]
    assert beta1.deprecation_warning == "g/v1beta1 T is deprecated"
