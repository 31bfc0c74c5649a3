"""Data of a workflow template: `.hardware`, the deprecated `.Hardware`, `.references`, and the hardware map's keys.

Pure. Objects are given as plain JSON values; nothing here reads an API.

Source: tinkerbell/tinkerbell: tink/controller/internal/workflow/reconciler.go (toTemplateHardwareData, structToMap).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ironbell.codec.gotemplate import Field, Int64, Struct, StructType, strings
from ironbell.codec.gotemplate.golib.gojson import floats, to_builtins
from ironbell.contract.servers.types import decode

_LEGACY: Final = StructType(
    "workflow.templateHardwareData",
    (
        Field("Disks", "Disks", "[]string", omit_empty=False),
        Field("Interfaces", "Interfaces", "[]Interface", omit_empty=False),
        Field("UserData", "UserData", "string", omit_empty=False),
        Field("Metadata", "Metadata", "HardwareMetadata", omit_empty=False),
        Field("VendorData", "VendorData", "string", omit_empty=False),
    ),
)


def template_data(
    hardware: Mapping[str, Any] | None,
    *,
    hardware_map: Mapping[str, str] | None = None,
    references: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The data of a workflow's template, as Go values.

    `hardware` is None for a workflow without a hardwareRef; `references` holds only those that may be seen. The map's
    keys never hide `hardware`, `Hardware` or `references`.
    """
    content = hardware or {}
    spec = content.get("spec")
    return {
        **(hardware_map or {}),
        "hardware": whole_hardware(content),
        "Hardware": legacy_hardware(spec if isinstance(spec, dict) else {}),
        "references": {name: _with_int64(value) for name, value in (references or {}).items()},
    }


def customboot_data(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The data of a customboot action's media URL: `.Hardware` is the whole spec by its Go names."""
    return {"Hardware": decode("HardwareSpec", dict(spec))}


def legacy_hardware(spec: Mapping[str, Any]) -> Struct:
    """`.Hardware`: a fixed struct, whose disks are the devices' names."""
    whole = decode("HardwareSpec", dict(spec)).values
    user_data, vendor_data, metadata = (whole[name].target for name in ("UserData", "VendorData", "Metadata"))
    disks = strings(disk.values["Device"] for disk in whole["Disks"])
    disks.is_nil = not disks
    whole["Interfaces"].is_nil = not whole["Interfaces"]
    return Struct(
        _LEGACY,
        {
            "Disks": disks,
            "Interfaces": whole["Interfaces"],
            "UserData": user_data or "",
            "Metadata": metadata if metadata is not None else decode("HardwareMetadata", {}),
            "VendorData": vendor_data or "",
        },
    )


def whole_hardware(hardware: Mapping[str, Any]) -> dict[str, Any]:
    """`.hardware`: the object after its round trip through Go's types; all numbers are floats."""
    spec = hardware.get("spec")
    result: dict[str, Any] = {key: hardware[key] for key in ("kind", "apiVersion") if hardware.get(key)}
    result["metadata"] = _without_zeros(hardware.get("metadata") or {})
    result["spec"] = to_builtins(decode("HardwareSpec", spec if isinstance(spec, dict) else {}))
    result["status"] = _without_zeros(hardware.get("status") or {})
    whole: dict[str, Any] = floats(result)
    return whole


_MAPS: Final = ("labels", "annotations")
"""Fields of metadata that are maps rather than structs: left out when they are empty."""


def _without_zeros(value: Mapping[str, Any]) -> dict[str, Any]:
    """Remove zero values; structs stay even when they are empty."""
    result: dict[str, Any] = {}
    for key, item in value.items():
        if isinstance(item, dict):
            if key not in _MAPS:
                result[key] = _without_zeros(item)
            elif item:
                result[key] = item
        elif isinstance(item, list):
            if item:
                result[key] = [_without_zeros(entry) if isinstance(entry, dict) else entry for entry in item]
        elif item:
            result[key] = item
    return result


def _with_int64(value: Any) -> Any:
    """Objects read without their type keep integers, as int64."""
    match value:
        case bool():
            return value
        case int():
            return Int64(value)
        case dict():
            return {key: _with_int64(item) for key, item in value.items()}
        case list():
            return [_with_int64(item) for item in value]
    return value
