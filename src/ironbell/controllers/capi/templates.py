"""Templates that a cluster's objects refer to: the Cluster is an owner of each, so that they move along with it.

Source: kubernetes-sigs/cluster-api: core/reconcilers/machinedeployment/machinedeployment_controller.go
(reconcileExternalTemplateReference).
"""

from __future__ import annotations

from ironbell.api.cluster import CLUSTER
from ironbell.api.cluster.cluster import Cluster
from ironbell.contract.clusters.external import External
from ironbell.contract.owners import owner_reference, owners_patch, with_owner
from ironbell.contract.templates import SUFFIX
from ironbell.kube.decision import MergePatch
from ironbell.kube.finalizers import is_deleting


def owned_template(cluster: Cluster, template: External | None) -> MergePatch | None:
    """The patch that makes the Cluster an owner of a template; None if it is, if there is none, or if it goes."""
    if template is None or not template.is_found or not template.reference.kind.endswith(SUFFIX):
        return None
    if is_deleting(cluster) or template.is_deleting:
        return None
    kind, obj = template.found
    return owners_patch(kind, obj, with_owner(obj.metadata.owner_references, owner_reference(CLUSTER, cluster)))
