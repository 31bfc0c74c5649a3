"""What is told of a server: the same for user data and vendor data, whatever tree they are asked for in."""

from __future__ import annotations

import msgspec
import pytest

from ironbell.api.capt.names import ANNOTATION_PROVISIONED, LABEL_OWNER_NAME, LABEL_OWNER_NAMESPACE
from ironbell.api.tinkerbell.hardware import HARDWARE, Hardware
from ironbell.api.tinkerbell.workflow import WORKFLOW, Workflow
from ironbell.contract.hardware_claim import HELD, USER_DATA_OF, WITHDRAWN
from ironbell.contract.restored import RESTORED
from ironbell.services.metadata import ec2, nocloud
from ironbell.services.metadata.rule import Document, Later, Tell, Withhold, kind_of, verdict

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
        (a_hardware(), "", Tell),
        (a_hardware(**{HELD: "a person repairs it"}), "", Tell),
        (a_hardware(user_data="", **{USER_DATA_OF: WITHDRAWN}), "", Withhold),
        (a_hardware(**{USER_DATA_OF: WITHDRAWN}), "", Tell),
        (a_hardware(**{RESTORED: '{"backup": "2026-11-22T12:00:00Z"}'}), "", Withhold),
        (a_hardware(claimed=True, **CLAIMED), "RUNNING", Later),
        (a_hardware(claimed=True, **CLAIMED), "SUCCESS", Tell),
        (a_hardware(claimed=True, **CLAIMED, **{HELD: "do not go on"}), "SUCCESS", Later),
        (a_hardware(claimed=True, **CLAIMED, **{HELD: "x", ANNOTATION_PROVISIONED: "true"}), "SUCCESS", Tell),
    ],
)
def test_instructions_are_told_while_they_are_to_be_followed(
    hardware: Hardware, state: str, expected: type[Tell | Withhold | Later]
) -> None:
    def find(_namespace: str, _name: str) -> Workflow | None:
        return of_state(state)

    assert isinstance(verdict(hardware, Document.INSTRUCTIONS, find), expected)
    for other in (Document.DESCRIPTION, Document.STORAGE):
        assert verdict(hardware, other, find) == Tell(), "what a server is, it may know"


def test_every_document_has_its_kind() -> None:
    leaves = [name for names in ec2.LISTINGS.values() for name in names if not name.endswith("/")]
    instructions = {name for name in (*leaves, *nocloud.FILES) if kind_of(name) is Document.INSTRUCTIONS}
    assert instructions == {"user-data", "vendor-data"}
    assert kind_of("meta-data/user-data") is Document.DESCRIPTION, "no leaf of that name"
    assert kind_of("storage") is Document.STORAGE
