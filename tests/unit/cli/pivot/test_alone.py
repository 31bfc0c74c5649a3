"""Who holds the Lease, and whether that one is dead."""

from __future__ import annotations

import os
import subprocess
import sys

from ironbell.cli.pivot.alone import identity, is_dead


def test_a_process_of_this_machine_is_dead_when_it_is_gone_and_not_before() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        holder = identity(process.pid, "x")
        assert not is_dead(holder)
    assert is_dead(holder)
    assert not is_dead(identity(os.getpid(), "x"))


def test_a_process_with_the_same_number_is_another_one() -> None:
    boot, pid, began, random = identity(os.getpid(), "x").split(".")
    assert is_dead(f"{boot}.{pid}.{int(began) - 1}.{random}")


def test_nothing_is_known_of_other_machines_and_other_holders() -> None:
    _boot, pid, began, random = identity(os.getpid(), "x").split(".")
    for holder in (f"another.{pid}.1.{random}", f".{pid}.{began}.{random}", "somebody", "a.b.c.d", ""):
        assert not is_dead(holder)
