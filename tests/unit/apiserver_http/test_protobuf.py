"""Bodies in protocol buffers mean what client-go meant by them."""

from __future__ import annotations

import base64
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ironbell.api.client import BadRequest, UnsupportedMediaType
from ironbell.apiserver.http.content.media import NotAcceptable
from ironbell.apiserver.http.protobuf.codec import to_json
from ironbell.apiserver.http.protobuf.types import fields_of, kinds, message_names, message_of
from ironbell.apiserver.http.protobuf.writer import from_json, watch_frame

# As kubectl 1.32 sends it for `create namespace x`.
NAMESPACE = bytes.fromhex(
    "6b3873000a0f0a0276311209" "4e616d65737061636512190a110a01781200"
    "1a0022002a0032003800420012001a020a001a002200"
)  # fmt: skip


def number(value: int) -> bytes:
    encoded = b""
    value &= (1 << 64) - 1
    while value > 0x7F:
        encoded += bytes([value & 0x7F | 0x80])
        value >>= 7
    return encoded + bytes([value])


def field(tag: int, value: int | str | bytes) -> bytes:
    if isinstance(value, int):
        return number(tag << 3) + number(value)
    raw = value.encode() if isinstance(value, str) else value
    return number(tag << 3 | 2) + number(len(raw)) + raw


def envelope(api_version: str, kind: str, message: bytes) -> bytes:
    names = field(1, api_version) + field(2, kind)
    return b"k8s\x00" + field(1, names) + field(2, message) + field(3, "") + field(4, "")


def decoded(api_version: str, kind: str, message: bytes) -> Any:
    return msgspec.json.decode(to_json(envelope(api_version, kind, message)))


def test_what_kubectl_sends_for_a_namespace() -> None:
    assert msgspec.json.decode(to_json(NAMESPACE)) == {
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}, "spec": {}, "status": {},
    }  # fmt: skip


def test_secrets_keep_their_bytes() -> None:
    data = field(1, "key") + field(2, b"\xff\x00")
    secret = decoded("v1", "Secret", field(1, field(1, "s")) + field(2, data) + field(3, "Opaque") + field(5, 0))
    assert base64.b64decode(secret["data"]["key"]) == b"\xff\x00"
    assert (secret["type"], secret["immutable"]) == ("Opaque", False)


def test_leases_keep_zero_where_it_means_something() -> None:
    renewed = field(1, 1_767_225_600) + field(2, 123_456_789)
    lease = decoded("coordination.k8s.io/v1", "Lease", field(2, field(2, 15) + field(4, renewed) + field(5, 0)))
    assert lease["spec"] == {
        "leaseDurationSeconds": 15, "renewTime": "2026-01-01T00:00:00.123456Z", "leaseTransitions": 0,
    }  # fmt: skip


def test_metadata_with_all_its_parts() -> None:
    owner = field(5, "v1") + field(1, "Node") + field(3, "n") + field(4, "u") + field(6, 1) + field(7, 0)
    managed = field(1, "me") + field(7, field(1, b'{"f:data":{}}'))
    metadata = (
        field(1, "c") + field(7, 3) + field(8, field(1, 0)) + field(10, -1) + field(11, field(1, "a") + field(2, ""))
        + field(13, owner) + field(14, "one") + field(14, "two") + field(17, managed) + field(99, "unknown")
    )  # fmt: skip
    assert decoded("v1", "ConfigMap", field(1, metadata))["metadata"] == {
        "name": "c", "generation": 3, "creationTimestamp": "1970-01-01T00:00:00Z", "deletionGracePeriodSeconds": -1,
        "labels": {"a": ""}, "finalizers": ["one", "two"],
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u", "controller": True,
             "blockOwnerDeletion": False}
        ],
        "managedFields": [{"manager": "me", "fieldsV1": {"f:data": {}}}],
    }  # fmt: skip


def test_quantities_of_nodes() -> None:
    capacity = field(1, "cpu") + field(2, field(1, "4"))
    node = decoded("v1", "Node", field(3, field(1, capacity) + field(6, field(1, field(1, 10250)))))
    assert node["status"] == {"capacity": {"cpu": "4"}, "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}}}


def test_delete_options_of_any_group() -> None:
    options = field(2, field(1, "u")) + field(3, 0) + field(4, "Orphan") + field(5, "All")
    created = decoded("coordination.k8s.io/v1", "DeleteOptions", options)
    assert created["preconditions"] == {"uid": "u"}
    assert (created["orphanDependents"], created["propagationPolicy"], created["dryRun"]) == (False, "Orphan", ["All"])


def test_other_kinds_are_asked_for_in_json() -> None:
    with pytest.raises(UnsupportedMediaType, match="send JSON"):
        to_json(envelope("test.ironbell.dev/v1", "Widget", b""))


def test_parts_that_json_has_in_place() -> None:
    reference = field(1, field(1, "passwords")) + field(2, "admin")
    source = field(4, reference)
    probe = field(1, field(2, field(1, "/") + field(2, field(1, 1) + field(2, 0) + field(3, "web")))) + field(2, 0)
    environment = field(1, "A") + field(2, "") + field(3, source)
    container = field(1, "c") + field(7, environment) + field(10, probe)
    volume = field(1, "v") + field(2, field(2, b""))
    pod = decoded("v1", "Pod", field(2, field(1, volume) + field(2, container)))
    assert pod["spec"]["volumes"] == [{"name": "v", "emptyDir": {}}]
    [created] = pod["spec"]["containers"]
    assert created["env"] == [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "passwords", "key": "admin"}}}]
    assert created["livenessProbe"] == {"httpGet": {"path": "/", "port": "web"}}


