"""User data as an Ignition config.

Source: kubernetes-sigs/cluster-api: bootstrap/kubeadm/pkg/ignition/clc/clc.go; flatcar/ignition:
config/v2_3/append.go.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from ironbell.codec import goyaml
from ironbell.controllers.kubeadm.config.ignition.convert import IgnitionError, converted
from ironbell.controllers.kubeadm.config.ignition.host import container_linux_config
from ironbell.controllers.kubeadm.config.rendering.userdata import UserData
from ironbell.kube.decision import Fields

_FIELD: Final = "spec.ignition.containerLinuxConfig.additionalConfig"


def ignition_config(data: UserData) -> str:
    """Return the JSON document.

    Raises:
        IgnitionError: the user data, or the user's addition, cannot be written as Ignition.
    """
    config, _ = converted(container_linux_config(data), "spec")
    additional = data.container_linux_config.get("additionalConfig")
    if additional:
        is_strict = bool(data.container_linux_config.get("strict"))
        config = appended(config, _additional(additional, is_strict=is_strict))
    return msgspec.json.encode(config).decode()


def appended(config: Fields, more: Fields) -> Fields:
    """Return a config with another one appended: lists are concatenated, other values are those of the second."""
    ignition, added = config["ignition"], more["ignition"]
    return {
        **{name: _joined(config[name], more[name]) for name in ("networkd", "passwd", "storage", "systemd")},
        "ignition": {
            "version": ignition["version"],
            "config": added["config"],
            "timeouts": {**ignition["timeouts"], **added["timeouts"]},
            "security": {"tls": _joined(ignition["security"]["tls"], added["security"]["tls"])},
        },
    }


def _joined(first: Fields, second: Fields) -> Fields:
    return {name: [*first.get(name, []), *second.get(name, [])] for name in {**first, **second}}


def _additional(text: str, *, is_strict: bool) -> Fields:
    try:
        document: Any = goyaml.load(text)
    except goyaml.YamlError as error:
        raise IgnitionError(f"{_FIELD} is not valid YAML: {error}") from None
    config, unknown = converted({} if document is None else document, _FIELD)
    if is_strict and (unknown or document is None):
        problem = f"has unknown fields: {', '.join(unknown)}" if unknown else "is empty"
        raise IgnitionError(f"{_FIELD} {problem}; correct it, or set strict to false")
    return config
