"""Which machines get no action: those of whom nobody can say which Hardware they are."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ironbell.api.tinkerbell.hardware import HARDWARE, Hardware
from ironbell.api.tinkerbell.workflow import WORKFLOW, Workflow
from ironbell.contract.servers.directory import HardwareDirectory
from ironbell.services.workflow.guard import machine_of, objection

MAC = "52:54:00:00:00:01"


def a_hardware(name: str, mac: str, *, agent_id: str = "", ip: str = "", **annotations: str) -> Hardware:
    dhcp: dict[str, Any] = {"mac": mac, "ip": {"address": ip, "netmask": "255.255.255.0"}} if ip else {"mac": mac}
    metadata = {"name": name, "namespace": "ns", "annotations": annotations}
    spec: dict[str, Any] = {"interfaces": [{"dhcp": dhcp}]} | ({"agentID": agent_id} if agent_id else {})
    return HARDWARE.decode(msgspec.json.encode({"metadata": metadata, "spec": spec}))


def a_workflow(hardware: str = "m1") -> Workflow:
    body = {"metadata": {"name": "wf", "namespace": "ns"}, "spec": {"hardwareRef": hardware}}
    return WORKFLOW.decode(msgspec.json.encode(body))


def found(*hardware: Hardware, of: str = "m1", agent_id: str = MAC) -> str | None:
    directory = HardwareDirectory()
    for one in hardware:
        directory.upsert(one)
    return objection(a_workflow(of), agent_id, directory)


def test_the_one_hardware_of_an_agent_is_served():
    assert found(a_hardware("m1", MAC), a_hardware("m2", "52:54:00:00:00:02")) is None


def test_a_conflict_that_appears_while_the_machine_is_up_holds_its_actions_back():
    for of in ("m1", "m2", ""):
        why = found(a_hardware("m1", MAC), a_hardware("m2", MAC.upper().replace(":", "-")), of=of)
        assert why is not None
        assert MAC in why
        assert "ns/m1, ns/m2" in why


def test_an_agent_id_that_two_hardware_have_is_nobody_s():
    why = found(a_hardware("m1", MAC, agent_id="a"), a_hardware("m2", "52:54:00:00:00:02", agent_id="a"), agent_id="a")
    assert why is not None
    assert "agent id a" in why


def test_another_interface_in_conflict_is_doubt_enough():
    both = msgspec.json.encode(
        {
            "metadata": {"name": "m1", "namespace": "ns"},
            "spec": {"interfaces": [{"dhcp": {"mac": MAC}}, {"dhcp": {"mac": "52:54:00:00:00:09"}}]},
        }
    )
    why = found(HARDWARE.decode(both), a_hardware("m2", "52:54:00:00:00:09"))
    assert why is not None
    assert "52:54:00:00:00:09" in why


def test_a_shared_address_says_nothing_of_the_machine():
    assert found(a_hardware("m1", MAC, ip="10.0.0.1"), a_hardware("m2", "52:54:00:00:00:02", ip="10.0.0.1")) is None


def test_two_hardware_that_mean_one_machine_or_one_disk_are_both_held_back():
    uuid, swapped = "00112233-4455-6677-8899-aabbccddeeff", "33221100-5544-7766-8899-AABBCCDDEEFF"
    for name, mine, theirs in (
        ("machine-uuid", uuid, swapped),
        ("disk-serial", "S1,S2", " s2 , S3"),
        ("disk-serial", "S1", "s1"),
    ):
        first = a_hardware("m1", MAC, **{f"ironbell.dev/{name}": mine})
        other = {f"ironbell.dev/{name}": theirs}
        for of, agent_id in (("m1", MAC), ("m2", "52:54:00:00:00:02")):
            why = found(first, a_hardware("m2", "52:54:00:00:00:02", **other), of=of, agent_id=agent_id)
            assert why is not None
            assert name.split("-")[1] in why.lower()
            assert "ns/m1, ns/m2" in why
    assert found(first, a_hardware("m2", "52:54:00:00:00:02", **{"ironbell.dev/disk-serial": "S9"})) is None


def test_without_its_hardware_nobody_knows_which_machine_is_meant():
    why = found(a_hardware("m2", "52:54:00:00:00:02"))
    assert why is not None
    assert "Hardware m1" in why


def test_a_workflow_without_hardware_is_served():
    assert found(of="") is None


def test_a_disabled_hardware_is_left_alone():
    why = found(a_hardware("m1", MAC, **{"tinkerbell.org/disabled": "in repair"}))
    assert why is not None
    assert "tinkerbell.org/disabled" in why


OTHER = "52:54:00:00:00:02"


def of_agents(*agents: str) -> Workflow:
    tasks = [{"id": f"t{number}", "name": "t", "agentID": agent} for number, agent in enumerate(agents)]
    body = {
        "metadata": {"name": "wf", "namespace": "ns"},
        "spec": {"hardwareRef": "m1"},
        "status": {"tasks": tasks},
    }
    return WORKFLOW.decode(msgspec.json.encode(body))


def machine(workflow: Workflow, agent_id: str, *hardware: Hardware) -> str:
    directory = HardwareDirectory()
    for one in (a_hardware("m1", MAC), a_hardware("m2", OTHER), *hardware):
        directory.upsert(one)
    return machine_of(workflow, agent_id, directory)


def test_each_agent_of_several_is_on_the_hardware_that_has_its_id():
    both = of_agents(MAC, OTHER)
    assert [machine(both, agent) for agent in (MAC, OTHER)] == ["m1", "m2"]


def test_a_wrong_agent_id_in_a_workflow_of_one_machine_makes_no_other_machine_right():
    assert machine(of_agents(OTHER, OTHER), OTHER) == "m1"


def test_an_agent_that_no_hardware_has_is_held_to_the_workflow_s():
    assert machine(of_agents(MAC, "52:54:00:00:00:03"), "52:54:00:00:00:03") == "m1"
    assert machine_of(of_agents(MAC, OTHER), OTHER, None) == "m1"


def test_the_second_machine_is_left_alone_when_it_is_disabled():
    directory = HardwareDirectory()
    directory.upsert(a_hardware("m1", MAC))
    directory.upsert(a_hardware("m2", OTHER, **{"tinkerbell.org/disabled": "in repair"}))
    assert "Hardware m2 is disabled" in (objection(of_agents(MAC, OTHER), OTHER, directory) or "")
    assert objection(of_agents(MAC, OTHER), MAC, directory) is None


def test_a_hardware_that_was_restored_and_not_confirmed_gets_no_action():
    why = found(a_hardware("m1", MAC, **{"ironbell.dev/restored": "{}"}))
    assert why is not None
    assert "not confirmed" in why


def test_a_server_that_allows_no_workflow_gets_no_first_action_and_keeps_what_it_runs():
    interfaces = [{"dhcp": {"mac": MAC}, "netboot": {"allowWorkflow": False}}]
    body = {"metadata": {"name": "m1", "namespace": "ns"}, "spec": {"interfaces": interfaces}}
    hardware = HARDWARE.decode(msgspec.json.encode(body))
    why = found(hardware)
    assert why is not None
    assert "allowWorkflow" in why
    directory = HardwareDirectory()
    directory.upsert(hardware)
    running = msgspec.structs.replace(
        a_workflow(), status=msgspec.structs.replace(a_workflow().status, state="RUNNING")
    )
    assert objection(running, MAC, directory) is None


def test_an_agent_that_would_write_to_disks_to_keep_gets_no_action():
    directory = HardwareDirectory()
    directory.upsert(a_hardware("m1", MAC, **{"ironbell.dev/keep-disks": "A1"}))
    assert objection(a_workflow(), MAC, directory) is None
    message = objection(a_workflow(), MAC, directory, honours_keeping=False)
    assert message is not None
    assert "boot Ironbell's in-memory OS" in message


@pytest.mark.parametrize(
    "made",
    [{"labels": {"capt.tinkerbell.org/machine-name": "m"}}, {"annotations": {"ironbell.dev/wipe-run": "1"}}],
    ids=["of a machine", "of a wipe that is due"],
)
@pytest.mark.parametrize("state", ["PENDING", "RUNNING"])
def test_a_held_server_gets_no_action_of_an_installation_or_a_wipe(made: dict[str, Any], state: str) -> None:
    def why(**annotations: str) -> str | None:
        directory = HardwareDirectory()
        directory.upsert(a_hardware("m1", MAC, **annotations))
        metadata = {"name": "wf", "namespace": "ns", **made}
        body = {"metadata": metadata, "spec": {"hardwareRef": "m1"}, "status": {"state": state}}
        return objection(WORKFLOW.decode(msgspec.json.encode(body)), MAC, directory)

    assert why() is None
    assert why(**{"ironbell.dev/hold": "evidence"}) == (
        'Hardware "m1" is held (evidence); remove annotation ironbell.dev/hold to let the Workflow go on.'
    )


def test_a_persons_own_workflow_runs_on_a_held_server() -> None:
    assert found(a_hardware("m1", MAC, **{"ironbell.dev/hold": "repair"})) is None
