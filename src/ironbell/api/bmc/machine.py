"""Machine: one BMC, with what is known of the power state behind it.

Source: tinkerbell/tinkerbell: api/v1alpha1/bmc/machine.go.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from ironbell.api.bmc.connection import Connection
from ironbell.api.crd.markers import Schema, Time, required
from ironbell.api.kind import Kind
from ironbell.api.meta import Model, Resource


class PowerState(StrEnum):
    """Values of `status.powerState`."""

    ON = "on"
    OFF = "off"
    UNKNOWN = "unknown"


class MachineConditionType(StrEnum):
    """Types of a Machine's conditions."""

    CONTACTABLE = "Contactable"


class MachineCondition(Model, frozen=True):
    """One observation about a BMC."""

    type: Annotated[str, Schema("What is observed, such as Contactable.")] = required(str)
    status: Annotated[str, Schema("True, False or Unknown.")] = required(str)
    last_update_time: Annotated[Time, Schema("When the status last changed.")] = None
    message: Annotated[str, Schema("Why, in a sentence for people.")] = ""


class MachineSpec(Model, frozen=True):
    """Which BMC it is and how to reach it."""

    connection: Annotated[Connection, Schema("How to reach the BMC.")] = required(Connection)


class MachineStatus(Model, frozen=True):
    """What was last seen of the BMC."""

    power_state: Annotated[
        str, Schema("Power state of the machine when it was last asked.", enum=tuple(PowerState))
    ] = ""
    conditions: Annotated[list[MachineCondition], Schema("Latest observations.")] = []


class Machine(Resource, frozen=True):
    """One baseboard management controller (BMC)."""

    spec: MachineSpec = MachineSpec()
    status: MachineStatus = MachineStatus()


MACHINE: Kind[Machine] = Kind(
    group="bmc.tinkerbell.org",
    version="v1alpha1",
    kind="Machine",
    plural="machines",
    singular="machine",
    list_kind="MachineList",
    model=Machine,
    categories=("tinkerbell",),
    has_status=True,
    crd_labels=(("clusterctl.cluster.x-k8s.io", ""), ("clusterctl.cluster.x-k8s.io/move", "")),
)
