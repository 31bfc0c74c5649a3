"""TinkerbellMachine: a Machine of a cluster, on Hardware.

Source: tinkerbell/cluster-api-provider-tinkerbell: api/v1beta1/tinkerbellmachine_types.go.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from ironbell.api.bmc.action import Action
from ironbell.api.capt.names import CRD_LABELS, GROUP, VERSION
from ironbell.api.capt.tinkerbellcluster import Initialization
from ironbell.api.crd.markers import Int32, Schema, required
from ironbell.api.kind import Column, Kind
from ironbell.api.meta import Condition, LabelSelector, Model, Resource
from ironbell.api.tinkerbell.inventory import HardwareRequirements
from ironbell.api.tinkerbell.workflow import BootMode


class HardwareAffinityTerm(Model, frozen=True):
    """Hardware by its labels."""

    label_selector: Annotated[LabelSelector, Schema("Labels that it has.")] = required(LabelSelector)


class WeightedHardwareAffinityTerm(Model, frozen=True):
    """Hardware that is liked, and how much."""

    weight: Annotated[Int32, Schema("Added to the score of matching Hardware, 1 to 100.", minimum=1, maximum=100)] = (
        required(int)
    )
    hardware_affinity_term: Annotated[HardwareAffinityTerm, Schema("Labels of the Hardware.")] = required(
        HardwareAffinityTerm
    )


class HardwareAffinity(Model, frozen=True):
    """Requirements and preferences for the labels of the Hardware to claim."""

    required: Annotated[list[HardwareAffinityTerm], Schema("Hardware must match one of these terms.")] = []
    preferred: Annotated[
        list[WeightedHardwareAffinityTerm], Schema("Hardware with the largest sum of weights is taken.")
    ] = []


class CustombootConfig(Model, frozen=True):
    """BMC operations of boot mode customboot."""

    preparing_actions: Annotated[list[Action], Schema("BMC operations before the first action.")] = []
    post_actions: Annotated[list[Action], Schema("BMC operations after the last action succeeded.")] = []


class MachineBootOptions(Model, frozen=True):
    """Boot of the machine into the in-memory OS."""

    boot_mode: Annotated[
        str, Schema("How the BMC boots the machine; empty leaves the BMC alone.", enum=tuple(BootMode))
    ] = ""
    iso_url: Annotated[str, Schema("ISO image of boot mode isoboot.", format="uri")] = field(default="", name="isoURL")
    customboot_config: Annotated[CustombootConfig | None, Schema("BMC operations of boot mode customboot.")] = None


class TinkerbellMachineSpec(Model, frozen=True):
    """Desired state of a machine."""

    image_lookup_format: Annotated[str, Schema("Same as in TinkerbellCluster, whose value is the default.")] = ""
    image_lookup_base_registry: Annotated[str, Schema("Same as in TinkerbellCluster, whose value is the default.")] = ""
    image_lookup_os_distro: Annotated[str, Schema("Same as in TinkerbellCluster, whose value is the default.")] = field(
        default="", name="imageLookupOSDistro"
    )
    image_lookup_os_version: Annotated[str, Schema("Same as in TinkerbellCluster, whose value is the default.")] = (
        field(default="", name="imageLookupOSVersion")
    )
    template_override: Annotated[str, Schema("Workflow template of this machine, before all others.")] = ""
    hardware_affinity: Annotated[HardwareAffinity | None, Schema("Hardware to claim, by labels.")] = None
    hardware_requirements: Annotated[HardwareRequirements | None, Schema("Hardware to claim, by its inventory.")] = None
    boot_options: Annotated[MachineBootOptions, Schema("How the machine is brought into the in-memory OS.")] = (
        MachineBootOptions()
    )
    hardware_name: Annotated[str, Schema("The Hardware that was taken; filled in, then unchangeable.")] = ""
    provider_id: Annotated[
        str, Schema("The machine as its Node names it; filled in, then unchangeable.", min_length=1, max_length=512)
    ] = field(default="", name="providerID")
    failure_domain: Annotated[
        str,
        Schema(
            "Failure domain of a control plane's machine whose Machine named none; filled in, then unchangeable.",
            min_length=1,
            max_length=256,
        ),
    ] = ""


class TinkerbellMachineAddress(Model, frozen=True):
    """One address of the machine."""

    type: Annotated[str, Schema("Hostname, ExternalIP, InternalIP, ExternalDNS or InternalDNS.")] = required(str)
    address: Annotated[str, Schema("The address.")] = required(str)


class TinkerbellMachineStatus(Model, frozen=True):
    """Observed state of the machine."""

    ready: Annotated[bool, Schema("Whether its operating system runs (contract v1beta1).")] = False
    initialization: Annotated[Initialization, Schema("The same for contract v1beta2.")] = Initialization()
    addresses: Annotated[list[TinkerbellMachineAddress], Schema("Its addresses.")] = []
    instance_status: Annotated[int | None, Schema("Not used.")] = None
    instance_state: Annotated[str, Schema("Progress of the machine, in a word or two.")] = ""
    target_namespace: Annotated[str, Schema("Namespace of its Hardware, Template, Workflow and Jobs.")] = ""
    failure_domain: Annotated[str, Schema("Failure domain of its Hardware.", min_length=1, max_length=256)] = ""
    conditions: Annotated[list[Condition], Schema("Conditions of the machine.")] = []
    error_reason: Annotated[str | None, Schema("Not used; see the conditions.")] = None
    error_message: Annotated[str | None, Schema("Not used; see the conditions.")] = None


class TinkerbellMachine(Resource, frozen=True):
    """A Machine of a cluster, on Hardware."""

    spec: TinkerbellMachineSpec = TinkerbellMachineSpec()
    status: TinkerbellMachineStatus = TinkerbellMachineStatus()


TINKERBELL_MACHINE: Kind[TinkerbellMachine] = Kind(
    group=GROUP,
    version=VERSION,
    kind="TinkerbellMachine",
    plural="tinkerbellmachines",
    model=TinkerbellMachine,
    categories=("cluster-api",),
    columns=(
        Column("Cluster", r".metadata.labels.cluster\.x-k8s\.io/cluster-name"),
        Column("State", ".status.instanceState"),
        Column("Ready", ".status.ready"),
        Column("InstanceID", ".spec.providerID"),
        Column("Machine", '.metadata.ownerReferences[?(@.kind=="Machine")].name'),
        Column("Message", '.status.conditions[?(@.type=="Ready")].message'),
    ),
    has_status=True,
    crd_labels=CRD_LABELS,
)
