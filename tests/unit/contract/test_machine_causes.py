"""What owners of Machines report about those that are not available."""

from __future__ import annotations

from ironbell.api.cluster.machine import MACHINE, Machine
from ironbell.contract.clusters.machine_causes import cause_lines, without_repeated_causes

SHORTAGE = "no hardware available: none of 2 Hardware fits: 2: claimed by others"


def machine(name: str, *conditions: tuple[str, str, str, str], node: str = "", deleting: bool = False) -> Machine:
    told = [{"type": t, "status": s, "reason": r, "message": m} for t, s, r, m in conditions]
    metadata = {"name": name, "namespace": "default"}
    if deleting:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    status = {"conditions": told, "nodeRef": {"name": node} if node else {}}
    return MACHINE.convert({"metadata": metadata, "status": status})


def waiting(name: str, message: str = SHORTAGE, reason: str = "WaitingForHardware") -> Machine:
    return machine(name, ("InfrastructureReady", "False", reason, message))


def test_machines_with_the_same_cause_are_one_line() -> None:
    found = [waiting(f"m{number}") for number in range(5)]
    assert cause_lines(found) == [f"* Machines m0, m1, m2, ... (2 more): {SHORTAGE}"]


def test_what_is_under_way_and_what_follows_from_others_is_not_reported() -> None:
    installing = waiting("m0", "action 2 of 6: stream image, 30 %", "Installing")
    consequence = machine("m1", ("BootstrapConfigReady", "False", "WaitingForControlPlaneInitialized", "waits"))
    healthy = machine("m2", ("InfrastructureReady", "True", "Ready", ""), ("NodeHealthy", "True", "NodeHealthy", ""))
    goes = machine("m3", ("InfrastructureReady", "False", "InstallationFailed", "failed"), deleting=True)
    assert cause_lines([installing, consequence, healthy, goes]) == []


def test_what_holds_a_deletion_is_reported() -> None:
    held = ("InfrastructureReady", "False", "HardwareHeld", "Hardware default/s1 is held")
    assert cause_lines([machine("m0", held, deleting=True)]) == ["* Machine m0: Hardware default/s1 is held"]


def test_the_heaviest_cause_is_first_and_the_rest_is_counted() -> None:
    lost = ("NodeHealthy", "Unknown", "NodeHealthyUnknown", "* Node.Ready: Kubelet stopped posting node status.")
    nodes = [machine(f"n{number}", lost, node=f"n{number}") for number in range(2)]
    others = [waiting(f"m{number}", f"held {number}", "HardwareHeld") for number in range(3)]
    assert cause_lines([*nodes, *others]) == [
        "* Machine m0: held 0",
        "* Machine m1: held 1",
        "* Machine m2: held 2",
        "And 2 Machines with other issues",
    ]


def test_a_server_that_is_off_explains_a_node_that_is_lost() -> None:
    lost = ("NodeHealthy", "Unknown", "NodeHealthyUnknown", "* Node.Ready: Kubelet stopped posting node status.")
    off = ("PoweredOn", "False", "PoweredOff", "server sim-0008 is powered off")
    assert cause_lines([machine("m0", lost, off, node="m0")]) == ["* Machine m0: server sim-0008 is powered off"]
    assert cause_lines([machine("m0", lost, node="m0")]) == [
        "* Machine m0:\n  * Node.Ready: Kubelet stopped posting node status."
    ]


def test_a_connection_that_is_down_is_not_a_cause_of_its_own() -> None:
    down = ("NodeHealthy", "Unknown", "ConnectionDown", "Remote connection down")
    assert cause_lines([machine("m0", down, node="m0")]) == []


def test_a_long_message_is_shortened() -> None:
    (line,) = cause_lines([waiting("m0", "x" * 5000)])
    assert len(line) < 1100
    assert line.endswith("…")


def test_a_cause_that_two_conditions_report_is_kept_once() -> None:
    lines = [
        "* RemoteConnectionProbe:\n  * failed\n  * Machine m0: off",
        "* ControlPlaneAvailable:\n  * Machine m0: off",
    ]
    assert without_repeated_causes(lines) == [
        "* RemoteConnectionProbe:",
        "  * failed",
        "  * Machine m0: off",
        "* ControlPlaneAvailable:",
    ]
