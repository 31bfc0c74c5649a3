"""The objects that move, those that also stay on the source, and their order. Pure.

Owners come before their dependents. Some relations have only names, no owner references: a cluster's Secrets, the
ClusterClass of a Cluster, the Hardware that a machine has claimed, its BMC, and the Secret of that.

Source: kubernetes-sigs/cluster-api: cmd/clusterctl/client/cluster/objectgraph.go, mover.go (getMoveSequence);
tinkerbell/cluster-api-provider-tinkerbell: the labels of claimed Hardware.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ironbell.api.capt.names import LABEL_OWNER_NAME, LABEL_OWNER_NAMESPACE
from ironbell.base.errors import IronbellError, Retry
from ironbell.contract.clusters.secrets import parse_secret_name
from ironbell.operations.pivot import items as kinds
from ironbell.operations.pivot.items import Item, Key


class GraphError(IronbellError):
    """Objects own each other in a circle."""

    reason, retry = "OwnersInACircle", Retry.NEVER


@dataclass(frozen=True)
class Selection:
    """The selection of a pivot."""

    namespaces: frozenset[str] = frozenset()
    """Empty for all."""
    clusters: frozenset[str] = frozenset()
    """Names; empty for all."""

    def has(self, item: Item) -> bool:
        """Return whether a root is in a selected namespace."""
        return item.is_global or not self.namespaces or item.namespace in self.namespaces


@dataclass(frozen=True)
class Plan:
    """The objects that move."""

    groups: tuple[tuple[Item, ...], ...] = ()
    """Groups of objects; the owners of a group's objects are in earlier groups."""
    kept: frozenset[str] = frozenset()
    """Uids of objects that are copied and also stay, because others need them."""
    torn: tuple[tuple[Item, Item], ...] = ()
    """Objects with an owner that does not move."""
    paused: frozenset[str] = frozenset()
    """Uids of objects on which the pause is set; it includes their dependents."""

    @property
    def items(self) -> Iterator[Item]:
        return (item for group in self.groups for item in group)


@dataclass
class _Graph:
    items: Sequence[Item]
    by_key: dict[Key, Item] = field(default_factory=dict)
    hard: dict[str, list[Item]] = field(default_factory=dict)
    """Owners by uid."""
    soft: dict[str, list[Item]] = field(default_factory=dict)
    classes: dict[str, Item] = field(default_factory=dict)
    """The ClusterClass of a Cluster, by the Cluster's uid."""

    def below(self, roots: Iterable[Item]) -> dict[str, Item]:
        """The roots with all their dependents, by uid."""
        dependents: dict[str, list[Item]] = {}
        for item in self.items:
            for owner in (*self.hard[item.uid], *self.soft[item.uid]):
                dependents.setdefault(owner.uid, []).append(item)
        reached: dict[str, Item] = {}
        waiting = list(roots)
        while waiting:
            item = waiting.pop()
            if item.uid not in reached:
                reached[item.uid] = item
                waiting += dependents.get(item.uid, ())
        return reached


def plan(items: Sequence[Item], selection: Selection) -> Plan:
    """Plan which objects of one API move.

    Raises:
        GraphError: the objects have no order.
    """
    graph = _graph(items)
    clusters = [item for item in items if item.kind.name == kinds.CLUSTER]
    chosen = [item for item in clusters if selection.has(item) and item.name in (selection.clusters or {item.name})]
    shared = _shared(graph, clusters, chosen)
    roots = [*chosen, *(root for root, _others in shared)]
    if not selection.clusters:
        roots += [item for item in items if item.is_forced and selection.has(item) and item.kind.name != kinds.CLUSTER]
    moved = graph.below(roots)
    needed = {root.uid: root for root, others in shared if others or not selection.has(root)}
    return Plan(
        tuple(tuple(group) for group in _ordered(graph, moved)),
        _kept(graph, moved, needed),
        tuple((item, owner) for item, owner in _leaving(graph, moved) if item.kind.is_custom and not item.is_global),
        frozenset(item.uid for item in moved.values() if _holds_pause(item)),
    )


def order(items: Sequence[Item]) -> list[list[Item]]:
    """Objects that belong together, in groups as in `Plan.groups`.

    Raises:
        GraphError: the objects have no order.
    """
    return _ordered(_graph(items), {item.uid: item for item in items})


def _graph(items: Sequence[Item]) -> _Graph:
    graph = _Graph(items, {item.key: item for item in items})
    by_uid = {item.uid: item for item in items}
    softly: dict[str, list[Item]] = {item.uid: [] for item in items}
    for item in items:
        graph.hard[item.uid] = [by_uid[owner["uid"]] for owner in item.owners if owner.get("uid") in by_uid]
    for item in items:
        for owner, owned in _relations(graph, item):
            softly[owned.uid].append(owner)
        reference = item.spec.get("topology", {}).get("classRef", {}) if item.kind.name == kinds.CLUSTER else {}
        key = (kinds.CLUSTER_CLASS, reference.get("namespace") or item.namespace, reference.get("name", ""))
        if key in graph.by_key:
            graph.classes[item.uid] = graph.by_key[key]
    graph.soft = softly
    return graph


