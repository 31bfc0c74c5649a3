"""Labels of the definitions: which contracts the versions follow, and which provider a kind belongs to.

Source: kubernetes-sigs/cluster-api: core/config/default, bootstrap/kubeadm/config/crd, controlplane/kubeadm/config/crd;
cmd/clusterctl/client/repository/components.go for the label of clusterctl.
"""

from __future__ import annotations

from typing import Final

from ironbell.api.cluster.names import LABEL_CLUSTERCTL, LABEL_CLUSTERCTL_CORE, LABEL_CONTRACT_PREFIX, LABEL_PROVIDER

Labels = tuple[tuple[str, str], ...]

_CONTRACTS: Final[Labels] = (
    *((f"{LABEL_CONTRACT_PREFIX}{version}", version) for version in ("v1beta1", "v1beta2")),
    (LABEL_CLUSTERCTL, ""),  # what clusterctl adds when it installs: without it `clusterctl move` sees no object
)

CORE_LABELS: Final[Labels] = (*_CONTRACTS, (LABEL_PROVIDER, "cluster-api"))
BOOTSTRAP_KUBEADM_LABELS: Final[Labels] = (*_CONTRACTS, (LABEL_PROVIDER, "bootstrap-kubeadm"))
CONTROL_PLANE_KUBEADM_LABELS: Final[Labels] = (*_CONTRACTS, (LABEL_PROVIDER, "control-plane-kubeadm"))
CLUSTERCTL_LABELS: Final[Labels] = ((LABEL_CLUSTERCTL, ""), (LABEL_CLUSTERCTL_CORE, "inventory"))
