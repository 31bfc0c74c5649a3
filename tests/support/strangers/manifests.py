"""Clusters of a foreign provider, in the version of Cluster API that the provider is written against."""

from __future__ import annotations

from typing import Any

from support.strangers.family import Family

NAMESPACE = "default"
LABEL = "cluster.x-k8s.io/cluster-name"
Document = dict[str, Any]


def provided(family: Family, part: str, name: str, spec: Document) -> Document:
    kind = family.kind(part)
    return {
        "apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": spec,
    }  # fmt: skip


def templated(family: Family, part: str, name: str, spec: Document) -> Document:
    return provided(family, f"{part}Template", name, {"template": {"spec": spec}})


def core(family: Family, kind: str, name: str, spec: Document) -> Document:
    return {
        "apiVersion": f"cluster.x-k8s.io/{family.contract}", "kind": kind,
        "metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec,
    }  # fmt: skip


def machine_spec(family: Family, cluster: str, version: str, config: Document, host: Document) -> Document:
    """The spec of a Machine."""
    return {
        "clusterName": cluster,
        "version": version,
        "bootstrap": {"configRef": config},
        "infrastructureRef": host,
    }


def control_plane_spec(family: Family, name: str, *, replicas: int | None, version: str, **more: Any) -> Document:
    """Without `replicas` it is one that has no number at all, and no Machines."""
    if replicas is None:
        return {"version": version, **more}
    host = family.reference("MachineTemplate", name)
    template = {"infrastructureRef": host} if family.is_old else {"spec": {"infrastructureRef": host}}
    return {"replicas": replicas, "version": version, "machineTemplate": template, **more}


def deployment(family: Family, name: str, *, replicas: int, version: str, domain: str = "") -> Document:
    labels = {LABEL: name}
    spec = machine_spec(
        family,
        name,
        version,
        family.reference("ConfigTemplate", name),
        family.reference("MachineTemplate", name),
    )
    if domain:
        spec["failureDomain"] = domain
    return core(
        family,
        "MachineDeployment",
        f"{name}-md",
        {
            "clusterName": name,
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    )


def cluster(family: Family, name: str = "alien") -> Document:
    return core(
        family,
        "Cluster",
        name,
        {
            "infrastructureRef": family.reference("Cluster", name),
            "controlPlaneRef": family.reference("ControlPlane", name),
        },
    )


def documents(
    family: Family,
    *,
    name: str = "alien",
    replicas: int | None = 1,
    workers: int = 2,
    version: str = "v1.34.0",
    infrastructure: Document | None = None,
    control_plane: Document | None = None,
    domain: str = "",
) -> list[Document]:
    """A whole cluster."""
    plane = control_plane_spec(family, name, replicas=replicas, version=version, **(control_plane or {}))
    return [
        provided(family, "Cluster", name, infrastructure or {}),
        templated(family, "Machine", name, {"size": "small"}),
        templated(family, "Config", name, {"words": "hello"}),
        provided(family, "ControlPlane", name, plane),
        cluster(family, name),
        deployment(family, name, replicas=workers, version=version, domain=domain),
    ]


def class_documents(family: Family, *, name: str = "alien") -> list[Document]:
    """A ClusterClass of the family's templates."""

    def template(part: str) -> Document:
        reference = {**family.reference(f"{part}Template", name)}
        if family.is_old:
            return {"ref": reference}
        return {"templateRef": {**reference, "apiVersion": family.kind(part).api_version}}

    def without_group(found: Document) -> Document:
        for inner in found.values():
            inner.pop("apiGroup", None)
        return found

    refs = {part: without_group(template(part)) for part in ("Cluster", "Machine", "Config", "ControlPlane")}
    host = {"ref": refs["Machine"]["ref"]} if family.is_old else refs["Machine"]
    worker: Document = {"class": "worker"}
    inner = {"bootstrap": refs["Config"], "infrastructure": refs["Machine"]}
    worker |= {"template": inner} if family.is_old else inner
    return [
        templated(family, "Cluster", name, {"zones": ["a", "b"]}),
        templated(family, "Machine", name, {"size": "small"}),
        templated(family, "Config", name, {"words": "hello"}),
        templated(family, "ControlPlane", name, {"colour": "grey"}),
        core(
            family,
            "ClusterClass",
            name,
            {
                "infrastructure": refs["Cluster"],
                "controlPlane": {**refs["ControlPlane"], "machineInfrastructure": host},
                "workers": {"machineDeployments": [worker]},
            },
        ),
    ]


def topology_cluster(family: Family, *, name: str = "alien", version: str = "v1.34.0") -> Document:
    """A Cluster of that class: 1 + 2 Machines."""
    class_ = {"class": name} if family.is_old else {"classRef": {"name": name}}
    pool = {"class": "worker", "name": "md", "replicas": 2}
    topology = {
        **class_, "version": version, "controlPlane": {"replicas": 1}, "workers": {"machineDeployments": [pool]}
    }  # fmt: skip
    return core(family, "Cluster", name, {"topology": topology})
