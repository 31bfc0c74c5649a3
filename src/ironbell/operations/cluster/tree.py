"""A cluster as a tree: each object with its counters and its summary condition. Pure.

Source: kubernetes-sigs/cluster-api: cmd/clusterctl/client/tree, cmd/clusterctl/cmd/describe_cluster.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from ironbell.api.cluster import MACHINE
from ironbell.base.listing import listed
from ironbell.operations.cluster.snapshot import Snapshot, object_name, part_key, part_references
from ironbell.operations.cluster.status import Standing, is_control_plane, standing, title, version
from ironbell.operations.discovered import Object
from ironbell.operations.why.world import conditions

_COUNTERS = ("replicas", "availableReplicas", "readyReplicas", "upToDateReplicas")
_OF_MACHINES = ("Available", "Ready", "UpToDate")


@dataclass(frozen=True)
class Row:
    """One line of the tree."""

    name: str
    counters: tuple[int | None, ...] = (None, None, None, None)
    state: Standing = field(default_factory=Standing)
    children: tuple[Row, ...] = ()
    values: Mapping[str, Any] = field(default_factory=dict)
    """Kind, namespace and name, or the names of a group."""

    def plain(self) -> dict[str, Any]:
        """The row as values for JSON; unknown values are left out."""
        state = {"condition": self.state.type, "status": self.state.status, "reason": self.state.reason}
        state |= {"since": self.state.since, "message": self.state.message}
        counters = dict(zip(_COUNTERS, self.counters, strict=True))
        known = {name: value for name, value in {**counters, **state}.items() if value not in (None, "")}
        return {
            **self.values,
            "title": self.name,
            **known,
            **({"children": [c.plain() for c in self.children]} if self.children else {}),
        }


def tree(snapshot: Snapshot, *, grouping: bool = True) -> Row:
    """The rows of a cluster; with `grouping`, Machines in the same state are one row."""
    cluster = snapshot.cluster
    status = cluster.get("status", {})
    counters = tuple(
        _sum(part.get(name) for part in (status.get("controlPlane") or {}, status.get("workers") or {}))
        for name in _COUNTERS
    )
    owned = {object_name(machine): _owner(machine) for machine in snapshot.machines}
    children = []
    if snapshot.infrastructure is not None:
        children.append(_row(snapshot.infrastructure))
    control_plane = [m for m in snapshot.machines if is_control_plane(m)]
    if snapshot.control_plane is not None:
        children.append(_row(snapshot.control_plane, _machines(snapshot, control_plane, grouping=grouping)))
    else:
        children += _machines(snapshot, control_plane, grouping=grouping)
    workers = [m for m in snapshot.machines if not is_control_plane(m)]
    groups = []
    for deployment in snapshot.deployments:
        sets = {object_name(member) for member in snapshot.sets if _owner(member) == object_name(deployment)}
        own = [machine for machine in workers if owned[object_name(machine)] in sets]
        groups.append(_row(deployment, _machines(snapshot, own, grouping=grouping)))
        workers = [machine for machine in workers if machine not in own]
    groups += [_row(pool) for pool in snapshot.pools]
    if workers:
        groups.append(Row("Other", children=_machines(snapshot, workers, grouping=grouping)))
    if groups:
        children.append(Row("Workers", children=tuple(groups)))
    return Row(_name(cluster), counters, standing(cluster), tuple(children), _values(cluster))


def _row(obj: Object, children: Sequence[Row] = ()) -> Row:
    status = obj.get("status", {})
    counters = tuple(status.get(name) for name in _COUNTERS) if "replicas" in obj.get("spec", {}) else (None,) * 4
    return Row(_name(obj), counters, standing(obj), tuple(children), _values(obj))


def _machines(snapshot: Snapshot, machines: Sequence[Object], *, grouping: bool) -> tuple[Row, ...]:
    rows: list[Row] = []
    for _, alike in groupby(sorted(machines, key=_likeness), key=_likeness):
        group = list(alike)
        if grouping and len(group) > 1:
            rows.append(_group(group))
        else:
            rows += [_machine(snapshot, machine) for machine in group]
    return tuple(rows)


def _group(machines: list[Object]) -> Row:
    names = [object_name(machine) for machine in machines]
    state = standing(machines[0])
    counted = tuple(sum(_is_true(machine, kind) for machine in machines) for kind in _OF_MACHINES)
    since = max(standing(machine).since for machine in machines)
    state = Standing(state.type, state.status, state.reason, since, f"See {listed(names)}")
    return Row(
        f"{len(machines)} Machines...", (len(machines), *counted), state, (), {"kind": MACHINE.kind, "names": names}
    )


def _machine(snapshot: Snapshot, machine: Object) -> Row:
    """The row of a Machine, with its infrastructure and bootstrap objects that are not done."""
    parts = [snapshot.parts.get(part_key(reference)) for reference in part_references(machine)]
    waiting = [_row(part) for part in parts if part is not None and not standing(part).is_good]
    counted = tuple(int(_is_true(machine, kind)) for kind in _OF_MACHINES)
    return Row(_name(machine), (1, *counted), standing(machine), tuple(waiting), _values(machine))


def _likeness(machine: Object) -> tuple[tuple[str, str], ...]:
    deleting = ("deleting", str(bool(machine["metadata"].get("deletionTimestamp"))))
    reported = conditions(machine)
    return (
        deleting,
        *((reported.get(k, {}).get("status", ""), reported.get(k, {}).get("reason", "")) for k in _OF_MACHINES),
    )


def _is_true(machine: Object, condition: str) -> bool:
    return conditions(machine).get(condition, {}).get("status") == "True"


def _name(obj: Object) -> str:
    mark = "!! DELETED !! " if obj["metadata"].get("deletionTimestamp") else ""
    return mark + ", ".join(part for part in (title(obj), version(obj)) if part)


def _values(obj: Object) -> dict[str, Any]:
    """The parts of the text of `_name`, as values."""
    meta = obj["metadata"]
    values = {"kind": obj.get("kind", ""), "namespace": meta.get("namespace", ""), "name": object_name(obj)}
    values |= {"version": version(obj)} if version(obj) else {}
    return {**values, **({"deletionTimestamp": meta["deletionTimestamp"]} if meta.get("deletionTimestamp") else {})}


def _owner(obj: Object) -> str:
    return next((str(o["name"]) for o in obj["metadata"].get("ownerReferences", []) if o.get("controller")), "")


def _sum(numbers: Iterator[int | None]) -> int | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None
