"""A cluster of simulated machines comes, is scaled and goes on a real API server, by components that may do only what
their roles say. That none of them asked for more is asserted when they have ended.

Objects are converted, completed and checked by our webhooks, over TLS."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from ironbell.contract.plurals import plural_of
from support.api.kubeapi import Answer
from support.capi.processes import KUBEADM, cluster_api, simulation
from support.capi.site import JOIN, cluster_documents
from support.capi.topologies import small_class, small_cluster
from support.site.components import OnCluster
from support.waiting import eventually

CORE, BOOTSTRAP, CONTROL_PLANE = (f"{prefix}cluster.x-k8s.io" for prefix in ("", "bootstrap.", "controlplane."))
INFRASTRUCTURE = "infrastructure.cluster.x-k8s.io"
OLD, NEW = f"{CORE}/v1beta1", f"{CORE}/v1beta2"
TEMPLATES = {"DevMachineTemplate", "KubeadmConfigTemplate"}
WITHIN_S = 60.0


class Namespace:
    """One cluster's objects, all in one version of Cluster API."""

    def __init__(self, on_cluster: OnCluster, name: str, version: str) -> None:
        self._on, self._api, self._name, self._version = on_cluster, on_cluster.api, name, version
        self._api.made("/api/v1/namespaces", {"metadata": {"name": name}})

    def path(self, group: str, plural: str, name: str = "") -> str:
        path = f"/apis/{group}/{self._version}/namespaces/{self._name}/{plural}"
        return f"{path}/{name}" if name else path

    def apply(self, documents: Sequence[Mapping[str, Any]]) -> None:
        for document in documents:
            group, _, version = document["apiVersion"].partition("/")
            name, plural = document["metadata"]["name"], plural_of(document["kind"].lower())
            path = f"/apis/{group}/{version}/namespaces/{self._name}/{plural}/{name}"
            body = {**document, "metadata": {**document["metadata"], "namespace": self._name}}
            answer = self._api.apply(path, body, manager="test")
            assert answer.status in {200, 201}, answer.body

    def items(self, group: str, plural: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._found(self.path(group, plural))["items"]
        return found

    def scale(self, group: str, plural: str, name: str, replicas: int) -> None:
        answer = self._api.patch(f"{self.path(group, plural, name)}/scale", {"spec": {"replicas": replicas}})
        assert answer.status == 200, answer.body

    def runs(self, count: int) -> None:
        """Until there are so many Machines and all of them run."""

        def look() -> bool:
            phases = {
                one["metadata"]["name"]: one.get("status", {}).get("phase") for one in self.items(CORE, "machines")
            }
            assert len(phases) == count, phases
            assert set(phases.values()) == {"Running"}, phases
            return True

        eventually(look, within_s=WITHIN_S)

    def left(self) -> set[str]:
        """What there is: kinds of Cluster API and providers; Secrets and ConfigMaps by name."""
        kinds = set()
        for group in (CORE, BOOTSTRAP, CONTROL_PLANE, INFRASTRUCTURE, f"addons.{CORE}"):
            for served in self._found(f"/apis/{group}/v1beta2")["resources"]:
                if served["namespaced"] and "/" not in served["name"]:
                    path = f"/apis/{group}/v1beta2/namespaces/{self._name}/{served['name']}"
                    kinds |= {served["kind"] for _one in self._found(path)["items"]}
        named = {"secrets": "Secret", "configmaps": "ConfigMap"}
        for plural, kind in named.items():
            items = self._found(f"/api/v1/namespaces/{self._name}/{plural}")["items"]
            kinds |= {f"{kind} {one['metadata']['name']}" for one in items}
        return kinds - {"ConfigMap kube-root-ca.crt"}

    def _found(self, path: str) -> dict[str, Any]:
        answer = self._api.get(path)
        assert answer.status == 200, answer.body
        found: dict[str, Any] = answer.json
        return found


def older(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """The same as one writes it in v1beta1."""
    group = document["apiVersion"].partition("/")[0]
    if group == INFRASTRUCTURE:
        return document
    spec = dict(document["spec"])
    match document["kind"]:
        case "Cluster":
            spec |= {name: referred(spec[name]) for name in ("controlPlaneRef", "infrastructureRef")}
        case "KubeadmControlPlane":
            machine = spec["machineTemplate"]["spec"]
            spec["machineTemplate"] = {
                "infrastructureRef": referred(machine["infrastructureRef"]),
                "nodeDrainTimeout": "10m",
                "nodeDeletionTimeout": "10s",
            }
        case "MachineDeployment":
            machine = dict(spec["template"]["spec"], nodeDrainTimeout="10m", nodeDeletionTimeout="10s")
            del machine["deletion"]
            machine["infrastructureRef"] = referred(machine["infrastructureRef"])
            machine["bootstrap"] = {"configRef": referred(machine["bootstrap"]["configRef"])}
            spec["template"] = {**spec["template"], "spec": machine}
        case "KubeadmConfigTemplate":
            registration = {"kubeletExtraArgs": {"eviction-hard": "nodefs.available<0%"}}
            spec = {"template": {"spec": {"joinConfiguration": {"nodeRegistration": registration}}}}
    return {**document, "apiVersion": f"{group}/v1beta1", "spec": spec}


def referred(reference: Mapping[str, Any]) -> Mapping[str, Any]:
    version = "v1beta2" if reference["apiGroup"] == INFRASTRUCTURE else "v1beta1"
    return {"apiVersion": f"{reference['apiGroup']}/{version}", "kind": reference["kind"], "name": reference["name"]}


@pytest.fixture(scope="module")
def site(on_cluster: OnCluster) -> Iterator[OnCluster]:
    with cluster_api(on_cluster, *KUBEADM), simulation(on_cluster):
        yield on_cluster


@pytest.mark.soak  # tests/integration/lives has the same and more
@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_a_cluster_comes_is_scaled_and_goes(site: OnCluster, version: str) -> None:
    namespace = Namespace(site, f"capi-{version}", version)
    documents = cluster_documents(workers=2, vm="0s")
    namespace.apply([older(one) for one in documents] if version == "v1beta1" else documents)
    namespace.runs(3)
    (cluster,) = namespace.items(CORE, "clusters")
    assert cluster["apiVersion"] == f"{CORE}/{version}"
    assert cluster["status"]["phase"] == "Provisioned"

    namespace.scale(CORE, "machinedeployments", "one-md-0", 3)
    namespace.scale(CONTROL_PLANE, "kubeadmcontrolplanes", "one-control-plane", 3)
    namespace.runs(6)
    namespace.scale(CORE, "machinedeployments", "one-md-0", 1)
    namespace.scale(CONTROL_PLANE, "kubeadmcontrolplanes", "one-control-plane", 1)
    namespace.runs(2)

    assert site.api.delete(namespace.path(CORE, "clusters", "one")).status == 200

    def gone() -> bool:
        assert namespace.left() == TEMPLATES
        return True

    eventually(gone, within_s=WITHIN_S)


def _machines(version: str, name: str = "") -> str:
    path = f"/apis/{version}/namespaces/default/machines"
    return f"{path}/{name}" if name else path


def _machine(api_version: str, name: str, **spec: Any) -> dict[str, Any]:
    reference = {"apiVersion": "hosts.test/v1alpha3"} if api_version == OLD else {"apiGroup": "hosts.test"}
    return {
        "apiVersion": api_version,
        "kind": "Machine",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "clusterName": "nobodys",
            "bootstrap": {"dataSecretName": "s"},
            "infrastructureRef": {**reference, "kind": "Host", "name": "h"},
            **spec,
        },
    }


def test_an_object_is_stored_converted_and_completed(site: OnCluster) -> None:
    def created() -> Answer | None:
        body = _machine(OLD, "older", version="1.36.0", nodeDrainTimeout="1m30s")
        answer = site.api.post(_machines(OLD), body)
        return answer if answer.status == 201 else None

    assert eventually(created)
    stored = site.api.get(_machines(NEW, "older")).json
    assert stored["spec"]["version"] == "v1.36.0"
    assert stored["spec"]["deletion"]["nodeDrainTimeoutSeconds"] == 90
    assert stored["spec"]["infrastructureRef"] == {"apiGroup": "hosts.test", "kind": "Host", "name": "h"}
    assert stored["metadata"]["labels"]["cluster.x-k8s.io/cluster-name"] == "nobodys"
    shown = site.api.get(_machines(OLD, "older")).json
    assert shown["spec"]["nodeDrainTimeout"] == "1m30s"
    assert shown["spec"]["infrastructureRef"]["apiVersion"] == "hosts.test/v1beta1"
    listed = site.api.get(_machines(OLD)).json["items"]
    assert [item["apiVersion"] for item in listed if item["metadata"]["name"] == "older"] == [OLD]

    def written() -> bool:
        # the controllers beside the webhooks write too
        read = site.api.get(_machines(OLD, "older")).json
        read["spec"]["version"] = "v1.36.1"
        return site.api.put(_machines(OLD, "older"), read).status == 200

    assert eventually(written)
    again = site.api.get(_machines(NEW, "older")).json
    assert again["spec"] == {**stored["spec"], "version": "v1.36.1"}
    assert "cluster.x-k8s.io/conversion-data" not in again["metadata"].get("annotations", {})


@pytest.mark.parametrize("version", [OLD, NEW], ids=["older", "stored"])
def test_what_breaks_the_rules_is_refused(site: OnCluster, version: str) -> None:
    def refused() -> Answer | None:
        answer = site.api.post(_machines(version), _machine(version, "refused", version="one"))
        return answer if answer.status == 422 else None

    said = eventually(refused).json["message"]
    assert 'denied the request: Machine.cluster.x-k8s.io "refused" is invalid' in said
    assert "spec.version: Invalid value" in said


def _class_documents() -> list[dict[str, Any]]:
    """A class whose templates the simulation and kubeadm's kinds accept."""
    specs: dict[str, dict[str, Any]] = {
        "DevClusterTemplate": {"backend": {"inMemory": {}}},
        "DevMachineTemplate": {"backend": {"inMemory": {}}},
        "KubeadmControlPlaneTemplate": {
            "kubeadmConfigSpec": {"clusterConfiguration": {"encryptionAlgorithm": "ECDSA-P256"}}
        },
        "KubeadmConfigTemplate": JOIN,
    }
    schema = {"type": "string", "enum": ["small", "large"], "default": "small"}
    variable = {"name": "size", "required": True, "schema": {"openAPIV3Schema": schema}}
    *templates, class_ = small_class(variables=[variable])
    return [*({**one, "spec": {"template": {"spec": specs[one["kind"]]}}} for one in templates), class_]


def _has_variables(class_: dict[str, Any]) -> bool:
    assert class_.get("status", {}).get("variables"), class_.get("status")
    return True


def test_clusters_and_classes_are_judged_by_each_other(site: OnCluster) -> None:
    namespace = Namespace(site, "capi-class", "v1beta2")
    cluster, class_ = namespace.path(CORE, "clusters", "prod"), namespace.path(CORE, "clusterclasses", "small")
    namespace.apply(_class_documents())
    # admission waits for the variables of a class for a moment only, as upstream's does
    eventually(lambda: _has_variables(site.api.get(class_).json), within_s=WITHIN_S)
    made = small_cluster()
    made["spec"]["paused"] = True
    namespace.apply([made])
    assert site.api.get(cluster).json["spec"]["topology"]["variables"] == [{"name": "size", "value": "small"}]

    def refused(change: dict[str, Any]) -> str:
        answer = site.api.patch(cluster, {"spec": {"topology": change}})
        assert answer.status == 422, answer.body
        message: str = answer.json["message"]
        return message

    said = refused({"variables": [{"name": "size", "value": "huge"}]})
    assert 'spec.topology.variables[size].value: Unsupported value: "huge": supported values: "small", "large"' in said
    said = refused({"workers": {"machineDeployments": [{"class": "none", "name": "md-0"}]}})
    assert 'MachineDeploymentClass with name "none" does not exist in ClusterClass "small": it has worker' in said
    assert "version cannot be increased" in refused({"version": "v1.37.0"})
    assert "its object does not exist yet" in refused({"version": "v1.35.0"})
    said = refused({"classRef": {"name": "other"}})
    assert "ClusterClass capi-class/other not found" in said

    denied = site.api.delete(class_)
    assert denied.status == 403
    assert "used by Cluster(s) capi-class/prod" in denied.json["message"]
    denied = site.api.patch(class_, {"spec": {"workers": None}})
    assert 'MachineDeploymentClass "worker" cannot be deleted' in denied.json["message"]
    answer = site.api.post(namespace.path(CORE, "clusters"), {**made, "metadata": {"name": "early"}}, dryRun="All")
    assert (answer.status, answer.warnings) == (201, [])
    made["spec"]["topology"]["classRef"] = {"name": "other"}
    answer = site.api.post(namespace.path(CORE, "clusters"), {**made, "metadata": {"name": "early"}}, dryRun="All")
    assert answer.status == 201
    assert "this ClusterClass does not exist" in answer.warnings[0]

    assert site.api.patch(cluster, {"spec": {"paused": None}}).status == 200
    assert site.api.delete(cluster).status == 200

    def gone() -> bool:
        return site.api.get(cluster).status == 404

    eventually(gone, within_s=WITHIN_S)
    assert site.api.delete(class_).status == 200
