"""The templates of the class that patches are applied to, each for one place in the topology.

Source: kubernetes-sigs/cluster-api: core/reconcilers/topology/cluster/patches/engine.go (createRequest),
inline/json_patch_generator.go (matchesSelector).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

from ironbell.api.cluster.classes.patches import PatchSelector
from ironbell.controllers.capi.topology.desired.model import Blueprint, Desired, Template, Worker
from ironbell.controllers.capi.topology.plain import Path, copied, metadata_of, put, without
from ironbell.controllers.capi.topology.variables.builtin import HIDDEN_ANNOTATIONS
from ironbell.kube.decision import Fields


class Place(Enum):
    """The place in a topology where the class uses a template."""

    INFRASTRUCTURE_CLUSTER = "infrastructure cluster"
    CONTROL_PLANE = "control plane"
    CONTROL_PLANE_MACHINE = "machines of the control plane"
    DEPLOYMENT_BOOTSTRAP = "bootstrap of a MachineDeployment"
    DEPLOYMENT_INFRASTRUCTURE = "infrastructure of a MachineDeployment"
    POOL_BOOTSTRAP = "bootstrap of a MachinePool"
    POOL_INFRASTRUCTURE = "infrastructure of a MachinePool"


OF_CONTROL_PLANE = frozenset({Place.CONTROL_PLANE, Place.CONTROL_PLANE_MACHINE})
OF_DEPLOYMENT = frozenset({Place.DEPLOYMENT_BOOTSTRAP, Place.DEPLOYMENT_INFRASTRUCTURE})
OF_POOL = frozenset({Place.POOL_BOOTSTRAP, Place.POOL_INFRASTRUCTURE})
_OBJECT: tuple[tuple[Path, Path], ...] = (
    (("metadata", "labels"), ("spec", "template", "metadata", "labels")),
    (("metadata", "annotations"), ("spec", "template", "metadata", "annotations")),
)
_TEMPLATE: tuple[tuple[Path, Path], ...] = (
    (("metadata", "labels"), ("metadata", "labels")),
    (("metadata", "annotations"), ("metadata", "annotations")),
)


@dataclass(frozen=True, slots=True)
class Item:
    """A template with the patches that were applied so far."""

    place: Place
    body: Fields
    worker: Worker | None = None

    def with_body(self, body: Fields) -> Item:
        return replace(self, body=body)


def items(blueprint: Blueprint, desired: Desired) -> list[Item]:
    """All items, with the desired labels and annotations of their objects."""
    result = [
        _item(
            Place.INFRASTRUCTURE_CLUSTER,
            blueprint.infrastructure_cluster,
            desired.infrastructure_cluster,
            is_cloned=True,
        ),
        _item(Place.CONTROL_PLANE, blueprint.control_plane, desired.control_plane, is_cloned=True),
    ]
    if blueprint.control_plane_machine is not None and desired.control_plane_machine is not None:
        template, desired_machine = blueprint.control_plane_machine, desired.control_plane_machine
        result.append(_item(Place.CONTROL_PLANE_MACHINE, template, desired_machine))
    for worker in desired.deployments:
        templates = blueprint.deployments[worker.class_name]
        result.append(_item(Place.DEPLOYMENT_BOOTSTRAP, templates.bootstrap, worker.bootstrap, worker))
        result.append(_item(Place.DEPLOYMENT_INFRASTRUCTURE, templates.infrastructure, worker.infrastructure, worker))
    for worker in desired.pools:
        templates = blueprint.pools[worker.class_name]
        result.append(_item(Place.POOL_BOOTSTRAP, templates.bootstrap, worker.bootstrap, worker, is_cloned=True))
        result.append(
            _item(Place.POOL_INFRASTRUCTURE, templates.infrastructure, worker.infrastructure, worker, is_cloned=True)
        )
    return result


def _item(
    place: Place, template: Template, obj: Fields, worker: Worker | None = None, *, is_cloned: bool = False
) -> Item:
    body = copied(obj, template.body, _OBJECT if is_cloned else _TEMPLATE)
    body = without(body, ("metadata", "managedFields"))
    annotations = {
        name: text for name, text in metadata_of(body, "annotations").items() if name not in HIDDEN_ANNOTATIONS
    }
    has_any = bool(annotations)
    body = (
        put(body, annotations, ("metadata", "annotations")) if has_any else without(body, ("metadata", "annotations"))
    )
    return Item(place, body, worker)


def matches(item: Item, selector: PatchSelector) -> bool:
    """Return whether a selector matches this item: its template's type, and one of the named places."""
    if (item.body.get("apiVersion"), item.body.get("kind")) != (selector.api_version, selector.kind):
        return False
    selected, place = selector.match_resources, item.place
    class_name = item.worker.class_name if item.worker is not None else ""
    deployments, pools = selected.machine_deployment_class, selected.machine_pool_class
    return (
        (bool(selected.infrastructure_cluster) and place is Place.INFRASTRUCTURE_CLUSTER)
        or (bool(selected.control_plane) and place in OF_CONTROL_PLANE)
        or (deployments is not None and place in OF_DEPLOYMENT and is_named(class_name, deployments.names))
        or (pools is not None and place in OF_POOL and is_named(class_name, pools.names))
    )


def is_named(class_name: str, names: Sequence[str]) -> bool:
    """Return whether one of the names, with `*` at its begin or end, matches the class."""
    return any(
        name in ("*", class_name)
        or (name.startswith("*") and class_name.endswith(name[1:]))
        or (name.endswith("*") and class_name.startswith(name[:-1]))
        for name in names
    )
