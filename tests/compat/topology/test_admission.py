"""Clusters and ClusterClasses are judged as upstream's webhooks judge them, with the same objects around them."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from ironbell.api.cluster import CLUSTER, CLUSTER_CLASS, MACHINE, MACHINE_DEPLOYMENT, MACHINE_POOL
from ironbell.contract.admission_lookups import (
    AdmissionResponse,
    ListLookup,
    Lookup,
    LookupResults,
    ObjectLookup,
    ReferenceLookup,
)
from ironbell.controllers.capi.admission import cluster as cluster_alone
from ironbell.controllers.capi.admission.classes import clusterclass as class_alone
from ironbell.controllers.capi.admission.classes.informed import class_admission
from ironbell.controllers.capi.admission.informed_cluster import cluster_admission
from ironbell.controllers.capi.topology.variables.compiled import VariableSchemas
from support.capi.classchanges import CLASS_CHANGES, CLUSTER_CHANGES, changed, sound_class, sound_cluster
from support.capi.topologies import NAMESPACE, PLANE

FEW, MANY = 400, pytest.param(10000, marks=pytest.mark.soak)
SCHEMAS = VariableSchemas()
CLUSTERS, CLASSES = cluster_admission(SCHEMAS), class_admission(SCHEMAS)
Object = dict[str, Any]
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {
        "name": f"{PLANE.plural}.{PLANE.group}",
        "labels": {"cluster.x-k8s.io/v1beta2": "v1beta2"},
    },
    "spec": {"group": PLANE.group, "names": {"kind": PLANE.kind, "plural": PLANE.plural}, "scope": "Namespaced"},
}


def found(wanted: Sequence[Lookup], objects: Sequence[Object]) -> LookupResults:
    """What a look-up finds among some objects."""

    def matching(one: Lookup) -> list[Object]:
        if isinstance(one, ListLookup):
            pairs = [part.partition("=") for part in one.labels.split(",") if part]
            return [
                body
                for body in objects
                if body["kind"] == one.kind.kind
                and all(
                    name in body["metadata"].get("labels", {})
                    and (not equals or body["metadata"]["labels"][name] == value)
                    for name, equals, value in pairs
                )
            ]
        assert isinstance(one, (ObjectLookup, ReferenceLookup))
        kind = one.kind if isinstance(one, ReferenceLookup) else one.kind.kind
        return [body for body in objects if (body["kind"], body["metadata"]["name"]) == (kind, one.name)]

    return LookupResults({one: matching(one) for one in wanted})


_PLACES: Mapping[str, str] = {
    r"\.template\.(bootstrap|infrastructure)\.ref\.": r".\1.templateRef.",
    r"^spec\.(infrastructure|controlPlane)\.ref\.": r"spec.\1.templateRef.",
    r"machineInfrastructure\.ref\.": "machineInfrastructure.templateRef.",
    r"^spec\.kubernetesVersion\[": "spec.kubernetesVersions[",
    r"\.template\.metadata\.": ".metadata.",
    r"^spec\.topology\.class$": "spec.topology.classRef",
    r"healthCheck\.enable$": "healthCheck.enabled",
    r"\.additionalProperties$": "",
}

_OF_CLUSTER = "if the same MachineDeploymentTopology has autoscaler annotations"
_NUMBERED = re.compile(r"spec\.workers\.(machineDeployments|machinePools)\[(\d+)\](\.infrastructure\.templateRef.*)")


def place(path: str, class_: Object | None) -> str:
    """A path of upstream's as ours: of the version that is stored, and workers by the name of their class."""
    for before, after in _PLACES.items():
        path = re.sub(before, after, path)
    numbered = re.match(
        r"^spec\.workers\.(machineDeployments|machinePools)\[(\d+)\](\.infrastructure\.templateRef.*)", path
    )
    if numbered and class_ is not None and path.endswith(("apiVersion", "kind")):
        workers = class_["spec"]["workers"][numbered[1]]
        return f"spec.workers.{numbered[1]}[{workers[int(numbered[2])]['class']}]{numbered[3]}"
    return path


def theirs(answer: Object, class_: Object | None) -> set[tuple[str, str]]:
    return {_fault(one["reason"], place(one["field"], class_)) for one in answer.get("faults", [])}


def ours(verdict: AdmissionResponse, class_: Object | None) -> set[tuple[str, str]]:
    told = {_fault(one.kind, place(one.path, class_)) for one in verdict.problems}
    return told | ({("Forbidden", "")} if verdict.forbidden else set())


def _fault(reason: str, path: str) -> tuple[str, str]:
    # that a class is not there is no failure of ours
    return ("FieldValueInvalid" if path == "spec.topology.classRef" else reason, path)


def class_request(seed: int) -> Object:
    rng = random.Random(seed)
    old = sound_class()
    request: Object = {"operation": "class", "class": changed(rng, old, CLASS_CHANGES)}
    if rng.random() < 0.5:
        request["oldClass"] = changed(rng, old, CLASS_CHANGES, most=1)
        count = rng.randint(0, 3)
        names = [f"c-{number}" for number in range(count)]
        request["objects"] = [changed(rng, sound_cluster(name), CLUSTER_CHANGES, most=2) for name in names]
    return request


