"""Create, replace, status and metadata: what is kept, what is refused, what is the server's."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from ironbell.api.client import (
    AlreadyExists,
    ApiError,
    BadRequest,
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    WriteOptions,
)
from ironbell.base.clock import ManualClock

STRICT = WriteOptions(field_validation="Strict")
Make = Callable[..., dict[str, Any]]


async def test_create_sets_what_the_server_sets(admin: Any, widgets: Any, widget: Make) -> None:
    created = await admin.create(widgets, widget("a", color="red", status={"phase": "Ready"}))
    meta = created["metadata"]
    assert meta["creationTimestamp"] == "2026-01-01T00:00:00Z"
    assert meta["generation"] == 1
    assert len(meta["uid"]) == 36
    assert meta["resourceVersion"] == admin.server.resource_version
    assert created["spec"] == {"color": "red", "size": 3}
    assert "status" not in created
    assert await admin.get(widgets, "a") == created


async def test_what_is_created_is_read_at_once(admin: Any, widgets: Any, widget: Make) -> None:
    await asyncio.gather(*(admin.create(widgets, widget(f"w{n}")) for n in range(50)))
    assert len(await admin.names(widgets)) == 50


async def test_generated_names_start_as_asked(admin: Any, widgets: Any, widget: Make) -> None:
    value = widget()
    value["metadata"] = {"generateName": "node-"}
    created = [await admin.create(widgets, value) for _ in range(2)]
    names = [entry["metadata"]["name"] for entry in created]
    assert names[0] != names[1]
    assert all(name.startswith("node-") and len(name) == 10 for name in names)


async def test_creating_twice_is_refused(admin: Any, widgets: Any, widget: Make) -> None:
    await admin.create(widgets, widget("a"))
    with pytest.raises(AlreadyExists, match=r'widgets.example.org "a" already exists'):
        await admin.create(widgets, widget("a"))


async def test_two_at_once_make_one(admin: Any, widgets: Any, widget: Make) -> None:
    answers = await asyncio.gather(*(admin.create(widgets, widget("a")) for _ in range(5)), return_exceptions=True)
    assert sum(isinstance(answer, AlreadyExists) for answer in answers) == 4


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"apiVersion": "example.org/v2"}, BadRequest, "does not match the expected API version"),
        ({"kind": "Gadget"}, Invalid, "kind: Invalid value"),
        ({"metadata": {"name": "a", "namespace": "other"}}, BadRequest, "does not match the namespace"),
        ({"metadata": {}}, Invalid, "metadata.name: Required value: name or generateName is required"),
        ({"metadata": {"name": "A_b"}}, Invalid, "a lowercase RFC 1123 subdomain"),
        ({"metadata": {"name": "a", "labels": {"a b": "c"}}}, Invalid, 'metadata.labels: Invalid value: "a b"'),
        ({"metadata": {"name": "a", "labels": {"a": "c d"}}}, Invalid, "a valid label must be"),
        ({"metadata": {"name": "a", "labels": {"a": 1}}}, BadRequest, "metadata is malformed"),
        ({"metadata": {"name": "a", "finalizers": ["b c"]}}, Invalid, "metadata.finalizers"),
        ({"metadata": {"name": "a", "annotations": {"a": "x" * 300_000}}}, Invalid, "Too long"),
        ({"metadata": {"name": "a", "resourceVersion": "1"}}, BadRequest, "resourceVersion should not be set"),
        ({"metadata": {"name": "a", "ownerReferences": [{"name": "x"}]}}, Invalid, "metadata.ownerReferences.uid"),
        ({"metadata": 5}, BadRequest, "metadata is malformed"),
        ({"spec": {"size": 0}}, Invalid, "spec.size: Invalid value: 0: spec.size in body should be greater than"),
        ({"spec": {"size": 0, "color": "green"}}, Invalid, r'Widget.example.org "w" is invalid: \[spec.'),
    ],
)
async def test_refuses(
    admin: Any, widgets: Any, widget: Make, change: dict[str, Any], error: type[ApiError], text: str
) -> None:
    with pytest.raises(error, match=text):
        await admin.create(widgets, {**widget(), **change})


async def test_causes_name_the_fields(admin: Any, widgets: Any, widget: Make) -> None:
    with pytest.raises(Invalid) as raised:
        await admin.create(widgets, widget("a", color="green"))
    assert raised.value.details == {
        "name": "a",
        "group": "example.org",
        "kind": "Widget",
        "causes": [
            {
                "reason": "FieldValueNotSupported",
                "message": 'Unsupported value: "green": supported values: "red", "blue"',
                "field": "spec.color",
            }
        ],
    }


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"1", b'"x"', b"\xff", b"{}" * 2])
async def test_bodies_that_are_no_objects_are_refused(admin: Any, widgets: Any, body: bytes) -> None:
    with pytest.raises(BadRequest):
        await admin.api.create(widgets, "default", body)


async def test_bodies_over_three_megabytes_are_refused(admin: Any, widgets: Any) -> None:
    with pytest.raises(ApiError) as raised:
        await admin.api.create(widgets, "default", b" " * (3 << 20) + b"{}")
    assert raised.value.code == 413


async def test_unknown_fields_go_unless_strict(admin: Any, widgets: Any, widget: Make) -> None:
    created = await admin.create(widgets, widget("a", bogus=1))
    assert "bogus" not in created["spec"]
    with pytest.raises(BadRequest, match=r'strict decoding error: unknown field "spec.bogus"'):
        await admin.create(widgets, widget("b", bogus=1), options=STRICT)
    with pytest.raises(BadRequest, match=r'unknown field "metadata.bogus"'):
        await admin.create(widgets, {**widget(), "metadata": {"name": "c", "bogus": 1}}, options=STRICT)


async def test_a_dry_run_changes_nothing(admin: Any, widgets: Any, widget: Make) -> None:
    old = admin.server.resource_version
    created = await admin.create(widgets, widget("a"), options=WriteOptions(dry_run=True))
    assert created["spec"] == {"size": 3}
    assert admin.server.resource_version == old
    with pytest.raises(NotFound):
        await admin.get(widgets, "a")


async def test_replace_needs_the_latest_version(admin: Any, widgets: Any, widget: Make) -> None:
    created = await admin.create(widgets, widget("a", size=1))
    created["spec"]["size"] = 2
    newer = await admin.replace(widgets, created)
    assert newer["metadata"]["generation"] == 2
    with pytest.raises(Conflict, match="the object has been modified; please apply your changes to the latest version"):
        await admin.replace(widgets, created)


async def test_replacing_a_custom_object_needs_a_version(admin: Any, widgets: Any, widget: Make) -> None:
    await admin.create(widgets, widget("a"))
    with pytest.raises(Invalid, match=r"metadata.resourceVersion: Invalid value: 0.*must be specified for an update"):
        await admin.replace(widgets, widget("a"))


async def test_core_objects_are_replaced_without_a_version(admin: Any, config_maps: Any) -> None:
    value = {"metadata": {"name": "c", "namespace": "default"}, "data": {"a": "1"}}
    await admin.create(config_maps, value)
    value["data"] = {"b": "2"}
    assert (await admin.replace(config_maps, value))["data"] == {"b": "2"}


async def test_replacing_another_incarnation_is_a_conflict(admin: Any, widgets: Any, widget: Make) -> None:
    created = await admin.create(widgets, widget("a"))
    created["metadata"]["uid"] = "other"
    with pytest.raises(Conflict, match="Precondition failed: UID in precondition: other"):
        await admin.replace(widgets, created)


async def test_what_changes_nothing_writes_nothing(admin: Any, widgets: Any, widget: Make) -> None:
    created = await admin.create(widgets, widget("a", size=1))
    assert await admin.replace(widgets, created) == created
    assert admin.server.resource_version == created["metadata"]["resourceVersion"]


async def test_server_fields_cannot_be_changed(admin: Any, widgets: Any, widget: Make, clock: ManualClock) -> None:
    created = await admin.create(widgets, widget("a"))
    clock.advance(60)
    forged = msgspec.json.decode(msgspec.json.encode(created))
    forged["metadata"] |= {"creationTimestamp": "2000-01-01T00:00:00Z", "generation": 99}
    assert await admin.replace(widgets, forged) == created
    forged["metadata"]["deletionTimestamp"] = "2000-01-01T00:00:00Z"
    with pytest.raises(Invalid, match=r"metadata\.deletionTimestamp: Invalid value"):
        await admin.replace(widgets, forged)


async def test_status_and_the_rest_are_written_apart(admin: Any, widgets: Any, widget: Make) -> None:
    created = await admin.create(widgets, widget("a", size=1))
    created["status"] = {"phase": "Ready"}
    created["spec"]["size"] = 9
    created["metadata"]["labels"] = {"x": "y"}
    after = await admin.replace(widgets, created, sub="status")
    assert after["status"] == {"phase": "Ready"}
    assert after["spec"]["size"] == 1
    assert "labels" not in after["metadata"]
    assert after["metadata"]["generation"] == 1
    after["status"] = {"phase": "Lost"}
    after["spec"]["size"] = 2
    last = await admin.replace(widgets, after)
    assert (last["status"], last["spec"]["size"], last["metadata"]["generation"]) == ({"phase": "Ready"}, 2, 2)


async def test_labels_do_not_count_as_a_new_generation(admin: Any, widgets: Any, widget: Make) -> None:
    await admin.create(widgets, widget("a"))
    after = await admin.patch(widgets, "a", {"metadata": {"labels": {"x": "y"}}})
    assert after["metadata"]["generation"] == 1


async def test_scale_reads_and_sets_replicas(admin: Any, widgets: Any, widget: Make) -> None:
    await admin.create(widgets, widget("a", replicas=2))
    scale = await admin.get(widgets, "a", sub="scale")
    assert (scale["kind"], scale["spec"]["replicas"]) == ("Scale", 2)
    scale["spec"]["replicas"] = 5
    assert (await admin.replace(widgets, scale, sub="scale"))["spec"]["replicas"] == 5
    await admin.patch(widgets, "a", {"spec": {"replicas": 7}}, sub="scale")
    assert (await admin.get(widgets, "a"))["spec"]["replicas"] == 7
    with pytest.raises(Invalid, match="must be greater than or equal to 0"):
        await admin.patch(widgets, "a", {"spec": {"replicas": -1}}, sub="scale")


async def test_unknown_subresources_and_resources_are_not_found(admin: Any, widgets: Any, config_maps: Any) -> None:
    with pytest.raises(NotFound, match="could not find the requested resource"):
        await admin.get(config_maps, "a", sub="status")
    other = type(widgets)("example.org", "v9", "widgets", namespaced=True)
    with pytest.raises(NotFound, match="could not find the requested resource"):
        await admin.get(other, "a")
    with pytest.raises(NotFound, match=r'widgets.example.org "nobody" not found'):
        await admin.get(widgets, "nobody")


async def test_secrets_take_plain_text_and_keep_their_type(admin: Any, secrets: Any) -> None:
    created = await admin.create(secrets, {"metadata": {"name": "s"}, "stringData": {"password": "pa"}})
    assert (created["type"], created["data"]) == ("Opaque", {"password": "cGE="})
    assert "stringData" not in created
    with pytest.raises(Invalid, match="type: Invalid value"):
        await admin.patch(secrets, "s", {"type": "other"})
    with pytest.raises(Invalid, match=r"illegal base64 data at input byte 3$"):
        await admin.patch(secrets, "s", {"data": {"k": "not base 64!"}})
    with pytest.raises(Invalid, match=r"data\[tls.key\]: Required value"):
        await admin.create(secrets, {"metadata": {"name": "t"}, "type": "kubernetes.io/tls", "data": {"tls.crt": ""}})


async def test_immutable_data_stays(admin: Any, config_maps: Any) -> None:
    await admin.create(config_maps, {"metadata": {"name": "c"}, "data": {"a": "1"}, "immutable": True})
    with pytest.raises(Invalid, match="immutable"):
        await admin.patch(config_maps, "c", {"data": {"a": "2"}})
    with pytest.raises(Invalid, match="immutable"):
        await admin.patch(config_maps, "c", {"immutable": None})


async def test_objects_need_a_namespace_that_is_there(admin: Any, config_maps: Any) -> None:
    with pytest.raises(NotFound, match='namespaces "nowhere" not found'):
        await admin.create(config_maps, {"metadata": {"name": "c"}}, namespace="nowhere")


async def test_default_namespaces_exist(admin: Any, namespaces: Any) -> None:
    assert await admin.names(namespaces) == ["default", "kube-node-lease", "kube-public", "kube-system"]


async def test_events_are_the_same_in_both_groups(admin: Any, widgets: Any) -> None:
    core = type(widgets)("", "v1", "events", namespaced=True)
    newer = type(widgets)("events.k8s.io", "v1", "events", namespaced=True)
    about = {"kind": "Widget", "namespace": "default", "name": "a"}
    await admin.create(core, {"metadata": {"name": "e"}, "involvedObject": about, "message": "hello", "type": "Normal"})
    seen = await admin.get(newer, "e")
    assert (seen["apiVersion"], seen["note"], seen["regarding"]) == ("events.k8s.io/v1", "hello", about)
    with pytest.raises(Invalid, match=r"message: Invalid value: .*: field is immutable"):
        await admin.patch(newer, "e", {"note": "bye"})
    await admin.patch(core, "e", {"message": "bye"})
    assert (await admin.get(newer, "e"))["note"] == "bye"
    assert await admin.names(core, fields="involvedObject.name=a") == ["e"]
    with pytest.raises(Invalid, match=r"does not match event.namespace"):
        await admin.create(core, {"metadata": {"name": "f"}, "involvedObject": {**about, "namespace": "other"}})


async def test_finalizers_cannot_be_added_to_what_is_going(admin: Any, widgets: Any, widget: Make) -> None:
    value = widget("a")
    value["metadata"]["finalizers"] = ["example.org/hold"]
    await admin.create(widgets, value)
    await admin.delete(widgets, "a")
    with pytest.raises(Invalid, match="no new finalizers can be added if the object is being deleted"):
        await admin.patch(widgets, "a", {"metadata": {"finalizers": ["example.org/hold", "example.org/more"]}})


async def test_terminating_namespaces_take_nothing_new(admin: Any, config_maps: Any, namespaces: Any) -> None:
    held = {"metadata": {"name": "c", "finalizers": ["example.org/hold"]}}
    await admin.create(namespaces, {"metadata": {"name": "t"}}, namespace="")
    await admin.create(config_maps, held, namespace="t")
    await admin.delete(namespaces, "t", namespace="")
    await admin.settle()
    with pytest.raises(Forbidden, match="because it is being terminated") as raised:
        await admin.create(config_maps, {"metadata": {"name": "d"}}, namespace="t")
    assert raised.value.details["causes"][0]["reason"] == "NamespaceTerminating"
    await admin.patch(config_maps, "c", {"metadata": {"finalizers": None}}, namespace="t")
    await admin.settle()
    with pytest.raises(NotFound):
        await admin.get(namespaces, "t", namespace="")
