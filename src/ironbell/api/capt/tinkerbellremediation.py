"""TinkerbellRemediation: what is done about an unhealthy Machine; a MachineHealthCheck makes it from the template.

Upstream has no such kinds. Source: the external remediation of MachineHealthChecks in kubernetes-sigs/cluster-api:
docs/book/src/tasks/automated-machine-management/healthchecking.md, docs/proposals/20191030-machine-health-checking.md.
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
    """Progress of a remediation."""

    POWER_CYCLING = "PowerCycling"
    WAITING_FOR_RECOVERY = "WaitingForRecovery"
    REPLACING = "Replacing"
    RECOVERED = "Recovered"


class ReplaceOn(StrEnum):
    """Server that the replacement may get."""

    ANY = "Any"
    OTHER = "Other"


class PowerCycle(Model, frozen=True):
    """Switching the server off and on, before anything is lost."""

    attempts: Annotated[
        Int32, Schema("How often it is tried; 0 replaces the Machine at once.", minimum=0, maximum=10, default=1)
    ] = 1
    timeout_seconds: Annotated[
        Int32, Schema("How long the Machine may take to become healthy after each.", minimum=30, default=600)
    ] = 600


class Replacement(Model, frozen=True):
    """Replacing the Machine, when that did not help."""

    server: Annotated[
        str,
        Schema(
            "Any: whichever server fits, also the same one, wiped. Other: the server is held when it is released.",
            enum=tuple(ReplaceOn),
            default=str(ReplaceOn.ANY),
        ),
    ] = ReplaceOn.ANY


class TinkerbellRemediationSpec(Model, frozen=True):
    """Steps of the remediation, in this order."""

    power_cycle: Annotated[PowerCycle, Schema("First: power cycles.")] = PowerCycle()
    replacement: Annotated[Replacement, Schema("Then: another Machine in its place.")] = Replacement()


class TinkerbellRemediationStatus(Model, frozen=True):
    """Observed state of the remediation."""

    phase: Annotated[str, Schema("PowerCycling, WaitingForRecovery, Replacing or Recovered.")] = ""
    power_cycles: Annotated[Int32, Schema("How many power cycles were begun.")] = 0
    last_power_cycle: Annotated[Time, Schema("When the last one ended.")] = None
    conditions: Annotated[list[Condition], Schema("Conditions of the remediation.")] = []


class TinkerbellRemediation(Resource, frozen=True):
    """Remediation of an unhealthy Machine."""

    spec: TinkerbellRemediationSpec = TinkerbellRemediationSpec()
    status: TinkerbellRemediationStatus = TinkerbellRemediationStatus()


class TinkerbellRemediationTemplateResource(Model, frozen=True):
    """Template of the TinkerbellRemediations."""

    metadata: Annotated[TemplateObjectMeta, Schema("Labels and annotations.")] = TemplateObjectMeta()
    spec: Annotated[TinkerbellRemediationSpec, Schema("Steps of the remediations.")] = required(
        TinkerbellRemediationSpec
    )


class TinkerbellRemediationTemplateSpec(Model, frozen=True):
    """The template."""

    template: Annotated[TinkerbellRemediationTemplateResource, Schema("Template of the TinkerbellRemediations.")] = (
        required(TinkerbellRemediationTemplateResource)
    )


class TinkerbellRemediationTemplate(Resource, frozen=True):
    """Template of TinkerbellRemediations."""

    spec: TinkerbellRemediationTemplateSpec = TinkerbellRemediationTemplateSpec()


TINKERBELL_REMEDIATION: Kind[TinkerbellRemediation] = Kind(
    group=GROUP,
    version=VERSION,
    kind="TinkerbellRemediation",
    plural="tinkerbellremediations",
    model=TinkerbellRemediation,
    categories=("cluster-api",),
    columns=(
        Column("Machine", '.metadata.ownerReferences[?(@.kind=="Machine")].name'),
        Column("Phase", ".status.phase"),
        Column("PowerCycles", ".status.powerCycles", type="integer"),
        Column("LastPowerCycle", ".status.lastPowerCycle", type="date"),
        Column("Message", '.status.conditions[?(@.type=="Ready")].message'),
    ),
    has_status=True,
    crd_labels=CRD_LABELS,
)

TINKERBELL_REMEDIATION_TEMPLATE: Kind[TinkerbellRemediationTemplate] = Kind(
    group=GROUP,
    version=VERSION,
    kind="TinkerbellRemediationTemplate",
    plural="tinkerbellremediationtemplates",
    model=TinkerbellRemediationTemplate,
    categories=("cluster-api",),
    crd_labels=CRD_LABELS,
)
