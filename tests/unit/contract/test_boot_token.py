"""Who gets the token of a boot, and what it opens."""

from __future__ import annotations

import msgspec
import pytest

from ironbell.api.tinkerbell.hardware import HARDWARE, Hardware
from ironbell.base.clock import parse_rfc3339
from ironbell.contract.servers import boot_token
from ironbell.contract.servers.boot_token import BOOT_FOR, BOOT_TOKEN, PLACEHOLDER, Identity, Mint, Record, Reject

NOW = "2026-11-22T12:00:00Z"
LATER = parse_rfc3339("2026-11-22T12:10:00Z")
TOKEN = "ab" * 32


def a_hardware(*, boot_for: str = "", record: Record | None = None, raw: str = "") -> Hardware:
    annotations = {BOOT_FOR: boot_for} if boot_for else {}
    if record is not None:
        annotations |= boot_token.annotation(record)
    if raw:
        annotations[BOOT_TOKEN] = raw
    metadata = {"name": "m1", "namespace": "ns", "annotations": annotations}
    return HARDWARE.decode(msgspec.json.encode({"metadata": metadata}))


def booted(boot: str = "wf") -> Hardware:
    return a_hardware(boot_for=boot, record=boot_token.minted(Mint(boot), TOKEN, now=NOW))


def asked(hardware: Hardware) -> Mint | Reject | None:
    return boot_token.decide(hardware, peer="192.0.2.66", now=NOW)


def test_a_boot_that_no_workflow_wants_gets_no_token():
    assert asked(a_hardware()) is None


def test_the_first_who_asks_gets_a_token():
    assert asked(a_hardware(boot_for="wf")) == Mint("wf")


def test_the_next_workflow_s_boot_gets_another():
    record = boot_token.minted(Mint("earlier"), TOKEN, now=NOW)
    assert asked(a_hardware(boot_for="wf", record=record)) == Mint("wf")


def test_the_second_who_asks_gets_nothing_and_the_first_loses_it():
    refused = asked(booted())
    assert isinstance(refused, Reject)
    assert refused.record is not None
    assert "192.0.2.66" in refused.reason
    after = a_hardware(boot_for="wf", record=refused.record)
    assert boot_token.revocation(after, "wf") == refused.reason
    assert boot_token.revocation(after, "another") == ""
    assert boot_token.agent_objection(after, "wf", TOKEN, LATER) is not None
    assert not boot_token.admits_metadata(after, boot_token.metadata_token(TOKEN), LATER)
    again = asked(after)
    assert isinstance(again, Reject)
    assert again.record is None


def test_only_the_token_of_the_boot_for_the_workflow_opens_it():
    assert boot_token.agent_objection(booted(), "wf", TOKEN, LATER) is None
    for hardware, boot, token in (
        (booted(), "wf", ""),
        (booted(), "wf", "cd" * 32),
        (booted(), "wf", boot_token.metadata_token(TOKEN)),
        (booted(), "another", TOKEN),
        (a_hardware(), "wf", TOKEN),
        (a_hardware(raw="{no json"), "wf", TOKEN),
        (a_hardware(record=Record(boot="wf")), "wf", TOKEN),
    ):
        assert boot_token.agent_objection(hardware, boot, token, LATER) is not None


def test_the_installed_system_s_token_is_another_than_the_boot_s():
    known = boot_token.metadata_token(TOKEN)
    assert boot_token.admits_metadata(booted(), known, LATER)
    for token in ("", TOKEN, known[:-1], known + "0", "x" * 100_000):
        assert not boot_token.admits_metadata(booted(), token, LATER)
    assert not boot_token.admits_metadata(a_hardware(), known, LATER)


def test_objects_hold_digests_only():
    text = str(booted().metadata.annotations)
    assert TOKEN not in text
    assert boot_token.metadata_token(TOKEN) not in text


def test_what_stands_for_the_token_is_filled_in_for_who_has_shown_one():
    environment = {"CONTENTS": f"url: http://h/t/{PLACEHOLDER}", "OTHER": "x"}
    assert boot_token.filled(environment, "") == environment
    known = boot_token.metadata_token(TOKEN)
    assert boot_token.filled(environment, TOKEN) == {"CONTENTS": f"url: http://h/t/{known}", "OTHER": "x"}


def test_templates_name_a_place_below_the_token_where_identity_is_strict():
    assert boot_token.metadata_base("http://h:7080", Identity.COMPAT) == "http://h:7080"
    assert boot_token.metadata_base("http://h:7080", Identity.STRICT) == f"http://h:7080/t/{PLACEHOLDER}"
    assert boot_token.metadata_base("", Identity.STRICT) == ""


@pytest.mark.parametrize(
    ("seconds", "opens"), [("0", True), ("600", True), ("601", False), ("five minutes", False), ("9" * 30, False)]
)
def test_a_token_opens_nothing_before_the_machine_itself_must_have_asked(seconds: str, opens: bool) -> None:
    """Somebody who is faster than the machine then waits for the machine to give him away."""
    since = boot_token.boot_for("wf", parse_rfc3339(NOW))
    first = asked(a_hardware(boot_for=since))
    assert first == Mint("wf", NOW)
    hardware = a_hardware(boot_for=since, record=boot_token.minted(first, TOKEN, now=NOW))
    hardware.metadata.annotations[boot_token.BOOT_SECONDS] = seconds
    why = boot_token.agent_objection(hardware, "wf", TOKEN, LATER)
    assert (why is None) == opens
    assert boot_token.admits_metadata(hardware, boot_token.metadata_token(TOKEN), LATER) == opens
