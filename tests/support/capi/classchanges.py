"""ClusterClasses and Clusters with faults, made from a seed: a sound one, and a few changes to it."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Sequence
from typing import Any

from support.capi.topologies import (
    CONFIG_TEMPLATE,
    DEV_MACHINE_TEMPLATE,
    DEV_POOL_TEMPLATE,
    NAMESPACE,
    reference,
    small_class,
)

Object = dict[str, Any]
Change = Callable[[random.Random, Object], None]

CHECK = {"checks": {"nodeStartupTimeoutSeconds": 600}}
METADATA = (
    {"labels": {"a": "b"}},
    {"labels": {"a b": "c"}},
    {"labels": {"a": "b c"}},
    {"annotations": {"x.y/z": "any"}},
    {"annotations": {"/z": "any"}},
)
TAINTS = (
    [{"key": "a", "effect": "NoSchedule", "propagation": "Always"}],
    [{"key": "node.kubernetes.io/x", "effect": "NoSchedule", "propagation": "Always"}],
    [{"key": "a b", "effect": "NoSchedule", "propagation": "Always"}],
    [{"key": "node.cluster.x-k8s.io/uninitialized", "effect": "NoSchedule", "propagation": "Always"}],
)
ROLLING = (
    {"maxSurge": 1, "maxUnavailable": 0},
    {"maxSurge": 0, "maxUnavailable": 0},
    {"maxSurge": "10%"},
    {"maxUnavailable": "a lot"},
)
SCALED = {"annotations": {"cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size": "1"}}
VERSIONS = ("v1.34.0", "v1.34.1", "v1.35.0", "v1.36.2", "v1.33.4", "1.34.0", "v1.34", "latest", "v1.34.0+build.1")


def sound_class() -> Object:
    """A class with two kinds of workers and a pool, a variable and a patch."""
    class_: Object = copy.deepcopy(small_class()[-1])
    class_["metadata"] |= {"namespace": NAMESPACE, "generation": 1}
    spec = class_["spec"]
    [worker] = spec["workers"]["machineDeployments"]
    spec["workers"]["machineDeployments"].append({**copy.deepcopy(worker), "class": "other"})
    spec["workers"]["machinePools"] = [
        {
            "class": "pool",
            "bootstrap": reference(CONFIG_TEMPLATE, "worker"),
            "infrastructure": reference(DEV_POOL_TEMPLATE, "pool"),
        }
    ]
    schema = {"openAPIV3Schema": {"type": "string", "default": "small"}}
    spec["variables"] = [{"name": "size", "required": True, "schema": schema}]
    selector = {
        "apiVersion": DEV_MACHINE_TEMPLATE.api_version,
        "kind": DEV_MACHINE_TEMPLATE.kind,
        "matchResources": {"controlPlane": True, "machineDeploymentClass": {"names": ["worker", "*"]}},
    }
    operation = {"op": "add", "path": "/spec/template/spec/size", "valueFrom": {"variable": "size"}}
    definitions = [{"selector": selector, "jsonPatches": [operation]}]
    spec["patches"] = [{"name": "size", "definitions": definitions}]
    held = [{"from": "inline", "required": True, "schema": schema}]
    class_["status"] = {
        "observedGeneration": 1,
        "variables": [{"name": "size", "definitionsConflict": False, "definitions": held}],
        "conditions": [
            {
                "type": "VariablesReady",
                "status": "True",
                "reason": "VariablesReady",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }
        ],
    }
    return class_


def sound_cluster(name: str = "prod") -> Object:
    """A Cluster of that class."""
    deployments = [{"class": "worker", "name": "md-0", "replicas": 2}, {"class": "other", "name": "md-1"}]
    topology = {
        "classRef": {"name": "small"},
        "version": "v1.34.0",
        "controlPlane": {"replicas": 3},
        "workers": {"machineDeployments": deployments, "machinePools": [{"class": "pool", "name": "mp-0"}]},
        "variables": [{"name": "size", "value": "large"}],
    }
    return {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Cluster",
        "metadata": {"name": name, "namespace": NAMESPACE, "annotations": {}},
        "spec": {"topology": topology},
    }


def changed(rng: random.Random, made: Object, changes: Sequence[Change], most: int = 3) -> Object:
    """The object with some changes."""
    made = copy.deepcopy(made)
    for change in rng.sample(list(changes), rng.randint(0, most)):
        change(rng, made)
    return made


def _deployments(class_: Object) -> list[Object]:
    found: list[Object] = class_["spec"]["workers"]["machineDeployments"]
    return found


def _any_worker(rng: random.Random, obj: Object) -> Object:
    spec = obj["spec"].get("topology", obj["spec"])
    workers = spec["workers"]
    found: Object = rng.choice([*workers.get("machineDeployments", []), *workers.get("machinePools", [])])
    return found


def _part(rng: random.Random, obj: Object) -> Object:
    spec = obj["spec"].get("topology", obj["spec"])
    return rng.choice([spec["controlPlane"], _any_worker(rng, obj)])


def _metadata(rng: random.Random, obj: Object) -> None:
    _part(rng, obj)["metadata"] = copy.deepcopy(rng.choice(METADATA))


def _taints(rng: random.Random, obj: Object) -> None:
    _part(rng, obj)["taints"] = copy.deepcopy(rng.choice(TAINTS))


def _scaled(rng: random.Random, obj: Object) -> None:
    spec = obj["spec"].get("topology", obj["spec"])
    rng.choice(spec["workers"]["machineDeployments"])["metadata"] = copy.deepcopy(SCALED)


def _rolling(rng: random.Random, obj: Object) -> None:
    spec = obj["spec"].get("topology", obj["spec"])
    rolling = {"type": "RollingUpdate", "rollingUpdate": rng.choice(ROLLING)}
    rng.choice(spec["workers"]["machineDeployments"])["rollout"] = {"strategy": rolling}


def _check(rng: random.Random) -> Object:
    return copy.deepcopy(
        rng.choice(
            [
                CHECK,
                {"checks": {"nodeStartupTimeoutSeconds": 3}},
                {"checks": {"nodeStartupTimeoutSeconds": 0}},
                {"remediation": {"triggerIf": {"unhealthyLessThanOrEqualTo": "some"}}},
                {"remediation": {"triggerIf": {"unhealthyLessThanOrEqualTo": "40%"}}},
            ]
        )
    )


def _class_check(rng: random.Random, class_: Object) -> None:
    part = rng.choice([class_["spec"]["controlPlane"], *_deployments(class_)])
    part["healthCheck"] = _check(rng)


def _topology_check(rng: random.Random, cluster: Object) -> None:
    topology = cluster["spec"]["topology"]
    part = rng.choice([topology["controlPlane"], *topology["workers"]["machineDeployments"]])
    part["healthCheck"] = rng.choice([_check(rng), {"enabled": True}, {"enabled": False}, {"enabled": True, **CHECK}])


def _reference(rng: random.Random, class_: Object) -> None:
    spec = class_["spec"]
    parts = [spec["infrastructure"], spec["controlPlane"], *(one["bootstrap"] for one in _deployments(class_))]
    parts += [one["infrastructure"] for one in _deployments(class_)]
    field = rng.choice(["apiVersion", "kind", "name"])
    texts = {
        "apiVersion": ["", "elsewhere.io/v1", "infrastructure.cluster.x-k8s.io/v1beta1"],
        "kind": ["", "Template", "Kind", "OtherTemplate"],
        "name": ["", "another"],
    }
    rng.choice(parts)["templateRef"][field] = rng.choice(texts[field])


def _no_machines(rng: random.Random, class_: Object) -> None:
    class_["spec"]["controlPlane"].pop("machineInfrastructure", None)


def _class_name(rng: random.Random, class_: Object) -> None:
    rng.choice(_deployments(class_))["class"] = rng.choice(["worker", "third"])


def _no_worker(rng: random.Random, class_: Object) -> None:
    kind = rng.choice(["machineDeployments", "machinePools"])
    class_["spec"]["workers"][kind].pop()


def _naming(rng: random.Random, class_: Object) -> None:
    spec = class_["spec"]
    template = rng.choice(
        [
            "{{ .cluster.name }}-{{ .random }}",
            "{{ .cluster.name",
            "{{ .machineDeployment.topologyName }}-x",
            "Big-{{ .random }}",
            "{{ .nobody }}",
        ]
    )
    part = rng.choice([spec["infrastructure"], spec["controlPlane"], _any_worker(rng, class_)])
    part["naming"] = {"template": template}


def _versions(rng: random.Random, class_: Object) -> None:
    class_["spec"]["kubernetesVersions"] = rng.sample(VERSIONS, rng.randint(1, 3))


def _variable_name(rng: random.Random, class_: Object) -> None:
    schema = {"openAPIV3Schema": {"type": "string"}}
    name = rng.choice(["size", "builtin", "a.b", "zone"])
    class_["spec"]["variables"].append({"name": name, "required": False, "schema": schema})


def _variable_schema(rng: random.Random, class_: Object) -> None:
    schema = rng.choice(
        [
            {"type": "string", "default": 5},
            {"type": "integer", "default": 5, "maximum": 3},
            {"type": "string", "pattern": "("},
            {"properties": {"a": {"type": "string"}}},
            {"type": "object", "properties": {"a": {"type": "string", "default": 1}}},
            {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "string"}},
            {"type": "array"},
            {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
            {"type": "string", "x-kubernetes-validations": [{"rule": "self.size() <"}]},
            {"type": "string", "x-kubernetes-validations": [{"rule": "self > 3"}]},
            {"type": "string", "x-kubernetes-validations": [{"rule": " "}]},
            {"type": "string", "x-kubernetes-validations": [{"rule": "self == ''", "message": " "}]},
            {"type": "string", "x-kubernetes-validations": [{"rule": "self == ''", "messageExpression": "5"}]},
            {"type": "string", "x-kubernetes-validations": [{"rule": "self == ''", "reason": "Because"}]},
            {"type": "string", "default": "x", "x-kubernetes-validations": [{"rule": "self == ''"}]},
            {"type": "string", "enum": ["a", 5]},
            {"type": "string", "example": 5},
            {"type": "object", "x-metadata": {"labels": {"a b": "c"}}},
            {"type": "object", "properties": {"a": {"type": "string", "x-metadata": {"annotations": {"/": "c"}}}}},
            {"type": "integer", "x-kubernetes-int-or-string": True},
            {"type": "object", "required": ["a"], "default": {}, "properties": {"a": {"type": "string"}}},
        ]
    )
    made = {"name": "more", "required": False, "schema": {"openAPIV3Schema": schema}}
    class_["spec"]["variables"].append(copy.deepcopy(made))


def _operation(rng: random.Random, class_: Object) -> None:
    [patch, *_] = class_["spec"]["patches"]
    if not patch.get("definitions"):
        return
    [operation] = patch["definitions"][0]["jsonPatches"]
    operation.pop("valueFrom", None)
    operation |= rng.choice(
        [
            {"valueFrom": {"template": "{{ .size }}"}},
            {"valueFrom": {"template": "{{ .size"}},
            {"valueFrom": {"template": "{{ nofunction .size }}"}},
            {"valueFrom": {"variable": "size.inner[3]"}},
            {"valueFrom": {"variable": "unknown"}},
            {"valueFrom": {"variable": "builtin"}},
            {"valueFrom": {"variable": "builtin.cluster.name"}},
            {"valueFrom": {"variable": "builtin.cluster.nothing"}},
            {"valueFrom": {"variable": "builtin.machinePool.metadata.labels"}},
            {"valueFrom": {"variable": "size", "template": "x"}},
            {"valueFrom": {}},
            {"value": 5},
            {"value": 5, "valueFrom": {"variable": "size"}},
            {},
            {"op": "remove"},
            {"op": "replace", "value": 1, "path": "/spec/list/0"},
            {"op": "add", "value": 1, "path": "/spec/list/0/a"},
            {"op": "add", "value": 1, "path": "/spec/list/1"},
            {"op": "add", "value": 1, "path": "/spec/list/-"},
            {"op": "add", "value": 1, "path": "/metadata/name"},
        ]
    )


def _patch(rng: random.Random, class_: Object) -> None:
    patches = class_["spec"]["patches"]
    [patch, *_] = patches
    choice = rng.randrange(5)
    if choice == 0:
        patches.append(copy.deepcopy(patch))
    elif choice == 1:
        patch["name"] = "inline"
    elif choice == 2:
        patch["enabledIf"] = rng.choice(["{{ true }}", "{{ if }}", "{{ eq .size"])
    elif choice == 3:
        patch.pop("definitions", None)
        patches[:] = [patch]
    else:
        patch["external"] = {"generatePatchesExtension": "x"}
        patch.pop("definitions", None)


def _selector(rng: random.Random, class_: Object) -> None:
    patch = class_["spec"]["patches"][0]
    if not patch.get("definitions"):
        return
    selector = patch["definitions"][0]["selector"]
    choice = rng.randrange(4)
    if choice == 0:
        selector["matchResources"] = {}
    elif choice == 1:
        names = [rng.choice(["worker", "*", "w*", "*r", "w*r", "**", "none", "Ä*"])]
        selector["matchResources"] = {rng.choice(["machineDeploymentClass", "machinePoolClass"]): {"names": names}}
    elif choice == 2:
        selector["kind"] = "OtherTemplate"
    else:
        selector["matchResources"] = {"infrastructureCluster": True}


CLASS_CHANGES: Sequence[Change] = (
    _metadata, _taints, _scaled, _rolling, _class_check, _reference, _no_machines, _class_name, _no_worker, _naming,
    _versions, _variable_name, _variable_schema, _operation, _patch, _selector,
)  # fmt: skip


def _version(rng: random.Random, cluster: Object) -> None:
    cluster["spec"]["topology"]["version"] = rng.choice(VERSIONS)


def _worker_class(rng: random.Random, cluster: Object) -> None:
    _any_worker(rng, cluster)["class"] = rng.choice(["worker", "none"])


def _concurrency(rng: random.Random, cluster: Object) -> None:
    name = "topology.cluster.x-k8s.io/upgrade-concurrency"
    cluster["metadata"]["annotations"][name] = rng.choice(["1", "0", "-3", "many", "3"])


def _unsafe(rng: random.Random, cluster: Object) -> None:
    name = "unsafe.topology.cluster.x-k8s.io/disable-update-version-check"
    cluster["metadata"]["annotations"][name] = ""


def _other_class(rng: random.Random, cluster: Object) -> None:
    cluster["spec"]["topology"]["classRef"] = {"name": rng.choice(["second", "third"])}


def _network(rng: random.Random, cluster: Object) -> None:
    blocks = [rng.choice(["10.0.0.0/8", "10.0.0.0", "fd00::/64", "x"])]
    cluster["spec"]["clusterNetwork"] = {"pods": {"cidrBlocks": blocks}}


def _fixed_scaled(rng: random.Random, cluster: Object) -> None:
    [one, *_] = cluster["spec"]["topology"]["workers"]["machineDeployments"]
    one["metadata"] = copy.deepcopy(SCALED)


CLUSTER_CHANGES: Sequence[Change] = (
    _metadata, _taints, _rolling, _topology_check, _version, _version, _version, _worker_class, _concurrency, _unsafe,
    _other_class, _network, _fixed_scaled,
)  # fmt: skip