def test_lists_that_are_messages() -> None:
    extra = field(1, "scopes") + field(2, field(1, "a") + field(1, "b"))
    review = decoded("authorization.k8s.io/v1", "SubjectAccessReview", field(2, field(3, "jo") + field(5, extra)))
    assert review["spec"] == {"user": "jo", "extra": {"scopes": ["a", "b"]}}


def test_zero_is_said_where_json_always_says_it() -> None:
    assert decoded("scheduling.k8s.io/v1", "PriorityClass", field(2, 0) + field(3, 0)) == {
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 0,
    }  # fmt: skip


@pytest.mark.parametrize("cut", range(4, len(NAMESPACE) - 5))
def test_cut_messages_are_refused_or_shorter(cut: int) -> None:
    try:
        to_json(NAMESPACE[:cut])
    except (BadRequest, UnsupportedMediaType):
        return


@given(st.sampled_from(sorted(kinds())), st.binary(max_size=80))
def test_any_bytes_are_an_object_or_refused(kind: tuple[str, str], raw: bytes) -> None:
    for body in (raw, b"k8s\x00" + raw, envelope(*kind, raw)):
        try:
            msgspec.json.decode(to_json(body))
        except (BadRequest, UnsupportedMediaType):
            continue


SAMPLES: dict[str, Any] = {
    "string": "text", "int": -7, "bool": True, "double": 0.5, "bytes": "/wA=", "time": "2026-01-02T03:04:05Z",
    "microtime": "2026-01-02T03:04:05.678901Z", "json": {"f:data": {"n": [1, None, "x"]}}, "quantity": "100m",
    "intstr": "http", "strings": ["a", "b"], "schemaOrBool": True, "schemaOrList": [{"type": "string"}],
    "schemaOrStrings": ["a"],
}  # fmt: skip


def sample(message: str, depth: int) -> dict[str, Any]:
    """A message with all of its fields set, as JSON has it."""
    result: dict[str, Any] = {}
    for field in fields_of(message).values():
        if field.is_inline:
            result |= sample(field.kind, depth)
        elif field.kind in SAMPLES or depth:
            value = SAMPLES[field.kind] if field.kind in SAMPLES else sample(field.kind, depth - 1)
            result[field.name] = (
                [value, value] if field.is_list else {"a": value, "b": value} if field.is_map else value
            )
    return result


@pytest.mark.parametrize(("api_version", "kind"), sorted(kinds()))
def test_what_is_written_is_read_again(api_version: str, kind: str) -> None:
    message = message_of(api_version, kind)
    assert message is not None
    for depth in range(4):
        value = {**sample(message, depth), "apiVersion": api_version, "kind": kind}
        assert msgspec.json.decode(to_json(from_json(msgspec.json.encode(value)))) == value


SCHEMA = {
    "type": "object",
    "properties": {
        "open": {"type": "object", "additionalProperties": True, "x-kubernetes-preserve-unknown-fields": True},
        "shut": {"type": "object", "additionalProperties": False},
        "map": {"type": "object", "additionalProperties": {"type": "string", "enum": ["a", None]}},
        "list": {"type": "array", "items": {"type": "integer", "default": 0, "maximum": 1e30, "minimum": 0}},
        "share": {"type": "number", "multipleOf": 0.25, "default": {"a": [1, 2.5, None]}},
    },
    "x-kubernetes-validations": [{"rule": "self.list.size() > 0", "message": "must have one"}],
}


def test_schemas_of_definitions() -> None:
    version = {"name": "v1", "served": True, "storage": False, "schema": {"openAPIV3Schema": SCHEMA}}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "a.b"},
        "spec": {"group": "b", "scope": "Cluster", "names": {"plural": "a", "kind": "A"}, "versions": [version]},
    }  # fmt: skip
    assert msgspec.json.decode(to_json(from_json(msgspec.json.encode(definition)))) == definition


def test_lists_are_written_with_their_metadata() -> None:
    listed = {
        "apiVersion": "v1", "kind": "SecretList", "metadata": {"resourceVersion": "7", "remainingItemCount": 0},
        "items": [{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"k": "AA=="}}],
    }  # fmt: skip
    secret = field(1, field(1, "s")) + field(2, field(1, "k") + field(2, b"\0"))
    expected = envelope("v1", "SecretList", field(1, field(2, "7") + field(4, 0)) + field(2, secret))
    assert from_json(msgspec.json.encode(listed)) == expected


def test_events_of_watches_have_their_length_before_them() -> None:
    frame = watch_frame("ADDED", b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"}}')
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    result = envelope("v1", "ConfigMap", field(1, field(1, "c")))
    assert frame[4:] == field(1, "ADDED") + field(2, field(1, result))


def test_other_kinds_are_written_in_json_only() -> None:
    with pytest.raises(NotAcceptable):
        from_json(b'{"apiVersion":"test.ironbell.dev/v1","kind":"Widget"}')


def test_all_message_types_are_described() -> None:
    used = {field.kind for message in message_names() for field in fields_of(message).values()}
    assert used - SAMPLES.keys() <= message_names()
    assert {message_of(*kind) for kind in kinds()} <= message_names()
