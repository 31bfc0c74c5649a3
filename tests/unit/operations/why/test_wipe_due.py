"""What `why` answers about a server whose complete wipe was deferred."""

from __future__ import annotations

import pytest

from ironbell.api.tinkerbell.names import ANNOTATION_AGENT_ATTRIBUTES
from ironbell.contract.servers.wipe_due import WIPE_DUE, WipeDue
from ironbell.operations.why import servers
from ironbell.operations.why.world import World
from support.servers.whyworld import NOW, SINCE, TINKERBELL, obj


@pytest.mark.parametrize("has_bmc", [True, False])
def test_a_server_that_is_wiped_completely_names_why_and_who_has_to_help(has_bmc: bool) -> None:
    ended = WipeDue("site", "one", "u1", "site/m", "u2", SINCE, ended="Cluster site/one was deleted", ended_at=SINCE)
    spec = {"bmcRef": {"name": "b"}} if has_bmc else {}
    server = obj(TINKERBELL, "Hardware", "s1", metadata={"annotations": {WIPE_DUE: ended.encoded}}, **spec)
    found = servers.hardware(server, World([server]), NOW)
    assert found is not None
    assert found.message == "is being wiped completely before it can be claimed: Cluster site/one was deleted"
    assert found.remedy == ("" if has_bmc else "Boot the server over the network; it has no BMC")


def test_a_reserved_server_says_for_whom() -> None:
    due = WipeDue("site", "one", "u1", "site/m", "u2", SINCE)
    server = obj(TINKERBELL, "Hardware", "s1", metadata={"annotations": {WIPE_DUE: due.encoded}})
    assert servers.hardware(server, World([server]), NOW) is None
    assert servers.facts(server)[0] == f"Reserved for Cluster site/one since {SINCE}."


def test_a_disk_to_keep_that_the_server_does_not_have_is_named() -> None:
    ended = WipeDue("site", "one", "u1", "site/m", "u2", SINCE, keep=["X9"], ended="x", ended_at=SINCE)
    inventory = '{"blockDevices":[{"name":"sda","sizeBytes":1000,"serialNumber":"S1"}]}'
    annotations = {WIPE_DUE: ended.encoded, ANNOTATION_AGENT_ATTRIBUTES: inventory}
    server = obj(TINKERBELL, "Hardware", "s1", metadata={"annotations": annotations}, bmcRef={"name": "b"})
    found = servers.hardware(server, World([server]), NOW)
    assert found is not None
    assert found.message.startswith("is not wiped, although a complete wipe is due: annotation ironbell.dev/keep-disks")
    assert "names X9" in found.message
    assert found.remedy.startswith("Correct annotation ironbell.dev/keep-disks")
