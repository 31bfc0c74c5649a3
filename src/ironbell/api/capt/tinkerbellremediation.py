"""TinkerbellRemediation: how a machine that is not healthy is healed. Upstream has no such kind.

A MachineHealthCheck that names a TinkerbellRemediationTemplate makes one for each such Machine, with the Machine's
name. First the power is cycled, then the machine is installed anew, then it is replaced; each step has its attempts.

Source: kubernetes-sigs/cluster-api: the external remediation contract of MachineHealthCheck.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from ironbell.api.capt.names import CRD_LABELS, GROUP, VERSION
from ironbell.api.capt.tinkerbellmachinetemplate import TemplateObjectMeta
from ironbell.api.crd.markers import Int32, Schema, Time, required
from ironbell.api.kind import Column, Kind
from ironbell.api.meta import Condition, Model, Resource


class RemediationPhase(StrEnum):
    """What is being tried."""

    POWER_CYCLE = "PowerCycle"
    REINSTALL = "Reinstall"
    REPLACE = "Replace"


class PowerCycleStrategy(Model, frozen=True):
    """The power is cycled."""

    attempts: Annotated[Int32, Schema("How often; 0 leaves this step out.", minimum=0, maximum=10, default=1)] = 1
    timeout_seconds: Annotated[
        Int32, Schema("How long the Node may take to be healthy after each.", minimum=30, default=600)
    ] = 600


class ReinstallStrategy(Model, frozen=True):
    """The operating system is installed anew on the same Hardware. Control plane machines are never: their etcd member
    would come back empty."""

    attempts: Annotated[Int32, Schema("How often; 0 leaves this step out.", minimum=0, maximum=10, default=0)] = 0
    timeout_seconds: Annotated[
        Int32, Schema("How long the Node may take to be healthy after each.", minimum=60, default=3600)
    ] = 3600


class TinkerbellRemediationSpec(Model, frozen=True):
    """What is tried before the Machine is replaced."""

    power_cycle: Annotated[PowerCycleStrategy, Schema("First step.")] = PowerCycleStrategy()
    reinstall: Annotated[ReinstallStrategy, Schema("Second step.")] = ReinstallStrategy()


class TinkerbellRemediationStatus(Model, frozen=True):
    """How far the healing is."""

    phase: Annotated[str, Schema("What is being tried.", enum=tuple(RemediationPhase))] = ""
    attempts: Annotated[Int32, Schema("How often it was tried, in this phase.")] = 0
    last_attempt: Annotated[Time, Schema("When it was tried last.")] = None
    conditions: Annotated[
        list[Condition], Schema("What is known of it.", list_type="map", list_map_keys=("type",), max_items=32)
    ] = []


class TinkerbellRemediation(Resource, frozen=True):
    """The healing of one machine."""

    spec: TinkerbellRemediationSpec = TinkerbellRemediationSpec()
    status: TinkerbellRemediationStatus = TinkerbellRemediationStatus()


class TinkerbellRemediationTemplateResource(Model, frozen=True):
    """What is made."""

    metadata: Annotated[TemplateObjectMeta, Schema("Labels and annotations.")] = TemplateObjectMeta()
    spec: Annotated[TinkerbellRemediationSpec, Schema("What is tried.")] = required(TinkerbellRemediationSpec)


class TinkerbellRemediationTemplateSpec(Model, frozen=True):
    """The template."""

    template: Annotated[TinkerbellRemediationTemplateResource, Schema("What is made.")] = required(
        TinkerbellRemediationTemplateResource
    )


class TinkerbellRemediationTemplate(Resource, frozen=True):
    """What TinkerbellRemediations are made from."""

    spec: TinkerbellRemediationTemplateSpec = TinkerbellRemediationTemplateSpec()


TINKERBELL_REMEDIATION: Kind[TinkerbellRemediation] = Kind(
    group=GROUP,
    version=VERSION,
    kind="TinkerbellRemediation",
    plural="tinkerbellremediations",
    singular="tinkerbellremediation",
    list_kind="TinkerbellRemediationList",
    model=TinkerbellRemediation,
    categories=("cluster-api",),
    columns=(
        Column("Phase", ".status.phase"),
        Column("Attempts", ".status.attempts", "integer"),
        Column("Last attempt", ".status.lastAttempt", "date"),
    ),
    has_status=True,
    crd_labels=CRD_LABELS,
)

TINKERBELL_REMEDIATION_TEMPLATE: Kind[TinkerbellRemediationTemplate] = Kind(
    group=GROUP,
    version=VERSION,
    kind="TinkerbellRemediationTemplate",
    plural="tinkerbellremediationtemplates",
    singular="tinkerbellremediationtemplate",
    list_kind="TinkerbellRemediationTemplateList",
    model=TinkerbellRemediationTemplate,
    categories=("cluster-api",),
    crd_labels=CRD_LABELS,
)
