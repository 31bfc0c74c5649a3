"""TinkerbellCluster: what the machines of one cluster share.

Source: tinkerbell/cluster-api-provider-tinkerbell: api/v1beta1/tinkerbellcluster_types.go.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import field

from ironbell.api.capt.imagelookup import DEFAULT_BASE_REGISTRY, DEFAULT_OS_DISTRO
from ironbell.api.capt.names import CRD_LABELS, GROUP, VERSION
from ironbell.api.cluster.common import ApiEndpoint
from ironbell.api.crd.markers import Rule, Schema, required
from ironbell.api.kind import Column, Kind
from ironbell.api.meta import Condition, Model, Resource


class TemplateOverrideRef(Model, frozen=True):
    """A Template in the management cluster."""

    name: Annotated[str, Schema("Name of the Template.")] = required(str)
    namespace: Annotated[str, Schema("Its namespace; empty is that of the Hardware.")] = ""


class Initialization(Model, frozen=True):
    """Progress of the first provisioning."""

    schema_: ClassVar[Schema] = Schema(min_properties=1)

    provisioned: Annotated[bool | None, Schema("Whether it is complete; it stays so.")] = None


class FailureDomain(Model, frozen=True):
    """A part of the site that fails as one, such as a rack."""

    name: Annotated[str, Schema("Its name.", min_length=1, max_length=256)] = required(str)
    control_plane: Annotated[bool | None, Schema("Whether control plane machines may be created in it.")] = None
    attributes: Annotated[dict[str, str], Schema("Attributes of the failure domain.")] = {}


class TinkerbellClusterSpec(Model, frozen=True):
    """Settings that the machines of the cluster share."""

    schema_: ClassVar[Schema] = Schema(
        rules=(
            Rule(
                rule="!has(self.templateOverride) || !has(self.templateOverrideRef)",
                message="templateOverride and templateOverrideRef are mutually exclusive",
            ),
        )
    )

    control_plane_endpoint: Annotated[
        ApiEndpoint, Schema("Where the cluster's API is reached; taken from the Cluster if empty.")
    ] = ApiEndpoint()
    image_lookup_format: Annotated[
        str,
        Schema(
            "Go template of the image's address, with BaseRegistry, OSDistro, OSVersion and KubernetesVersion. "
            "A machine may have its own."
        ),
    ] = ""
    image_lookup_base_registry: Annotated[
        str, Schema("Registry and folder of the images.", default=DEFAULT_BASE_REGISTRY)
    ] = ""
    image_lookup_os_distro: Annotated[
        str, Schema("Distribution of the operating system.", default=DEFAULT_OS_DISTRO)
    ] = field(default="", name="imageLookupOSDistro")
    image_lookup_os_version: Annotated[str, Schema("Version of the operating system.")] = field(
        default="", name="imageLookupOSVersion"
    )
    template_override: Annotated[
        str, Schema("Workflow template of all machines that have no other. Not together with templateOverrideRef.")
    ] = ""
    template_override_ref: Annotated[
        TemplateOverrideRef | None,
        Schema("Template whose data is the workflow template of all machines that have no other."),
    ] = None
    failure_domain_label: Annotated[
        str,
        Schema(
            "Label of Hardware whose values are the cluster's failure domains, such as a rack's name.",
            min_length=1,
            max_length=317,
        ),
    ] = ""


class TinkerbellClusterStatus(Model, frozen=True):
    """Observed state of the cluster's infrastructure."""

    ready: Annotated[bool, Schema("Whether the endpoint is known (contract v1beta1).")] = False
    initialization: Annotated[Initialization, Schema("The same for contract v1beta2.")] = Initialization()
    failure_domains: Annotated[
        list[FailureDomain],
        Schema("Failure domains that the label gives.", list_type="map", list_map_keys=("name",), max_items=100),
    ] = []
    conditions: Annotated[list[Condition], Schema("Conditions of the cluster.")] = []


class TinkerbellCluster(Resource, frozen=True):
    """The infrastructure of one cluster."""

    spec: TinkerbellClusterSpec = TinkerbellClusterSpec()
    status: TinkerbellClusterStatus = TinkerbellClusterStatus()


TINKERBELL_CLUSTER: Kind[TinkerbellCluster] = Kind(
    group=GROUP,
    version=VERSION,
    kind="TinkerbellCluster",
    plural="tinkerbellclusters",
    model=TinkerbellCluster,
    categories=("cluster-api",),
    columns=(
        Column("Cluster", r".metadata.labels.cluster\.x-k8s\.io/cluster-name"),
        Column("Ready", ".status.ready"),
    ),
    has_status=True,
    crd_labels=CRD_LABELS,
)
