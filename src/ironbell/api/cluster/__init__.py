"""Group `cluster.x-k8s.io`: clusters and their machines."""

from typing import Any

from ironbell.api.cluster.classes.clusterclass import CLUSTER_CLASS
from ironbell.api.cluster.cluster import CLUSTER
from ironbell.api.cluster.machine import MACHINE
from ironbell.api.cluster.machinedeployment import MACHINE_DEPLOYMENT
from ironbell.api.cluster.machinedrainrule import MACHINE_DRAIN_RULE
from ironbell.api.cluster.machinehealthcheck import MACHINE_HEALTH_CHECK
from ironbell.api.cluster.machinepool import MACHINE_POOL
from ironbell.api.cluster.machineset import MACHINE_SET
from ironbell.api.kind import Kind

KINDS: tuple[Kind[Any], ...] = (
    CLUSTER,
    MACHINE,
    MACHINE_SET,
    MACHINE_DEPLOYMENT,
    MACHINE_POOL,
    MACHINE_HEALTH_CHECK,
    MACHINE_DRAIN_RULE,
    CLUSTER_CLASS,
)
"""All of them, in the order in which they are shown."""

__all__ = [
    "CLUSTER",
    "CLUSTER_CLASS",
    "KINDS",
    "MACHINE",
    "MACHINE_DEPLOYMENT",
    "MACHINE_DRAIN_RULE",
    "MACHINE_HEALTH_CHECK",
    "MACHINE_POOL",
    "MACHINE_SET",
]
