"""Kubernetes' own kinds: served from facts, typed as Go would type them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from ironbell.api.client import BadRequest, MethodNotAllowed, PatchType, WriteOptions
from ironbell.api.kind import Collection
from ironbell.apiserver.builtin.facts import builtin_facts, expanded
from ironbell.apiserver.core import ApiServer
from ironbell.apiserver.openapi.documents import OpenApi
from ironbell.base.quantities import canonical, is_quantity

DEPLOYMENTS = Collection("apps", "v1", "deployments", True)
PODS = Collection("", "v1", "pods", True)


def deployment(**spec: Any) -> dict[str, Any]:
    labels = {"app": "web"}
    container = {"name": "web", "image": "web:1", "resources": {"limits": {"memory": "1024Mi", "cpu": "0.5"}}}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    return {"metadata": {"name": "web"}, "spec": {"selector": {"matchLabels": labels}, "template": template, **spec}}


async def test_a_deployment_counts_changes_of_its_spec_only(admin: Any) -> None:
    created = await admin.create(DEPLOYMENTS, deployment(replicas=2))
    assert created["metadata"]["generation"] == 1
    created["status"] = {"replicas": 7}
    assert "replicas" not in (await admin.replace(DEPLOYMENTS, created))["status"]
    status = await admin.patch(DEPLOYMENTS, "web", {"status": {"replicas": 2}}, sub="status")
    assert (status["metadata"]["generation"], status["status"]["replicas"]) == (1, 2)
    changed = await admin.patch(DEPLOYMENTS, "web", {"spec": {"replicas": 3}})
    assert changed["metadata"]["generation"] == 2


async def test_strategic_merge_follows_the_merge_keys(admin: Any) -> None:
    await admin.create(DEPLOYMENTS, deployment())
    change = {"spec": {"template": {"spec": {"containers": [{"name": "side", "image": "side:1"}]}}}}
    patched = await admin.patch(DEPLOYMENTS, "web", change, kind=PatchType.STRATEGIC)
    names = [entry["name"] for entry in patched["spec"]["template"]["spec"]["containers"]]
    assert sorted(names) == ["side", "web"]


async def test_zero_values_vanish_and_quantities_are_canonical(admin: Any) -> None:
    created = await admin.create(DEPLOYMENTS, deployment(minReadySeconds=0, replicas=0, paused=False))
    assert created["spec"]["replicas"] == 0
    assert not {"minReadySeconds", "paused"} & created["spec"].keys()
    limits = created["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]
    assert limits == {"memory": "1Gi", "cpu": "500m"}


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"replicas": "3"}, "cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32"),
        ({"paused": 1}, "cannot unmarshal number into Go struct field DeploymentSpec.spec.paused of type bool"),
        ({"template": []}, "array into Go struct field DeploymentSpec.spec.template of type v1.PodTemplateSpec"),
    ],
)
async def test_what_does_not_fit_the_types_is_refused_undecoded(admin: Any, spec: dict[str, Any], text: str) -> None:
    with pytest.raises(BadRequest) as raised:
        await admin.create(DEPLOYMENTS, deployment(**spec))
    assert raised.value.message.startswith('Deployment in version "v1" cannot be handled as a Deployment: json: ')
    assert text in raised.value.message


async def test_unknown_fields_are_dropped_or_refused(admin: Any) -> None:
    created = await admin.create(DEPLOYMENTS, deployment(replica=3))
    assert "replica" not in created["spec"]
    strict = WriteOptions(field_validation="Strict")
    with pytest.raises(BadRequest, match=r'strict decoding error: unknown field "spec\.replica"'):
        await admin.create(DEPLOYMENTS, deployment(replica=3), options=strict)


def test_every_kind_has_a_schema_without_references() -> None:
    def references(schema: Any) -> bool:
        if isinstance(schema, dict):
            return isinstance(schema.get("$ref"), str) or any(map(references, schema.values()))
        return isinstance(schema, list) and any(map(references, schema))

    for result in builtin_facts():
        schema = expanded(result.type)
        assert schema["type"] == "object", result.kind
        assert not references(schema), result.kind


@pytest.mark.parametrize(
    ("given", "written"),
    [
        ("1024Mi", "1Gi"), ("0.5", "500m"), ("1000m", "1"), ("1500M", "1500M"), ("1.5Gi", "1536Mi"), ("1e3", "1e3"),
        ("100Ki", "100Ki"), ("0", "0"), ("-1", "-1"), ("1234", "1234"), ("1000", "1k"), (2, "2"), (0.1, "100m"),
        ("512", "512"), ("0.1n", "1n"), ("1100E", "9223372036854775807"),
    ],
)  # fmt: skip
def test_quantities_are_written_one_way(given: str | float, written: str) -> None:
    assert is_quantity(given)
    assert canonical(given) == written


@pytest.mark.parametrize("text", ["", "1 Gi", "Gi", "1gi", "1.2.3", "abc"])
def test_other_texts_are_no_quantities(text: str) -> None:
    assert not is_quantity(text)


@pytest.mark.parametrize(
    ("resource", "warning"),
    [
        ("pods", "this API runs no pods"),
        ("certificatesigningrequests.certificates.k8s.io", "this API signs no certificates"),
        ("configmaps", ""),
    ],
)
async def test_creating_what_nothing_acts_on_says_so(server: ApiServer, resource: str, warning: str) -> None:
    info = server.resources.stored(resource)
    assert info is not None
    assert info.creation_warning.partition(":")[0] == warning


async def test_api_services_are_listed_and_there_are_none(admin: Any) -> None:
    services = Collection("apiregistration.k8s.io", "v1", "apiservices", False)
    assert await admin.names(services) == []
    with pytest.raises(MethodNotAllowed):
        await admin.create(services, {"metadata": {"name": "v1.example.org"}})


KEYWORDS = {
    *("type", "format", "description", "default", "enum", "items", "properties", "additionalProperties", "required"),
    *("minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"),
    *("pattern", "nullable", "allOf", "anyOf", "oneOf", "$ref"),
}


def _foreign(schema: Any, place: str) -> Iterator[str]:
    """Keywords of a schema that OpenAPI does not have, with their places."""
    if not isinstance(schema, dict):
        return
    yield from (f"{place} {name}" for name in schema if name not in KEYWORDS and not name.startswith("x-"))
    for name, child in schema.get("properties", {}).items():
        yield from _foreign(child, f"{place}.{name}")
    for name in ("items", "additionalProperties"):
        yield from _foreign(schema.get(name), f"{place}[]")
    for name in ("allOf", "anyOf", "oneOf"):
        for child in schema.get(name, ()):
            yield from _foreign(child, place)


def test_published_schemas_have_no_keyword_that_openapi_lacks(server: ApiServer) -> None:
    documents = OpenApi(server.resources, "v1.36.3")
    found = []
    for path in json.loads(documents.index())["paths"]:
        body, _ = documents.v3(path) or (b"{}", "")
        for name, schema in json.loads(body).get("components", {}).get("schemas", {}).items():
            found += _foreign(schema, name)
    for name, schema in json.loads(documents.v2())["definitions"].items():
        found += _foreign(schema, f"v2 {name}")
    assert found == []
