"""Templates see a Hardware as upstream shows it."""

from __future__ import annotations

from typing import Any

import pytest

from ironbell.codec.gotemplate import TemplateError, render
from ironbell.contract.servers.template_data import customboot_data, template_data

_HARDWARE: dict[str, Any] = {
    "apiVersion": "tinkerbell.org/v1alpha1",
    "kind": "Hardware",
    "metadata": {"name": "n", "labels": {"k": ""}, "annotations": {}, "generation": 3, "finalizers": []},
    "spec": {
        "disks": [{"device": "/dev/sda"}, {"device": "/dev/sdb"}],
        "interfaces": [{"dhcp": {"mac": "aa", "lease_time": 1000000, "uefi": False}, "netboot": {"allowPXE": False}}],
        "metadata": {"instance": {"id": "i", "tags": []}, "bonding_mode": 0},
        "unknown": 1,
    },
}


def _render(template: str, hardware: dict[str, Any] | None = _HARDWARE, **more: Any) -> str:
    return render(template, template_data(hardware, **more))


def test_hardware_is_the_object_after_a_round_trip_through_gos_types() -> None:
    assert _render("{{ toJson .hardware }}") == (
        '{"apiVersion":"tinkerbell.org/v1alpha1","kind":"Hardware","metadata":{"generation":3,"labels":{"k":""},'
        '"name":"n"},"spec":{"auto":{},"disks":[{"device":"/dev/sda"},{"device":"/dev/sdb"}],'
        '"interfaces":[{"dhcp":{"lease_time":1000000,"mac":"aa"},"netboot":{"allowPXE":false}}],'
        '"metadata":{"instance":{"id":"i"}}},"status":{}}'
    )


def test_numbers_of_hardware_are_floats() -> None:
    assert _render("{{ (index .hardware.spec.interfaces 0).dhcp.lease_time }}") == "1e+06"


def test_the_legacy_struct_has_go_names_and_integers() -> None:
    assert _render("{{ .Hardware.Disks }} {{ (index .Hardware.Interfaces 0).DHCP.LeaseTime }}") == (
        "[/dev/sda /dev/sdb] 1000000"
    )
    assert (
        _render("{{ .Hardware.Metadata.Instance.ID }}|{{ .Hardware.UserData }}|{{ .Hardware.Metadata.State }}") == "i||"
    )
    assert _render("{{ typeOf (index .Hardware.Interfaces 0).DHCP }}") == "*tinkerbell.DHCP"


@pytest.mark.parametrize(
    "template",
    ["{{ .Hardware.Nope }}", "{{ .Hardware.Metadata.Facility.PlanSlug }}", "{{ .references.x }}", "{{ .map }}"],
)
def test_what_is_not_there_fails(template: str) -> None:
    with pytest.raises(TemplateError):
        _render(template)


def test_without_hardware_both_forms_are_empty() -> None:
    assert _render("{{ toJson .hardware }}|{{ .Hardware.Disks }}|{{ len .Hardware.Interfaces }}", None) == (
        '{"metadata":{},"spec":{"auto":{}},"status":{}}|[]|0'
    )


def test_the_map_never_hides_hardware() -> None:
    assert _render("{{ .device_1 }} {{ .hardware.kind }}", hardware_map={"device_1": "mac", "hardware": "x"}) == (
        "mac Hardware"
    )


def test_references_keep_integers() -> None:
    assert _render(
        "{{ .references.cm.data.n }} {{ typeOf .references.cm.data.n }}", references={"cm": {"data": {"n": 1000000}}}
    ) == ("1000000 int64")


def test_fields_of_a_wrong_type_count_as_absent() -> None:
    hardware = {"spec": {"disks": "x", "interfaces": [None, 5, {"dhcp": {"lease_time": "1", "name_servers": {}}}]}}
    assert (
        _render("{{ len .Hardware.Interfaces }}{{ (index .Hardware.Interfaces 2).DHCP.LeaseTime }}", hardware) == "30"
    )


def test_customboot_sees_the_whole_spec_by_go_names() -> None:
    template = 'http://x/{{ (index .Hardware.Interfaces 0).DHCP.MAC | replace ":" "-" }}'
    template += "-{{ (index .Hardware.Disks 0).Device }}"
    spec = {"interfaces": [{"dhcp": {"mac": "52:54:00"}}], "disks": [{"device": "d"}]}
    assert render(template, customboot_data(spec)) == "http://x/52-54-00-d"
