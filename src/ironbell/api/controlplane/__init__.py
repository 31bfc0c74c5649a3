"""Group `controlplane.cluster.x-k8s.io`: control planes of clusters."""

from typing import Any

from ironbell.api.controlplane.kubeadmcontrolplane import KUBEADM_CONTROL_PLANE
from ironbell.api.controlplane.kubeadmcontrolplanetemplate import KUBEADM_CONTROL_PLANE_TEMPLATE
from ironbell.api.kind import Kind

KINDS: tuple[Kind[Any], ...] = (KUBEADM_CONTROL_PLANE, KUBEADM_CONTROL_PLANE_TEMPLATE)
"""All of them, in the order in which they are shown."""

__all__ = ["KINDS", "KUBEADM_CONTROL_PLANE", "KUBEADM_CONTROL_PLANE_TEMPLATE"]
