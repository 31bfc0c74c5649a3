"""KubeadmControlPlaneTemplate: a template of KubeadmControlPlanes.

Source: kubernetes-sigs/cluster-api: api/controlplane/kubeadm/v1beta2.
"""

from __future__ import annotations

from ironbell.api.bootstrap.kubeadmconfig import KubeadmConfigSpec
from ironbell.api.cluster.common import MachineDeletionSpec, MachineNamingSpec, MachineTaints, TemplateMetadata
from ironbell.api.cluster.names import CONTROL_PLANE_KUBEADM_LABELS
from ironbell.api.controlplane.kubeadmcontrolplane import (
    KubeadmControlPlaneRemediationSpec,
    KubeadmControlPlaneRolloutSpec,
)
from ironbell.api.crd.markers import Schema, required
from ironbell.api.kind import Column, Kind
from ironbell.api.meta import Model, Resource


class KubeadmControlPlaneTemplateMachineTemplateSpec(Model, frozen=True):
    """The parts of a Machine that a template may set."""

    schema_ = Schema(min_properties=1)

    deletion: MachineDeletionSpec = MachineDeletionSpec()
    taints: MachineTaints = []


class KubeadmControlPlaneTemplateMachineTemplate(Model, frozen=True):
    """Template of each Machine."""

    schema_ = Schema(min_properties=1)

    metadata: TemplateMetadata = TemplateMetadata()
    spec: KubeadmControlPlaneTemplateMachineTemplateSpec = KubeadmControlPlaneTemplateMachineTemplateSpec()


class KubeadmControlPlaneTemplateResourceSpec(Model, frozen=True):
    """The parts of a KubeadmControlPlane that a template may set."""

    schema_ = Schema(min_properties=1)

    machine_template: KubeadmControlPlaneTemplateMachineTemplate = KubeadmControlPlaneTemplateMachineTemplate()
    kubeadm_config_spec: KubeadmConfigSpec = KubeadmConfigSpec()
    rollout: KubeadmControlPlaneRolloutSpec = KubeadmControlPlaneRolloutSpec()
    remediation: KubeadmControlPlaneRemediationSpec = KubeadmControlPlaneRemediationSpec()
    machine_naming: MachineNamingSpec = MachineNamingSpec()


class KubeadmControlPlaneTemplateResource(Model, frozen=True):
    """Template of each KubeadmControlPlane."""

    schema_ = Schema(min_properties=1)

    metadata: TemplateMetadata = TemplateMetadata()
    spec: KubeadmControlPlaneTemplateResourceSpec = KubeadmControlPlaneTemplateResourceSpec()


class KubeadmControlPlaneTemplateSpec(Model, frozen=True):
    """Desired state of a KubeadmControlPlaneTemplate."""

    template: KubeadmControlPlaneTemplateResource = required(KubeadmControlPlaneTemplateResource)


class KubeadmControlPlaneTemplate(Resource, frozen=True):
    """A template of KubeadmControlPlanes."""

    spec: KubeadmControlPlaneTemplateSpec = KubeadmControlPlaneTemplateSpec()


KUBEADM_CONTROL_PLANE_TEMPLATE: Kind[KubeadmControlPlaneTemplate] = Kind(
    group="controlplane.cluster.x-k8s.io",
    version="v1beta2",
    kind="KubeadmControlPlaneTemplate",
    plural="kubeadmcontrolplanetemplates",
    model=KubeadmControlPlaneTemplate,
    categories=("cluster-api",),
    columns=(
        Column("ClusterClass", '.metadata.ownerReferences[?(@.kind=="ClusterClass")].name'),
        Column("Age", ".metadata.creationTimestamp", "date"),
    ),
    crd_labels=CONTROL_PLANE_KUBEADM_LABELS,
    older_versions="ironbell.api.controlplane",
)
