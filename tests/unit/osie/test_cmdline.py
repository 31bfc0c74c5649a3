"""The kernel's command line: upstream's arguments, ours, and nonsense."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ironbell.osie.machine.cmdline import agent_environment, parse, split

UPSTREAM = (
    "facility=onprem console=ttyS0 syslog_host=192.168.2.113 grpc_authority=192.168.2.113:42113 tinkerbell_tls=false "
    "tinkerbell_insecure_tls=false worker_id=machine1 hw_addr=02:7F:92:BD:2D:57 "
    "modules=loop,squashfs,sd-mod,usb-storage intel_iommu=on iommu=pt initrd=initramfs-x86_64 console=tty0 "
    "console=ttyS1,115200 tink_worker_image=ghcr.io/tinkerbell/tink-agent:v1"
)


def test_reads_what_upstreams_boot_script_passes() -> None:
    arguments = parse(UPSTREAM)
    assert arguments.grpc_authority == "192.168.2.113:42113"
    assert arguments.worker_id == "machine1"
    assert arguments.hw_addr == "02:7f:92:bd:2d:57"
    assert arguments.syslog_host == "192.168.2.113"
    assert not arguments.has_tls


def test_hands_the_agent_the_names_that_hookos_uses() -> None:
    environment = agent_environment(parse(UPSTREAM + " tinkerbell_tls=true HTTP_PROXY=http://p:3128"))
    assert environment["TINKERBELL_GRPC_AUTHORITY"] == "192.168.2.113:42113"
    assert environment["TINKERBELL_TLS"] == "true"
    assert environment["WORKER_ID"] == environment["ID"] == "machine1"
    assert environment["HTTP_PROXY"] == environment["http_proxy"] == "http://p:3128"


def test_uses_the_mac_where_no_worker_is_named() -> None:
    assert parse("worker_id= hw_addr=02-00-00-00-00-01").worker_id == "02:00:00:00:00:01"


@pytest.mark.parametrize("text", ["syslog_host", "hw_addr", "vlan_id", "ipam", "grpc_authority", "interface"])
def test_an_argument_without_value_counts_as_not_given(text: str) -> None:
    assert parse(text).raw == {text: ""}
    assert parse(text) == parse(text + "=")


@pytest.mark.parametrize(
    ("text", "vlan"), [("7", "7"), ("0", ""), ("4095", ""), ("12,13", "12"), ("x", ""), ("-1", ""), ("٣", "")]
)
def test_takes_only_vlans_that_can_be_tagged(text: str, vlan: str) -> None:
    assert parse(f"vlan_id={text}").vlan_id == vlan


def test_the_image_proxy_holds_only_where_the_command_line_names_none() -> None:
    assert parse("", built_in_proxy="http://built:1").proxies["HTTPS_PROXY"] == "http://built:1"
    assert parse("https_proxy=http://told:1", built_in_proxy="http://built:1").proxies == {
        "HTTPS_PROXY": "http://told:1"
    }


def test_quotes_protect_spaces_and_the_last_value_wins() -> None:
    assert split('a="x y" b=1 b=2 c') == {"a": "x y", "b": "2", "c": ""}


@given(st.text())
def test_any_text_gives_arguments(text: str) -> None:
    agent_environment(parse(text))
