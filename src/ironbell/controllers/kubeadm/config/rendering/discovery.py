"""How a machine that joins finds its cluster: by token and key digest, or by a kubeconfig.

What a user has said stays; the rest is written into the spec, as upstream does, so that it can be seen and is the same
when data are made again.

Source: kubernetes-sigs/cluster-api: bootstrap/kubeadm/reconcilers/kubeadmconfig/kubeadmconfig_controller.go
(reconcileDiscovery, reconcileDiscoveryFile).
"""

from __future__ import annotations

import base64

from ironbell.contract import pki
from ironbell.controllers.kubeadm.config.rendering.kubeadm import Spec
from ironbell.controllers.kubeadm.config.rendering.userdata import Role
from ironbell.kube.decision import Fields


def discovery_patch(spec: Spec, role: Role, endpoint: str, authority: bytes, token: str) -> Fields:
    """What is to be written into a spec; empty if nothing is missing.

    Args:
        spec: the spec as it is.
        role: what the machine becomes.
        endpoint: `host:port` of the control plane.
        authority: the cluster's certificates, in PEM.
        token: to be used where there is none; a new one for a pool takes the place of the old one.

    Raises:
        PkiError: the certificates cannot be read.
    """
    join: Spec = spec.get("joinConfiguration", {})
    discovery: Spec = join.get("discovery", {})
    change: Fields = {}
    file = _file(discovery.get("file", {}), endpoint, authority)
    if file is not None:
        if file:
            change["discovery"] = {"file": {"kubeConfig": {"cluster": file}}}
    elif missing := _token(discovery.get("bootstrapToken", {}), endpoint, authority, token):
        change["discovery"] = {"bootstrapToken": missing}
    if role is Role.CONTROL_PLANE and join.get("controlPlane") is None:
        change["controlPlane"] = {}
    return {"spec": {"joinConfiguration": change}} if change else {}


def _file(file: Spec, endpoint: str, authority: bytes) -> Fields | None:
    """What a kubeconfig lacks; None where discovery is not by file."""
    if not file:
        return None
    kubeconfig: Spec = file.get("kubeConfig", {})
    if not kubeconfig:
        return {}
    cluster: Spec = kubeconfig.get("cluster", {})
    missing: Fields = {}
    if not cluster.get("server"):
        missing["server"] = f"https://{endpoint}"
    if not cluster.get("certificateAuthorityData"):
        missing["certificateAuthorityData"] = base64.b64encode(authority).decode()
    return missing


def _token(given: Spec, endpoint: str, authority: bytes, token: str) -> Fields:
    missing: Fields = {}
    if not given.get("caCertHashes"):
        missing["caCertHashes"] = pki.certificate_hashes(authority)
    if not given.get("apiServerEndpoint"):
        missing["apiServerEndpoint"] = endpoint
    if token and given.get("token") != token:
        missing["token"] = token
    return missing
