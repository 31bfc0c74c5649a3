"""Defaults of built-in kinds, by type.

`STATIC` are values of single fields; `CONDITIONAL` are functions of a whole value, for defaults that depend on its
other fields. Names of types leave out `io.k8s.api.`.

Source: kubernetes/kubernetes: pkg/apis/*/v1/defaults.go, pkg/apis/autoscaling/v2/defaults.go.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ironbell.base.ports import HTTPS_PORT

Value = dict[str, Any]

_MODE = {"defaultMode": 0o644}
_RULE_SCOPE = {"scope": "*"}
_WEBHOOK: Value = {
    "failurePolicy": "Fail", "matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {},
    "timeoutSeconds": 10,
}  # fmt: skip
_RBAC = "rbac.authorization.k8s.io"

STATIC: dict[str, Value] = {
    "admissionregistration.v1.MutatingWebhook": {**_WEBHOOK, "reinvocationPolicy": "Never"},
    "admissionregistration.v1.RuleWithOperations": _RULE_SCOPE,
    "admissionregistration.v1.ServiceReference": {"port": HTTPS_PORT},
    "admissionregistration.v1.ValidatingWebhook": _WEBHOOK,
    "apps.v1.DaemonSetSpec": {"revisionHistoryLimit": 10},
    "apps.v1.DaemonSetUpdateStrategy": {"type": "RollingUpdate"},
    "apps.v1.DeploymentSpec": {"progressDeadlineSeconds": 600, "replicas": 1, "revisionHistoryLimit": 10},
    "apps.v1.DeploymentStrategy": {"type": "RollingUpdate"},
    "apps.v1.ReplicaSetSpec": {"replicas": 1},
    "apps.v1.StatefulSetPersistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
    "apps.v1.StatefulSetSpec": {
        "persistentVolumeClaimRetentionPolicy": {}, "podManagementPolicy": "OrderedReady", "replicas": 1,
        "revisionHistoryLimit": 10,
    },
    "apps.v1.StatefulSetUpdateStrategy": {"type": "RollingUpdate"},
    "autoscaling.v1.HorizontalPodAutoscalerSpec": {"minReplicas": 1},
    "autoscaling.v2.HorizontalPodAutoscalerSpec": {
        "metrics": [
            {
                "type": "Resource",
                "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
            }
        ],
        "minReplicas": 1,
    },
    "batch.v1.CronJobSpec": {
        "concurrencyPolicy": "Allow", "failedJobsHistoryLimit": 1, "successfulJobsHistoryLimit": 3, "suspend": False,
    },
    "batch.v1.PodFailurePolicyOnPodConditionsPattern": {"status": "True"},
    "core.v1.ConfigMapVolumeSource": _MODE,
    "core.v1.Container": {"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"},
    "core.v1.ContainerPort": {"protocol": "TCP"},
    "core.v1.DownwardAPIVolumeSource": _MODE,
    "core.v1.EndpointPort": {"protocol": "TCP"},
    "core.v1.EphemeralContainer": {
        "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
    },
    "core.v1.GRPCAction": {"service": ""},
    "core.v1.HTTPGetAction": {"path": "/", "scheme": "HTTP"},
    "core.v1.HostPathVolumeSource": {"type": ""},
    "core.v1.ISCSIVolumeSource": {"iscsiInterface": "default"},
    "core.v1.NamespaceStatus": {"phase": "Active"},
    "core.v1.ObjectFieldSelector": {"apiVersion": "v1"},
    "core.v1.PersistentVolumeClaimSpec": {"volumeMode": "Filesystem"},
    "core.v1.PersistentVolumeClaimStatus": {"phase": "Pending"},
    "core.v1.PersistentVolumeSpec": {"persistentVolumeReclaimPolicy": "Retain", "volumeMode": "Filesystem"},
    "core.v1.PersistentVolumeStatus": {"phase": "Pending"},
    "core.v1.PodSpec": {
        "dnsPolicy": "ClusterFirst", "restartPolicy": "Always", "schedulerName": "default-scheduler",
        "securityContext": {}, "terminationGracePeriodSeconds": 30,
    },
    "core.v1.Probe": {"failureThreshold": 3, "periodSeconds": 10, "successThreshold": 1, "timeoutSeconds": 1},
    "core.v1.ProjectedVolumeSource": _MODE,
    "core.v1.ReplicationControllerSpec": {"replicas": 1},
    "core.v1.SecretVolumeSource": _MODE,
    "core.v1.ServiceAccountTokenProjection": {"expirationSeconds": 3600},
    "core.v1.ServicePort": {"protocol": "TCP"},
    "core.v1.ServiceSpec": {"sessionAffinity": "None", "type": "ClusterIP"},
    "discovery.v1.EndpointPort": {"name": "", "protocol": "TCP"},
    "flowcontrol.v1.ExemptPriorityLevelConfiguration": {"lendablePercent": 0, "nominalConcurrencyShares": 0},
    "flowcontrol.v1.LimitedPriorityLevelConfiguration": {"lendablePercent": 0, "nominalConcurrencyShares": 30},
    "networking.v1.NetworkPolicyPort": {"protocol": "TCP"},
    "rbac.v1.RoleRef": {"apiGroup": _RBAC},
    "scheduling.v1.PriorityClass": {"preemptionPolicy": "PreemptLowerPriority"},
    "storage.v1.CSIDriverSpec": {
        "attachRequired": True, "fsGroupPolicy": "ReadWriteOnceWithFSType", "podInfoOnMount": False,
        "requiresRepublish": False, "seLinuxMount": False, "storageCapacity": False,
        "volumeLifecycleModes": ["Persistent"],
    },
    "storage.v1.StorageClass": {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"},
}  # fmt: skip


def _fill(value: Value, name: str, **defaults: Any) -> None:
    inner = value.setdefault(name, {})
    if isinstance(inner, dict):
        for key, default in defaults.items():
            inner.setdefault(key, default)


def _pull_policy(container: Value) -> None:
    if "imagePullPolicy" not in container:
        image = str(container.get("image", "")).partition("@")
        tag = image[0].rpartition("/")[2].partition(":")[2]
        latest = tag == "latest" or (not tag and not image[2])
        container["imagePullPolicy"] = "Always" if latest else "IfNotPresent"


def _volume(volume: Value) -> None:
    if volume.keys() <= {"name"}:
        volume["emptyDir"] = {}


def _deployment_strategy(strategy: Value) -> None:
    if strategy.get("type") == "RollingUpdate":
        _fill(strategy, "rollingUpdate", maxUnavailable="25%", maxSurge="25%")


def _daemon_set_strategy(strategy: Value) -> None:
    if strategy.get("type") == "RollingUpdate":
        _fill(strategy, "rollingUpdate", maxUnavailable=1, maxSurge=0)


def _stateful_set_strategy(strategy: Value) -> None:
    if strategy.get("type") == "RollingUpdate":
        _fill(strategy, "rollingUpdate", partition=0)


def _stateful_set(spec: Value) -> None:
    for claim in spec.get("volumeClaimTemplates", ()):
        if isinstance(claim, dict):
            claim.setdefault("apiVersion", "v1")
            claim.setdefault("kind", "PersistentVolumeClaim")


def _job(job: Value) -> None:
    spec = job.get("spec")
    if not isinstance(spec, dict):
        return
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    failing = "podFailurePolicy" in spec
    for name, value in (
        ("parallelism", 1),
        ("backoffLimit", 2**31 - 1 if "backoffLimitPerIndex" in spec else 6),
        ("completionMode", "NonIndexed"),
        ("suspend", False),
        ("podReplacementPolicy", "Failed" if failing else "TerminatingOrFailed"),
        ("manualSelector", False),
    ):
        spec.setdefault(name, value)
    _labels_of_template(job)


def _labels_of_template(value: Value) -> None:
    labels = _at(value, "spec", "template", "metadata", "labels")
    if labels and isinstance(value.get("metadata"), dict) and not value["metadata"].get("labels"):
        value["metadata"]["labels"] = dict(labels)


def _replication_controller(value: Value) -> None:
    labels = _at(value, "spec", "template", "metadata", "labels")
    if labels and not value["spec"].get("selector"):
        value["spec"]["selector"] = dict(labels)
    _labels_of_template(value)


def _at(value: Any, *path: str) -> Any:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _limit_range_item(item: Value) -> None:
    if item.get("type") != "Container":
        return
    limit = {**item.get("max", {}), **item.get("default", {})}
    request = {**item.get("min", {}), **limit, **item.get("defaultRequest", {})}
    item |= {name: values for name, values in (("default", limit), ("defaultRequest", request)) if values}


def _network_policy(spec: Value) -> None:
    spec.setdefault("policyTypes", ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"])


def _flow_schema(spec: Value) -> None:
    spec["matchingPrecedence"] = spec.get("matchingPrecedence") or 1000


def _queuing(queuing: Value) -> None:
    for name, value in (("handSize", 8), ("queues", 64), ("queueLengthLimit", 50)):
        queuing[name] = queuing.get(name) or value


def _subject(subject: Value) -> None:
    if subject.get("kind") in ("User", "Group"):
        subject.setdefault("apiGroup", _RBAC)


def _service_port(port: Value) -> None:
    if port.get("targetPort") in (None, 0, "") and port.get("port"):
        port["targetPort"] = port["port"]


def _service(spec: Value) -> None:
    kind = spec.get("type")
    if spec.get("sessionAffinity") == "ClientIP":
        inner = spec.setdefault("sessionAffinityConfig", {})
        if isinstance(inner, dict):
            _fill(inner, "clientIP", timeoutSeconds=10800)
    else:
        spec.pop("sessionAffinityConfig", None)
    if kind in ("NodePort", "LoadBalancer") or (kind == "ClusterIP" and spec.get("externalIPs")):
        spec.setdefault("externalTrafficPolicy", "Cluster")
    if kind in ("NodePort", "LoadBalancer", "ClusterIP"):
        spec.setdefault("internalTrafficPolicy", "Cluster")
    if kind == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)
    if kind == "ClusterIP" and spec.get("clusterIP") == "None":
        _headless(spec)


def _headless(spec: Value) -> None:
    """Set the families of a headless service: one if it selects pods, both if its endpoints are managed by others."""
    spec.setdefault("clusterIPs", ["None"])
    if spec.get("selector"):
        spec.setdefault("ipFamilies", ["IPv4"])
        spec.setdefault("ipFamilyPolicy", "SingleStack")
    else:
        spec.setdefault("ipFamilies", ["IPv4", "IPv6"])
        spec.setdefault("ipFamilyPolicy", "RequireDualStack")


def _pod_spec(spec: Value) -> None:
    """Set the deprecated name of the service account to the new field's value."""
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account


