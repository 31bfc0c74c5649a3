"""The controllers of Cluster API's kinds, and their access rights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ironbell.api.addons import CLUSTER_RESOURCE_SET, CLUSTER_RESOURCE_SET_BINDING
from ironbell.api.client import Api
from ironbell.api.cluster import (
    CLUSTER,
    CLUSTER_CLASS,
    MACHINE,
    MACHINE_DEPLOYMENT,
    MACHINE_DRAIN_RULE,
    MACHINE_HEALTH_CHECK,
    MACHINE_POOL,
    MACHINE_SET,
)
from ironbell.api.clusteripam import IP_ADDRESS, IP_ADDRESS_CLAIM
from ironbell.api.core import CONFIG_MAP, CUSTOM_RESOURCE_DEFINITION, SECRET
from ironbell.api.tinkerbell import TEMPLATE
from ironbell.base.clock import Clock
from ironbell.contract.access import READ, Grant, Named, Permissions, may, may_in, may_read, policy_rules
from ironbell.contract.crossing import USE
from ironbell.contract.pki import KeyAlgorithm
from ironbell.contract.system import Runtime
from ironbell.controllers.capi.cluster.kubeconfig import KUBECONFIG, KubeconfigCreator
from ironbell.controllers.capi.cluster.reconciler import ClusterReconciler
from ironbell.controllers.capi.clusterresourceset.applier import APPLY, Applier, Reader
from ironbell.controllers.capi.clusterresourceset.applying import ResourceApplyingReconciler
from ironbell.controllers.capi.clusterresourceset.reconciler import ClusterResourceSetReconciler
from ironbell.controllers.capi.clusterresourceset.sources import ContentHash
from ironbell.controllers.capi.machine import performers as machine_performers
from ironbell.controllers.capi.machine import queries as machine_queries
from ironbell.controllers.capi.machine.evictions import Ledger
from ironbell.controllers.capi.machine.node_metadata import Synced
from ironbell.controllers.capi.machine.reconciler import NOTHING_MORE, MachineReconciler
from ironbell.controllers.capi.machinedeployment.reconciler import MachineDeploymentReconciler
from ironbell.controllers.capi.machinehealthcheck.observed import SPACING_S
from ironbell.controllers.capi.machinehealthcheck.reconciler import MachineHealthCheckReconciler
from ironbell.controllers.capi.machinepool import MachinePoolReconciler
from ironbell.controllers.capi.machineset.reconciler import MachineSetReconciler
from ironbell.controllers.capi.topology.clusterclass import ClusterClassReconciler
from ironbell.controllers.capi.topology.reconciler import TopologyReconciler
from ironbell.controllers.capi.topology.templates import TopologyDeploymentReconciler, TopologyMachineSetReconciler
from ironbell.controllers.capi.topology.variables.compiled import VariableSchemas
from ironbell.controllers.capi.topology.variables.values import Schemas
from ironbell.kube.cache.feeds import spaced
from ironbell.kube.manager.controller import Controller
from ironbell.workload.access import Workloads, resolvers
from ironbell.workload.following import workloads_of

_PROVIDERS: Final = ("infrastructure.cluster.x-k8s.io", "bootstrap.cluster.x-k8s.io", "controlplane.cluster.x-k8s.io")


def _owns(kind: Named) -> list[Grant]:
    """Grants for the objects that a controller reconciles."""
    return [may(kind, "delete", "patch"), may(kind, "patch", subresource="status")]


PERMISSIONS: Final = Permissions(
    reads=policy_rules(
        [
            *may_read(CLUSTER, CLUSTER_CLASS, MACHINE_DEPLOYMENT, MACHINE_DRAIN_RULE, MACHINE_HEALTH_CHECK),
            *may_read(MACHINE_POOL, MACHINE, MACHINE_SET),
            may_in(_PROVIDERS, *READ),
            *may_read(CLUSTER_RESOURCE_SET_BINDING, CLUSTER_RESOURCE_SET),
            *may_read(CONFIG_MAP, SECRET, CUSTOM_RESOURCE_DEFINITION),
        ]
    ),
    # the claim that an IPAddress belongs to, and the addresses of a pool
    reviews=policy_rules([may(kind, "get", "list") for kind in (IP_ADDRESS_CLAIM, IP_ADDRESS)]),
    # `finalizers` is for owner references that block deletion, and `delete` also for changing an object's owners: the
    # admission plugin OwnerReferencesPermissionEnforcement, on in some distributions, requires both. No controller may
    # delete Secrets, so a Secret that another client created keeps its owners under that plugin.
    writes={
        ClusterReconciler.name: policy_rules(
            [
                may(CLUSTER, "patch", status=True),
                may(CLUSTER, "update", subresource="finalizers"),
                *(may(kind, "delete") for kind in (MACHINE_DEPLOYMENT, MACHINE_POOL, MACHINE, MACHINE_SET)),
                may_in(_PROVIDERS, "delete", "patch"),
                may(SECRET, "create", "get"),
            ]
        ),
        MachineReconciler().name: policy_rules(
            [*_owns(MACHINE), may(MACHINE, "update", subresource="finalizers"), may_in(_PROVIDERS, "delete", "patch")]
        ),
        MachineHealthCheckReconciler.name: policy_rules(
            [
                *_owns(MACHINE_HEALTH_CHECK),
                may(MACHINE, "patch", subresource="status"),
                may_in(_PROVIDERS, "create", "delete"),
            ]
        ),
        MachineSetReconciler.name: policy_rules(
            [
                *_owns(MACHINE_SET),
                may(MACHINE_SET, "update", subresource="finalizers"),
                may(MACHINE, "create", "delete", "patch"),
                may(MACHINE, "patch", subresource="status"),
                may_in(_PROVIDERS, "create", "delete", "patch"),
            ]
        ),
        MachineDeploymentReconciler.name: policy_rules(
            [
                *_owns(MACHINE_DEPLOYMENT),
                may(MACHINE_DEPLOYMENT, "update", subresource="finalizers"),
                may(MACHINE_SET, "create", "delete", "patch"),
                may_in(_PROVIDERS, "delete", "patch"),
            ]
        ),
        MachinePoolReconciler.name: policy_rules(
            [
                *_owns(MACHINE_POOL),
                may(MACHINE_POOL, "update", subresource="finalizers"),
                may_in(_PROVIDERS, "delete", "patch"),
            ]
        ),
        ResourceApplyingReconciler.name: policy_rules(
            [
                may(CLUSTER_RESOURCE_SET_BINDING, "create", "delete", "patch"),
                may(CONFIG_MAP, "get"),
                may(SECRET, "get"),
            ]
        ),
        ClusterResourceSetReconciler.name: policy_rules(
            [
                may(CLUSTER_RESOURCE_SET, "patch", status=True),
                may(CLUSTER_RESOURCE_SET_BINDING, "delete", "patch"),
                may(CONFIG_MAP, "get", "patch"),
                may(SECRET, "get", "patch"),
            ]
        ),
        ClusterClassReconciler.name: policy_rules(
            [may(CLUSTER_CLASS, "patch", status=True), may_in(_PROVIDERS, "delete", "patch")]
        ),
        TopologyReconciler.name: policy_rules(
            [
                may(TEMPLATE, USE),  # templates of others' clusters name Templates: their writers were checked
                may(CLUSTER, "patch", status=True),
                may(CLUSTER, "update", subresource="finalizers"),
                *(
                    may(kind, "create", "delete", "patch")
                    for kind in (MACHINE_DEPLOYMENT, MACHINE_HEALTH_CHECK, MACHINE_POOL)
                ),
                may_in(_PROVIDERS, "create", "delete", "patch"),
            ]
        ),
        TopologyDeploymentReconciler.name: policy_rules(
            [may(MACHINE_DEPLOYMENT, "patch"), may(MACHINE_HEALTH_CHECK, "delete"), may_in(_PROVIDERS, "delete")]
        ),
        TopologyMachineSetReconciler.name: policy_rules([may(MACHINE_SET, "patch"), may_in(_PROVIDERS, "delete")]),
    },
)


def create_controllers(runtime: Runtime) -> list[Controller]:
    """Create the system's controllers for a process."""
    return controllers(
        runtime.shared(workloads_of),
        runtime.api,
        runtime.clock,
        runtime.api_of,
        VariableSchemas(),
        synced=runtime.settings.of(Synced),
    )


