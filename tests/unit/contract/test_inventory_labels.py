"""What a server has becomes labels, valid ones whatever its maker wrote."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ironbell.api.tinkerbell.hardware import HARDWARE, Hardware
from ironbell.contract.clusters.capabilities import Capabilities, Disk, capabilities
from ironbell.contract.servers.inventory_labels import LABELS, label_value, labels_of, remembered, to_remember

VALUE = re.compile(r"([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?")
GIB = 1 << 30
AGENT: dict[str, Any] = {
    "cpu": {"totalCores": 8},
    "memory": {"totalBytes": 64 * GIB - 400_000_000},
    "product": {"name": "PowerEdge R640", "vendor": "Dell Inc."},
    "blockDevices": [{"name": "sda", "sizeBytes": 480103981056}, {"name": "sdb", "size": "1TB"}],
    "networkInterfaces": [
        {"name": "eno2", "mac": "02:00:00:00:00:02", "lldpNeighbours": [{"systemName": "other", "portID": "1"}]},
        {
            "name": "eno1",
            "mac": "02:00:00:00:00:01",
            "speed": "2500Mb/s",
            "lldpNeighbours": [{"chassisID": "c", "systemName": "red.example.org", "portID": "Ethernet1/7"}],
        },
    ],
}


def a_server(*, agent: Any = None, bmc: Any = None) -> Hardware:
    annotations = {"tinkerbell.org/agent-attributes": msgspec.json.encode(agent).decode()} if agent else {}
    return HARDWARE.convert(
        {
            "metadata": {"name": "a", "annotations": annotations},
            "spec": {"interfaces": [{"dhcp": {"mac": "02:00:00:00:00:01", "arch": "x86_64"}}]},
            "status": {"attributes": {"outOfBand": bmc}} if bmc else {},
        }
    )


def short(labels: dict[str, str]) -> dict[str, str]:
    return {key.removeprefix("ironbell.dev/"): value for key, value in labels.items()}


def test_an_agents_report_as_labels():
    assert short(labels_of(capabilities(a_server(agent=AGENT)))) == {
        "arch": "amd64",
        "vendor": "Dell-Inc",
        "model": "PowerEdge-R640",
        "cpu-cores": "8",
        "memory-gib": "64",
        "disks": "2",
        "largest-disk-gib": "1024",
        "nic-speed-gbps": "2.5",
        "switch": "red.example.org",
        "switch-port": "Ethernet1-7",
    }


def test_a_bmcs_report_gives_the_same_labels_before_the_first_boot():
    bmc = {
        "cpu": {"totalCores": 8},
        "memory": {"totalBytes": 64 * GIB},
        "product": {"model": "PowerEdge R640", "vendor": "Dell Inc."},
        "blockDevices": [{"name": "0", "sizeBytes": 480103981056}, {"name": "1", "sizeBytes": 1024 * GIB}],
        "networkInterfaces": [{"ports": [{"mac": "02:00:00:00:00:01", "speedMbps": 2500}]}],
    }
    inside, outside = (short(labels_of(capabilities(a_server(**one)))) for one in ({"agent": AGENT}, {"bmc": bmc}))
    assert {key: value for key, value in inside.items() if not key.startswith("switch")} == outside


def test_the_bmc_fills_what_the_agent_lacks():
    agent = {"cpu": {"totalCores": 8}, "product": {"vendor": "To Be Filled By O.E.M.", "name": "Default string"}}
    bmc = {"cpu": {"totalCores": 99}, "product": {"vendor": "Supermicro", "model": "SYS-1"}}
    assert short(labels_of(capabilities(a_server(agent=agent, bmc=bmc)))) == {
        "arch": "amd64",
        "cpu-cores": "8",
        "vendor": "Supermicro",
        "model": "SYS-1",
    }


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("Dell Inc.", "Dell-Inc"),
        ("  (R) ", "R"),
        ("中文", ""),
        ("a" * 62 + "- b", "a" * 62),
        ("x86/64, new", "x86-64-new"),
    ],
)
def test_text_becomes_a_value(text, value):
    assert label_value(text) == value


texts = st.one_of(st.none(), st.text(max_size=80))
numbers = st.one_of(st.none(), st.integers(0, 1 << 62))


@given(
    st.builds(
        Capabilities,
        architecture=texts,
        vendor=texts,
        model=texts,
        cpu_cores=numbers,
        memory=numbers,
        disks=st.one_of(st.none(), st.lists(st.builds(Disk, st.just("d"), st.integers(1, 1 << 62)), max_size=3)),
        nic_speed=numbers,
        switch=texts,
        switch_port=texts,
    )
)
def test_every_label_is_valid_and_can_be_remembered(has):
    labels = labels_of(has)
    assert all(VALUE.fullmatch(value) and value for value in labels.values())
    assert labels.keys() <= {label.key for label in LABELS}
    assert remembered(to_remember(labels)) == labels
