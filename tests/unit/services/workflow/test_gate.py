"""Who may speak for a machine where identity is strict."""

from __future__ import annotations

from typing import Any

import msgspec

from ironbell.api.tinkerbell.hardware import HARDWARE, Hardware
from ironbell.api.tinkerbell.workflow import WORKFLOW, Workflow
from ironbell.contract.boot_token import Identity, Mint, Record, annotation, minted
from ironbell.contract.directory import HardwareDirectory
from ironbell.services.workflow.gate import Gate

AGENT, TOKEN = "02:00:00:00:00:01", "ab" * 32


def a_hardware(record: Record | None, *, name: str = "m1", mac: str = AGENT) -> Hardware:
    metadata: dict[str, Any] = {"name": name, "namespace": "ns", "annotations": annotation(record) if record else {}}
    spec = {"interfaces": [{"dhcp": {"mac": mac}}]}
    return HARDWARE.decode(msgspec.json.encode({"metadata": metadata, "spec": spec}))


def a_workflow(uid: str, *, hardware: str = "m1", state: str = "PENDING") -> Workflow:
    metadata = {"name": uid, "namespace": "ns", "uid": uid}
    body = {"metadata": metadata, "spec": {"hardwareRef": hardware}, "status": {"state": state, "agentID": AGENT}}
    return WORKFLOW.decode(msgspec.json.encode(body))


def a_gate(*hardware: Hardware, identity: Identity = Identity.STRICT) -> Gate:
    directory = HardwareDirectory()
    for one in hardware:
        directory.upsert(one)
    return Gate(identity, directory)


BOOTED = minted(Mint("now"), TOKEN, now="2026-11-22T12:00:00Z")


def test_as_upstream_everybody_is_let_in():
    workflows = [a_workflow("now"), a_workflow("other", hardware="")]
    assert a_gate(a_hardware(BOOTED), identity=Identity.COMPAT).admitted(workflows, AGENT, "") == (workflows, None)


def test_the_machine_of_the_boot_knows_of_the_workflow_that_it_booted_for_and_no_other():
    now, other = a_workflow("now"), a_workflow("other")
    admitted, why = a_gate(a_hardware(BOOTED)).admitted([now, other], AGENT, TOKEN)
    assert list(admitted) == [now]
    assert why is not None
    assert "reboot it" in why


def test_a_stranger_knows_of_none_and_is_told_so_only_while_one_waits():
    gate = a_gate(a_hardware(BOOTED))
    for token in ("", "cd" * 32):
        admitted, why = gate.admitted([a_workflow("now")], AGENT, token)
        assert (list(admitted), bool(why)) == ([], True)
    admitted, why = gate.admitted([a_workflow("now", state="SUCCESS")], AGENT, "")
    assert (list(admitted), why) == ([], None)


def test_a_workflow_that_names_no_hardware_is_nobody_s():
    gate = a_gate(a_hardware(BOOTED))
    for name in ("", "gone"):
        assert gate.objection(a_workflow("now", hardware=name), AGENT, TOKEN) is not None
    assert Gate(Identity.STRICT).objection(a_workflow("now"), AGENT, TOKEN) is not None


def test_what_was_just_read_counts_before_what_is_remembered():
    gate = a_gate(a_hardware(BOOTED))
    revoked = a_hardware(Record(boot="now", revoked="asked twice"))
    assert gate.objection(a_workflow("now"), AGENT, TOKEN) is None
    why = gate.objection(a_workflow("now"), AGENT, TOKEN, stored=revoked)
    assert why is not None
    assert "asked twice" in why
