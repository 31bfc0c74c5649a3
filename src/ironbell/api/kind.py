"""A kind: how an API type is addressed, printed and decoded.

One `Kind` value per type is the single source for discovery, CRDs, clients, informers and tables.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, TypeVar

import msgspec

from ironbell.api.meta import Resource

R = TypeVar("R", bound=Resource)


@dataclass(frozen=True)
class Column:
    """One printer column (`additionalPrinterColumns`); priority 1 shows with `-o wide` only."""

    name: str
    json_path: str
    type: str = "string"
    priority: int = 0
    format: str = ""
    description: str = ""


@dataclass(frozen=True)
class Scale:
    """Paths of the fields of the scale subresource; without a selector the path is empty."""

    spec_replicas_path: str = ".spec.replicas"
    status_replicas_path: str = ".status.replicas"
    label_selector_path: str = ".status.selector"


class Collection(msgspec.Struct, frozen=True, cache_hash=True):
    """Group, version and plural of a type's objects: the part of a URL path, without a Python type."""

    group: str
    version: str
    plural: str
    namespaced: bool

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def prefix(self) -> str:
        """The URL path up to and with the version, such as `/apis/tinkerbell.org/v1alpha1`."""
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """The URL path of the collection (in a namespace, or in all), of one object, or of a subresource of it."""
        parts = [self.prefix]
        if self.namespaced and namespace:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        parts += [part for part in (name, subresource) if part]
        return "/".join(parts)


@dataclass(frozen=True)
class Kind(Generic[R]):
    """One API type with its Python model.

    `version` is the stored one and that of the model. `older_versions` names the package whose data hold the schemas
    of the further versions that are served (`ironbell.api.crd.older_versions`); empty if there is none.
    """

    group: str
    version: str
    kind: str
    plural: str
    model: type[R]
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    columns: tuple[Column, ...] = ()
    has_status: bool = False
    scale: Scale | None = None
    selectable_fields: tuple[str, ...] = ()
    crd_labels: tuple[tuple[str, str], ...] = ()
    older_versions: str = ""
    description: str = field(default="", compare=False)

    @cached_property
    def collection(self) -> Collection:
        return Collection(self.group, self.version, self.plural, self.namespaced)

    @property
    def api_version(self) -> str:
        return self.collection.api_version

    @property
    def singular(self) -> str:
        return self.kind.lower()

    @property
    def list_kind(self) -> str:
        return f"{self.kind}List"

    @cached_property
    def _decoder(self) -> msgspec.json.Decoder[R]:
        return msgspec.json.Decoder(self.model)

    def decode(self, body: bytes) -> R:
        """Bytes of one object to the model.

        Raises:
            msgspec.ValidationError: a field that the model knows has another type.
        """
        return self._decoder.decode(body)

    def convert(self, data: Any) -> R:
        """Plain data of one object to the model.

        Raises:
            msgspec.ValidationError: a field that the model knows has another type.
        """
        return msgspec.convert(data, self.model)

    def __str__(self) -> str:
        return f"{self.kind}.{self.version}.{self.group}" if self.group else f"{self.kind}.{self.version}"
