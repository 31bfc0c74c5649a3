"""iPXE scripts, written from the netboot plan.

Every script ends explicitly: it boots, chains, or continues with the disk. The script of a machine that may not netboot
prints the reason on the console and boots the disk, because an error would leave the machine at a firmware prompt.

Source: tinkerbell/tinkerbell: smee/internal/ipxe/script; ipxe.org/scripting.
"""

from __future__ import annotations

import ipaddress

from ironbell.contract.servers.netboot import BootFromDisk, ChainTo, CustomScript, InMemoryOs, NetbootPlan

# Under BIOS, `sanboot` starts the first disk. Under UEFI, an exit with an error makes the firmware continue with its
# next boot entry; after an exit with success, not every firmware does (tinkerbell issue 984).
_TO_DISK = """\
iseq ${platform} pcbios && sanboot --no-describe --drive 0x80 ||
exit 1
"""


def script_for(plan: NetbootPlan, *, machine: str) -> str:
    """Return the script for a machine; `machine` is its name on its console."""
    match plan.target:
        case BootFromDisk(reason):
            return boot_from_disk(machine, reason)
        case ChainTo(url):
            return (
                f"#!ipxe\necho Ironbell: {_plain(machine)} chains to {_plain(url)}\n"
                f"chain --autofree {url} ||\n"
                "echo Ironbell: chain failed, continuing with the disk\nsleep 5\n" + _TO_DISK
            )
        case CustomScript(contents):
            body = contents.removeprefix("#!ipxe\n")
            return f"#!ipxe\necho Ironbell: {_plain(machine)} runs the script of its Hardware\n{body}\n"
        case InMemoryOs() as boot:
            return boot_in_memory_os(boot, machine=machine)


def boot_from_disk(machine: str, reason: str) -> str:
    """Return the script that prints the reason, then boots the disk."""
    return f"#!ipxe\necho Ironbell: {_plain(machine)} boots from its disk: {_plain(reason)}\n{_TO_DISK}"


def boot_in_memory_os(boot: InMemoryOs, *, machine: str) -> str:
    """Return the script that fetches kernel and initrd, each with retries, and starts them."""
    lines = [
        "#!ipxe",
        *_syslog(boot.syslog_host),
        f"echo Ironbell: {_plain(machine)} starts the in-memory OS",
        *_arch(boot.arch),
        f"set retries:int32 {boot.retries}",
        f"set retry_delay {boot.retry_delay_s}",
        *_with_retries(
            "kernel", f"kernel {boot.kernel_url} {' '.join(boot.kernel_arguments)}", "cannot fetch the kernel"
        ),
        *_with_retries("initrd", f"initrd {boot.initrd_url}", "cannot fetch the initrd"),
        *_with_retries("boot", "boot", "cannot start the kernel"),
        ":failed",
        "imgfree ||",
        "echo Ironbell: giving up, continuing with the disk",
        "sleep 5",
        _TO_DISK,
    ]
    return "\n".join(lines)


def _arch(known: str) -> list[str]:
    if known:
        return [f"set arch {known}"]
    # The platform that iPXE was built for: a 32-bit iPXE also runs on 64-bit machines.
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
    """Return text that neither ends an iPXE command nor expands a setting."""
    kept = "".join(c if c.isprintable() and c not in "$`|&" else " " for c in text)
    return " ".join(kept.split())
