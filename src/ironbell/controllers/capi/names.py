"""Names of this group of controllers: how they are called, and annotations of our own."""

from __future__ import annotations

from typing import Final

CLUSTER_CONTROLLER: Final = "capi-cluster"
MACHINE_SET_CONTROLLER: Final = "capi-machineset"
MACHINE_DEPLOYMENT_CONTROLLER: Final = "capi-machinedeployment"
MACHINE_POOL_CONTROLLER: Final = "capi-machinepool"
RESOURCE_SET_CONTROLLER: Final = "capi-clusterresourceset"
RESOURCE_APPLYING_CONTROLLER: Final = "capi-clusterresourceset-applying"

ANNOTATION_SPREAD: Final = "ironbell.dev/spread-failure-domains"
"""On a MachineDeployment or MachineSet: spread Machines over these failure domains, or over all if `true`.

On a Machine: its failure domain was chosen by that, and is no part of its template.
"""
