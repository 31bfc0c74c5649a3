"""Machine: one BMC, with the observed power state of the server behind it.

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

    type: Annotated[str, Schema("Type of the condition, such as Contactable.")] = required(str)
    status: Annotated[str, Schema("True, False or Unknown.")] = required(str)
    last_update_time: Annotated[Time, Schema("When the status last changed.")] = None
    message: Annotated[str, Schema("Reason of the status, as a message for people.")] = ""


class MachineSpec(Model, frozen=True):
    """Connection to a BMC."""

    connection: Annotated[Connection, Schema("How to reach the BMC.")] = required(Connection)


class MachineStatus(Model, frozen=True):
    """Last observed state of the BMC."""

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
    model=Machine,
    categories=("tinkerbell",),
    has_status=True,
    crd_labels=(("clusterctl.cluster.x-k8s.io", ""), ("clusterctl.cluster.x-k8s.io/move", "")),
)