def _node_status(status: Value) -> None:
    if status.get("capacity") and not status.get("allocatable"):
        status["allocatable"] = dict(status["capacity"])


def _pod(pod: Value) -> None:
    spec = pod.get("spec")
    if not isinstance(spec, dict):
        return
    spec.setdefault("enableServiceLinks", True)
    for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        limits = _at(container, "resources", "limits")
        if limits:
            container["resources"]["requests"] = {**limits, **container["resources"].get("requests", {})}
        for port in (container.get("ports") or ()) if spec.get("hostNetwork") else ():
            port.setdefault("hostPort", port.get("containerPort"))


CONDITIONAL: dict[str, Callable[[Value], None]] = {
    "apps.v1.DaemonSetUpdateStrategy": _daemon_set_strategy,
    "apps.v1.DeploymentStrategy": _deployment_strategy,
    "apps.v1.StatefulSetSpec": _stateful_set,
    "apps.v1.StatefulSetUpdateStrategy": _stateful_set_strategy,
    "batch.v1.Job": _job,
    "core.v1.Container": _pull_policy,
    "core.v1.EphemeralContainer": _pull_policy,
    "core.v1.LimitRangeItem": _limit_range_item,
    "core.v1.NodeStatus": _node_status,
    "core.v1.Pod": _pod,
    "core.v1.PodSpec": _pod_spec,
    "core.v1.ReplicationController": _replication_controller,
    "core.v1.ServicePort": _service_port,
    "core.v1.ServiceSpec": _service,
    "core.v1.Volume": _volume,
    "flowcontrol.v1.FlowSchemaSpec": _flow_schema,
    "flowcontrol.v1.QueuingConfiguration": _queuing,
    "networking.v1.NetworkPolicySpec": _network_policy,
    "rbac.v1.Subject": _subject,
}