def _relations(graph: _Graph, item: Item) -> Iterator[tuple[Item, Item]]:
    """Pairs of an object and its dependent, as far as this object determines them."""

    def pair(owner: Key, owned: Key) -> Iterator[tuple[Item, Item]]:
        if owner in graph.by_key and owned in graph.by_key:
            yield graph.by_key[owner], graph.by_key[owned]

    match item.kind.name:
        case kinds.SECRET:
            parsed = None if item.owners else parse_secret_name(item.name)
            if parsed is not None:
                yield from pair((kinds.CLUSTER, item.namespace, parsed[0]), item.key)
        case kinds.BINDING:
            yield from pair((kinds.CLUSTER, item.namespace, item.spec.get("clusterName", "")), item.key)
        case kinds.HARDWARE:
            claim, namespace = item.labels.get(LABEL_OWNER_NAME), item.labels.get(LABEL_OWNER_NAMESPACE, "")
            if claim:
                owner = ("TinkerbellMachine.infrastructure.cluster.x-k8s.io", namespace or item.namespace, claim)
                yield from pair(owner, item.key)
            bmc = item.spec.get("bmcRef") or {}
            yield from pair(item.key, (kinds.BMC_MACHINE, item.namespace, bmc.get("name", "")))
        case kinds.BMC_MACHINE:
            for reference in _secrets_of_bmc(item.spec.get("connection") or {}):
                namespace = reference.get("namespace") or item.namespace
                yield from pair(item.key, (kinds.SECRET, namespace, reference.get("name", "")))
        case _:
            if item.kind.group in ("bootstrap.cluster.x-k8s.io", "controlplane.cluster.x-k8s.io"):
                for name in sorted(set(_secrets_in(item.spec))):
                    yield from pair(item.key, (kinds.SECRET, item.namespace, name))


def _secrets_of_bmc(connection: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield connection.get("authSecretRef") or {}
    hmac = ((connection.get("providerOptions") or {}).get("rpc") or {}).get("hmac") or {}
    for references in (hmac.get("secrets") or {}).values():
        yield from references or ()


def _secrets_in(value: Any) -> Iterator[str]:
    """Names of Secrets from which bootstrap data are filled in: those of files and of passwords."""
    if isinstance(value, Mapping):
        for field_name in ("contentFrom", "passwdFrom"):
            name = ((value.get(field_name) or {}).get("secret") or {}).get("name")
            if name:
                yield str(name)
        for inner in value.values():
            yield from _secrets_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _secrets_in(inner)


def _shared(graph: _Graph, clusters: Sequence[Item], chosen: Sequence[Item]) -> list[tuple[Item, bool]]:
    """ClusterClasses and ClusterResourceSets that the chosen Clusters use, and whether other Clusters use them too."""
    chosen_uids = {item.uid for item in chosen}
    uses: dict[str, tuple[Item, bool, bool]] = {}
    for cluster in clusters:
        used = [graph.classes[cluster.uid]] if cluster.uid in graph.classes else []
        binding = graph.by_key.get((kinds.BINDING, cluster.namespace, cluster.name))
        used += [
            owner for owner in (graph.hard[binding.uid] if binding else ()) if owner.kind.name == kinds.RESOURCE_SET
        ]
        for shared in used:
            item, is_used, has_others = uses.get(shared.uid, (shared, False, False))
            is_chosen = cluster.uid in chosen_uids
            uses[shared.uid] = (item, is_used or is_chosen, has_others or not is_chosen)
    return [(item, has_others) for item, is_used, has_others in uses.values() if is_used]


def _kept(graph: _Graph, moved: Mapping[str, Item], needed: Mapping[str, Item]) -> frozenset[str]:
    """Objects that must not be deleted: cluster-wide objects, those that others need, and dependents of only such."""
    kept = {uid for uid, item in moved.items() if item.is_global} | needed.keys()
    kept |= {item.uid for item, _owner in _leaving(graph, moved) if not item.kind.is_custom}
    for group in _ordered(graph, moved):
        for item in group:
            owners = (*graph.hard[item.uid], *graph.soft[item.uid])
            if owners and all(owner.uid in kept for owner in owners):
                kept.add(item.uid)
    return frozenset(kept)


def _leaving(graph: _Graph, moved: Mapping[str, Item]) -> Iterator[tuple[Item, Item]]:
    for uid, item in moved.items():
        for owner in (*graph.hard[uid], *graph.soft[uid]):
            if owner.uid not in moved:
                yield item, owner


def _holds_pause(item: Item) -> bool:
    return item.kind.is_custom and item.is_forced and not item.is_global


def _ordered(graph: _Graph, moved: Mapping[str, Item]) -> list[list[Item]]:
    above = {
        uid: {
            owner.uid
            for owner in (*graph.hard[uid], *graph.soft[uid], *([graph.classes[uid]] if uid in graph.classes else ()))
            if owner.uid in moved
        }
        for uid in moved
    }
    groups: list[list[Item]] = []
    done: set[str] = set()
    left = sorted(moved.values(), key=lambda item: item.key)
    while left:
        group = [item for item in left if above[item.uid] <= done]
        if not group:
            names = ", ".join(item.title for item in left[:3])
            raise GraphError(f"objects own each other in a circle: {names}; remove one of the owner references")
        groups.append(group)
        done |= {item.uid for item in group}
        left = [item for item in left if item.uid not in done]
    return groups
