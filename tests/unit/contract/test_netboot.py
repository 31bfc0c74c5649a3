"""The netboot policy: who may boot from the network and what it gets."""

from __future__ import annotations

import pytest

from ironbell.api.meta import ObjectMeta
from ironbell.api.tinkerbell.hardware import Hardware, HardwareSpec
from ironbell.api.tinkerbell.interface import Dhcp, Interface, Ipxe, Netboot, Osie
from ironbell.api.tinkerbell.metadata import Facility, HardwareMetadata
from ironbell.contract.servers.netboot import (
    BootFromDisk,
    ChainTo,
    CustomScript,
    InMemoryOs,
    NetbootPlan,
    NetbootSettings,
    netboot_plan,
)

SETTINGS = NetbootSettings(
    osie_url="http://{address}:7080/osie/",
    grpc_authority="{address}:42113",
    syslog_host="{address}",
    extra_kernel_arguments=("extra=1",),
)


def plan_for(
    netboot: Netboot | None, *, annotations: dict[str, str] | None = None, agent_id: str = "", vlan: str = ""
) -> NetbootPlan:
    interface = Interface(dhcp=Dhcp(mac="52:54:00:AA:00:01", vlan_id=vlan), netboot=netboot)
    hardware = Hardware(
        metadata=ObjectMeta(name="one", namespace="site", annotations=annotations or {}),
        spec=HardwareSpec(
            interfaces=[interface],
            agent_id=agent_id,
            metadata=HardwareMetadata(facility=Facility(facility_code="onprem console=ttyS0")),
        ),
    )
    return netboot_plan(hardware, interface, SETTINGS, address="192.0.2.1")


@pytest.mark.parametrize("netboot", [None, Netboot(), Netboot(allow_pxe=False)])
def test_netboot_must_be_allowed_explicitly(netboot: Netboot | None) -> None:
    plan = plan_for(netboot)
    assert not plan.allowed
    assert plan.reason == "netboot.allowPXE is not true"


def test_disabled_annotation_wins_over_allow_pxe() -> None:
    plan = plan_for(Netboot(allow_pxe=True), annotations={"tinkerbell.org/disabled": "bad memory"})
    assert isinstance(plan.target, BootFromDisk)
    assert "bad memory" in plan.reason


def test_a_record_from_a_backup_boots_the_disk_until_it_is_confirmed() -> None:
    plan = plan_for(Netboot(allow_pxe=True), annotations={"ironbell.dev/restored": "{}"})
    assert not plan.allowed
    assert "not confirmed" in plan.reason


def test_kernel_arguments_are_upstreams_in_upstreams_order() -> None:
    plan = plan_for(Netboot(allow_pxe=True, osie=Osie(kernel_params=["last=1"])), vlan="100", agent_id="agent-1")
    assert isinstance(plan.target, InMemoryOs)
    assert " ".join(plan.target.kernel_arguments) == (
        "vlan_id=100 facility=onprem console=ttyS0 syslog_host=192.0.2.1 grpc_authority=192.0.2.1:42113 "
        "tinkerbell_tls=false tinkerbell_insecure_tls=false worker_id=agent-1 hw_addr=52:54:00:aa:00:01 "
        "modules=loop,squashfs,sd-mod,usb-storage intel_iommu=on iommu=pt initrd=initramfs-x86_64 "
        "console=tty0 console=ttyS1,115200 extra=1 last=1"
    )
    assert plan.target.kernel_url == "http://192.0.2.1:7080/osie/vmlinuz-x86_64"
    assert plan.target.initrd_url == "http://192.0.2.1:7080/osie/initramfs-x86_64"


def test_hardware_may_name_its_own_in_memory_os() -> None:
    osie = Osie(base_url="http://files.example/hook", kernel="k", initrd="sub/i")
    plan = plan_for(Netboot(allow_pxe=True, osie=osie))
    assert isinstance(plan.target, InMemoryOs)
    assert plan.target.kernel_url == "http://files.example/hook/k"
    assert plan.target.initrd_url == "http://files.example/hook/sub/i"
    assert "initrd=i" in plan.target.kernel_arguments


def test_own_script_by_url_goes_before_contents() -> None:
    both = Ipxe(url="https://boot.example/x.ipxe", contents="shell", binary="snp-x86_64.efi")
    plan = plan_for(Netboot(allow_pxe=True, ipxe=both))
    assert plan.target == ChainTo("https://boot.example/x.ipxe")
    assert plan.binary == "snp-x86_64.efi"
    assert plan_for(Netboot(allow_pxe=True, ipxe=Ipxe(contents="shell"))).target == CustomScript("shell")


@pytest.mark.parametrize("url", ["ftp://boot.example/x", "http://[x", "x"])
def test_script_url_that_is_none_is_refused_with_the_field_named(url: str) -> None:
    plan = plan_for(Netboot(allow_pxe=True, ipxe=Ipxe(url=url)))
    assert not plan.allowed
    assert "netboot.ipxe.url" in plan.reason
