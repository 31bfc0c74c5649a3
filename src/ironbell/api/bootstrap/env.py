"""Environment variables of control plane components.

Source: kubernetes-sigs/cluster-api: api/bootstrap/kubeadm/v1beta2.
"""

from __future__ import annotations

from typing import Annotated

from ironbell.api.crd.markers import Quantity, Schema, required
from ironbell.api.meta import Model


class ObjectFieldSelector(Model, frozen=True):
    """A field of the Pod."""

    schema_ = Schema(map_type="atomic")

    api_version: str = ""
    field_path: str = required(str)


class ResourceFieldSelector(Model, frozen=True):
    """A resource of a container."""

    schema_ = Schema(map_type="atomic")

    container_name: str = ""
    resource: str = required(str)
    divisor: Quantity | None = None


class KeySelector(Model, frozen=True):
    """One key of a ConfigMap or Secret."""

    schema_ = Schema(map_type="atomic")

    name: Annotated[str, Schema(default="")] = ""
    key: str = required(str)
    optional: bool | None = None


class FileKeySelector(Model, frozen=True):
    """One key of a file with environment variables."""

    schema_ = Schema(map_type="atomic")

    volume_name: str = required(str)
    path: str = required(str)
    key: str = required(str)
    optional: Annotated[bool | None, Schema(default=False)] = None


class EnvVarSource(Model, frozen=True):
    """Source of the value of an environment variable."""

    field_ref: ObjectFieldSelector | None = None
    resource_field_ref: ResourceFieldSelector | None = None
    config_map_key_ref: KeySelector | None = None
    secret_key_ref: KeySelector | None = None
    file_key_ref: FileKeySelector | None = None


class EnvVar(Model, frozen=True):
    """One environment variable."""

    name: str = required(str)
    value: str = ""
    value_from: EnvVarSource | None = None
