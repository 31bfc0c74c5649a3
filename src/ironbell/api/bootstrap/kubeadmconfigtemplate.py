"""KubeadmConfigTemplate: a template of KubeadmConfigs.

Source: kubernetes-sigs/cluster-api: api/bootstrap/kubeadm/v1beta2.
"""

from __future__ import annotations

from ironbell.api.bootstrap.kubeadmconfig import KubeadmConfigSpec
from ironbell.api.cluster.common import TemplateMetadata
from ironbell.api.cluster.names import BOOTSTRAP_KUBEADM_LABELS
from ironbell.api.crd.markers import Schema, required
from ironbell.api.kind import Column, Kind
from ironbell.api.meta import Model, Resource


class KubeadmConfigTemplateResource(Model, frozen=True):
    """Template of the KubeadmConfigs."""

    schema_ = Schema(min_properties=1)

    metadata: TemplateMetadata = TemplateMetadata()
    spec: KubeadmConfigSpec = KubeadmConfigSpec()


class KubeadmConfigTemplateSpec(Model, frozen=True):
    """Desired state of a KubeadmConfigTemplate."""

    template: KubeadmConfigTemplateResource = required(KubeadmConfigTemplateResource)


class KubeadmConfigTemplate(Resource, frozen=True):
    """A template of KubeadmConfigs."""

    spec: KubeadmConfigTemplateSpec = KubeadmConfigTemplateSpec()


KUBEADM_CONFIG_TEMPLATE: Kind[KubeadmConfigTemplate] = Kind(
    group="bootstrap.cluster.x-k8s.io",
    version="v1beta2",
    kind="KubeadmConfigTemplate",
    plural="kubeadmconfigtemplates",
    model=KubeadmConfigTemplate,
    categories=("cluster-api",),
    columns=(
        Column("ClusterClass", '.metadata.ownerReferences[?(@.kind=="ClusterClass")].name'),
        Column("Cluster", '.metadata.ownerReferences[?(@.kind=="Cluster")].name'),
        Column("Age", ".metadata.creationTimestamp", "date"),
    ),
    crd_labels=BOOTSTRAP_KUBEADM_LABELS,
    older_versions="ironbell.api.bootstrap",
)
