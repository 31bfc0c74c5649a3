"""The variable `builtin`: facts about the cluster and its parts for the patches of a class.

Source: kubernetes-sigs/cluster-api: core/reconcilers/topology/cluster/patches/variables/variables.go,
api/runtime/hooks/v1alpha1/topologymutation_variable_types.go.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from ironbell.api.cluster.cluster import Cluster
from ironbell.api.cluster.names import ANNOTATION_CONVERSION_DATA
from ironbell.controllers.capi.topology.desired.model import Worker
from ironbell.controllers.capi.topology.plain import MISSING, find, metadata_of, name_of
from ironbell.kube.decision import Fields

BUILTIN: Final = "builtin"
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_WORKER: Final = (
    "class",
    "name",
    "replicas",
    "topologyName",
    "version",
    "metadata",
    "bootstrap.configRef.name",
    "infrastructureRef.name",
)
_KNOWN: Final = {
    "cluster": (
        "name",
        "namespace",
        "uid",
        "metadata",
        "topology.classRef.name",
        "topology.classRef.namespace",
        "topology.class",
        "topology.classNamespace",
        "topology.version",
        "network.serviceDomain",
        "network.services",
        "network.pods",
    ),
    "controlPlane": ("name", "replicas", "version", "metadata", "machineTemplate.infrastructureRef.name"),
    "machineDeployment": _WORKER,
    "machinePool": _WORKER,
}
_OPEN: Final = ("metadata", "services", "pods")
"""Parts whose content is not fixed: labels and annotations, items of lists."""
_STEPS: Final = re.compile(r"[^.\[]+")
HIDDEN_ANNOTATIONS: Final = (LAST_APPLIED, ANNOTATION_CONVERSION_DATA)


def is_builtin(variable: str) -> bool:
    """Return whether a path such as `builtin.cluster.network.pods[0]` can exist."""
    _, *steps = _STEPS.findall(variable)
    if not steps or steps[0] not in _KNOWN:
        return False
    known = [path.split(".") for path in _KNOWN[steps[0]]]
    rest = steps[1:]
    return (
        any(path[: len(rest)] == rest or (path[-1] in _OPEN and rest[: len(path)] == path) for path in known)
        or not rest
    )


def of_cluster(cluster: Cluster, labels: Mapping[str, str], annotations: Mapping[str, str]) -> Fields:
    """The builtin variables of the Cluster; labels and annotations are the desired ones."""
    meta, spec = cluster.metadata, cluster.spec
    topology, network = spec.topology, spec.cluster_network
    class_name, class_namespace = topology.class_ref.name, topology.class_ref.namespace or meta.namespace
    network_fields = {
        "serviceDomain": network.service_domain,
        "services": list(network.services.cidr_blocks),
        "pods": list(network.pods.cidr_blocks),
    }
    return {
        "cluster": _without_empty(
            {
                "name": meta.name,
                "namespace": meta.namespace,
                "uid": meta.uid,
                "metadata": _metadata(labels, annotations),
                "topology": {
                    "version": topology.version,
                    "class": class_name,
                    "classNamespace": class_namespace,
                    "classRef": {"name": class_name, "namespace": class_namespace},
                },
                "network": _without_empty(network_fields),
            }
        )
    }


def of_control_plane(obj: Fields, machine_template: Fields | None, *, replicas: int | None) -> Fields:
    """The builtin variables of the control plane."""
    return {
        "controlPlane": _without_empty(
            {
                "version": _at(obj, "spec", "version"),
                "metadata": _metadata(metadata_of(obj, "labels"), metadata_of(obj, "annotations")),
                "name": name_of(obj),
                "replicas": replicas,
                "machineTemplate": None
                if machine_template is None
                else {"infrastructureRef": {"name": name_of(machine_template)}},
            }
        )
    }


def of_worker(name: str, worker: Worker) -> Fields:
    """The builtin variables of a MachineDeployment (`name` is machineDeployment) or MachinePool (machinePool)."""
    obj = worker.obj
    return {
        name: _without_empty(
            {
                "version": _at(obj, "spec", "template", "spec", "version"),
                "metadata": _metadata(metadata_of(obj, "labels"), metadata_of(obj, "annotations")),
                "class": worker.class_name,
                "name": worker.name,
                "topologyName": worker.topology_name,
                "replicas": _at(obj, "spec", "replicas"),
                "bootstrap": {"configRef": {"name": name_of(worker.bootstrap)}},
                "infrastructureRef": {"name": name_of(worker.infrastructure)},
            }
        )
    }


def _at(obj: Fields, *path: str) -> Any:
    value = find(obj, path)
    return None if value is MISSING else value


def _metadata(labels: Mapping[str, str], annotations: Mapping[str, str]) -> Fields:
    visible = {name: value for name, value in annotations.items() if name not in HIDDEN_ANNOTATIONS}
    return _without_empty({"labels": dict(labels), "annotations": visible})


def _without_empty(fields: Fields) -> Fields:
    """Fields without empty values; numbers stay, including zero."""
    return {name: field_value for name, field_value in fields.items() if field_value not in (None, "", [], {})}
