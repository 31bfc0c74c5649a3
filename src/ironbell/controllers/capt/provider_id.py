"""The provider id of a machine: `tinkerbell://<namespace>/<name>` of its Hardware. Pure.

Source: tinkerbell/cluster-api-provider-tinkerbell: controller/machine/hardware.go.
"""

from __future__ import annotations

from ironbell.api.capt.names import PROVIDER_ID_SCHEME
from ironbell.api.tinkerbell.hardware import Hardware

_PREFIX = f"{PROVIDER_ID_SCHEME}://"
PLACEHOLDER = "PROVIDER_ID"
"""In bootstrap data: where the provider id goes."""


def provider_id(hardware: Hardware) -> str:
    """The id of a machine on this server."""
    return f"{_PREFIX}{hardware.metadata.namespace}/{hardware.metadata.name}"


def hardware_key(text: str) -> tuple[str, str] | None:
    """Namespace and name of the Hardware; None if the text is no such id."""
    namespace, slash, name = text.removeprefix(_PREFIX).partition("/")
    is_one = text.startswith(_PREFIX) and slash and namespace and name and "/" not in name
    return (namespace, name) if is_one else None
