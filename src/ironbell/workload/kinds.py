"""The collections of kinds in a workload cluster, for manifests that name only apiVersion and kind.

Kubernetes' own kinds are built in; others are looked up in the cluster's CustomResourceDefinitions. Kinds of aggregated
API servers are not supported.

Source: kubernetes/api; kubernetes/apiextensions-apiserver: pkg/apis/apiextensions/v1/types.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from ironbell.api.kind import Collection
from ironbell.base.errors import IronbellError, Retry

_GROUPS: Final[Mapping[str, str]] = {
    "": "ConfigMap Endpoints Event LimitRange PersistentVolumeClaim Pod PodTemplate ReplicationController ResourceQuota"
    " Secret Service ServiceAccount !Namespace !Node !PersistentVolume",
    "apps": "ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet",
    "batch": "CronJob Job",
    "autoscaling": "HorizontalPodAutoscaler",
    "policy": "PodDisruptionBudget",
    "networking.k8s.io": "Ingress NetworkPolicy !IngressClass !IPAddress !ServiceCIDR",
    "rbac.authorization.k8s.io": "Role RoleBinding !ClusterRole !ClusterRoleBinding",
    "storage.k8s.io": "CSIStorageCapacity !CSIDriver !CSINode !StorageClass !VolumeAttachment !VolumeAttributesClass",
    "coordination.k8s.io": "Lease",
    "discovery.k8s.io": "EndpointSlice",
    "events.k8s.io": "Event",
    "scheduling.k8s.io": "!PriorityClass",
    "node.k8s.io": "!RuntimeClass",
    "certificates.k8s.io": "!CertificateSigningRequest !ClusterTrustBundle",
    "flowcontrol.apiserver.k8s.io": "!FlowSchema !PriorityLevelConfiguration",
    "admissionregistration.k8s.io": "!MutatingWebhookConfiguration !ValidatingWebhookConfiguration"
    " !ValidatingAdmissionPolicy !ValidatingAdmissionPolicyBinding !MutatingAdmissionPolicy"
    " !MutatingAdmissionPolicyBinding",
    "apiextensions.k8s.io": "!CustomResourceDefinition",
    "apiregistration.k8s.io": "!APIService",
    "resource.k8s.io": "ResourceClaim ResourceClaimTemplate !DeviceClass !ResourceSlice",
}
"""Kinds by group; cluster-scoped kinds have an exclamation mark."""


class UnknownKindError(IronbellError):
    """The cluster does not serve this kind (yet)."""

    reason = "UnknownKind"
    retry = Retry.BACKOFF

    def __init__(self, api_version: str, kind: str) -> None:
        super().__init__(f"no matches for kind {kind!r} in version {api_version!r}")


def plural_of(kind: str) -> str:
    """Return the plural of one of Kubernetes' own kinds."""
    name = kind.lower()
    if name.endswith("s"):
        return name if name == "endpoints" else f"{name}es"
    return f"{name[:-1]}ies" if name.endswith("y") and name[-2] not in "aeiou" else f"{name}s"


_OWN: Final[Mapping[tuple[str, str], bool]] = {
    (group, kind.removeprefix("!")): not kind.startswith("!")
    for group, kinds in _GROUPS.items()
    for kind in kinds.split()
}


def locate(api_version: str, kind: str, definitions: Iterable[Mapping[str, Any]] = ()) -> Collection:
    """Return the collection of a kind.

    Args:
        api_version: such as `apps/v1`.
        kind: such as `DaemonSet`.
        definitions: the cluster's CustomResourceDefinitions, as plain data.

    Raises:
        UnknownKindError: the kind is neither Kubernetes' own nor defined.
    """
    group, _, version = api_version.rpartition("/")
    if (group, kind) in _OWN:
        return Collection(group, version, plural_of(kind), _OWN[group, kind])
    for definition in definitions:
        spec = definition.get("spec") or {}
        names = spec.get("names") or {}
        if spec.get("group") == group and names.get("kind") == kind:
            return Collection(group, version, str(names.get("plural")), spec.get("scope") == "Namespaced")
    raise UnknownKindError(api_version, kind)


def is_own(api_version: str, kind: str) -> bool:
    """Return whether a kind is one of Kubernetes' own."""
    return (api_version.rpartition("/")[0], kind) in _OWN
