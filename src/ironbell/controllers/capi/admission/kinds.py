"""All kinds whose writes are completed and checked here."""

from __future__ import annotations

from typing import Final

from ironbell.contract.admission import Admission
from ironbell.controllers.capi.admission import (
    cluster,
    clusterclass,
    clusterresourceset,
    machine,
    machinedeployment,
    machinedrainrule,
    machinehealthcheck,
    machinepool,
    machineset,
)

ADMISSIONS: Final[tuple[Admission, ...]] = (
    cluster.ADMISSION,
    clusterclass.ADMISSION,
    machine.ADMISSION,
    machineset.ADMISSION,
    machinedeployment.ADMISSION,
    machinepool.ADMISSION,
    machinehealthcheck.ADMISSION,
    machinedrainrule.ADMISSION,
    clusterresourceset.ADMISSION,
    clusterresourceset.BINDING_ADMISSION,
)
