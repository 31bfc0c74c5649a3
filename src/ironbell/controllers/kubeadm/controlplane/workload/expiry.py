"""Expiry of the certificates on control plane hosts: each API server is queried once, and its KubeadmConfig records it.

The Machine's controller copies it to `status.certificatesExpiryDate`, which `spec.rollout.before` uses. After a renewal
of the certificates on a host the annotation has to be removed; then the API server is queried again.

Source: kubernetes-sigs/cluster-api: controlplane/kubeadm/reconcilers/kubeadmcontrolplane
(reconcileCertificateExpiries), controlplane/kubeadm/pkg/workload_cluster.go (calculateAPIServerPort).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from ironbell.api.bootstrap.kubeadmconfig import KUBEADM_CONFIG, KubeadmConfig
from ironbell.api.cluster.machine import Machine
from ironbell.api.cluster.names import ANNOTATION_CERTIFICATES_EXPIRY
from ironbell.base.clock import rfc3339
from ironbell.base.ports import KUBERNETES_API_PORT
from ironbell.controllers.kubeadm.controlplane.model import created, has_node, is_deleting
from ironbell.controllers.kubeadm.controlplane.workload.queries import ServingCertificate
from ironbell.kube.decision import Action, Fact, Need, patch
from ironbell.workload.clusterkey import ClusterKey

MAX_AGE_S: Final = 300.0
_TIMEOUT_S: Final = 15.0


def queries(
    cluster: ClusterKey, machines: Sequence[Machine], configs: Mapping[str, KubeadmConfig]
) -> dict[str, ServingCertificate]:
    """Return the queries for unrecorded certificates, by the name of the Machine."""
    return {
        machine.metadata.name: ServingCertificate(cluster, machine.status.node_ref.name, port(config))
        for machine in machines
        if has_node(machine) and not is_deleting(machine)
        if (config := configs.get(machine.metadata.name)) is not None
        if ANNOTATION_CERTIFICATES_EXPIRY not in config.metadata.annotations
    }


def port(config: KubeadmConfig) -> int:
    """Return the port of the API server on a host."""
    joins = config.spec.join_configuration.control_plane
    return (
        config.spec.init_configuration.local_api_endpoint.bind_port
        or (joins.local_api_endpoint.bind_port if joins is not None else 0)
        or KUBERNETES_API_PORT
    )


def needs(pending: Mapping[str, ServingCertificate], machines: Sequence[Machine]) -> Iterator[Need[Any]]:
    """Yield the needed queries. Facts must be newer than the Machine, since an earlier one may have had its name."""
    creation_times = {machine.metadata.name: created(machine) for machine in machines}
    for name, query in pending.items():
        yield Need(query, MAX_AGE_S, newer_than=creation_times[name], timeout_s=_TIMEOUT_S)


def recorded(
    facts: Mapping[str, Fact[datetime] | None],
    machines: Sequence[Machine],
    configs: Mapping[str, KubeadmConfig],
) -> Iterator[Action]:
    """Yield the patches that record the facts, which are by the name of the Machine, as the `queries`."""
    creation_times = {machine.metadata.name: created(machine) for machine in machines}
    for name, fact in facts.items():
        if (
            fact is None
            or fact.value is None
            or fact.error is not None
            or fact.at is None
            or fact.at < creation_times[name]
        ):
            continue
        body = {"metadata": {"annotations": {ANNOTATION_CERTIFICATES_EXPIRY: rfc3339(fact.value)}}}
        yield patch(KUBEADM_CONFIG, configs[name], body)
