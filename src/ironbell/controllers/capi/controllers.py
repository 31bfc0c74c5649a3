"""The controllers of this group, ready to be added to a manager, and what each must be allowed to write.

Reading is the manager's identity's business: the objects of clusters, whatever they refer to, and of Secrets that one
is there. What is in a Secret a controller reads under its own identity when it uses it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from ironbell.api.client import Api
from ironbell.base.clock import Clock
from ironbell.contract.crossing import USE
from ironbell.contract.pki import KeyAlgorithm
from ironbell.controllers.capi.cluster.cluster import ClusterReconciler
from ironbell.controllers.capi.cluster.kubeconfig import KUBECONFIG, KubeconfigMaker
from ironbell.controllers.capi.clusterresourceset.applier import APPLY, Applier, Reader
from ironbell.controllers.capi.clusterresourceset.applying import ResourceApplyingReconciler
from ironbell.controllers.capi.clusterresourceset.clusterresourceset import ClusterResourceSetReconciler
from ironbell.controllers.capi.clusterresourceset.sources import ContentHash
from ironbell.controllers.capi.machine import performers as machine_performers
from ironbell.controllers.capi.machine import questions as machine_questions
from ironbell.controllers.capi.machine.evictions import Ledger
from ironbell.controllers.capi.machine.machine import NOTHING_MORE, MachineReconciler
from ironbell.controllers.capi.machine.node_metadata import Synced
from ironbell.controllers.capi.machinedeployment.machinedeployment import MachineDeploymentReconciler
from ironbell.controllers.capi.machinehealthcheck.machinehealthcheck import MachineHealthCheckReconciler
from ironbell.controllers.capi.machinehealthcheck.observed import SPACING_S
from ironbell.controllers.capi.machinepool.machinepool import MachinePoolReconciler
from ironbell.controllers.capi.machineset.machineset import MachineSetReconciler
from ironbell.controllers.capi.topology.cluster import TopologyReconciler
from ironbell.controllers.capi.topology.clusterclass import ClusterClassReconciler
from ironbell.controllers.capi.topology.templates import TopologyDeploymentReconciler, TopologyMachineSetReconciler
from ironbell.controllers.capi.topology.variables.schemas import Schemas
from ironbell.kube.controller import Controller
from ironbell.kube.feeds import spaced
from ironbell.workload.access import Workloads
from ironbell.workload.askers import askers

_CORE, _CLUSTER, _ADDONS = [""], ["cluster.x-k8s.io"], ["addons.cluster.x-k8s.io"]
_PROVIDERS: Final = ["infrastructure.cluster.x-k8s.io", "bootstrap.cluster.x-k8s.io", "controlplane.cluster.x-k8s.io"]
_ANY: Final = ["*"]

WRITES: Final[Mapping[str, Sequence[Mapping[str, Sequence[str]]]]] = {
    ClusterReconciler.name: [
        {"apiGroups": _CLUSTER, "resources": ["clusters", "clusters/status"], "verbs": ["patch"]},
        {"apiGroups": _CLUSTER, "resources": ["clusters/finalizers"], "verbs": ["update"]},
        {
            "apiGroups": _CLUSTER,
            "resources": ["machinedeployments", "machinepools", "machines", "machinesets"],
            "verbs": ["delete"],
        },
        {"apiGroups": _PROVIDERS, "resources": _ANY, "verbs": ["delete", "patch"]},
        {"apiGroups": _CORE, "resources": ["secrets"], "verbs": ["create", "get"]},
    ],
    MachineReconciler().name: [
        {"apiGroups": _CLUSTER, "resources": ["machines"], "verbs": ["delete", "patch"]},
        {"apiGroups": _CLUSTER, "resources": ["machines/status"], "verbs": ["patch"]},
        {"apiGroups": _CLUSTER, "resources": ["machines/finalizers"], "verbs": ["update"]},
        {"apiGroups": _PROVIDERS, "resources": _ANY, "verbs": ["delete", "patch"]},
    ],
    MachineHealthCheckReconciler.name: [
        {"apiGroups": _CLUSTER, "resources": ["machinehealthchecks"], "verbs": ["delete", "patch"]},
        {"apiGroups": _CLUSTER, "resources": ["machinehealthchecks/status", "machines/status"], "verbs": ["patch"]},
        {"apiGroups": _PROVIDERS, "resources": _ANY, "verbs": ["create", "delete"]},
    ],
    MachineSetReconciler.name: [
        {"apiGroups": _CLUSTER, "resources": ["machinesets"], "verbs": ["delete", "patch"]},
        {"apiGroups": _CLUSTER, "resources": ["machinesets/status"], "verbs": ["patch"]},
        {"apiGroups": _CLUSTER, "resources": ["machinesets/finalizers"], "verbs": ["update"]},
        {"apiGroups": _CLUSTER, "resources": ["machines"], "verbs": ["create", "delete", "patch"]},
        {"apiGroups": _CLUSTER, "resources": ["machines/status"], "verbs": ["patch"]},
        {"apiGroups": _PROVIDERS, "resources": _ANY, "verbs": ["create", "delete", "patch"]},
    ],
    MachineDeploymentReconciler.name: [
        {"apiGroups": _CLUSTER, "resources": ["machinedeployments"], "verbs": ["delete", "patch"]},
        {"apiGroups": _CLUSTER, "resources": ["machinedeployments/status"], "verbs": ["patch"]},
        {"apiGroups": _CLUSTER, "resources": ["machinedeployments/finalizers"], "verbs": ["update"]},
        {"apiGroups": _CLUSTER, "resources": ["machinesets"], "verbs": ["create", "delete", "patch"]},
        {"apiGroups": _PROVIDERS, "resources": _ANY, "verbs": ["delete", "patch"]},
    ],
    MachinePoolReconciler.name: [
        {"apiGroups": _CLUSTER, "resources": ["machinepools"], "verbs": ["delete", "patch"]},
        {"apiGroups": _CLUSTER, "resources": ["machinepools/status"], "verbs": ["patch"]},
        {"apiGroups": _CLUSTER, "resources": ["machinepools/finalizers"], "verbs": ["update"]},
        {"apiGroups": _PROVIDERS, "resources": _ANY, "verbs": ["delete", "patch"]},
    ],
    ResourceApplyingReconciler.name: [
        {"apiGroups": _ADDONS, "resources": ["clusterresourcesetbindings"], "verbs": ["create", "delete", "patch"]},
        {"apiGroups": _CORE, "resources": ["configmaps", "secrets"], "verbs": ["get"]},
    ],
    ClusterResourceSetReconciler.name: [
        {"apiGroups": _ADDONS, "resources": ["clusterresourcesets", "clusterresourcesets/status"], "verbs": ["patch"]},
        {"apiGroups": _ADDONS, "resources": ["clusterresourcesetbindings"], "verbs": ["delete", "patch"]},
        {"apiGroups": _CORE, "resources": ["configmaps", "secrets"], "verbs": ["get", "patch"]},
    ],
    ClusterClassReconciler.name: [
        {"apiGroups": _CLUSTER, "resources": ["clusterclasses", "clusterclasses/status"], "verbs": ["patch"]},
        {"apiGroups": _PROVIDERS, "resources": _ANY, "verbs": ["delete", "patch"]},
    ],
    TopologyReconciler.name: [
        # templates of others' clusters name Templates: whoever wrote them was checked
        {"apiGroups": ["tinkerbell.org"], "resources": ["templates"], "verbs": [USE]},
        {"apiGroups": _CLUSTER, "resources": ["clusters", "clusters/status"], "verbs": ["patch"]},
        {"apiGroups": _CLUSTER, "resources": ["clusters/finalizers"], "verbs": ["update"]},
        {
            "apiGroups": _CLUSTER,
            "resources": ["machinedeployments", "machinehealthchecks", "machinepools"],
            "verbs": ["create", "delete", "patch"],
        },
        {"apiGroups": _PROVIDERS, "resources": _ANY, "verbs": ["create", "delete", "patch"]},
    ],
    TopologyDeploymentReconciler.name: [
        {"apiGroups": _CLUSTER, "resources": ["machinedeployments"], "verbs": ["patch"]},
        {"apiGroups": _CLUSTER, "resources": ["machinehealthchecks"], "verbs": ["delete"]},
        {"apiGroups": _PROVIDERS, "resources": _ANY, "verbs": ["delete"]},
    ],
    TopologyMachineSetReconciler.name: [
        {"apiGroups": _CLUSTER, "resources": ["machinesets"], "verbs": ["patch"]},
        {"apiGroups": _PROVIDERS, "resources": _ANY, "verbs": ["delete"]},
    ],
}
"""PolicyRules by the controller's name.

