"""The structs and the schemas made from them agree on every field, and decoding forgives."""

from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ironbell.api.bmc.action import Action, VirtualMediaAction
from ironbell.api.bmc.connection import Connection
from ironbell.api.bmc.machine import MACHINE, Machine
from ironbell.api.bmc.task import TASK, TaskSpec
from ironbell.api.crd.schema import root_schema
from ironbell.api.kind import Kind
from ironbell.api.meta import to_builtin
from ironbell.api.tinkerbell import HARDWARE, WORKFLOW
from ironbell.apiserver.tables.jsonpath import Path
from ironbell.app.registry import KINDS


def _filled(schema: Mapping[str, Any], numbers: Iterator[int]) -> Any:
    """A value with every field of the schema set to something that is not zero, and unlike all others."""
    number = next(numbers)
    match schema.get("type"):
        case "object" if "properties" in schema:
            return {name: _filled(child, numbers) for name, child in schema["properties"].items()}
        case "object" if "additionalProperties" in schema:
            return {f"key-{number}": _filled(schema["additionalProperties"], numbers)}
        case "object":
            return {}
        case "array":
            return [_filled(schema["items"], numbers)]
        case "integer":
            return number
        case "boolean":
            return True
        case _:
            return f"text-{number}"


def _sample(kind: Kind[Any]) -> dict[str, Any]:
    sample: dict[str, Any] = _filled(root_schema(kind.model), count(1000))
    return {name: value for name, value in sample.items() if value != {}}


def _branches(value: Any) -> Iterator[tuple[dict[str, Any], str]]:
    if isinstance(value, dict):
        for key, child in list(value.items()):
            yield value, key
            yield from _branches(child)
    elif isinstance(value, list):
        for child in value:
            yield from _branches(child)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_every_field_of_the_schema_survives_the_struct(kind: Kind[Any]) -> None:
    sample = _sample(kind)
    assert to_builtin(kind.decode(msgspec.json.encode(sample))) == sample


@pytest.mark.parametrize("kind", KINDS, ids=str)
@settings(max_examples=25)
@given(data=st.data())
def test_objects_with_anything_missing_decode(kind: Kind[Any], data: st.DataObject) -> None:
    sample = _sample(kind)
    branches = list(_branches(sample))
    for index in data.draw(st.sets(st.integers(0, len(branches) - 1), max_size=12)):
        owner, key = branches[index]
        owner.pop(key, None)
    decoded = kind.decode(msgspec.json.encode(sample))
    again = msgspec.json.encode(decoded)
    assert kind.decode(again) == decoded


def test_values_that_the_schema_would_refuse_decode() -> None:
    stored = b'{"spec":{"interfaces":[{"dhcp":{"mac":"AA-BB","vlan_id":"none","ip":{"address":"3"}}}]}}'
    interface = HARDWARE.decode(stored).spec.interfaces[0]
    assert interface.dhcp is not None
    assert interface.dhcp.mac == "AA-BB"
    assert WORKFLOW.decode(b'{"status":{"state":"STATE_PENDING"}}').status.state == "STATE_PENDING"


def test_unknown_fields_are_passed_over() -> None:
    assert MACHINE.decode(b'{"spec":{"later":1,"connection":{"host":"a","later":{}}}}').spec.connection.host == "a"


def test_required_fields_are_written_even_when_zero() -> None:
    written = to_builtin(TaskSpec(task=Action(power_action="on"), connection=Connection(host="bmc.test")))
    assert written == {"task": {"powerAction": "on"}, "connection": {"host": "bmc.test", "insecureTLS": False}}
    assert to_builtin(VirtualMediaAction()) == {"kind": ""}


def test_required_lists_are_not_shared_between_objects() -> None:
    assert Connection() == Connection()
    first, second = TASK.decode(b'{"spec":{}}').spec, TASK.decode(b'{"spec":{}}').spec
    assert first == second
    assert first.task is not second.task


@pytest.mark.parametrize(
    ("text", "expected"), [("{}", None), ('{"allowPXE":false}', False), ('{"allowPXE":true}', True)]
)
def test_netboot_permission_tells_absent_from_false(text: str, expected: bool | None) -> None:
    body = f'{{"spec":{{"interfaces":[{{"netboot":{text}}}]}}}}'.encode()
    netboot = HARDWARE.decode(body).spec.interfaces[0].netboot
    assert netboot is not None
    assert netboot.allow_pxe is expected


def test_missing_blocks_are_none() -> None:
    interface = HARDWARE.decode(b'{"spec":{"interfaces":[{}]}}').spec.interfaces[0]
    assert (interface.dhcp, interface.netboot, interface.isoboot) == (None, None, None)
    assert WORKFLOW.decode(b'{"spec":{"disabled":false}}').spec.disabled is False
    assert WORKFLOW.decode(b"{}").spec.disabled is None


def test_times_may_be_null() -> None:
    body = b'{"status":{"tasks":[{"actions":[{"id":"a","executionStop":null}]}]}}'
    assert WORKFLOW.decode(body).status.tasks[0].actions[0].execution_stop is None


def test_new_object_writes_only_what_was_said() -> None:
    assert to_builtin(Machine(api_version=MACHINE.api_version, kind="Machine")) == {
        "apiVersion": "bmc.tinkerbell.org/v1alpha1",
        "kind": "Machine",
    }


def test_the_columns_of_a_hardware_show_phase_owner_power_address_model_and_hold() -> None:
    labels = {"v1alpha1.tinkerbell.org/ownerName": "cp-1", "ironbell.dev/model": "PowerEdge-R640"}
    annotations = {"ironbell.dev/hold": "fan", "ironbell.dev/phase": "InUse", "ironbell.dev/power": "on"}
    body = {
        "metadata": {"labels": labels, "annotations": annotations},
        "spec": {"interfaces": [{"dhcp": {"ip": {"address": "192.0.2.7"}}}, {}]},
        "status": {"state": "Ready"},
    }
    assert [(column.name, Path(column.json_path).find(body)) for column in HARDWARE.columns] == [
        ("State", ["Ready"]),
        ("Phase", ["InUse"]),
        ("Owner", ["cp-1"]),
        ("Power", ["on"]),
        ("Address", ["192.0.2.7"]),
        ("Model", ["PowerEdge-R640"]),
        ("Hold", ["fan"]),
    ]
