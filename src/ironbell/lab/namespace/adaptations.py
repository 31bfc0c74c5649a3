"""Settings of an installed Kubernetes node that shares its host's kernel. Pure.

Laid over its files while it runs, never written to its disk: nothing of this reaches an image or a real server.

- The kubelet and runc manage cgroups by themselves: systemd in a cgroup of version 1 does not do it for them.
- The kubelet runs on cgroups of version 1, and kubeadm lets it.
- containerd leaves a process's OOM score where the host does not let it be lowered.

Source: kubernetes/kubernetes: pkg/kubelet/apis/config; containerd: docs/cri/config.md.
"""

from __future__ import annotations

import re
from typing import Final

KUBELET_FOLDER: Final = "etc/kubernetes/kubelet.conf.d"
KUBELET_FILE: Final = "90-namespace-machine.conf"
KUBELET_SETTINGS: Final = """\
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cgroupDriver: cgroupfs
failCgroupV1: false
"""
CONTAINERD_FILE: Final = "etc/containerd/config.toml"
KUBEADM: Final = "usr/bin/kubeadm"
KUBEADM_MOVED: Final = "/run/namespace-machine/kubeadm"
KUBEADM_WRAPPER: Final = f"""\
#!/bin/sh
# Where the host has cgroups of version 1, kubeadm's check of the system would reject it.
case "$1" in
    init | join) exec {KUBEADM_MOVED} "$@" --ignore-preflight-errors=SystemVerification ;;
    *) exec {KUBEADM_MOVED} "$@" ;;
esac
"""
# Values of the kernel that a node's kubelet sets for the whole host; each machine gets a file of its own instead.
TUNABLES: Final = {
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/keys/root_maxbytes": "25000000",
}
_CRI = re.compile(r'^(\[plugins\."io\.containerd\.grpc\.v1\.cri"\])$', re.MULTILINE)


def containerd_settings(text: str) -> str:
    """containerd's own settings, changed."""
    text = text.replace("SystemdCgroup = true", "SystemdCgroup = false")
    return _CRI.sub(r"\1\n  restrict_oom_score_adj = true", text)
