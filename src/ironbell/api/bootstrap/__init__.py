"""Group `bootstrap.cluster.x-k8s.io`: how machines become Nodes."""

from typing import Any

from ironbell.api.bootstrap.kubeadmconfig import KUBEADM_CONFIG
from ironbell.api.bootstrap.kubeadmconfigtemplate import KUBEADM_CONFIG_TEMPLATE
from ironbell.api.kind import Kind

KINDS: tuple[Kind[Any], ...] = (KUBEADM_CONFIG, KUBEADM_CONFIG_TEMPLATE)
"""All of them, in the order in which they are shown."""

__all__ = ["KINDS", "KUBEADM_CONFIG", "KUBEADM_CONFIG_TEMPLATE"]
