"""Whether a machine of a cluster still has the server that a restored record says it has.

Yes, if the very Node that the Machine had in the backup is there and Ready, is older than the backup, and names this
server: then nothing has been installed on it since. Anything else is left to a person.
"""

from __future__ import annotations

from typing import Final

from ironbell.api.cluster.cluster import Cluster
from ironbell.api.cluster.machine import Machine
from ironbell.api.tinkerbell.hardware import HARDWARE, Hardware
from ironbell.base.clock import parse_rfc3339
from ironbell.contract.restored import Restored, confirmation
from ironbell.kube.decision import MergePatch, Need, patch
from ironbell.provisioner.lifecycle.names import provider_id
from ironbell.workload.clusterkey import ClusterKey
from ironbell.workload.nodes import NodeNow
from ironbell.workload.questions import NodeView

ASK_AGAIN_S: Final = 60.0
ANNOTATION_MACHINE: Final = "cluster.x-k8s.io/machine"
"""On a Node: name of its Machine."""


def question(machine: Machine | None, cluster: Cluster | None) -> NodeNow | None:
    """What is to be known; None for a Machine that had no Node yet."""
    if machine is None or cluster is None or not machine.status.node_ref.name:
        return None
    return NodeNow(ClusterKey.of(cluster), machine.status.node_ref.name)


def need(asked: NodeNow) -> Need[NodeView | None]:
    """The same, for a decision."""
    return Need(asked, ASK_AGAIN_S)


def still_runs(node: NodeView | None, machine: Machine, hardware: Hardware, found: Restored) -> bool:
    """Whether this Node is what ran on this server when the backup was made."""
    if node is None or node.deleting or not found.backup:
        return False
    ready = node.condition("Ready")
    try:
        is_older = parse_rfc3339(node.creation_timestamp) < parse_rfc3339(found.backup)
    except ValueError:
        return False
    return (
        is_older
        and ready is not None
        and ready.status == "True"
        and node.provider_id == provider_id(hardware)
        and node.annotations.get(ANNOTATION_MACHINE, machine.metadata.name) == machine.metadata.name
    )


def confirmed(hardware: Hardware) -> MergePatch:
    """The write that lets the server go."""
    return patch(HARDWARE, hardware, {"metadata": {"annotations": confirmation(hardware)}}, locked=True)
