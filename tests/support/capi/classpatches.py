"""Topologies before their patches, and patches, made from a seed."""

from __future__ import annotations

import copy
import random
from typing import Any

from support.capi.topologies import (
    CONFIG,
    CONFIG_TEMPLATE,
    DEV_CLUSTER,
    DEV_CLUSTER_TEMPLATE,
    DEV_MACHINE_TEMPLATE,
    DEV_POOL,
    DEV_POOL_TEMPLATE,
    NAMESPACE,
    PLANE,
    PLANE_TEMPLATE,
)

Object = dict[str, Any]
CLUSTER_LABELS = {"cluster.x-k8s.io/cluster-name": "prod", "topology.cluster.x-k8s.io/owned": ""}
CLONED = {
    "cluster.x-k8s.io/cloned-from-name": "t",
    "cluster.x-k8s.io/cloned-from-groupkind": "T.infrastructure.cluster.x-k8s.io",
}
VALUES = [
    "small", "", "5", "true", 5, 0, 2.5, 1e21, 12345678901, True, False, None, [], ["a", "b"], [{"n": 1}, {"n": 2}], {},
    {"a": {"b": [1, {"c": "x"}]}}, {"zone": "z", "n": 3},
]  # fmt: skip
NAMES = ["size", "list", "object", "unset", "zone"]
PATHS = [
    "/spec/template/spec/size", "/spec/template/spec/new", "/spec/template/spec/deep/a", "/spec/template/spec/deep",
    "/spec/template/spec/list/0", "/spec/template/spec/list/-", "/spec/template/spec/list",
    "/spec/template/spec/list/5", "/spec/template/metadata", "/spec/template/metadata/labels",
    "/spec/template/metadata/labels/a~1b", "/spec/template", "/spec/template/metadata/annotations/x",
    "/spec/template/spec", "/spec/none/deeper", "/spec/template/spec/deep/a/b",
    "/spec/template/spec/machineTemplate/spec/infrastructureRef", "/spec/template/spec/version", "/metadata/labels",
    "/spec/template/spec/replicas", "/spec/template/spec/list/-1", "/spec/template/spec/deep/", "/metadata/name",
    "/spec/template/metadata/labels/topology.cluster.x-k8s.io~1owned", "/spec/template/spec/list/01",
]  # fmt: skip
TEMPLATES = [
    "{{ .size }}", "{{ .list }}", "{{ .object }}", "{{ .unset }}", "{{ .builtin.cluster.name }}", "v: {{ .size }}",
    "{{ .builtin.cluster.topology.version | quote }}", "{{ if .unset }}a{{ else }}b{{ end }}",
    "{{ range .list }}- x\n{{ end }}", "{{ .builtin.machineDeployment.topologyName }}",
    "{{ .builtin.controlPlane.replicas }}", "{{ .size | upper }}", "{{ default 3 .size }}", "{{ toJson .object }}",
    "{{ .object.a.b }}", "a: [1, {{ .size }}]", "{{ .size", "{{ .a.b.c }}", "{{ printf \"%v-%T\" .size .size }}",
    "{{ index .list 0 }}", "{{ index .list 9 }}", "{{ .zone }}{{ .zone }}", "1_000", "0o17", "yes", "2026-01-01", "~",
    "- a\n- b: c", "'{{ .size }}'", "{{ semverCompare \">=1.34.0\" .builtin.cluster.topology.version }}",
    "{{ hasKey . \"size\" }}", "{{ now }}", "{{ env \"HOME\" }}", "{{ .builtin.machinePool.class }}", "|\n  a\n  b",
    "a: 1\na: 2", "{{ .builtin.controlPlane.metadata.labels | toJson }}",
    "{{ .builtin.cluster.network.pods | first }}", "{{ len .size }}", "{{ .builtin | toJson }}", "!!str 5", "0x1F",
    "1e3", "{{ add .size 1 }}", "{{ .size | int }}", "{{ mul 2 2.5 }}",
]  # fmt: skip
VARIABLES = [
    "size", "list", "list[0]", "list[1].n", "list[9]", "object", "object.a", "object.a.b[1].c", "object.a.b[1]",
    "unset", "zone", "builtin", "builtin.cluster", "builtin.cluster.name", "builtin.cluster.network.pods[0]",
    "builtin.cluster.uid", "builtin.cluster.metadata.labels", "builtin.controlPlane", "builtin.controlPlane.replicas",
    "builtin.machineDeployment", "builtin.controlPlane.machineTemplate.infrastructureRef.name",
    "builtin.machineDeployment.version", "builtin.machinePool", "builtin.machineDeployment.bootstrap.configRef.name",
    "builtin.cluster.topology.classRef", "size[0]", "list[", "list[x]", "builtin.machineDeployment.replicas",
    "builtin.cluster.network", "object.", ".size", "list[-1]", "list[0][1]", "object[0]",
]  # fmt: skip


