"""TinkerbellMachineTemplate: what TinkerbellMachines are made from.

Source: tinkerbell/cluster-api-provider-tinkerbell: api/v1beta1/tinkerbellmachinetemplate_types.go; status as in the
InfraMachineTemplate contract of kubernetes-sigs/cluster-api.
"""

from __future__ import annotations

from typing import Annotated

from ironbell.api.capt.names import CRD_LABELS, GROUP, VERSION
from ironbell.api.capt.tinkerbellmachine import TinkerbellMachineSpec
from ironbell.api.crd.markers import Quantity, Schema, required
from ironbell.api.kind import Column, Kind
from ironbell.api.meta import Model, Resource


class TemplateObjectMeta(Model, frozen=True):
    """Labels and annotations of what is made from the template."""

    labels: Annotated[dict[str, str], Schema("Labels.")] = {}
    annotations: Annotated[dict[str, str], Schema("Annotations.")] = {}


class TinkerbellMachineTemplateResource(Model, frozen=True):
    """Template of the TinkerbellMachines."""

    metadata: Annotated[TemplateObjectMeta, Schema("Labels and annotations.")] = TemplateObjectMeta()
    spec: Annotated[TinkerbellMachineSpec, Schema("Desired state of the machines.")] = required(TinkerbellMachineSpec)


class TinkerbellMachineTemplateSpec(Model, frozen=True):
    """The template."""

    template: Annotated[TinkerbellMachineTemplateResource, Schema("Template of the TinkerbellMachines.")] = required(
        TinkerbellMachineTemplateResource
    )


class NodeInfo(Model, frozen=True):
    """Architecture and operating system that a Node of such a machine reports."""

    architecture: Annotated[str, Schema("Its architecture.", enum=("amd64", "arm64", "s390x", "ppc64le"))] = ""
    operating_system: Annotated[str, Schema("Its operating system.")] = ""


class TinkerbellMachineTemplateStatus(Model, frozen=True):
    """Capacity of the machines of this template, for autoscaling from zero."""

    capacity: Annotated[dict[str, Quantity], Schema("The least that matching Hardware has: cpu and memory.")] = {}
    node_info: Annotated[NodeInfo | None, Schema("Architecture and operating system of their Nodes.")] = None


class TinkerbellMachineTemplate(Resource, frozen=True):
    """Template of TinkerbellMachines; immutable."""

    spec: TinkerbellMachineTemplateSpec = TinkerbellMachineTemplateSpec()
    status: TinkerbellMachineTemplateStatus = TinkerbellMachineTemplateStatus()


TINKERBELL_MACHINE_TEMPLATE: Kind[TinkerbellMachineTemplate] = Kind(
    group=GROUP,
    version=VERSION,
    kind="TinkerbellMachineTemplate",
    plural="tinkerbellmachinetemplates",
    model=TinkerbellMachineTemplate,
    categories=("cluster-api",),
    columns=(
        Column("CPU", ".status.capacity.cpu", description="CPUs that machines have at least"),
        Column("Memory", ".status.capacity.memory", description="Memory that machines have at least"),
        Column("Age", ".metadata.creationTimestamp", "date"),
    ),
    has_status=True,
    crd_labels=CRD_LABELS,
)
