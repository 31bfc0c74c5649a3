"""Discovery of the cluster by a machine that joins: by token and key digest, or by a kubeconfig.

Fields that the user has set are kept; the others are written into the spec, as upstream does, so that they are visible
and stay the same when data are rendered again.

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
    """Return the patch that completes a spec's discovery; empty if nothing is missing.

    Args:
        spec: the current spec.
        role: the machine's role.
        endpoint: `host:port` of the control plane.
        authority: the cluster's certificates, in PEM.
        token: the token for a spec without one; a pool's new token replaces the old one.

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
    """Return the missing fields of a kubeconfig; None if the discovery is not by file."""
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
