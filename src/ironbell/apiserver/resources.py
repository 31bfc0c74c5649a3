"""The served resources: one `ResourceInfo` per served (group, version, plural), and their lookup table.

Discovery, OpenAPI, tables and the verbs all read this table. It changes while the server runs, when a
CustomResourceDefinition is committed or removed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ironbell.api.client import NotFound
from ironbell.api.kind import Collection, Column
from ironbell.apiserver.metadata import NameRule, name_fault
from ironbell.apiserver.schema.compiled import CompiledSchema, Shape
from ironbell.apiserver.store.entry import Entry
from ironbell.apiserver.strategy import PLAIN, Strategy

OBJECT_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")

Object = dict[str, Any]
"""A decoded API object."""

Convert = Callable[[Object, str], Object]
"""Brings an object (which it may change) to an apiVersion."""

Types = Callable[[], tuple[str, dict[str, dict[str, Any]]]]
"""Returns the name of a kind's type, with all types that it refers to, by name."""


class Converter(Protocol):
    """Converts objects between versions, perhaps by a request to a webhook."""

    async def convert(self, value: Object, api_version: str) -> Object: ...

    async def bodies(self, entries: Sequence[Entry], api_version: str) -> list[bytes]: ...


@dataclass(frozen=True, slots=True)
class ScalePaths:
    """Paths of the scale subresource's fields, such as `("spec", "replicas")`."""

    spec_replicas: tuple[str, ...]
    status_replicas: tuple[str, ...]
    label_selector: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class ResourceInfo:
    """One resource in one served version."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    shape: Shape
    """OpenAPI v3 schema of this version, as the CRD or the built-in type gives it."""
    singular: str = ""
    list_kind: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    columns: tuple[Column, ...] = ()
    served_versions: tuple[str, ...] = ()
    """All served versions of the resource, the preferred one first."""
    storage_version: str = ""
    storage_group: str | None = None
    """The group under which objects are stored, if it is another one (Events are served in two groups)."""
    types: Types | None = None
    """The schema of a built-in kind in named types, if it is made of such."""
    has_status: bool = False
    scale: ScalePaths | None = None
    connects: tuple[str, ...] = ()
    """Subresources that a handler of `connect.Connects` serves."""
    verbs: tuple[str, ...] = OBJECT_VERBS
    custom: bool = False
    """Whether the resource comes from a CustomResourceDefinition."""
    generations: bool = True
    """Whether `metadata.generation` counts changes of everything but metadata and status."""
    strategy: Strategy = PLAIN
    convert: Convert | None = None
    name_rule: NameRule = name_fault
    converter: Converter | None = None
    """Converts versions where a function cannot: by a webhook."""
    field_labels: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Field selectors beside metadata.name and metadata.namespace: label and key path."""
    deprecation_warning: str = ""
    creation_warning: str = ""
    """Warning for a client that creates an object."""
    changed_at: int = 0
    """The store's revision at which the definition last changed: objects written before may lack defaults."""
    keeps_first_status: bool = False
    """Whether an object may be created with a status."""
    kept_by_status: tuple[str, ...] | None = None
    """Fields of the metadata that a write to the status leaves unchanged; None if all."""
    answers_deleted: bool = False
    """Whether a deletion answers with the object that was deleted."""
    updates_need_version: bool = False
    """Whether an update must name the resourceVersion that it replaces."""
    created_by_update: bool = False
    """Whether an update creates an object that does not exist."""

    @property
    def schema(self) -> dict[str, Any]:
        """OpenAPI v3 schema of this version."""
        return self.shape.schema

    @property
    def compiled(self) -> CompiledSchema:
        """The compiled schema."""
        return self.shape.compiled

    @property
    def subresources(self) -> tuple[str, ...]:
        subresources: tuple[str, ...] = ("status",) if self.has_status else ()
        if self.resource == "namespaces":
            subresources += ("finalize",)
        if self.scale is not None:
            subresources += ("scale",)
        return subresources + self.connects

    @property
    def collection(self) -> Collection:
        return Collection(self.group, self.version, self.plural, self.namespaced)

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def storage_api_version(self) -> str:
        group = self.group if self.storage_group is None else self.storage_group
        return f"{group}/{self.storage_version}" if group else self.storage_version

    @property
    def is_stored_version(self) -> bool:
        """Return whether stored bodies need no conversion."""
        return self.version == self.storage_version and self.storage_group in (None, self.group)

    @property
    def is_converted(self) -> bool:
        """Return whether a webhook converts stored objects into this version."""
        return self.converter is not None and not self.is_stored_version

    @property
    def store_key(self) -> str:
        """The resource that the store keeps the objects under."""
        if self.storage_group is None:
            return self.resource
        return f"{self.plural}.{self.storage_group}" if self.storage_group else self.plural

    @property
    def resource(self) -> str:
        """`plural.group`, as messages and the store name it."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def qualified_kind(self) -> str:
        """`Kind.group`, as validation messages name it."""
        return f"{self.kind}.{self.group}" if self.group else self.kind


class Resources:
    """The lookup table of the served resources."""

    def __init__(self) -> None:
        self._by_path: dict[tuple[str, str, str], ResourceInfo] = {}
        self._by_kind: dict[tuple[str, str, str], ResourceInfo] = {}
        self._by_resource: dict[str, list[ResourceInfo]] = {}
        self.generation = 0
        """Grows with every change of the table: for caches of discovery and OpenAPI."""

    def set(self, infos: Iterable[ResourceInfo]) -> None:
        """Serve these versions of one resource, in place of what was served of it before."""
        versions = list(infos)
        for resource in {info.resource for info in versions}:
            self.drop(resource)
        for info in versions:
            self._by_path[info.group, info.version, info.plural] = info
            self._by_kind[info.group, info.version, info.kind] = info
            self._by_resource.setdefault(info.resource, []).append(info)
        self.generation += 1

    def drop(self, resource: str) -> None:
        """Stop serving `plural.group`."""
        for info in self._by_resource.pop(resource, ()):
            self._by_path.pop((info.group, info.version, info.plural), None)
            self._by_kind.pop((info.group, info.version, info.kind), None)
            self.generation += 1

    def has_group(self, group: str) -> bool:
        """Return whether any resource of a group is served."""
        return any(info.group == group for info in self._by_path.values())

    def get(self, group: str, version: str, plural: str) -> ResourceInfo | None:
        return self._by_path.get((group, version, plural))

    def find(self, where: Collection) -> ResourceInfo:
        """The resource of a collection.

        Raises:
            NotFound: the resource is not served.
        """
        info = self._by_path.get((where.group, where.version, where.plural))
        if info is None:
            raise NotFound("the server could not find the requested resource")
        return info

    def by_kind(self, group: str, version: str, kind: str) -> ResourceInfo | None:
        return self._by_kind.get((group, version, kind))

    def stored(self, resource: str) -> ResourceInfo | None:
        """The version in which `plural.group` is stored, or any served one if that one is not served."""
        infos = self._by_resource.get(resource)
        if not infos:
            return None
        return next((info for info in infos if info.version == info.storage_version), infos[0])

    def versions(self, resource: str) -> tuple[ResourceInfo, ...]:
        """All served versions of `plural.group`, the preferred one first."""
        return tuple(self._by_resource.get(resource, ()))

    def all(self) -> list[ResourceInfo]:
        """Everything served, in order of group, version and plural: for discovery."""
        return sorted(self._by_path.values(), key=lambda info: (info.group, info.version, info.plural))

    def groups(self) -> list[str]:
        """The named API groups served (the core group is not among them)."""
        return sorted({info.group for info in self._by_path.values() if info.group})

    def __iter__(self) -> Iterator[ResourceInfo]:
        return iter(self.all())

    def storages(self) -> list[ResourceInfo]:
        """One entry per resource, in its storage version."""
        storages = (self.stored(resource) for resource in sorted(self._by_resource))
        return [info for info in storages if info is not None]
