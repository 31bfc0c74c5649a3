"""Application of a class's patches, in order, each to the result of the previous patch.

Source: kubernetes-sigs/cluster-api: core/reconcilers/topology/cluster/patches/engine.go, patch.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from ironbell.api.cluster.classes.patches import ClusterClassPatch
from ironbell.api.cluster.cluster import Cluster
from ironbell.api.cluster.names import (
    ANNOTATION_CLONED_FROM_GROUP_KIND,
    ANNOTATION_CLONED_FROM_NAME,
    LABEL_CLUSTER_NAME,
    LABEL_TOPOLOGY_DEPLOYMENT_NAME,
    LABEL_TOPOLOGY_OWNED,
    LABEL_TOPOLOGY_POOL_NAME,
)
from ironbell.api.cluster.topology import ClusterVariable
from ironbell.codec.gotemplate.errors import STEPS
from ironbell.codec.gotemplate.meter import metered
from ironbell.controllers.capi.topology.desired.model import Blueprint, Desired, TopologyError, Worker
from ironbell.controllers.capi.topology.patches.inline import patched
from ironbell.controllers.capi.topology.patches.items import (
    OF_CONTROL_PLANE,
    OF_DEPLOYMENT,
    OF_POOL,
    Item,
    Place,
    items,
)
from ironbell.controllers.capi.topology.plain import Path, copied
from ironbell.controllers.capi.topology.variables import builtin
from ironbell.controllers.capi.topology.variables.builtin import BUILTIN
from ironbell.kube.decision import Fields

INLINE: Final = "inline"
"""Source of the variables that are defined in the class itself."""
_PATCHES_S: Final = 1.0
"""Limit of the processor time for all templates in the patches of one Cluster, during which other Clusters wait."""

_ALWAYS_KEPT: Final[tuple[Path, ...]] = (
    *(
        ("metadata", "labels", name)
        for name in (LABEL_CLUSTER_NAME, LABEL_TOPOLOGY_OWNED, LABEL_TOPOLOGY_DEPLOYMENT_NAME, LABEL_TOPOLOGY_POOL_NAME)
    ),
    *(("metadata", "annotations", name) for name in (ANNOTATION_CLONED_FROM_NAME, ANNOTATION_CLONED_FROM_GROUP_KIND)),
)
_IN_MACHINES: Final = ("readinessGates", "taints", "infrastructureRef")
_CONTROL_PLANE_KEPT: Final[tuple[Path, ...]] = (
    ("spec", "machineTemplate", "metadata"),
    *(("spec", "machineTemplate", name) for name in _IN_MACHINES),
    *(("spec", "machineTemplate", "spec", name) for name in _IN_MACHINES),
    *(
        ("spec", "machineTemplate", name)
        for name in ("nodeDrainTimeout", "nodeVolumeDetachTimeout", "nodeDeletionTimeout")
    ),
    *(
        ("spec", "machineTemplate", "spec", "deletion", name)
        for name in ("nodeDrainTimeoutSeconds", "nodeVolumeDetachTimeoutSeconds", "nodeDeletionTimeoutSeconds")
    ),
    ("spec", "replicas"),
    ("spec", "version"),
    ("spec", "rollout", "after"),
    *_ALWAYS_KEPT,
)
_TO_OBJECT: Final[tuple[tuple[Path, Path], ...]] = (
    (("spec", "template", "spec"), ("spec",)),
    (("spec", "template", "metadata", "labels"), ("metadata", "labels")),
    (("spec", "template", "metadata", "annotations"), ("metadata", "annotations")),
)
_TO_TEMPLATE: Final[tuple[tuple[Path, Path], ...]] = tuple(
    (path, path)
    for path in (
        ("metadata", "labels"),
        ("metadata", "annotations"),
        ("spec", "template", "spec"),
        ("spec", "template", "metadata", "labels"),
        ("spec", "template", "metadata", "annotations"),
    )
)


@dataclass(frozen=True, slots=True)
class Context:
    """The input of patches besides the templates."""

    cluster: Cluster
    """The Cluster with the defaults of its variables."""
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    """Desired annotations of the Cluster."""


def with_patches(desired: Desired, blueprint: Blueprint, context: Context) -> Desired:
    """The desired objects after all patches of the class.

    Raises:
        TopologyError: a patch cannot be computed or applied; then nothing may be written.
    """
    patches = blueprint.cluster_class.spec.patches
    if not patches:
        return desired
    known = _defined(blueprint)
    shared = {
        **_set(context.cluster.spec.topology.variables, known),
        BUILTIN: builtin.of_cluster(context.cluster, context.labels, context.annotations),
    }
    with metered(STEPS, _PATCHES_S):
        result = [
            _patched(item, patches, _variables(item, desired, context, shared, known))
            for item in items(blueprint, desired)
        ]
    return _merged(desired, blueprint, result)


def _patched(item: Item, patches: Sequence[ClusterClassPatch], variables: Mapping[str, Any]) -> Item:
    for patch in patches:
        if patch.external is not None or not patch.definitions:
            raise TopologyError(
                f'patch "{patch.name}" uses a runtime extension: external patches are not supported;'
                " use definitions with jsonPatches"
            )
        try:
            item = patched(item, patch, variables)
        except TopologyError as error:
            message = f'failed to generate patches for patch "{patch.name}": {error.message}'
            raise TopologyError(message) from error
    return item


def _defined(blueprint: Blueprint) -> frozenset[str]:
    variables = blueprint.cluster_class.status.variables
    return frozenset(
        variable.name
        for variable in variables
        if any(definition.from_ == INLINE for definition in variable.definitions)
    )


def _set(values: Sequence[ClusterVariable], known: frozenset[str]) -> Fields:
    return {variable.name: variable.value for variable in values if variable.name in known and variable.name != BUILTIN}


def _variables(
    item: Item, desired: Desired, context: Context, shared: Mapping[str, Any], known: frozenset[str]
) -> Fields:
    topology, worker = context.cluster.spec.topology, item.worker
    overrides: Sequence[ClusterVariable] = ()
    own: Fields = {}
    if item.place in OF_CONTROL_PLANE:
        plane = topology.control_plane
        overrides = plane.variables.overrides
        own = builtin.of_control_plane(desired.control_plane, desired.control_plane_machine, replicas=plane.replicas)
    elif worker is not None and item.place in OF_DEPLOYMENT:
        deployment = next(
            candidate for candidate in topology.workers.machine_deployments if candidate.name == worker.topology_name
        )
        overrides, own = deployment.variables.overrides, builtin.of_worker("machineDeployment", worker)
    elif worker is not None and item.place in OF_POOL:
        pool = next(candidate for candidate in topology.workers.machine_pools if candidate.name == worker.topology_name)
        overrides, own = pool.variables.overrides, builtin.of_worker("machinePool", worker)
    return {**shared, **_set(overrides, known), BUILTIN: {**shared[BUILTIN], **own}}


def _merged(desired: Desired, blueprint: Blueprint, result: Sequence[Item]) -> Desired:
    """The desired objects with the patched content of their templates."""
    by_place: dict[tuple[Place, str], Fields] = {
        (item.place, item.worker.name if item.worker is not None else ""): item.body for item in result
    }

    def to_object(place: Place, target: Fields, kept: Sequence[Path] = _ALWAYS_KEPT, name: str = "") -> Fields:
        return copied(by_place[place, name], target, _TO_OBJECT, kept)

    def to_template(place: Place, target: Fields, name: str = "") -> Fields:
        return copied(by_place[place, name], target, _TO_TEMPLATE, _ALWAYS_KEPT)

    def deployment(worker: Worker) -> Worker:
        return replace(
            worker,
            bootstrap=to_template(Place.DEPLOYMENT_BOOTSTRAP, worker.bootstrap, worker.name),
            infrastructure=to_template(Place.DEPLOYMENT_INFRASTRUCTURE, worker.infrastructure, worker.name),
        )

    def pool(worker: Worker) -> Worker:
        return replace(
            worker,
            bootstrap=to_object(Place.POOL_BOOTSTRAP, worker.bootstrap, name=worker.name),
            infrastructure=to_object(Place.POOL_INFRASTRUCTURE, worker.infrastructure, name=worker.name),
        )

    machine = desired.control_plane_machine
    return replace(
        desired,
        infrastructure_cluster=to_object(Place.INFRASTRUCTURE_CLUSTER, desired.infrastructure_cluster),
        control_plane=to_object(Place.CONTROL_PLANE, desired.control_plane, _CONTROL_PLANE_KEPT),
        control_plane_machine=None if machine is None else to_template(Place.CONTROL_PLANE_MACHINE, machine),
        deployments=tuple(map(deployment, desired.deployments)),
        pools=tuple(map(pool, desired.pools)),
    )
