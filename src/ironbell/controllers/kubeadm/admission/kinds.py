"""All kinds whose writes are completed and checked here."""

from __future__ import annotations

from typing import Final

from ironbell.contract.admission import Admission
from ironbell.controllers.kubeadm.admission import kubeadmconfig, kubeadmcontrolplane

ADMISSIONS: Final[tuple[Admission, ...]] = (*kubeadmconfig.ADMISSIONS, *kubeadmcontrolplane.ADMISSIONS)
