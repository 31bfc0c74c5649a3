"""Every admission that a module defines is among those that servers ask."""

import pkgutil
from importlib import import_module
from types import ModuleType

import pytest

from ironbell.contract.admission import Admission
from ironbell.controllers.capi import admission as capi
from ironbell.controllers.capi.admission import kinds as capi_kinds
from ironbell.controllers.kubeadm import admission as kubeadm
from ironbell.controllers.kubeadm.admission import kinds as kubeadm_kinds


@pytest.mark.parametrize(("package", "kinds"), [(capi, capi_kinds), (kubeadm, kubeadm_kinds)], ids=["capi", "kubeadm"])
def test_none_is_forgotten(package: ModuleType, kinds: ModuleType) -> None:
    modules = [import_module(f"{package.__name__}.{found.name}") for found in pkgutil.walk_packages(package.__path__)]
    defined = {id(value) for module in modules for value in vars(module).values() if isinstance(value, Admission)}
    named = {one.kind.kind for one in kinds.ADMISSIONS}
    assert defined <= {id(one) for one in kinds.ADMISSIONS}
    assert len(named) == len(kinds.ADMISSIONS), "one admission for each kind"
