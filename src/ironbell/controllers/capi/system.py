"""The system of Cluster API's own controllers."""

from __future__ import annotations

from typing import Final

from ironbell.contract.system import Definitions, Lazy, Option, Provider, System

_CONTROLLERS: Final = "ironbell.controllers.capi.controllers"
_ADMITTED: Final = frozenset(
    {
        "clusters.cluster.x-k8s.io",
        "machines.cluster.x-k8s.io",
        "machinesets.cluster.x-k8s.io",
        "machinedeployments.cluster.x-k8s.io",
        "machinepools.cluster.x-k8s.io",
        "machinehealthchecks.cluster.x-k8s.io",
        "machinedrainrules.cluster.x-k8s.io",
        "clusterclasses.cluster.x-k8s.io",
        "clusterresourcesets.addons.cluster.x-k8s.io",
        "clusterresourcesetbindings.addons.cluster.x-k8s.io",
        "ipaddresses.ipam.cluster.x-k8s.io",
        "ipaddressclaims.ipam.cluster.x-k8s.io",
    }
)

SYSTEMS: Final = (
    System(
        "cluster-api",
        "Clusters, Machines, MachineSets, MachineDeployments: from a manifest to nodes that run.",
        tuple(
            Lazy(f"ironbell.api.{group}", "KINDS") for group in ("cluster", "addons", "clusteripam", "clusterruntime")
        ),
        Lazy(_CONTROLLERS, "PERMISSIONS"),
        Lazy(_CONTROLLERS, "create_controllers"),
        aliases=("capi", "core"),
        definitions=Definitions.WITH_WEBHOOKS,
        admission=Lazy("ironbell.controllers.capi.admission.kinds", "ADMISSION"),
        admitted=_ADMITTED,
        converted=_ADMITTED | {"extensionconfigs.runtime.cluster.x-k8s.io"},
        provider=Provider("cluster-api", "cluster-api", "CoreProvider", "v1.14.2"),
        options=(
            Option(
                "--additional-sync-machine-labels",
                "sync_labels",
                "cluster-api: further labels that go from Machines to Nodes.",
                multiple=True,
                metavar="REGEX",
            ),
            Option(
                "--additional-sync-machine-annotations",
                "sync_annotations",
                "cluster-api: further annotations that go from Machines to Nodes.",
                multiple=True,
                metavar="REGEX",
            ),
        ),
        read_settings=Lazy("ironbell.controllers.capi.machine.node_metadata", "read_settings"),
    ),
)
