"""The input of a decision about a MachineDeployment."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ironbell.api.cluster import CLUSTER, MACHINE_DEPLOYMENT
from ironbell.api.cluster.cluster import Cluster
from ironbell.api.cluster.machine import Machine
from ironbell.api.cluster.machinedeployment import MachineDeployment
from ironbell.api.cluster.machineset import MachineSet
from ironbell.base.labels import SelectorError
from ironbell.contract.clusters.external import External, read_reference
from ironbell.contract.owners import controller_of, is_controlled_by
from ironbell.contract.selectors import matches
from ironbell.controllers.capi.indexes import (
    MACHINE_DEPLOYMENTS_OF_CLUSTER,
    MACHINE_SETS_OF_CLUSTER,
    MACHINES_BY_OWNER,
    cluster_key,
    cluster_keys,
)
from ironbell.kube.decision import Key
from ironbell.kube.reconciler import Cache


@dataclass(frozen=True, slots=True)
class Observed:
    """A MachineDeployment with everything that it refers to and owns."""

    deployment: MachineDeployment
    cluster: Cluster | None
    sets: tuple[MachineSet, ...] = ()
    orphans: tuple[MachineSet, ...] = ()
    machines: tuple[Machine, ...] = ()
    infrastructure: External | None = None
    bootstrap: External | None = None

    @property
    def has_templates(self) -> bool:
        """Return whether all templates of its Machines exist."""
        templates = (self.infrastructure, self.bootstrap)
        return self.infrastructure is not None and all(t is None or t.exists for t in templates)


def of_machine_set(machine_set: MachineSet, cache: Cache) -> Iterable[Key]:
    """The MachineDeployment that controls a MachineSet; without a controller, the MachineDeployments that select it."""
    controller = controller_of(machine_set)
    if controller is not None:
        is_deployment = controller.kind == MACHINE_DEPLOYMENT.kind
        return [(machine_set.metadata.namespace, controller.name)] if is_deployment else []
    return [
        deployment.key
        for value in cluster_keys(machine_set)
        for deployment in cache.indexed(MACHINE_DEPLOYMENTS_OF_CLUSTER, value)
        if selects(deployment, machine_set)
    ]


def selects(deployment: MachineDeployment, machine_set: MachineSet) -> bool:
    """Return whether a MachineDeployment's selector matches a MachineSet; an invalid or empty selector matches none."""
    selector = deployment.spec.selector
    try:
        return bool(selector.match_labels or selector.match_expressions) and matches(
            selector, machine_set.metadata.labels
        )
    except SelectorError:
        return False


def observe(cache: Cache, key: Key) -> Observed | None:
    """Gather the input of the decision."""
    deployment = cache.get(MACHINE_DEPLOYMENT, *key)
    if deployment is None:
        return None
    namespace, spec = key[0], deployment.spec
    cluster = cache.get(CLUSTER, namespace, spec.cluster_name)
    candidates = cache.indexed(MACHINE_SETS_OF_CLUSTER, cluster_key(namespace, spec.cluster_name))
    sets = tuple(
        machine_set for machine_set in candidates if is_controlled_by(machine_set, MACHINE_DEPLOYMENT, deployment)
    )
    config = spec.template.spec.bootstrap.config_ref
    return Observed(
        deployment,
        cluster,
        sets,
        tuple(
            machine_set
            for machine_set in candidates
            if controller_of(machine_set) is None and selects(deployment, machine_set)
        ),
        tuple(
            machine for machine_set in sets for machine in cache.indexed(MACHINES_BY_OWNER, machine_set.metadata.uid)
        ),
        read_reference(cache, spec.template.spec.infrastructure_ref, namespace),
        read_reference(cache, config, namespace) if config.name else None,
    )