def _template(rng: random.Random, kind: Any, name: str) -> Object:
    spec: Object = {"size": 1, "list": ["a"], "deep": {"a": {"b": 1}}}
    inner: Object = {"spec": spec}
    if rng.random() < 0.3:
        inner["metadata"] = {"labels": {"t": "1"}}
    metadata: Object = {"name": name, "namespace": NAMESPACE}
    if rng.random() < 0.3:
        metadata["annotations"] = {"kubectl.kubernetes.io/last-applied-configuration": "{}"}
    if rng.random() < 0.3:
        metadata["labels"] = {"of": "class"}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "spec": {"template": inner}}


def _metadata(rng: random.Random, name: str, **labels: str) -> Object:
    metadata: Object = {"name": name, "namespace": NAMESPACE, "annotations": dict(CLONED)}
    return {**metadata, "labels": {**CLUSTER_LABELS, **({"mine": "x"} if rng.random() < 0.2 else {}), **labels}}


def _made(rng: random.Random, kind: Any, template: Object, name: str, **labels: str) -> Object:
    spec = copy.deepcopy(template["spec"]["template"]["spec"])
    metadata = _metadata(rng, name, **labels)
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "spec": spec}


def _copied(rng: random.Random, template: Object, name: str, **labels: str) -> Object:
    return {**copy.deepcopy(template), "metadata": _metadata(rng, name, **labels)}