def controllers(
    workloads: Workloads,
    api: Api,
    clock: Clock,
    api_of: Callable[[str], Api | None],
    schemas: Schemas,
    *,
    algorithm: KeyAlgorithm = KeyAlgorithm.RSA_2048,
    synced: Synced = NOTHING_MORE,
) -> list[Controller]:
    """Create the controllers.

    Args:
        workloads: the connections to workload clusters.
        api: the manager's API, for controllers without an identity of their own.
        clock: the time for the validity of certificates and for timestamps.
        api_of: the API under the identity of a controller, by its name; None for the manager's.
        schemas: reads the schemas of a ClusterClass's variables.
        algorithm: for the keys in kubeconfigs.
        synced: labels and annotations of Machines that are copied to Nodes besides the usual ones.
    """
    cluster, machine, ledger = ClusterReconciler(), MachineReconciler(synced), Ledger()
    return [
        Controller(
            cluster,
            performers={KUBECONFIG: KubeconfigCreator(api_of(cluster.name) or api, clock, algorithm)},
            resolvers=resolvers(workloads),
            api=api_of(cluster.name),
            feeds=(workloads.feed,),
        ),
        Controller(
            machine,
            performers=machine_performers.performers(workloads.api, ledger, clock),
            resolvers={**resolvers(workloads), **machine_queries.resolvers(workloads.api, ledger)},
            api=api_of(machine.name),
            feeds=(workloads.feed,),
        ),
        Controller(
            MachineHealthCheckReconciler(),
            resolvers=resolvers(workloads),
            api=api_of(MachineHealthCheckReconciler.name),
            feeds=(spaced(workloads.feed, SPACING_S),),
        ),
        Controller(MachineSetReconciler(), api=api_of(MachineSetReconciler.name)),
        Controller(MachineDeploymentReconciler(), api=api_of(MachineDeploymentReconciler.name)),
        Controller(
            MachinePoolReconciler(),
            resolvers=resolvers(workloads),
            workers=4,
            api=api_of(MachinePoolReconciler.name),
            feeds=(workloads.feed,),
        ),
        Controller(ClusterClassReconciler(), api=api_of(ClusterClassReconciler.name)),
        Controller(TopologyReconciler(schemas), api=api_of(TopologyReconciler.name)),
        Controller(TopologyDeploymentReconciler(), api=api_of(TopologyDeploymentReconciler.name)),
        Controller(TopologyMachineSetReconciler(), api=api_of(TopologyMachineSetReconciler.name)),
        *_resource_sets(workloads, api, clock, api_of),
    ]


def _resource_sets(
    workloads: Workloads, api: Api, clock: Clock, api_of: Callable[[str], Api | None]
) -> list[Controller]:
    applying, sets = ResourceApplyingReconciler(), ClusterResourceSetReconciler()
    reader = Reader(api_of(applying.name) or api)
    return [
        Controller(
            applying,
            performers={APPLY: Applier(reader, workloads.api, clock)},
            resolvers={**resolvers(workloads), ContentHash: reader.hash},
            api=api_of(applying.name),
            feeds=(workloads.feed,),
        ),
        Controller(
            sets, resolvers={ContentHash: Reader(api_of(sets.name) or api).hash}, workers=4, api=api_of(sets.name)
        ),
    ]
