"""Ignition 2.3, which Flatcar reads at its first boot, by way of Container Linux Configs.

The machine's tasks and the user's additions are both Container Linux Configs. Each is converted, and the second is
appended to the first.

Source: kubernetes-sigs/cluster-api: bootstrap/kubeadm/pkg/ignition; flatcar/container-linux-config-transpiler: config;
flatcar/ignition (v0.36): config/v2_3.
"""

from ironbell.controllers.kubeadm.config.ignition.config import ignition_config
from ironbell.controllers.kubeadm.config.ignition.convert import IgnitionError

__all__ = ["IgnitionError", "ignition_config"]
