"""Who may speak for a machine, by its token or by its address."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ironbell.api.tinkerbell.hardware import HARDWARE, Hardware
from ironbell.api.tinkerbell.workflow import WORKFLOW, Workflow
from ironbell.contract.servers.boot_token import Identity, Mint, Record, annotation, minted
from ironbell.contract.servers.directory import HardwareDirectory
from ironbell.contract.servers.identity import IDENTITY, Caller, Way, networks
from ironbell.services.workflow.guard import Gate

AGENT, TOKEN = "02:00:00:00:00:01", "ab" * 32


def a_hardware(record: Record | None, *, name: str = "m1", mac: str = AGENT, addresses: Sequence[str] = ()) -> Hardware:
    metadata: dict[str, Any] = {"name": name, "namespace": "ns", "annotations": annotation(record) if record else {}}
    spec = {"interfaces": [{"dhcp": {"mac": mac}}, *({"dhcp": {"ip": {"address": one}}} for one in addresses)]}
    return HARDWARE.decode(msgspec.json.encode({"metadata": metadata, "spec": spec}))


def a_workflow(uid: str, *, hardware: str = "m1", state: str = "PENDING", identity: str = "") -> Workflow:
    metadata = {"name": uid, "namespace": "ns", "uid": uid, "annotations": {IDENTITY: identity} if identity else {}}
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
    assert a_gate(a_hardware(BOOTED), identity=Identity.COMPAT).admitted(workflows, AGENT, Caller()) == (
        workflows,
        None,
    )


def test_the_machine_of_the_boot_knows_of_the_workflow_that_it_booted_for_and_no_other():
    now, other = a_workflow("now"), a_workflow("other")
    admitted, why = a_gate(a_hardware(BOOTED)).admitted([now, other], AGENT, Caller(TOKEN))
    assert list(admitted) == [now]
    assert why is not None
    assert "reboot it" in why.reason


def test_a_stranger_knows_of_none_and_is_told_so_only_while_one_waits():
    gate = a_gate(a_hardware(BOOTED))
    for token in ("", "cd" * 32):
        admitted, why = gate.admitted([a_workflow("now")], AGENT, Caller(token))
        assert (list(admitted), bool(why)) == ([], True)
    admitted, why = gate.admitted([a_workflow("now", state="SUCCESS")], AGENT, Caller())
    assert (list(admitted), why) == ([], None)


def test_a_workflow_that_names_no_hardware_is_nobody_s():
    gate = a_gate(a_hardware(BOOTED))
    for name in ("", "gone"):
        assert gate.objection(a_workflow("now", hardware=name), AGENT, Caller(TOKEN)) is not None
    assert Gate(Identity.STRICT).objection(a_workflow("now"), AGENT, Caller(TOKEN)) is not None


def test_what_was_just_read_counts_before_what_is_remembered():
    gate = a_gate(a_hardware(BOOTED))
    revoked = a_hardware(Record(boot="now", revoked="asked twice"))
    assert gate.objection(a_workflow("now"), AGENT, Caller(TOKEN)) is None
    why = gate.objection(a_workflow("now"), AGENT, Caller(TOKEN), stored=revoked)
    assert why is not None
    assert "asked twice" in why


def test_own_asks_for_the_token_of_ours_and_for_the_address_of_others():
    hardware = a_hardware(BOOTED, addresses=("192.0.2.10",))
    gate = Gate(Identity.OWN, a_gate(hardware).directory, proxies=networks(["192.0.2.254"]))
    ours, other = a_workflow("now", identity="strict"), a_workflow("now")
    here, neighbour, proxy = Caller("", "192.0.2.10"), Caller("", "192.0.2.66"), Caller("", "192.0.2.254")
    assert gate.objection(ours, AGENT, Caller(TOKEN, "192.0.2.66")) is None, "the token is proof enough"
    for caller in (here, neighbour, proxy):
        assert "must show the token" in (gate.objection(ours, AGENT, caller) or "")
    assert gate.objection(other, AGENT, here) is None
    assert gate.objection(other, AGENT, proxy) is None
    assert "and not 192.0.2.66" in (gate.objection(other, AGENT, neighbour) or "")
    assert "and not 192.0.2.66" in (gate.objection(other, AGENT, Caller(TOKEN, "192.0.2.66")) or "")
    ways = [gate.way(workflow, AGENT, caller) for workflow, caller in ((ours, here), (other, here), (other, proxy))]
    assert ways == [Way.TOKEN, Way.ADDRESS, Way.PROXY]
    assert a_gate(hardware, identity=Identity.COMPAT).way(ours, AGENT, here) is Way.AGENT_ID

    admitted, refused = gate.admitted([other], AGENT, neighbour)
    assert refused is not None
    assert (list(admitted), refused.workflow) == ([], other)


def test_own_compares_with_the_hardware_of_the_agent_where_a_workflow_names_none():
    gate = a_gate(a_hardware(None, addresses=("192.0.2.10",)), identity=Identity.OWN)
    nameless = a_workflow("now", hardware="")
    assert gate.objection(nameless, AGENT, Caller("", "192.0.2.10")) is None
    assert gate.objection(nameless, AGENT, Caller("", "192.0.2.66")) is not None
    assert gate.objection(nameless, "unknown-agent", Caller("", "192.0.2.66")) is None
    without = a_gate(a_hardware(None), identity=Identity.OWN)
    assert without.objection(a_workflow("now"), AGENT, Caller("", "192.0.2.66")) is None
    assert without.way(a_workflow("now"), AGENT, Caller("", "192.0.2.66")) is Way.UNKNOWN_ADDRESS
