"""Field tables of the built-in kinds in Kubernetes' protocol buffers.

A field is `number: (JSON name, type)`. Types are `string`, `int`, `bool`, `bytes`, `time`, `microtime`, `json` (bytes
that are a JSON value), `quantity`, or a message's name. Before it stands `*` where Go tells zero from absent, `[]` for
repeated fields, `{}` for maps by string.

Source: kubernetes/api: core/v1, coordination/v1, events/v1, authorization/v1 and authentication/v1 generated.proto;
kubernetes/apimachinery: pkg/apis/meta/v1/generated.proto.
"""

from __future__ import annotations

Fields = dict[int, tuple[str, str]]


def _numbered(*fields: str, first: int = 1) -> Fields:
    """Fields given as `name:type` (`string` if left out), numbered in order."""
    pairs = (field.partition(":") for field in fields)
    return {number: (name, kind or "string") for number, (name, _, kind) in enumerate(pairs, first)}


_META = {1: ("metadata", "ObjectMeta")}
_CONDITION = _numbered("type", "status")

MESSAGES: dict[str, Fields] = {
    "ObjectMeta": {
        **_numbered("name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "generation:int"),
        **_numbered("creationTimestamp:time", "deletionTimestamp:time", "deletionGracePeriodSeconds:*int", first=8),
        **_numbered("labels:{}string", "annotations:{}string", "ownerReferences:[]OwnerReference", first=11),
        14: ("finalizers", "[]string"),
        17: ("managedFields", "[]ManagedFieldsEntry"),
    },
    "OwnerReference": {
        **_numbered("name", "uid", "apiVersion", "controller:*bool", "blockOwnerDeletion:*bool", first=3),
        1: ("kind", "string"),
    },
    "ManagedFieldsEntry": {
        **_numbered("manager", "operation", "apiVersion", "time:time"),
        **_numbered("fieldsType", "fieldsV1:json", "subresource", first=6),
    },
    "DeleteOptions": _numbered(
        "gracePeriodSeconds:*int", "preconditions:Preconditions", "orphanDependents:*bool", "propagationPolicy:*string",
        "dryRun:[]string",
    ),
    "Preconditions": _numbered("uid:*string", "resourceVersion:*string"),
    "Namespace": {**_META, 2: ("spec", "NamespaceSpec"), 3: ("status", "NamespaceStatus")},
    "NamespaceSpec": _numbered("finalizers:[]string"),
    "NamespaceStatus": _numbered("phase", "conditions:[]NamespaceCondition"),
    "NamespaceCondition": _CONDITION | _numbered("lastTransitionTime:time", "reason", "message", first=4),
    "ConfigMap": _META | _numbered("data:{}string", "binaryData:{}bytes", "immutable:*bool", first=2),
    "Secret": _META | _numbered("data:{}bytes", "type", "stringData:{}string", "immutable:*bool", first=2),
    "ServiceAccount": _META
    | _numbered(
        "secrets:[]ObjectReference", "imagePullSecrets:[]LocalObjectReference", "automountServiceAccountToken:*bool",
        first=2,
    ),
    "ObjectReference": _numbered("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"),
    "LocalObjectReference": _numbered("name"),
    "Event": _META
    | _numbered(
        "involvedObject:ObjectReference", "reason", "message", "source:EventSource", "firstTimestamp:time",
        "lastTimestamp:time", "count:int", "type", "eventTime:microtime", "series:EventSeries", "action",
        "related:ObjectReference", "reportingComponent", "reportingInstance",
        first=2,
    ),
    "EventSource": _numbered("component", "host"),
    "EventSeries": _numbered("count:int", "lastObservedTime:microtime"),
    "events.k8s.io/Event": _META
    | _numbered(
        "eventTime:microtime", "series:EventSeries", "reportingController", "reportingInstance", "action", "reason",
        "regarding:ObjectReference", "related:ObjectReference", "note", "type", "deprecatedSource:EventSource",
        "deprecatedFirstTimestamp:time", "deprecatedLastTimestamp:time", "deprecatedCount:int",
        first=2,
    ),
    "Node": {**_META, 2: ("spec", "NodeSpec"), 3: ("status", "NodeStatus")},
    "NodeSpec": {
        **_numbered("podCIDR", "externalID", "providerID", "unschedulable:bool", "taints:[]Taint"),
        7: ("podCIDRs", "[]string"),
    },
    "Taint": _numbered("key", "value", "effect", "timeAdded:time"),
    "NodeStatus": {
        **_numbered("capacity:{}quantity", "allocatable:{}quantity", "phase", "conditions:[]NodeCondition"),
        **_numbered("addresses:[]NodeAddress", "daemonEndpoints:NodeDaemonEndpoints", "nodeInfo:NodeInfo", first=5),
        **_numbered("images:[]ContainerImage", "volumesInUse:[]string", "volumesAttached:[]AttachedVolume", first=8),
    },
    "NodeCondition": _CONDITION
    | _numbered("lastHeartbeatTime:time", "lastTransitionTime:time", "reason", "message", first=3),
    "NodeAddress": _numbered("type", "address"),
    "NodeDaemonEndpoints": _numbered("kubeletEndpoint:DaemonEndpoint"),
    "DaemonEndpoint": _numbered("Port:int"),
    "NodeInfo": _numbered(
        "machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "containerRuntimeVersion", "kubeletVersion",
        "kubeProxyVersion", "operatingSystem", "architecture",
    ),
    "ContainerImage": _numbered("names:[]string", "sizeBytes:int"),
    "AttachedVolume": _numbered("name", "devicePath"),
    "Lease": {**_META, 2: ("spec", "LeaseSpec")},
    "LeaseSpec": _numbered(
        "holderIdentity:*string", "leaseDurationSeconds:*int", "acquireTime:microtime", "renewTime:microtime",
        "leaseTransitions:*int", "strategy:*string", "preferredHolder:*string",
    ),
    "SelfSubjectAccessReview": {**_META, 2: ("spec", "SelfSubjectAccessReviewSpec")},
    "SelfSubjectAccessReviewSpec": _numbered(
        "resourceAttributes:ResourceAttributes", "nonResourceAttributes:NonResourceAttributes"
    ),
    "ResourceAttributes": _numbered("namespace", "verb", "group", "version", "resource", "subresource", "name"),
    "NonResourceAttributes": _numbered("path", "verb"),
    "SelfSubjectRulesReview": {**_META, 2: ("spec", "SelfSubjectRulesReviewSpec")},
    "SelfSubjectRulesReviewSpec": _numbered("namespace"),
    "SelfSubjectReview": dict(_META),
}  # fmt: skip

KINDS: dict[tuple[str, str], str] = {
    **{("v1", kind): kind for kind in ("Namespace", "ConfigMap", "Secret", "ServiceAccount", "Event", "Node")},
    ("events.k8s.io/v1", "Event"): "events.k8s.io/Event",
    ("coordination.k8s.io/v1", "Lease"): "Lease",
    ("authorization.k8s.io/v1", "SelfSubjectAccessReview"): "SelfSubjectAccessReview",
    ("authorization.k8s.io/v1", "SelfSubjectRulesReview"): "SelfSubjectRulesReview",
    ("authentication.k8s.io/v1", "SelfSubjectReview"): "SelfSubjectReview",
}
"""Which message a kind is."""
