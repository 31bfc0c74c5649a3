"""TinkerbellClusterTemplate: what a ClusterClass makes TinkerbellClusters from. Upstream has no such kind.

Source: the InfraClusterTemplate contract of kubernetes-sigs/cluster-api.
"""

from __future__ import annotations

from typing import Annotated

from ironbell.api.capt.names import CRD_LABELS, GROUP, VERSION
from ironbell.api.capt.tinkerbellcluster import TinkerbellClusterSpec
from ironbell.api.capt.tinkerbellmachinetemplate import TemplateObjectMeta
from ironbell.api.crd.markers import Schema, required
from ironbell.api.kind import Kind
from ironbell.api.meta import Model, Resource


class TinkerbellClusterTemplateResource(Model, frozen=True):
    """Template of the TinkerbellClusters."""

    metadata: Annotated[TemplateObjectMeta, Schema("Labels and annotations.")] = TemplateObjectMeta()
    spec: Annotated[TinkerbellClusterSpec, Schema("Desired state of the clusters.")] = required(TinkerbellClusterSpec)


class TinkerbellClusterTemplateSpec(Model, frozen=True):
    """The template."""

    template: Annotated[TinkerbellClusterTemplateResource, Schema("Template of the TinkerbellClusters.")] = required(
        TinkerbellClusterTemplateResource
    )


class TinkerbellClusterTemplate(Resource, frozen=True):
    """Template of TinkerbellClusters; immutable."""

    spec: TinkerbellClusterTemplateSpec = TinkerbellClusterTemplateSpec()


TINKERBELL_CLUSTER_TEMPLATE: Kind[TinkerbellClusterTemplate] = Kind(
    group=GROUP,
    version=VERSION,
    kind="TinkerbellClusterTemplate",
    plural="tinkerbellclustertemplates",
    model=TinkerbellClusterTemplate,
    categories=("cluster-api",),
    crd_labels=CRD_LABELS,
)
