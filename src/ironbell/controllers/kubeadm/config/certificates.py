"""The key pairs of a control plane's machine, and the paths at which kubeadm reads them.

Source: kubernetes-sigs/cluster-api: util/secret/certificates.go; kubernetes/kubernetes:
cmd/kubeadm/app/constants/constants.go for the file names.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ironbell.contract.clusters.secrets import Purpose
from ironbell.contract.pki import KeyPair
from ironbell.controllers.kubeadm.config.rendering.kubeadm import Spec
from ironbell.controllers.kubeadm.config.rendering.userdata import WriteFile

DEFAULT_FOLDER: Final = "/etc/kubernetes/pki"
_OWNER: Final = "root:root"


@dataclass(frozen=True, slots=True)
class Place:
    """A key pair and the paths of its files on the host."""

    purpose: Purpose
    certificate: str
    key: str
    is_external: bool = False
    """Whether the user supplies it; the user may keep the key of an etcd authority."""


def places(cluster_configuration: Spec) -> Sequence[Place]:
    """Return the key pairs of a control plane's machine, in the order in which they are written."""
    folder = cluster_configuration.get("certificatesDir") or DEFAULT_FOLDER
    external: Spec = cluster_configuration.get("etcd", {}).get("external") or {}

    def pair(purpose: Purpose, stem: str, certificate: str = ".crt") -> Place:
        return Place(purpose, posixpath.join(folder, stem + certificate), posixpath.join(folder, f"{stem}.key"))

    etcd = pair(Purpose.ETCD_CA, "etcd/ca")
    if external:
        etcd = Place(Purpose.ETCD_CA, external.get("caFile", ""), "", is_external=True)
    client = Place(
        Purpose.API_SERVER_ETCD_CLIENT, external.get("certFile", ""), external.get("keyFile", ""), is_external=True
    )
    return [
        pair(Purpose.CLUSTER_CA, "ca"),
        etcd,
        pair(Purpose.FRONT_PROXY_CA, "front-proxy-ca"),
        pair(Purpose.SERVICE_ACCOUNT, "sa", ".pub"),
        *([client] if external else []),
    ]


def certificate_files(places: Sequence[Place], pairs: Mapping[Purpose, KeyPair]) -> Iterator[WriteFile]:
    """Yield the files of the existing key pairs."""
    for place in places:
        pair = pairs.get(place.purpose)
        if pair is None:
            continue
        if pair.certificate:
            yield WriteFile(place.certificate, pair.certificate.decode(), owner=_OWNER, permissions="0640")
        # the key of an external etcd's authority has no path; upstream writes a file without a path
        if pair.key and place.key:
            yield WriteFile(place.key, pair.key.decode(), owner=_OWNER, permissions="0600")
