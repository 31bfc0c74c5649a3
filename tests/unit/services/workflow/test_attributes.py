"""What an agent tells of its machine, as the annotation keeps it from report to report."""

from __future__ import annotations

import msgspec
import pytest

from ironbell.codec.proto import workflow_pb2
from ironbell.services.workflow.attributes import changed_document, encode

MAC = "02:00:00:00:00:01"


def a_report(*, cores: int = 2, switch: str = "", complete: bool = False) -> workflow_pb2.AgentAttributes:
    heard = [workflow_pb2.LldpNeighbour(chassis_id="c", port_id="p", system_name=switch)] if switch else []
    return workflow_pb2.AgentAttributes(
        cpu=workflow_pb2.CPU(total_cores=cores),
        block=[workflow_pb2.Block(name="sda", size="239GB", size_bytes=256060514304)],
        network=[workflow_pb2.Network(name="eno1", mac=MAC, driver="ice", lldp_neighbours=heard)],
        product=workflow_pb2.Product(name="R1", uuid="u"),
        lldp_complete=complete,
    )


def network_of(text: bytes | None) -> dict[str, object]:
    assert text is not None
    return msgspec.json.decode(text)["networkInterfaces"][0]


def test_what_upstream_does_not_tell_has_names_of_its_own():
    document = msgspec.json.decode(encode(a_report(switch="red-1")))
    neighbour = {"chassisID": "c", "portID": "p", "systemName": "red-1"}
    assert document["networkInterfaces"] == [
        {"name": "eno1", "mac": MAC, "driver": "ice", "lldpNeighbours": [neighbour]}
    ]
    assert document["blockDevices"] == [{"name": "sda", "size": "239GB", "sizeBytes": 256060514304}]
    assert document["product"] == {"name": "R1", "uuid": "u"}
    assert not {"lldp_complete", "lldpComplete"} & document.keys()


def test_the_same_report_is_no_news():
    text = changed_document(a_report(), "")
    assert text is not None
    assert changed_document(a_report(), text.decode()) is None
    assert changed_document(a_report(cores=4), text.decode()) is not None


def test_neighbours_stay_until_the_agent_has_listened_to_the_end():
    known = encode(a_report(switch="red-1", complete=True)).decode()
    assert changed_document(a_report(), known) is None, "a machine that just came up has heard nobody yet"
    assert network_of(changed_document(a_report(cores=4), known))["lldpNeighbours"][0]["systemName"] == "red-1"
    assert network_of(changed_document(a_report(switch="blue-1"), known))["lldpNeighbours"][0]["systemName"] == "blue-1"
    assert "lldpNeighbours" not in network_of(changed_document(a_report(complete=True), known)), (
        "nobody is there any more"
    )


def test_cards_of_one_bond_keep_neighbours_of_their_own():
    """They share the bond's address."""
    told = a_report(switch="red-1", complete=True)
    told.network.append(workflow_pb2.Network(name="eno2", mac=MAC))
    known = encode(told).decode()
    told.lldp_complete = False
    assert changed_document(told, known) is None
    del told.network[0].lldp_neighbours[:]
    assert changed_document(told, known) is None


@pytest.mark.parametrize(
    "known",
    [
        '["lldpNeighbours"]',
        '{"lldpNeighbours": 1}',
        '{"networkInterfaces": "lldpNeighbours"}',
        '{"networkInterfaces": [{"x": "lldpNeighbours"}]}',
        '"lldpNeighbours" is not JSON',
    ],
)
def test_an_annotation_that_anybody_wrote_does_no_harm(known):
    assert "lldpNeighbours" not in network_of(changed_document(a_report(), known))