def _worker(rng: random.Random, kind: str, name: str, **labels: str) -> Object:
    spec: Object = {
        "clusterName": "prod",
        "template": {
            "spec": {
                "clusterName": "prod",
                "version": "v1.34.0",
                "bootstrap": {},
                "infrastructureRef": {"apiGroup": "g.test", "kind": "K", "name": "n"},
            }
        },
    }
    if kind == "MachineDeployment":
        spec["selector"] = {"matchLabels": {"a": "b"}}
    if rng.random() < 0.7:
        spec["replicas"] = rng.randint(0, 3)
    metadata = _metadata(rng, name, **labels)
    return {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": kind, "metadata": metadata, "spec": spec}


def _selector(rng: random.Random) -> Object:
    kind = rng.choice(
        [
            DEV_CLUSTER_TEMPLATE,
            PLANE_TEMPLATE,
            DEV_MACHINE_TEMPLATE,
            DEV_MACHINE_TEMPLATE,
            CONFIG_TEMPLATE,
            DEV_POOL_TEMPLATE,
        ]
    )
    names = rng.sample(["worker", "other", "*", "w*", "*er", "pool", "p*", "none"], rng.randint(1, 2))
    wanted: Object = {}
    for name in rng.sample(["infrastructureCluster", "controlPlane", "md", "mp"], rng.randint(1, 4)):
        if name in ("md", "mp"):
            wanted["machineDeploymentClass" if name == "md" else "machinePoolClass"] = {"names": names}
        else:
            wanted[name] = rng.random() < 0.9
    return {"apiVersion": kind.api_version, "kind": kind.kind, "matchResources": wanted}


def _operation(rng: random.Random) -> Object:
    made: Object = {"op": rng.choice(["add", "add", "replace", "remove"]), "path": rng.choice(PATHS[:8] + PATHS)}
    if made["op"] == "remove":
        return made
    choice = rng.random()
    if choice < 0.3:
        made["value"] = rng.choice(VALUES)
    elif choice < 0.6:
        made["valueFrom"] = {"variable": rng.choice(VARIABLES)}
    else:
        made["valueFrom"] = {"template": rng.choice(TEMPLATES)}
    return made


def patches(rng: random.Random) -> list[Object]:
    """A class's patches; few of them cannot be applied at all."""
    made = []
    for number in range(rng.randint(1, 3)):
        definitions = [
            {"selector": _selector(rng), "jsonPatches": [_operation(rng) for _ in range(rng.randint(1, 3))]}
            for _ in range(rng.randint(1, 2))
        ]
        patch: Object = {"name": f"p{number}", "definitions": definitions}
        if rng.random() < 0.3:
            patch["enabledIf"] = rng.choice(
                [
                    "{{ true }}",
                    "{{ .unset }}",
                    "{{ if .size }}true{{ end }}",
                    '{{ eq .zone "z" }}',
                    "True",
                    " true ",
                    '"true"',
                ]
            )
        made.append(patch)
    return made


def request(seed: int) -> Object:
    """What the oracle is asked."""
    rng = random.Random(seed)

    def values(most: float) -> list[Object]:
        return [{"name": name, "value": rng.choice(VALUES)} for name in NAMES if rng.random() < most]

    def overridden() -> Object:
        found = values(0.3) if rng.random() < 0.5 else []
        return {"variables": {"overrides": found}} if found else {}

    topology: Object = {
        "classRef": {"name": "small", **({"namespace": "classes"} if rng.random() < 0.2 else {})},
        "version": "v1.34.0",
        "controlPlane": {**({"replicas": 3} if rng.random() < 0.7 else {}), **overridden()},
        "workers": {
            "machineDeployments": [
                {"class": "worker", "name": "md-0", **overridden()},
                {"class": "other", "name": "md-1", **overridden()},
                {"class": "worker", "name": "md-2", **overridden()},
            ],
            "machinePools": [{"class": "pool", "name": "mp-0", **overridden()}],
        },
        "variables": values(0.7),
    }
    cluster: Object = {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Cluster",
        "metadata": {"name": "prod", "namespace": NAMESPACE, "uid": "u-1", "labels": dict(CLUSTER_LABELS)},
        "spec": {"topology": topology},
    }
    if rng.random() < 0.5:
        cluster["metadata"]["annotations"] = {"a": "b", "kubectl.kubernetes.io/last-applied-configuration": "{}"}
    if rng.random() < 0.5:
        cluster["spec"]["clusterNetwork"] = {"pods": {"cidrBlocks": ["10.0.0.0/16"]}, "serviceDomain": "c.local"}
    has_machines = rng.random() < 0.9
    machine_infrastructure = {"templateRef": {"apiVersion": "i/v1", "kind": "T", "name": "t"}} if has_machines else {}
    class_ = {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "ClusterClass",
        "metadata": {"name": "small", "namespace": NAMESPACE},
        "spec": {"controlPlane": {"machineInfrastructure": machine_infrastructure}, "patches": patches(rng)},
        "status": {
            "variables": [
                {"name": name, "definitions": [{"from": rng.choice(["inline"] * 9 + ["elsewhere"]), "required": False}]}
                for name in NAMES
            ]
        },
    }
    templates = {
        "infrastructureCluster": _template(rng, DEV_CLUSTER_TEMPLATE, "infrastructure"),
        "controlPlane": _template(rng, PLANE_TEMPLATE, "plane"),
        "deployments": {
            name: {
                "bootstrap": _template(rng, CONFIG_TEMPLATE, f"{name}-b"),
                "infrastructure": _template(rng, DEV_MACHINE_TEMPLATE, f"{name}-i"),
            }
            for name in ("worker", "other")
        },
        "pools": {
            "pool": {
                "bootstrap": _template(rng, CONFIG_TEMPLATE, "pool-b"),
                "infrastructure": _template(rng, DEV_POOL_TEMPLATE, "pool-i"),
            }
        },
    }
    if has_machines:
        templates["controlPlaneMachine"] = _template(rng, DEV_MACHINE_TEMPLATE, "machines")
    return {
        "operation": "patch",
        "cluster": cluster,
        "class": class_,
        "patch": {**templates, "desired": _desired(rng, templates, topology)},
        "objects": [definition()],
    }


def _desired(rng: random.Random, templates: Object, topology: Object) -> Object:
    plane = _made(rng, PLANE, templates["controlPlane"], "prod-plane")
    plane["spec"] |= {"version": "v1.34.0", "machineTemplate": {"metadata": {"labels": dict(CLUSTER_LABELS)}}}
    if "replicas" in topology["controlPlane"]:
        plane["spec"]["replicas"] = topology["controlPlane"]["replicas"]
    made: Object = {
        "infrastructureCluster": _made(rng, DEV_CLUSTER, templates["infrastructureCluster"], "prod-infra"),
        "controlPlane": plane,
        "deployments": {},
        "pools": {},
    }
    if "controlPlaneMachine" in templates:
        made["controlPlaneMachine"] = _copied(rng, templates["controlPlaneMachine"], "prod-machines")
        plane["spec"]["machineTemplate"]["spec"] = {"infrastructureRef": {"kind": "T", "name": "prod-machines"}}
    for one in topology["workers"]["machineDeployments"]:
        name, of = one["name"], templates["deployments"][one["class"]]
        label = {"topology.cluster.x-k8s.io/deployment-name": name}
        made["deployments"][name] = {
            "object": _worker(rng, "MachineDeployment", f"prod-{name}", **label),
            "bootstrap": _copied(rng, of["bootstrap"], f"prod-{name}-b", **label),
            "infrastructure": _copied(rng, of["infrastructure"], f"prod-{name}-i", **label),
        }
    for one in topology["workers"]["machinePools"]:
        name, of = one["name"], templates["pools"][one["class"]]
        label = {"topology.cluster.x-k8s.io/pool-name": name}
        made["pools"][name] = {
            "object": _worker(rng, "MachinePool", f"prod-{name}", **label),
            "bootstrap": _made(rng, CONFIG, of["bootstrap"], f"prod-{name}-b", **label),
            "infrastructure": _made(rng, DEV_POOL, of["infrastructure"], f"prod-{name}-i", **label),
        }
    return made


def definition() -> Object:
    """The definition of the control plane's kind, with its contract."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{PLANE.plural}.{PLANE.group}", "labels": {"cluster.x-k8s.io/v1beta2": "v1beta2"}},
        "spec": {"group": PLANE.group, "names": {"kind": PLANE.kind, "plural": PLANE.plural}, "scope": "Namespaced"},
    }
