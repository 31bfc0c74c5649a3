"""Metadata documents, and reports of installed systems."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ironbell.api.meta import ObjectMeta
from ironbell.api.tinkerbell.hardware import Hardware, HardwareSpec
from ironbell.api.tinkerbell.interface import ClasslessStaticRoute, Dhcp, Interface, Ip
from ironbell.api.tinkerbell.metadata import Facility, HardwareMetadata, Instance, InstanceIp, OperatingSystem
from ironbell.codec import goyaml
from ironbell.services.metadata import ec2, nocloud
from ironbell.services.metadata.ec2 import storage_document
from ironbell.services.metadata.reports import ReportError, parse_report

FULL = Hardware(
    metadata=ObjectMeta(name="one", namespace="site", uid="u-1"),
    spec=HardwareSpec(
        user_data="#cloud-config\n",
        interfaces=[
            Interface(
                dhcp=Dhcp(
                    mac="52:54:00:AA:00:01",
                    hostname="one",
                    domain_name="site.example",
                    ip=Ip(address="192.0.2.10", netmask="255.255.255.0", gateway="192.0.2.1"),
                    name_servers=["192.0.2.2", "192.0.2.3"],
                    classless_static_routes=[
                        ClasslessStaticRoute(destination_descriptor="10.0.0.0/8", router="192.0.2.9")
                    ],
                )
            ),
            Interface(dhcp=Dhcp(mac="52:54:00:aa:00:02")),
        ],
        metadata=HardwareMetadata(
            facility=Facility(facility_code="fra", plan_slug="m1"),
            instance=Instance(
                id="i-1",
                hostname="node-1",
                tags=["a", "b"],
                ssh_keys=["ssh-ed25519 AAAA one", "ssh-ed25519 BBBB two"],
                operating_system=OperatingSystem(slug="debian_12", distro="debian", version="12", image_tag="t"),
                ips=[
                    InstanceIp(address="198.51.100.1", family=4, public=True),
                    InstanceIp(address="192.0.2.10", family=4),
                    InstanceIp(address="2001:db8::1", family=6),
                ],
            ),
        ),
    ),
)
EMPTY = Hardware(metadata=ObjectMeta(name="two", namespace="site"))


@pytest.mark.parametrize(
    ("path", "full", "empty"),
    [
        ("user-data", "#cloud-config\n", ""),
        ("meta-data/instance-id", "i-1", ""),
        ("meta-data/hostname", "node-1", ""),
        ("meta-data/local-hostname/", "node-1", ""),
        ("meta-data/iqn", "", ""),
        ("meta-data/plan", "m1", ""),
        ("meta-data/facility", "fra", ""),
        ("meta-data/tags", "a\nb", ""),
        ("meta-data/public-ipv4", "198.51.100.1", ""),
        ("meta-data/local-ipv4", "192.0.2.10", ""),
        ("meta-data/public-ipv6", "2001:db8::1", ""),
        ("meta-data/public-keys", "ssh-ed25519 AAAA one\nssh-ed25519 BBBB two", ""),
        ("meta-data/public-keys/1/openssh-key", "ssh-ed25519 BBBB two", None),
        ("meta-data/public-keys/0", "openssh-key", None),
        ("meta-data/operating-system/distro", "debian", ""),
        ("meta-data/operating-system/license_activation/state", "", ""),
        ("meta-data/nothing", None, None),
        ("meta-data/public-keys/9/openssh-key", None, None),
    ],
)
def test_ec2_leaves(path: str, full: str | None, empty: str | None) -> None:
    assert ec2.value(FULL, path) == full
    assert ec2.value(EMPTY, path) == empty


def test_ec2_listings_lead_to_leaves_only() -> None:
    assert ec2.listing("") == "meta-data/\nuser-data"
    for directory, names in ec2.LISTINGS.items():
        for name in names:
            path = f"{directory}/{name}".strip("/")
            assert (ec2.listing(path) is None) == (ec2.value(FULL, path) is not None)


def test_nocloud_network_is_complete_without_dhcp() -> None:
    network = goyaml.load(nocloud.document(FULL, "network-config") or "")
    assert network == {
        "version": 2,
        "ethernets": {
            "nic0": {
                "match": {"macaddress": "52:54:00:aa:00:01"},
                "optional": False,
                "dhcp4": False,
                "dhcp6": False,
                "accept-ra": False,
                "addresses": ["192.0.2.10/24"],
                "routes": [
                    {"to": "0.0.0.0/0", "via": "192.0.2.1", "metric": 100},
                    {"to": "10.0.0.0/8", "via": "192.0.2.9"},
                ],
                "nameservers": {"addresses": ["192.0.2.2", "192.0.2.3"], "search": ["site.example"]},
            },
            "nic1": {
                "match": {"macaddress": "52:54:00:aa:00:02"},
                "optional": True,
                "dhcp4": False,
                "dhcp6": False,
                "accept-ra": False,
            },
        },
    }
    assert nocloud.document(EMPTY, "network-config") == ""


def test_nocloud_meta_data_always_has_an_instance_id() -> None:
    assert goyaml.load(nocloud.document(EMPTY, "meta-data") or "") == {"instance-id": "two"}
    full = goyaml.load(nocloud.document(FULL, "meta-data") or "")
    assert full["instance-id"] == "i-1"
    assert full["local-hostname"] == "node-1"
    assert nocloud.document(FULL, "anything") is None


def test_storage_document_of_a_bare_hardware_is_empty_but_whole() -> None:
    assert storage_document(EMPTY) == {"metadata": {"instance": {"storage": {"disks": [], "filesystems": []}}}}


def test_final_report_of_cloud_init() -> None:
    body = (
        b'{"name":"modules-final","description":"running modules for final","event_type":"finish","result":"SUCCESS"}'
    )
    report = parse_report(body)
    assert report.is_final
    assert report.ok
    start = parse_report(b'{"name":"modules-final","event_type":"start"}')
    assert not start.is_final


@given(st.binary(max_size=200))
def test_any_body_is_a_report_or_refused(body: bytes) -> None:
    with contextlib.suppress(ReportError):
        assert parse_report(body).stage is not None


def test_a_report_that_is_no_utf8_is_refused() -> None:
    with pytest.raises(ReportError):
        parse_report(b'{"name":"x\xff","event_type":"finish"}')
