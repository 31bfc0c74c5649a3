"""Objects that can move: kinds from their definitions, objects as plain data, and the marks of a pivot. Pure.

All records of a pivot are in the APIs: a run that is killed loses nothing that the next one needs.

Source: kubernetes-sigs/cluster-api: cmd/clusterctl/client/cluster/objectgraph.go (getDiscoveryTypes).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import msgspec

from ironbell.api.cluster.names import ANNOTATION_PAUSED, LABEL_CLUSTERCTL, LABEL_MOVE, LABEL_MOVE_HIERARCHY
from ironbell.api.kind import Collection
from ironbell.api.tinkerbell.names import ANNOTATION_DISABLED
from ironbell.contract.clusters.paused import ANNOTATION_PIVOT_PAUSED

Object = dict[str, Any]
Key = tuple[str, str, str]
"""Kind with its group, namespace, name."""

CLUSTER: Final = "Cluster.cluster.x-k8s.io"
CLUSTER_CLASS: Final = "ClusterClass.cluster.x-k8s.io"
MACHINE: Final = "Machine.cluster.x-k8s.io"
RESOURCE_SET: Final = "ClusterResourceSet.addons.cluster.x-k8s.io"
BINDING: Final = "ClusterResourceSetBinding.addons.cluster.x-k8s.io"
HARDWARE: Final = "Hardware.tinkerbell.org"
BMC_MACHINE: Final = "Machine.bmc.tinkerbell.org"
SECRET: Final = "Secret"  # noqa: S105 - a kind
CONFIG_MAP: Final = "ConfigMap"
_HIERARCHIES: Final = frozenset({CLUSTER, CLUSTER_CLASS, RESOURCE_SET})

LABEL_COPY: Final = "ironbell.dev/pivot"
"""On a copy until the pivot ends: the pivot that created it."""
ANNOTATION_SOURCE: Final = "ironbell.dev/pivot-source"
"""On a copy until the pivot ends: the uid of its source."""
ANNOTATION_KEPT: Final = "ironbell.dev/pivot-kept"
"""On a copy until the pivot ends: its source stays, because others need it."""
ANNOTATION_MANAGERS: Final = "ironbell.dev/pivot-managed-fields"
"""On a copy until the pivot ends: the managedFields of its source, as JSON."""
MARKS: Final = (ANNOTATION_SOURCE, ANNOTATION_KEPT, ANNOTATION_PIVOT_PAUSED, ANNOTATION_MANAGERS)

MANAGER: Final = "ironbell-pivot"
"""The owner of written fields, in managedFields."""

REASON: Final = "moves to another management cluster"


def pause_annotation(group: str) -> str:
    """The annotation that makes the controllers of a group skip an object."""
    return ANNOTATION_DISABLED if group.endswith("tinkerbell.org") else ANNOTATION_PAUSED


class MovedKind(msgspec.Struct, frozen=True):
    """A kind whose objects may move."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = True
    has_status: bool = False
    """Whether the status is written separately."""
    forced: bool = False
    """Whether every object moves, with or without an owner that moves."""
    hierarchy: bool = False
    """Whether everything below an object moves with it."""

    @property
    def name(self) -> str:
        """Kind and group: two groups have Machines."""
        return f"{self.kind}.{self.group}" if self.group else self.kind

    @property
    def where(self) -> Collection:
        return Collection(self.group, self.version, self.plural, self.namespaced)

    @property
    def is_custom(self) -> bool:
        """Return whether the kind has a definition, and controllers that observe a pause."""
        return bool(self.group)


SECRETS: Final = MovedKind("", "v1", "Secret", "secrets")
CONFIG_MAPS: Final = MovedKind("", "v1", "ConfigMap", "configmaps")
CORE: Final = (SECRETS, CONFIG_MAPS)


def moved_kinds(definitions: Iterable[Mapping[str, Any]]) -> list[MovedKind]:
    """The kinds that clusterctl's label assigns to Cluster API, each in the version that is stored."""
    moved = []
    for definition in definitions:
        labels, spec = definition["metadata"].get("labels", {}), definition["spec"]
        if LABEL_CLUSTERCTL not in labels:
            continue
        version = next(entry for entry in spec["versions"] if entry["storage"])
        name = f"{spec['names']['kind']}.{spec['group']}"
        hierarchy = name in _HIERARCHIES or LABEL_MOVE_HIERARCHY in labels
        moved.append(
            MovedKind(
                spec["group"],
                version["name"],
                spec["names"]["kind"],
                spec["names"]["plural"],
                namespaced=spec["scope"] == "Namespaced",
                has_status="status" in version.get("subresources", {}),
                forced=hierarchy or LABEL_MOVE in labels,
                hierarchy=hierarchy,
            )
        )
    return sorted(moved, key=lambda kind: kind.name)


def served_versions(definitions: Iterable[Mapping[str, Any]]) -> dict[str, frozenset[str]]:
    """The versions that an API serves, by kind and group; labels of its definitions are ignored."""
    return {
        f"{definition['spec']['names']['kind']}.{definition['spec']['group']}": frozenset(
            version["name"] for version in definition["spec"]["versions"] if version["served"]
        )
        for definition in definitions
    }


def title_of(key: Key) -> str:
    """Kind, namespace and name, as text."""
    kind, namespace, name = key
    return f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"


@dataclass(frozen=True)
class Item:
    """One object of a kind that may move."""

    kind: MovedKind
    body: Object = field(repr=False)  # it may be a Secret

    @cached_property
    def meta(self) -> Object:
        meta: Object = self.body["metadata"]
        return meta

    @property
    def name(self) -> str:
        return str(self.meta["name"])

    @property
    def namespace(self) -> str:
        return str(self.meta.get("namespace", ""))

    @property
    def uid(self) -> str:
        return str(self.meta["uid"])

    @cached_property
    def key(self) -> Key:
        return self.kind.name, self.namespace, self.name

    @property
    def labels(self) -> Mapping[str, str]:
        return self.meta.get("labels") or {}

    @property
    def annotations(self) -> Mapping[str, str]:
        return self.meta.get("annotations") or {}

    @property
    def owners(self) -> Sequence[Object]:
        return self.meta.get("ownerReferences") or ()

    @property
    def spec(self) -> Object:
        spec: Object = self.body.get("spec") or {}
        return spec

    @property
    def status(self) -> Object:
        status: Object = self.body.get("status") or {}
        return status

    @property
    def is_deleting(self) -> bool:
        return bool(self.meta.get("deletionTimestamp"))

    @property
    def is_global(self) -> bool:
        return not self.kind.namespaced

    @property
    def is_forced(self) -> bool:
        return self.kind.forced or LABEL_MOVE in self.labels or self.is_hierarchy

    @property
    def is_hierarchy(self) -> bool:
        return self.kind.hierarchy or LABEL_MOVE_HIERARCHY in self.labels

    @property
    def title(self) -> str:
        """Kind, namespace and name; never the content."""
        return title_of(self.key)

    def condition(self, name: str) -> str:
        """The status of a condition; empty if it does not exist."""
        conditions = self.status.get("conditions") or ()
        return next((str(entry.get("status")) for entry in conditions if entry.get("type") == name), "")
