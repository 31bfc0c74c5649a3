"""The admission of all kinds of the Cluster API groups."""

from __future__ import annotations

from typing import Final

from ironbell.contract.admission import Admission
from ironbell.contract.admission_lookups import InformedAdmission
from ironbell.contract.system import KindAdmission
from ironbell.controllers.capi.admission import (
    cluster,
    clusterresourceset,
    informed_cluster,
    ipaddress,
    machine,
    machinedeployment,
    machinedrainrule,
    machinehealthcheck,
    machinepool,
    machineset,
)
from ironbell.controllers.capi.admission.classes import clusterclass
from ironbell.controllers.capi.admission.classes import informed as informed_clusterclass
from ironbell.controllers.capi.topology.variables.compiled import VariableSchemas
from ironbell.controllers.capi.topology.variables.values import Schemas

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
    ipaddress.ADMISSION,
    ipaddress.CLAIM_ADMISSION,
)


def informed(schemas: Schemas) -> tuple[InformedAdmission, ...]:
    """Admissions that depend on other objects too. `schemas` reads the schemas of a class's variables."""
    return (
        informed_cluster.cluster_admission(schemas),
        informed_clusterclass.class_admission(schemas),
        ipaddress.INFORMED,
    )


ADMISSION: Final = KindAdmission(ADMISSIONS, informed(VariableSchemas()))