`.../finalizers` is for owner references that block deletion, and `delete` also for who changes an object's owners:
where the admission plugin OwnerReferencesPermissionEnforcement is on, as on some distributions, both are asked for.
Secrets are nobody's to delete: there a Secret that somebody else has made keeps its owners.
"""

_READ: Final = ["get", "list", "watch"]
READS: Final[Sequence[Mapping[str, Sequence[str]]]] = [
    {
        "apiGroups": _CLUSTER,
        "resources": [
            "clusters",
            "clusterclasses",
            "machinedeployments",
            "machinedrainrules",
            "machinehealthchecks",
            "machinepools",
            "machines",
            "machinesets",
        ],
        "verbs": _READ,
    },
    {"apiGroups": _PROVIDERS, "resources": _ANY, "verbs": _READ},
    {"apiGroups": _ADDONS, "resources": ["clusterresourcesetbindings", "clusterresourcesets"], "verbs": _READ},
    {"apiGroups": _CORE, "resources": ["configmaps", "secrets"], "verbs": _READ},
    {"apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"], "verbs": _READ},
]
"""PolicyRules for what all of them watch: of Secrets, that one is there."""
JUDGES_BY: Final[Sequence[Mapping[str, Sequence[str]]]] = [
    {"apiGroups": ["ipam.cluster.x-k8s.io"], "resources": ["ipaddressclaims", "ipaddresses"], "verbs": ["get", "list"]},
]
"""PolicyRules for what admission reads besides: the claim that an IPAddress is for, what a pool gave out."""


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
    """The controllers.

    Args:
        workloads: the connections to workload clusters.
        api: the manager's API, for those without an identity of their own.
        clock: for how long certificates are good, and when something was done.
        api_of: the API under the identity of a controller, by its name; None for the manager's.
        schemas: reads the schemas of a ClusterClass's variables.
        algorithm: of the keys in kubeconfigs that are made here.
        synced: labels and annotations of Machines that go to Nodes besides the usual ones.
    """
    cluster, machine, ledger = ClusterReconciler(), MachineReconciler(synced), Ledger()
    return [
        Controller(
            cluster,
            performers={KUBECONFIG: KubeconfigMaker(api_of(cluster.name) or api, clock, algorithm)},
            askers=askers(workloads),
            api=api_of(cluster.name),
            feeds=(workloads.feed,),
        ),
        Controller(
            machine,
            performers=machine_performers.performers(workloads.api, ledger, clock),
            askers={**askers(workloads), **machine_questions.askers(workloads.api, ledger)},
            api=api_of(machine.name),
            feeds=(workloads.feed,),
        ),
        Controller(
            MachineHealthCheckReconciler(),
            askers=askers(workloads),
            api=api_of(MachineHealthCheckReconciler.name),
            feeds=(spaced(workloads.feed, SPACING_S),),
        ),
        Controller(MachineSetReconciler(), api=api_of(MachineSetReconciler.name)),
        Controller(MachineDeploymentReconciler(), api=api_of(MachineDeploymentReconciler.name)),
        Controller(
            MachinePoolReconciler(),
            askers=askers(workloads),
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
            askers={**askers(workloads), ContentHash: reader.hash},
            api=api_of(applying.name),
            feeds=(workloads.feed,),
        ),
        Controller(sets, askers={ContentHash: Reader(api_of(sets.name) or api).hash}, workers=4, api=api_of(sets.name)),
    ]
