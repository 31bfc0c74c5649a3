"""Authorities and the administrator's kubeconfig of a cluster: their creation, adoption and rotation. Pure.

Authorities are created only until the control plane is initialized: a cluster does not trust others later. Authorities
that users supply, and Secrets of another type, are never changed.

Source: kubernetes-sigs/cluster-api: controlplane/kubeadm/reconcilers/kubeadmcontrolplane
(reconcileClusterCertificates, ensureCertificatesOwnerRef, reconcileKubeconfig, adoptKubeconfigSecret).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from ironbell.api.controlplane.kubeadmcontrolplane import KUBEADM_CONTROL_PLANE, KubeadmControlPlane
from ironbell.api.core.secret import SECRET_METADATA, SecretMetadata
from ironbell.api.meta import OwnerReference
from ironbell.contract.clusters.kubeconfig import ROTATE_BEFORE
from ironbell.contract.clusters.secrets import SECRET_TYPE, Purpose
from ironbell.contract.owners import controller_of, is_same_owner, owner_reference, owners_patch, with_owner
from ironbell.contract.pki import KeyAlgorithm, algorithm_of
from ironbell.controllers.kubeadm.controlplane.conditions.marks import Mark
from ironbell.controllers.kubeadm.controlplane.observed import Observed, kubeconfig_query
from ironbell.controllers.kubeadm.controlplane.workload.queries import KUBECONFIG_S
from ironbell.kube.decision import Action, Effect, Key, MergePatch, Need
from ironbell.workload.clusterkey import ClusterKey

CREATE_CERTIFICATES: Final = "kubeadm-make-certificates"
CREATE_KUBECONFIG: Final = "kubeadm-make-kubeconfig"
ROTATE_KUBECONFIG: Final = "kubeadm-rotate-kubeconfig"
_EFFECT_S: Final = 120.0
_ALWAYS: Final = (Purpose.CLUSTER_CA, Purpose.SERVICE_ACCOUNT, Purpose.FRONT_PROXY_CA)


@dataclass(frozen=True, slots=True)
class CreateCertificates:
    """Arguments of the effect that creates authorities."""

    cluster: Key
    owner: OwnerReference
    purposes: tuple[Purpose, ...]
    algorithm: KeyAlgorithm
    days: int


@dataclass(frozen=True, slots=True)
class CreateKubeconfig:
    """Arguments of the effects that create and rotate the kubeconfig."""

    cluster: Key
    owner: OwnerReference
    server: str
    algorithm: KeyAlgorithm


@dataclass(frozen=True)
class Credentials:
    """The condition of the certificates, and actions for them."""

    mark: Mark
    actions: tuple[Action, ...] = ()


def authorities(observed: Observed, *, etcd_managed: bool, initialized: bool) -> Credentials:
    """Return the creation of missing authorities while it is allowed, or else the condition that they are missing."""
    kcp = observed.kcp
    generated = (*_ALWAYS, Purpose.ETCD_CA) if etcd_managed else _ALWAYS
    supplied = () if etcd_managed else (Purpose.ETCD_CA, Purpose.API_SERVER_ETCD_CLIENT)
    missing = [purpose for purpose in (*generated, *supplied) if purpose not in observed.secrets]
    creatable = tuple(purpose for purpose in generated if purpose in missing) if not initialized else ()
    present = [observed.secrets[purpose] for purpose in generated if purpose in observed.secrets]
    adopted = tuple(patch for patch in (adopt(kcp, secret) for secret in present) if patch is not None)
    if creatable and observed.cluster is not None:
        arguments = CreateCertificates(
            observed.cluster.key, controller(kcp), creatable, _algorithm(kcp), _authority_days(kcp)
        )
        mark = Mark("Unknown", "InternalError", f"Making certificates for {', '.join(creatable)}")
        return Credentials(mark, (*adopted, Effect(CREATE_CERTIFICATES, arguments, timeout_s=_EFFECT_S)))
    if missing:
        return Credentials(Mark("False", "NotAvailable", _missing(missing)), adopted)
    return Credentials(Mark("True", "Available"), adopted)


def _missing(purposes: Iterable[Purpose]) -> str:
    names = list(purposes)
    subject, verb = ("certificate", "is") if len(names) == 1 else ("certificates", "are")
    return f"Cluster {subject} for {', '.join(names)} {verb} not available, please check cluster certificate secrets"


def kubeconfig(observed: Observed, server: str, now: datetime) -> tuple[tuple[Action, ...], list[Need[Any]]]:
    """Return the actions and queries for the kubeconfig."""
    kcp, cluster, secrets = observed.kcp, observed.cluster, observed.secrets
    if cluster is None or Purpose.CLUSTER_CA not in secrets:
        return (), []
    arguments = CreateKubeconfig(cluster.key, controller(kcp), server, _algorithm(kcp))
    secret = secrets.get(Purpose.KUBECONFIG)
    if secret is None:
        return (Effect(CREATE_KUBECONFIG, arguments, timeout_s=_EFFECT_S),), []
    if (adopted := adopt(kcp, secret)) is not None:
        return (adopted,), []
    query = kubeconfig_query(ClusterKey.of(cluster), secrets)
    if query is None or not _is_controlled(kcp, secret):
        return (), []
    needed: list[Need[Any]] = [Need(query, KUBECONFIG_S)]
    fact = observed.facts.kubeconfig_end
    ends = fact.value if fact is not None and fact.error is None else None
    if ends is not None and ends - now < ROTATE_BEFORE:
        effect = Effect(ROTATE_KUBECONFIG, arguments, timeout_s=_EFFECT_S, outdates=(query,))
        return (effect,), needed
    return (), needed


def adopt(kcp: KubeadmControlPlane, secret: SecretMetadata) -> MergePatch | None:
    """Return the patch that makes the control plane the controller of a Secret of Cluster API's type; None if it is the
    controller, or cannot become it."""
    if secret.type != SECRET_TYPE or secret.metadata.deletion_timestamp is not None:
        return None
    desired = controller(kcp)
    current = controller_of(secret)
    others = [
        owner
        for owner in secret.metadata.owner_references
        if current is None or is_same_owner(current, desired) or owner != current
    ]
    return owners_patch(SECRET_METADATA, secret, with_owner(others, desired))


def controller(kcp: KubeadmControlPlane) -> OwnerReference:
    """Return the control plane as the controller of the objects that it creates."""
    return owner_reference(KUBEADM_CONTROL_PLANE, kcp, controller=True)


def _is_controlled(kcp: KubeadmControlPlane, secret: SecretMetadata) -> bool:
    owner = controller_of(secret)
    return owner is not None and owner.uid == kcp.metadata.uid


def _algorithm(kcp: KubeadmControlPlane) -> KeyAlgorithm:
    return algorithm_of(kcp.spec.kubeadm_config_spec.cluster_configuration.encryption_algorithm)


def _authority_days(kcp: KubeadmControlPlane) -> int:
    return kcp.spec.kubeadm_config_spec.cluster_configuration.ca_certificate_validity_period_days
