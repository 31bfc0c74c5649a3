"""When user data is served, given and withdrawn, by one rule for all documents and trees."""

from __future__ import annotations

import msgspec
import pytest

from ironbell.api.capt.names import ANNOTATION_PROVISIONED, LABEL_OWNER_NAME, LABEL_OWNER_NAMESPACE
from ironbell.api.tinkerbell.hardware import HARDWARE, Hardware
from ironbell.api.tinkerbell.workflow import WORKFLOW, Workflow
from ironbell.contract.servers.claim import HELD, USER_DATA_OF, WITHDRAWN
from ironbell.contract.servers.restored import RESTORED
from ironbell.provisioner.user_data import (
    Document,
    Later,
    Serve,
    Withhold,
    is_complete,
    kind_of,
    needs_user_data,
    service_of,
    withdrawal,
)
from ironbell.services.metadata import ec2, nocloud

CLAIMED = {USER_DATA_OF: "site/m 7"}


def a_hardware(*, user_data: str = "#cloud-config", claimed: bool = False, **annotations: str) -> Hardware:
    labels = {LABEL_OWNER_NAME: "m", LABEL_OWNER_NAMESPACE: "site"} if claimed else {}
    metadata = {"name": "one", "namespace": "site", "annotations": annotations, "labels": labels}
    return HARDWARE.decode(msgspec.json.encode({"metadata": metadata, "spec": {"userData": user_data or None}}))


def of_state(state: str) -> Workflow:
    body = {"metadata": {"name": "m", "namespace": "site"}, "spec": {"hardwareRef": "one"}, "status": {"state": state}}
    return WORKFLOW.decode(msgspec.json.encode(body))


@pytest.mark.parametrize(
    ("hardware", "state", "expected"),
    [
        (a_hardware(), "", Serve),
        (a_hardware(**{HELD: "a person repairs it"}), "", Serve),
        (a_hardware(user_data="", **{USER_DATA_OF: WITHDRAWN}), "", Withhold),
        (a_hardware(**{USER_DATA_OF: WITHDRAWN}), "", Serve),
        (a_hardware(**{RESTORED: '{"backup": "2026-11-22T12:00:00Z"}'}), "", Withhold),
        (a_hardware(claimed=True, **CLAIMED), "RUNNING", Later),
        (a_hardware(claimed=True, **CLAIMED), "SUCCESS", Serve),
        (a_hardware(claimed=True, **CLAIMED, **{HELD: "do not go on"}), "SUCCESS", Later),
        (a_hardware(claimed=True, **CLAIMED, **{HELD: "x", ANNOTATION_PROVISIONED: "true"}), "SUCCESS", Serve),
    ],
)
def test_instructions_are_served_while_they_are_to_be_followed(
    hardware: Hardware, state: str, expected: type[Serve | Withhold | Later]
) -> None:
    def find(_namespace: str, _name: str) -> Workflow | None:
        return of_state(state)

    assert isinstance(service_of(hardware, Document.INSTRUCTIONS, find), expected)
    for other in (Document.DESCRIPTION, Document.STORAGE):
        assert service_of(hardware, other, find) == Serve(), "what a server is, it may know"


def test_every_document_has_its_kind() -> None:
    leaves = [name for names in ec2.LISTINGS.values() for name in names if not name.endswith("/")]
    instructions = {name for name in (*leaves, *nocloud.FILES) if kind_of(name) is Document.INSTRUCTIONS}
    assert instructions == {"user-data", "vendor-data"}
    assert kind_of("meta-data/user-data") is Document.DESCRIPTION, "no leaf of that name"
    assert kind_of("storage") is Document.STORAGE


@pytest.mark.parametrize(
    ("state", "current", "expected"),
    [
        ("RUNNING", "a1", False),
        ("RUNNING", "a2", True),
        ("RUNNING", "", False),
        ("FAILED", "a2", False),
        ("POST", "a2", True),
        ("SUCCESS", "", True),
        ("", "", False),
    ],
)
def test_an_installation_is_complete_from_its_last_action(state: str, current: str, expected: bool) -> None:
    actions = [{"name": "write", "id": "a1"}, {"name": "leave", "id": "a2"}]
    status = {"state": state, "currentState": {"actionID": current}, "tasks": [{"name": "t", "actions": actions}]}
    body = {"metadata": {"name": "m", "namespace": "site"}, "spec": {"hardwareRef": "one"}, "status": status}
    assert is_complete(WORKFLOW.decode(msgspec.json.encode(body))) is expected


def test_user_data_is_given_once_for_each_version_and_never_after_it_was_withdrawn() -> None:
    assert needs_user_data(a_hardware(user_data=""), "site/m 7")
    assert needs_user_data(a_hardware(**CLAIMED), "site/m 8")
    assert needs_user_data(a_hardware(user_data="", **CLAIMED), "site/m 7"), "somebody has removed it"
    assert not needs_user_data(a_hardware(**CLAIMED), "site/m 7")
    assert not needs_user_data(a_hardware(user_data="", **{USER_DATA_OF: WITHDRAWN}), "site/m 8")


def test_withdrawal_is_one_write_and_repeated_while_data_comes_back() -> None:
    for hardware in (a_hardware(**CLAIMED), a_hardware(**{USER_DATA_OF: WITHDRAWN}), a_hardware(user_data="")):
        write = withdrawal(hardware)
        assert write is not None
        body = write.body
        assert (body["metadata"]["annotations"], body["spec"]) == ({USER_DATA_OF: WITHDRAWN}, {"userData": None})
    assert withdrawal(a_hardware(user_data="", **{USER_DATA_OF: WITHDRAWN})) is None
