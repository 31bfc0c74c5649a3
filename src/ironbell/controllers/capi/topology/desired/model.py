"""The parts of a topology as values: the class, the current objects, the desired objects.

Objects are plain data in the version in which the class names their templates.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ironbell.api.cluster.classes.clusterclass import ClusterClass
from ironbell.api.cluster.classes.workers import MachineDeploymentClass, MachinePoolClass
from ironbell.api.kind import Kind
from ironbell.api.unstructured import Unstructured
from ironbell.base.errors import IronbellError, Retry
from ironbell.kube.decision import Fields


@dataclass(frozen=True, slots=True)
class Template:
    """A template of the class, with the kind of its clones."""

    body: Fields
    kind: Kind[Unstructured]
    """Kind of the template itself."""
    optional_clone_kind: Kind[Unstructured] | None = None
    """Kind of the objects that are cloned from it; None where only copies of the template are needed."""

    @property
    def name(self) -> str:
        return str(self.body["metadata"]["name"])

    @property
    def clone_kind(self) -> Kind[Unstructured]:
        """Kind of the objects that are cloned from it, which must have been looked up."""
        if self.optional_clone_kind is None:
            raise AssertionError(f"{self.kind.kind} is read without the kind of its clones")
        return self.optional_clone_kind

    @property
    def group_kind(self) -> str:
        """Kind and group as in the annotation of a clone."""
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
    """Templates by class."""
    pools: Mapping[str, WorkerTemplates]

    @property
    def deployment_classes(self) -> Mapping[str, MachineDeploymentClass]:
        return {worker.class_: worker for worker in self.cluster_class.spec.workers.machine_deployments}

    @property
    def pool_classes(self) -> Mapping[str, MachinePoolClass]:
        return {worker.class_: worker for worker in self.cluster_class.spec.workers.machine_pools}


@dataclass(frozen=True, slots=True)
class Worker:
    """A MachineDeployment or MachinePool of the topology, with its templates and its health check."""

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
    """All desired objects of a topology."""

    infrastructure_cluster: Fields
    control_plane: Fields
    control_plane_machine: Fields | None
    control_plane_health_check: Fields | None
    deployments: tuple[Worker, ...] = ()
    pools: tuple[Worker, ...] = ()


class TopologyError(IronbellError):
    """The class, the Cluster or a referred object must be changed first; the Cluster's condition has the text."""

    reason = "ReconcileFailed"
    retry = Retry.NEVER
