"""What `why` says about how a server is known, and who was refused that spoke in its name."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ironbell.contract.servers.boot_token import BOOT_FOR, Mint, annotation, minted
from ironbell.contract.servers.identity import IDENTITY, KNOWN_BY, Way
from ironbell.operations.why.identity import remarks
from ironbell.services.workflow.names import REJECTED_AGENT


def an_object(kind: str, *, state: str = "PENDING", **annotations: str) -> dict[str, Any]:
    metadata = {"name": "x", "namespace": "ns", "annotations": annotations}
    return {"apiVersion": "tinkerbell.org/v1alpha1", "kind": kind, "metadata": metadata, "status": {"state": state}}


@pytest.mark.parametrize(
    ("way", "said"),
    [
        (Way.TOKEN, "identified by the token of its boot; its request came from 192.0.2.10."),
        (Way.ADDRESS, "identified by its address, 192.0.2.10."),
        (Way.PROXY, "sent a request through the trusted proxy 192.0.2.10, so its address was not compared."),
        (Way.UNKNOWN_ADDRESS, "from 192.0.2.10: its Hardware has no address to compare with."),
        (Way.AGENT_ID, "identified by agent id alone, from 192.0.2.10: the site has identity compat."),
    ],
)
def test_a_server_says_how_it_was_known(way: Way, said: str) -> None:
    found = remarks(an_object("Hardware", state="Ready", **{KNOWN_BY: f"{way} 192.0.2.10"}))
    assert said in found[0]
    assert "served to its address" in found[1]


def test_a_server_says_what_its_metadata_needs() -> None:
    booted = annotation(minted(Mint("wf"), "ab" * 32, now="2026-11-22T12:00:00Z"))
    assert "needs a token" in remarks(an_object("Hardware", state="", **booted))[-1]
    wanted = remarks(an_object("Hardware", state="", **{BOOT_FOR: "wf 2026-11-22T12:00:00Z strict"}))
    assert ["current boot is identified by its token" in wanted[0], "needs a token" in wanted[1]] == [True, True]
    assert remarks(an_object("Hardware", state="")) == ()
    assert remarks(an_object("Hardware", state="", **{KNOWN_BY: "made-up 192.0.2.10"})) == ()


def test_a_workflow_says_who_was_refused_while_its_agent_is_waited_for() -> None:
    refused = {
        REJECTED_AGENT: json.dumps({"peer": "192.0.2.66", "time": "2026-11-22T12:00:00Z", "why": "another address"})
    }
    assert remarks(an_object("Workflow", **refused)) == (
        "A request of an agent for its actions was rejected at 2026-11-22T12:00:00Z: another address.",
    )
    assert remarks(an_object("Workflow", state="RUNNING", **refused)) == ()
    assert remarks(an_object("Workflow", **{REJECTED_AGENT: "]"})) == ()
    assert "must show the token" in remarks(an_object("Workflow", **{IDENTITY: "strict"}))[0]
    assert remarks(an_object("Template", **{IDENTITY: "strict"})) == ()
