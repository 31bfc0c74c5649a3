"""Properties of the built-in resources beyond their types: names, categories, field labels, generations.

Source: kubernetes/kubernetes: pkg/registry/*/*/storage/storage.go (short names, categories),
pkg/registry/*/*/strategy.go (generations), pkg/apis/*/v1/conversion.go (field labels).
"""

from __future__ import annotations

VERSIONS = {"horizontalpodautoscalers": ("v2", "v1")}
"""Kinds that are served in several versions; the first one is preferred, and stored."""
SHORT_NAMES: dict[str, tuple[str, ...]] = {
    "certificatesigningrequests": ("csr",),
    "configmaps": ("cm",),
    "cronjobs": ("cj",),
    "daemonsets": ("ds",),
    "deployments": ("deploy",),
    "endpoints": ("ep",),
    "events": ("ev",),
    "horizontalpodautoscalers": ("hpa",),
    "ingresses": ("ing",),
    "limitranges": ("limits",),
    "namespaces": ("ns",),
    "networkpolicies": ("netpol",),
    "nodes": ("no",),
    "persistentvolumeclaims": ("pvc",),
    "persistentvolumes": ("pv",),
    "poddisruptionbudgets": ("pdb",),
    "pods": ("po",),
    "priorityclasses": ("pc",),
    "replicasets": ("rs",),
    "replicationcontrollers": ("rc",),
    "resourcequotas": ("quota",),
    "serviceaccounts": ("sa",),
    "services": ("svc",),
    "statefulsets": ("sts",),
    "storageclasses": ("sc",),
}
_ALL = (
    "cronjobs", "daemonsets", "deployments", "horizontalpodautoscalers", "jobs", "pods", "replicasets",
    "replicationcontrollers", "services", "statefulsets",
)  # fmt: skip
CATEGORIES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(_ALL, ("all",)),
    "mutatingwebhookconfigurations": ("api-extensions",),
    "validatingwebhookconfigurations": ("api-extensions",),
    "mutatingadmissionpolicies": ("api-extensions",),
    "mutatingadmissionpolicybindings": ("api-extensions",),
    "validatingadmissionpolicies": ("api-extensions",),
    "validatingadmissionpolicybindings": ("api-extensions",),
    "apiservices": ("api-extensions",),
}
GENERATIONS = frozenset({
    "cronjobs", "daemonsets", "deployments", "endpointslices", "flowschemas", "ingressclasses", "ingresses", "jobs",
    "mutatingadmissionpolicies", "mutatingadmissionpolicybindings", "mutatingwebhookconfigurations", "networkpolicies",
    "poddisruptionbudgets", "pods", "podtemplates", "priorityclasses", "prioritylevelconfigurations", "replicasets",
    "replicationcontrollers", "statefulsets", "validatingadmissionpolicies", "validatingadmissionpolicybindings",
    "validatingwebhookconfigurations",
})  # fmt: skip
"""Kinds with a generation, which counts changes of the spec."""
NEEDS_VERSION = frozenset({
    "csidrivers", "csinodes", "leases", "mutatingadmissionpolicies", "mutatingadmissionpolicybindings",
    "mutatingwebhookconfigurations", "poddisruptionbudgets", "runtimeclasses",
    "validatingadmissionpolicies", "validatingadmissionpolicybindings", "validatingwebhookconfigurations",
    "volumeattachments",
})  # fmt: skip
"""Kinds whose updates must name the version that they replace."""
CREATED_BY_UPDATE = frozenset({
    "clusterrolebindings", "clusterroles", "endpoints", "events", "leases", "limitranges", "rolebindings", "roles",
    "runtimeclasses", "services",
})  # fmt: skip
"""Kinds of which an update creates an object that does not exist."""
KEEPS_STATUS = frozenset({"nodes"})
"""Kinds that may be created with a status."""
ANSWERS_DELETED = frozenset({
    "csidrivers", "csinodes", "persistentvolumeclaims", "persistentvolumes", "pods", "podtemplates", "resourcequotas",
    "serviceaccounts", "services", "storageclasses", "volumeattachments",
})  # fmt: skip
"""Kinds whose deletion answers with the object."""
UNTOUCHED = frozenset({
    "pods", "daemonsets", "deployments", "jobs", "cronjobs", "replicasets", "replicationcontrollers", "statefulsets",
    "horizontalpodautoscalers", "ingresses", "persistentvolumeclaims",
})  # fmt: skip
"""Kinds that nothing acts on here, because their controllers run in clusters."""
FIELD_LABELS: dict[str, tuple[str, ...]] = {
    "certificatesigningrequests": ("spec.signerName",),
    "events": (
        "involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid",
        "involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath", "reason", "type",
        "reportingComponent", "source",
    ),
    "jobs": ("status.successful",),
    "namespaces": ("status.phase",),
    "nodes": ("spec.unschedulable",),
    "pods": (
        "spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "spec.hostNetwork",
        "status.phase", "status.podIP", "status.podIPs", "status.nominatedNodeName",
    ),
    "replicationcontrollers": ("status.replicas",),
    "secrets": ("type",),
    "services": ("spec.clusterIP", "spec.type"),
}  # fmt: skip
EVENT_LABELS = {
    "reason": "reason", "type": "type", "reportingController": "reportingComponent",
    **{
        f"regarding.{field}": f"involvedObject.{field}"
        for field in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
    },
}  # fmt: skip
"""The labels of events.k8s.io, and those of the core API, as which events are stored."""
FIELD_PATHS: dict[str, tuple[str, ...]] = {
    "status.successful": ("status", "succeeded"),
    "source": ("source", "component"),
}
"""Paths of field labels that differ from the label."""

# What of the metadata a write to the status leaves alone; of kinds that are not here it writes all.
KEPT_BY_STATUS: dict[str, tuple[str, ...] | None] = {
    "volumeattachments": None,
    "validatingadmissionpolicies": None,
    "flowschemas": None,
    "prioritylevelconfigurations": None,
    "deployments": ("labels",),
    "pods": ("ownerReferences",),
}
