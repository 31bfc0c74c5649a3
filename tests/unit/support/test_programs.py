"""The list of programs that tests build is complete."""

from __future__ import annotations

import re
from pathlib import Path

from ironbell.image.kubernetes.release import PROGRAMS as OF_A_NODE
from support.programs.catalog import NODE_PROGRAMS, PROGRAMS

TESTS = Path(__file__).parents[2]


def test_each_module_of_the_tests_has_its_programs_in_the_list() -> None:
    modules = {path.parent.relative_to(TESTS).as_posix() for path in TESTS.glob("*/*/go.mod")}
    assert {program.module for program in PROGRAMS} == modules


def test_names_and_tiers() -> None:
    names = [program.name for program in PROGRAMS]
    assert len(set(names)) == len(names)
    assert {program.tier for program in (*PROGRAMS, *NODE_PROGRAMS)} <= {"test", "soak", "kubeadm"}
    assert {program.name for program in NODE_PROGRAMS} >= set(OF_A_NODE)


def test_tests_build_by_the_list_alone() -> None:
    builders = [
        path.relative_to(TESTS).as_posix()
        for path in TESTS.rglob("*.py")
        if re.search(r"^from support\.programs\.gobuild import .*\bbuild\b", path.read_text(), re.MULTILINE)
    ]
    assert builders == ["support/programs/catalog.py"]
