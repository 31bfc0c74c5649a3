"""What systems say of themselves without being loaded is what they load."""

from __future__ import annotations

import pkgutil
from importlib import import_module

import pytest

import ironbell.controllers
from ironbell.api.tinkerbell import HARDWARE, TEMPLATE, WORKFLOW
from ironbell.app.systems import SYSTEMS, all_kinds
from ironbell.contract.access import Grant, Permissions, may, may_in, may_read, policy_rules
from ironbell.contract.admission import Admission
from ironbell.contract.system import Definitions, System

every_system = pytest.mark.parametrize("system", SYSTEMS, ids=lambda system: system.name)


@every_system
def test_everything_that_is_loaded_late_exists(system: System) -> None:
    assert system.load_kinds()
    permissions = system.permissions.load()
    assert isinstance(permissions, Permissions)
    assert permissions.writes
    assert callable(system.controllers.load())
    for late in (system.read_settings, system.view):
        assert late is None or callable(late.load())


@every_system
def test_names_of_definitions_are_those_of_the_kinds(system: System) -> None:
    kinds = {f"{kind.plural}.{kind.group}": kind for kind in system.load_kinds()}
    admission = system.admission.load() if system.admission is not None else None
    alone = {f"{rules.kind.plural}.{rules.kind.group}" for rules in admission.alone} if admission is not None else set()
    assert system.admitted == alone
    assert alone <= kinds.keys()
    assert {rules.kind for rules in admission.informed} <= {rules.kind for rules in admission.alone} if admission else 1
    assert system.converted == {name for name, kind in kinds.items() if kind.older_versions}
    assert system.scale_checked <= system.admitted


def test_every_admission_that_a_module_defines_is_a_systems() -> None:
    known = {id(rules) for system in SYSTEMS if system.admission for rules in system.admission.load().alone}
    packages = pkgutil.walk_packages(ironbell.controllers.__path__, "ironbell.controllers.")
    modules = [import_module(found.name) for found in packages if ".admission" in found.name]
    defined = {id(value) for module in modules for name, value in vars(module).items() if isinstance(value, Admission)}
    assert defined
    assert defined <= known


def test_every_folder_of_controllers_is_a_systems() -> None:
    folders = {found.name for found in pkgutil.iter_modules(ironbell.controllers.__path__)}
    assert {system.permissions.module.split(".")[2] for system in SYSTEMS} == folders


def test_names_and_kinds_are_one_systems_only() -> None:
    words = [word for system in SYSTEMS for word in (system.name, *system.aliases)]
    assert len(words) == len(set(words))
    kinds = [kind.collection for kind in all_kinds()]
    assert len(kinds) == len(set(kinds))
    for system in SYSTEMS:
        assert system.answering in {other.name for other in SYSTEMS}


def test_the_engines_kinds_are_always_defined() -> None:
    always = {system.name for system in SYSTEMS if system.definitions is Definitions.ALWAYS}
    assert always == {"tink-controller", "rufio"}


def test_rules_of_one_group_and_the_same_verbs_are_one() -> None:
    grants = [
        may(WORKFLOW, "patch", status=True),
        may(HARDWARE, "patch"),
        may(HARDWARE, "update", subresource="finalizers"),
    ]
    assert policy_rules(grants) == [
        {
            "apiGroups": ["tinkerbell.org"],
            "resources": ["workflows", "workflows/status", "hardware"],
            "verbs": ["patch"],
        },
        {"apiGroups": ["tinkerbell.org"], "resources": ["hardware/finalizers"], "verbs": ["update"]},
    ]
    assert may_read(TEMPLATE) == [Grant(("tinkerbell.org",), ("templates",), ("get", "list", "watch"))]
    assert policy_rules([may_in(["a", "b"], "get")]) == [
        {"apiGroups": ["a", "b"], "resources": ["*"], "verbs": ["get"]}
    ]
