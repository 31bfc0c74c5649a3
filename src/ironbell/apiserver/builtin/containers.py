"""Problems of the containers of a pod's specification.

Source: kubernetes/kubernetes: pkg/apis/core/validation/validation.go (ValidatePodSpec, validateContainers).
"""

from __future__ import annotations

from typing import Any

from ironbell.apiserver.fielderrors import FieldError, duplicate, invalid, not_found, not_supported, required
from ironbell.apiserver.metadata import name_fault

Object = dict[str, Any]

_PORT = "must be between 1 and 65535, inclusive"
_POLICIES = ("Always", "IfNotPresent", "Never")
_PROTOCOLS = ("SCTP", "TCP", "UDP")


def container_faults(spec: Object, path: str) -> list[FieldError]:
    """Problems of all containers: names, images, ports, and missing volumes."""
    errors: list[FieldError] = []
    volumes = _volume_names(spec, path, errors)
    seen: set[str] = set()
    for field in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(field) or ()):
            where = f"{path}.{field}[{index}]"
            _name(container, where, seen, errors)
            if not container.get("image"):
                errors.append(required(f"{where}.image"))
            _ports(container, where, errors)
            _mounts(container, where, volumes, errors)
            policy = container.get("imagePullPolicy", "")
            if policy and policy not in _POLICIES:
                errors.append(not_supported(f"{where}.imagePullPolicy", policy, _POLICIES))
    return errors


def _volume_names(spec: Object, path: str, errors: list[FieldError]) -> set[str]:
    names: set[str] = set()
    for index, volume in enumerate(spec.get("volumes") or ()):
        name = volume.get("name", "")
        if name in names:
            errors.append(duplicate(f"{path}.volumes[{index}].name", name))
        elif name and (fault := name_fault(name, is_label=True)):
            errors.append(invalid(f"{path}.volumes[{index}].name", name, fault))
        names.add(name)
    return names


def _name(container: Object, where: str, seen: set[str], errors: list[FieldError]) -> None:
    name = container.get("name", "")
    if not name:
        return
    if fault := name_fault(name, is_label=True):
        errors.append(invalid(f"{where}.name", name, fault))
    elif name in seen:
        errors.append(duplicate(f"{where}.name", name))
    seen.add(name)


def _ports(container: Object, where: str, errors: list[FieldError]) -> None:
    for index, port in enumerate(container.get("ports") or ()):
        number = port.get("containerPort", 0)
        if not number:
            errors.append(required(f"{where}.ports[{index}].containerPort"))
        elif not 0 < number < 65536:
            errors.append(invalid(f"{where}.ports[{index}].containerPort", number, _PORT))
        protocol = port.get("protocol", "TCP")
        if protocol not in _PROTOCOLS:
            errors.append(not_supported(f"{where}.ports[{index}].protocol", protocol, _PROTOCOLS))


def _mounts(container: Object, where: str, volumes: set[str], errors: list[FieldError]) -> None:
    for index, mount in enumerate(container.get("volumeMounts") or ()):
        if mount.get("name") and mount["name"] not in volumes:
            errors.append(not_found(f"{where}.volumeMounts[{index}].name", mount["name"]))
