"""When the certificates of control plane hosts end: each API server is asked once, its KubeadmConfig keeps the answer.

The Machine's controller takes it over into `status.certificatesExpiryDate`, which `spec.rollout.before` goes by.
Whoever renews certificates on a host takes the annotation off, and the API server is asked again.

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

ASK_S: Final = 300.0
_TIMEOUT_S: Final = 15.0


def queries(
    cluster: ClusterKey, machines: Sequence[Machine], configs: Mapping[str, KubeadmConfig]
) -> dict[str, ServingCertificate]:
    """What is not known yet, by the name of the Machine."""
    return {
        machine.metadata.name: ServingCertificate(cluster, machine.status.node_ref.name, port(config))
        for machine in machines
        if has_node(machine) and not is_deleting(machine)
        if (config := configs.get(machine.metadata.name)) is not None
        if ANNOTATION_CERTIFICATES_EXPIRY not in config.metadata.annotations
    }


def port(config: KubeadmConfig) -> int:
    """Where the API server of a host listens."""
    joins = config.spec.join_configuration.control_plane
    return (
        config.spec.init_configuration.local_api_endpoint.bind_port
        or (joins.local_api_endpoint.bind_port if joins is not None else 0)
        or KUBERNETES_API_PORT
    )


def needs(asked: Mapping[str, ServingCertificate], machines: Sequence[Machine]) -> Iterator[Need[Any]]:
    """What has to be asked. A host may have been another Machine's before, under the same name."""
    made = {machine.metadata.name: created(machine) for machine in machines}
    for name, query in asked.items():
        yield Need(query, ASK_S, newer_than=made[name], timeout_s=_TIMEOUT_S)


def noted(
    facts: Mapping[str, Fact[datetime] | None],
    machines: Sequence[Machine],
    configs: Mapping[str, KubeadmConfig],
) -> Iterator[Action]:
    """The patches that keep the answers; `facts` are by the name of the Machine, as `queries`."""
    made = {machine.metadata.name: created(machine) for machine in machines}
    for name, fact in facts.items():
        if fact is None or fact.value is None or fact.error is not None or fact.at is None or fact.at < made[name]:
            continue
        body = {"metadata": {"annotations": {ANNOTATION_CERTIFICATES_EXPIRY: rfc3339(fact.value)}}}
        yield patch(KUBEADM_CONFIG, configs[name], body)
