"""iPXE scripts, written from the netboot plan.

Every script ends in an explicit outcome: it boots, chains, or hands over to the disk. A machine that may not netboot
gets a script that says so on its console and boots its disk, instead of an error that leaves it at a firmware prompt.

Source: tinkerbell/tinkerbell: smee/internal/ipxe/script; ipxe.org/scripting.
"""

from __future__ import annotations

import ipaddress

from ironbell.contract.servers.netboot import BootFromDisk, ChainTo, CustomScript, InMemoryOs, NetbootPlan

# `sanboot` starts the first disk where iPXE is a BIOS program; under UEFI leaving with an error makes the firmware
# go on to its next boot entry, which leaving with success does not on all of them (tinkerbell issue 984).
_TO_DISK = """\
iseq ${platform} pcbios && sanboot --no-describe --drive 0x80 ||
exit 1
"""


def script_for(plan: NetbootPlan, *, machine: str) -> str:
    """The script for one machine; `machine` is what its console shows it as."""
    match plan.target:
        case BootFromDisk(reason):
            return boot_from_disk(machine, reason)
        case ChainTo(url):
            return (
                f"#!ipxe\necho Ironbell: {_plain(machine)} chains to {_plain(url)}\n"
                f"chain --autofree {url} ||\n"
                "echo Ironbell: chain failed, going on to the disk\nsleep 5\n" + _TO_DISK
            )
        case CustomScript(contents):
            body = contents.removeprefix("#!ipxe\n")
            return f"#!ipxe\necho Ironbell: {_plain(machine)} runs the script of its Hardware\n{body}\n"
        case InMemoryOs() as boot:
            return boot_in_memory_os(boot, machine=machine)


def boot_from_disk(machine: str, reason: str) -> str:
    """Say why, then boot the disk."""
    return f"#!ipxe\necho Ironbell: {_plain(machine)} boots from its disk: {_plain(reason)}\n{_TO_DISK}"


def boot_in_memory_os(boot: InMemoryOs, *, machine: str) -> str:
    """Fetch kernel and initrd, each with retries, and start them."""
    lines = ["#!ipxe", *_syslog(boot.syslog_host), f"echo Ironbell: {_plain(machine)} starts the in-memory OS"]
    lines += _arch(boot.arch)
    lines += [
        f"set retries:int32 {boot.retries}",
        f"set retry_delay {boot.retry_delay_s}",
    ]
    kernel = f"kernel {boot.kernel_url} {' '.join(boot.kernel_arguments)}"
    initrd = f"initrd {boot.initrd_url}"
    for label, command, failure in (
        ("kernel", kernel, "cannot fetch the kernel"),
        ("initrd", initrd, "cannot fetch the initrd"),
        ("boot", "boot", "cannot start the kernel"),
    ):
        lines += _with_retries(label, command, failure)
    lines += [
        ":failed",
        "imgfree ||",
        "echo Ironbell: giving up, going on to the disk",
        "sleep 5",
        _TO_DISK.rstrip("\n"),
    ]
    return "\n".join(lines) + "\n"


def _arch(known: str) -> list[str]:
    if known:
        return [f"set arch {known}"]
    # iPXE's names for what it was built for: a 32-bit iPXE runs on 64-bit machines, too
    return [
        "set arch ${buildarch}",
        "iseq ${arch} i386 && set arch x86_64 ||",
        "iseq ${arch} arm32 && set arch aarch64 ||",
        "iseq ${arch} arm64 && set arch aarch64 ||",
    ]


def _with_retries(label: str, command: str, failure: str) -> list[str]:
    return [
        "set tries:int32 0",
        f":{label}",
        f"{command} && goto after_{label} ||",
        f"echo Ironbell: {failure}",
        "iseq ${tries} ${retries} && goto failed ||",
        "inc tries",
        "sleep ${retry_delay}",
        f"goto {label}",
        f":after_{label}",
    ]


def _syslog(host: str) -> list[str]:
    if not host:
        return []
    try:
        ipaddress.IPv4Address(host)
    except ValueError:
        return [
            f"nslookup syslog_ip {host} || echo Ironbell: cannot resolve the syslog host {_plain(host)}",
            "isset ${syslog_ip} && set syslog ${syslog_ip} ||",
        ]
    return [f"set syslog {host}"]


def _plain(text: str) -> str:
    """Text that neither ends an iPXE command nor expands a setting."""
    kept = "".join(c if c.isprintable() and c not in "$`|&" else " " for c in text)
    return " ".join(kept.split())
