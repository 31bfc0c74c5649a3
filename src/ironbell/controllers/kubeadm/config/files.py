"""Files and users of a KubeadmConfig, with what they refer to filled in.

Source: kubernetes-sigs/cluster-api: bootstrap/kubeadm/reconcilers/kubeadmconfig/{kubeadmconfig_controller,template}.go.
"""

from __future__ import annotations

from ironbell.controllers.kubeadm.config.userdata import Part, WriteFile


def plain_file(file: Part) -> WriteFile:
    """A file whose content stands in the spec."""
    return WriteFile(
        file.get("path", ""),
        file.get("content", ""),
        owner=file.get("owner", ""),
        permissions=file.get("permissions", ""),
        encoding=file.get("encoding", ""),
        append=file.get("append"),
    )
