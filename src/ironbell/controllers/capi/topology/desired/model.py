"""The parts of a topology as values: what the class has, what there is, what there is to be.

Objects are plain data in the version in which the class names their templates.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ironbell.api.cluster.classes.clusterclass import ClusterClass
from ironbell.api.cluster.classes.workers import MachineDeploymentClass, MachinePoolClass
from ironbell.api.kind import Kind
from ironbell.api.unstructured import Unstructured
from ironbell.kube.decision import Fields


@dataclass(frozen=True, slots=True)
class Template:
    """A template of the class, with the kind of what is made from it."""

    body: Fields
    kind: Kind[Unstructured]
    """Of the template itself."""
    made: Kind[Unstructured] | None = None
    """Of objects made from it; None where only copies of the template are needed."""

    @property
    def name(self) -> str:
        return str(self.body["metadata"]["name"])

    @property
    def kind_made(self) -> Kind[Unstructured]:
        """The kind of what is made from it, which must have been asked for."""
        if self.made is None:
            raise AssertionError(f"{self.kind.kind} is read without the kind that it makes")
        return self.made

    @property
    def group_kind(self) -> str:
        """As the annotation of what was cloned has it."""
        return f"{self.kind.kind}.{self.kind.group}"


@dataclass(frozen=True, slots=True)
class WorkerTemplates:
    """The templates of a class of workers."""

    bootstrap: Template
    infrastructure: Template


@dataclass(frozen=True, slots=True)
class Blueprint:
    """A ClusterClass with all templates that it names."""

    cluster_class: ClusterClass
    infrastructure_cluster: Template
    control_plane: Template
    control_plane_contract: str
    """The version of the contract that control plane objects keep: v1beta1 or v1beta2."""
    control_plane_machine: Template | None
    deployments: Mapping[str, WorkerTemplates]
    """By class."""
    pools: Mapping[str, WorkerTemplates]

    @property
    def deployment_classes(self) -> Mapping[str, MachineDeploymentClass]:
        return {one.class_: one for one in self.cluster_class.spec.workers.machine_deployments}

    @property
    def pool_classes(self) -> Mapping[str, MachinePoolClass]:
        return {one.class_: one for one in self.cluster_class.spec.workers.machine_pools}


@dataclass(frozen=True, slots=True)
class Worker:
    """A MachineDeployment or MachinePool of the topology, with what belongs to it."""

    topology_name: str
    class_name: str
    obj: Fields
    bootstrap: Fields
    infrastructure: Fields
    health_check: Fields | None = None

    @property
    def name(self) -> str:
        return str(self.obj["metadata"]["name"])


@dataclass(frozen=True, slots=True)
class Desired:
    """Everything that a topology is to have."""

    infrastructure_cluster: Fields
    control_plane: Fields
    control_plane_machine: Fields | None
    control_plane_health_check: Fields | None
    deployments: tuple[Worker, ...] = ()
    pools: tuple[Worker, ...] = ()
