"""Which definitions' objects are converted here: to be known without loading any rule."""

from __future__ import annotations

from typing import Final

CONVERTED: Final = frozenset(
    {
        "clusters.cluster.x-k8s.io",
        "machines.cluster.x-k8s.io",
        "machinesets.cluster.x-k8s.io",
        "machinedeployments.cluster.x-k8s.io",
        "machinepools.cluster.x-k8s.io",
        "machinehealthchecks.cluster.x-k8s.io",
        "machinedrainrules.cluster.x-k8s.io",
        "clusterclasses.cluster.x-k8s.io",
        "kubeadmconfigs.bootstrap.cluster.x-k8s.io",
        "kubeadmconfigtemplates.bootstrap.cluster.x-k8s.io",
        "kubeadmcontrolplanes.controlplane.cluster.x-k8s.io",
        "kubeadmcontrolplanetemplates.controlplane.cluster.x-k8s.io",
        "clusterresourcesets.addons.cluster.x-k8s.io",
        "clusterresourcesetbindings.addons.cluster.x-k8s.io",
        "ipaddresses.ipam.cluster.x-k8s.io",
        "ipaddressclaims.ipam.cluster.x-k8s.io",
        "extensionconfigs.runtime.cluster.x-k8s.io",
    }
)