@pytest.mark.parametrize("cases", [FEW, MANY])
def test_classes_are_judged_alike(oracle: Any, cases: int) -> None:
    requests = [class_request(seed) for seed in range(cases)]
    requests.append({"operation": "class", "oldClass": sound_class(), "objects": [sound_cluster()]})
    requests.append({"operation": "class", "oldClass": sound_class(), "objects": []})
    refused = 0
    for seed, (request, answer) in enumerate(zip(requests, oracle(requests), strict=True)):
        assert "error" not in answer, (seed, answer)
        new, old = request.get("class"), request.get("oldClass")
        verdict = CLASSES.review(new, old, found(CLASSES.lookups_for_review(new, old), request.get("objects", [])))
        alone = class_alone.validate(new, old) if new is not None else []
        if new is not None and old is not None and new["spec"] == old["spec"]:
            assert not verdict.problems  # upstream asks again
            continue
        mine = ours(AdmissionResponse([*alone, *verdict.problems], forbidden=verdict.forbidden), new)
        # what a Cluster itself has wrong is no reason to refuse its class
        answer["faults"] = [one for one in answer.get("faults", []) if _OF_CLUSTER not in one["message"]]
        assert mine == theirs(answer, new), (seed, request, verdict, answer)
        refused += bool(mine)
    assert cases / 4 < refused < cases


def cluster_request(seed: int) -> Object:
    rng = random.Random(seed)
    class_ = changed(rng, sound_class(), CLASS_CHANGES, most=1)
    second = changed(rng, sound_class(), CLASS_CHANGES, most=1)
    second["metadata"]["name"] = "second"
    new = changed(rng, sound_cluster(), CLUSTER_CHANGES)
    objects: list[Object] = [DEFINITION]
    objects += [one for one in (class_, second) if rng.random() < 0.97]
    request: Object = {"operation": "cluster", "cluster": new, "objects": objects}
    if rng.random() < 0.6:
        old = sound_cluster()
        old["spec"]["controlPlaneRef"] = {"apiGroup": PLANE.group, "kind": PLANE.kind, "name": "plane"}
        new["spec"]["controlPlaneRef"] = old["spec"]["controlPlaneRef"]
        request["old"] = old
        objects += running(rng)
    return request


def running(rng: random.Random) -> list[Object]:
    """What runs of the Cluster, sometimes in the middle of an upgrade."""

    def version() -> str:
        return "v1.34.0" if rng.random() < 0.95 else "v1.33.4"

    metadata = {"name": "plane", "namespace": NAMESPACE}
    plane = {"apiVersion": PLANE.api_version, "kind": PLANE.kind, "metadata": metadata, "spec": {"version": version()}}
    if rng.random() < 0.95:
        plane["status"] = {"versions": [{"version": version(), "replicas": 1}]}
    labels = {"cluster.x-k8s.io/cluster-name": "prod", "topology.cluster.x-k8s.io/owned": ""}
    made = [plane]
    for name in ("one", "two"):
        selector = {"matchLabels": {"md": name}}
        spec = {"selector": selector, "template": {"spec": {"version": version()}}}
        body = {"metadata": {"name": name, "namespace": NAMESPACE, "labels": labels}, "spec": spec}
        made.append({"apiVersion": MACHINE_DEPLOYMENT.api_version, "kind": "MachineDeployment", **body})
        machine = {
            "metadata": {"name": f"{name}-m", "namespace": NAMESPACE, "labels": {**labels, "md": name}},
            "spec": {"version": version(), "clusterName": "prod"},
        }
        if rng.random() < 0.5:
            machine["status"] = {"nodeInfo": {"kubeletVersion": version()}}
        made.append({"apiVersion": MACHINE.api_version, "kind": "Machine", **machine})
    return made


@pytest.mark.parametrize("cases", [FEW, MANY])
def test_clusters_are_judged_alike(oracle: Any, cases: int) -> None:
    assert {CLUSTER, CLUSTER_CLASS, MACHINE_POOL}  # kinds that are looked up
    requests = [cluster_request(seed) for seed in range(cases)]
    refused = 0
    for seed, (request, answer) in enumerate(zip(requests, oracle(requests), strict=True)):
        assert "error" not in answer, (seed, answer)
        new, old = request["cluster"], request.get("old")
        if old is not None and old["spec"]["topology"] == new["spec"]["topology"]:
            continue  # upstream asks the class again
        verdict = CLUSTERS.review(new, old, found(CLUSTERS.lookups_for_review(new, old), request["objects"]))
        both = AdmissionResponse([*cluster_alone.validate(new, old), *verdict.problems])
        mine = {one for one in ours(both, None) if ".variables" not in one[1]}
        if any("does not exist" in one for one in verdict.warnings):
            # upstream does not look at them without a class
            mine = {one for one in mine if ".healthCheck." not in one[1]}
        named = new["spec"]["topology"]["classRef"]["name"]
        of = next((one for one in request["objects"] if one["metadata"]["name"] == named), None)
        assert mine == theirs(answer, of), (seed, request, both, answer)
        assert sorted(verdict.warnings) == sorted(answer.get("warnings", [])), seed
        refused += bool(mine)
    assert cases / 4 < refused < cases
