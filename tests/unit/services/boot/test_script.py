"""Boot scripts: every one ends in an outcome, and nothing from a Hardware breaks out of its line."""

from __future__ import annotations

import itertools

from ironbell.contract.servers.netboot import BootFromDisk, ChainTo, CustomScript, InMemoryOs, NetbootPlan
from ironbell.services.boot.script import script_for

OSIE = InMemoryOs(
    kernel_url="http://192.0.2.1/osie/vmlinuz-x86_64",
    initrd_url="http://192.0.2.1/osie/initramfs-x86_64",
    initrd_name="initramfs-x86_64",
    kernel_arguments=("facility=", "worker_id=w"),
    retries=3,
    retry_delay_s=2,
    syslog_host="log.example",
    arch="x86_64",
)
MAC = "52:54:00:aa:00:01"


def test_in_memory_os_is_fetched_with_retries_and_started() -> None:
    lines = script_for(NetbootPlan(OSIE, MAC), machine="one").splitlines()
    assert lines[0] == "#!ipxe"
    kernel = next(line for line in lines if line.startswith("kernel "))
    assert kernel.startswith("kernel http://192.0.2.1/osie/vmlinuz-x86_64 facility= worker_id=w && goto")
    assert any(line.startswith("initrd http://192.0.2.1/osie/initramfs-x86_64 ") for line in lines)
    assert "set retries:int32 3" in lines
    assert "sleep ${retry_delay}" in lines
    assert any(line.startswith("nslookup syslog_ip log.example") for line in lines)
    targets = {word for line in lines for before, word in _pairs(line) if before == "goto"}
    labels = {line[1:] for line in lines if line.startswith(":")}
    assert targets <= labels
    assert lines[-1] == "exit 1"


def _pairs(line: str) -> list[tuple[str, str]]:
    words = line.split()
    return list(itertools.pairwise(words))


def test_machine_that_may_not_netboot_boots_its_disk_and_says_why() -> None:
    script = script_for(NetbootPlan(BootFromDisk("netboot.allowPXE is not true"), MAC), machine="one")
    assert "netboot.allowPXE is not true" in script
    assert "sanboot --no-describe --drive 0x80" in script
    assert script.endswith("exit 1\n")


def test_text_of_a_hardware_cannot_add_commands() -> None:
    script = script_for(NetbootPlan(BootFromDisk("x\nshell && ${evil}"), MAC), machine="a\nreboot")
    assert not any(line.startswith(("shell", "reboot")) for line in script.splitlines())
    assert "${evil}" not in script


def test_own_scripts() -> None:
    chained = script_for(NetbootPlan(ChainTo("http://boot.example/a"), MAC), machine="one")
    assert "chain --autofree http://boot.example/a" in chained
    own = script_for(NetbootPlan(CustomScript("#!ipxe\nshell"), MAC), machine="one")
    assert own.count("#!ipxe") == 1
    assert own.endswith("shell\n")
