"""Permission of a machine to boot from the network, and the files that it gets. One function for every route.

DHCP, TFTP, the boot script, ISO and metadata all call `netboot_plan`, so that no route serves a machine that another
one rejects. Every packet is decided from the current Hardware: `allowPXE` may change at any moment.

Source: tinkerbell/tinkerbell: smee/internal/dhcp/handler, smee/internal/ipxe/script.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.api.tinkerbell.interface import Interface
from ironbell.api.tinkerbell.names import ANNOTATION_DISABLED
from ironbell.contract.servers.directory import booted_agent_id, normal_mac
from ironbell.contract.servers.restored import hold_reason

DEFAULT_ARCH = "x86_64"
FIXED_KERNEL_ARGUMENTS = "modules=loop,squashfs,sd-mod,usb-storage intel_iommu=on iommu=pt"
CONSOLES = ("tty0", "ttyS1,115200")
"""Upstream's. Linux takes only the first serial console of a kind, so a site whose servers have theirs on another port
sets it in its settings, or in a Hardware's facility code, which takes precedence."""


@dataclass(frozen=True, slots=True)
class NetbootSettings:
    """Settings of a site for boots into the in-memory OS. Our own addresses are filled in per subnet."""

    osie_url: str
    """Where kernel and initrd are; `{address}` stands for our address as the machine reaches it."""
    grpc_authority: str
    """host:port of the workflow service; `{address}` as above."""
    kernel_name: str = "vmlinuz"
    initrd_name: str = "initramfs"
    syslog_host: str = ""
    tls: bool = False
    insecure_tls: bool = False
    consoles: tuple[str, ...] = CONSOLES
    extra_kernel_arguments: tuple[str, ...] = ()
    retries: int = 20
    """How often kernel and initrd are fetched again. Upstream gives up after one second, and a machine that gives up
    may take minutes to come back, or stand still; ours outlasts a restart of the server."""
    retry_delay_s: int = 2


@dataclass(frozen=True, slots=True)
class BootFromDisk:
    """Netboot is not allowed; the machine boots what is on its disk."""

    reason: str


@dataclass(frozen=True, slots=True)
class ChainTo:
    """The user's own iPXE script, by URL."""

    url: str


@dataclass(frozen=True, slots=True)
class CustomScript:
    """The user's own iPXE script, inline."""

    contents: str


@dataclass(frozen=True, slots=True)
class InMemoryOs:
    """Kernel and initrd of the in-memory OS with their arguments, in upstream's order."""

    kernel_url: str
    initrd_url: str
    initrd_name: str
    kernel_arguments: tuple[str, ...]
    retries: int
    retry_delay_s: int
    syslog_host: str
    arch: str
    """Empty: as iPXE finds it."""


BootTarget = ChainTo | CustomScript | InMemoryOs | BootFromDisk


@dataclass(frozen=True, slots=True)
class NetbootPlan:
    """The policy's answer for one interface of one machine."""

    target: BootTarget
    mac: str
    binary: str = ""
    """The iPXE binary that this machine must get; empty: by its architecture."""

    @property
    def allowed(self) -> bool:
        return not isinstance(self.target, BootFromDisk)

    @property
    def reason(self) -> str:
        """Reason why the machine must boot from disk; empty if it may netboot."""
        return self.target.reason if isinstance(self.target, BootFromDisk) else ""


def netboot_plan(hardware: Hardware, interface: Interface, settings: NetbootSettings, *, address: str) -> NetbootPlan:
    """Decide for one interface. `address` is ours, as the asking machine reaches it."""
    mac = normal_mac(interface.dhcp.mac) if interface.dhcp else ""
    objection = _objection(hardware, interface)
    if objection:
        return NetbootPlan(BootFromDisk(objection), mac)
    netboot = interface.netboot
    ipxe = netboot.ipxe if netboot else None
    binary = ipxe.binary if ipxe else ""
    if ipxe and ipxe.url:
        if _scheme(ipxe.url) not in {"http", "https"}:
            wrong = f"netboot.ipxe.url {ipxe.url!r} must begin with http:// or https://"
            return NetbootPlan(BootFromDisk(wrong), mac, binary)
        return NetbootPlan(ChainTo(ipxe.url), mac, binary)
    if ipxe and ipxe.contents:
        return NetbootPlan(CustomScript(ipxe.contents), mac, binary)
    return NetbootPlan(_in_memory_os(hardware, interface, settings, address=address), mac, binary)


def plan_for_unknown(settings: NetbootSettings, *, address: str) -> NetbootPlan:
    """Return the plan for a machine without Hardware, at a site that serves such machines: the in-memory OS.

    iPXE fills in architecture and MAC, which only it knows.
    """
    base = settings.osie_url.replace("{address}", address).rstrip("/")
    kernel, initrd = f"{settings.kernel_name}-${{arch}}", f"{settings.initrd_name}-${{arch}}"
    arguments = (
        "facility=",
        f"syslog_host={settings.syslog_host.replace('{address}', address)}",
        f"grpc_authority={settings.grpc_authority.replace('{address}', address)}",
        f"tinkerbell_tls={_word(settings.tls)}",
        f"tinkerbell_insecure_tls={_word(settings.insecure_tls)}",
        "worker_id=${mac}",
        "hw_addr=${mac}",
        FIXED_KERNEL_ARGUMENTS,
        f"initrd={initrd}",
        *(f"console={console}" for console in settings.consoles),
        *(argument.replace("{address}", address) for argument in settings.extra_kernel_arguments),
    )
    target = InMemoryOs(
        kernel_url=f"{base}/{kernel}",
        initrd_url=f"{base}/{initrd}",
        initrd_name=initrd,
        kernel_arguments=arguments,
        retries=settings.retries,
        retry_delay_s=settings.retry_delay_s,
        syslog_host=settings.syslog_host.replace("{address}", address),
        arch="",
    )
    return NetbootPlan(target, mac="")


def _objection(hardware: Hardware, interface: Interface) -> str:
    """Return the reason why this interface may not netboot; empty if it may."""
    if ANNOTATION_DISABLED in hardware.metadata.annotations:
        reason = hardware.metadata.annotations[ANNOTATION_DISABLED]
        return f"the Hardware is disabled by annotation {ANNOTATION_DISABLED}{': ' + reason if reason else ''}"
    if (held := hold_reason(hardware)) is not None:
        return held
    if interface.netboot is None or not interface.netboot.allow_pxe:
        return "netboot.allowPXE is not true"
    return ""


def _in_memory_os(hardware: Hardware, interface: Interface, settings: NetbootSettings, *, address: str) -> InMemoryOs:
    osie = interface.netboot.osie if interface.netboot else None
    arch = (interface.dhcp.arch if interface.dhcp else "") or DEFAULT_ARCH
    base = ((osie.base_url if osie else "") or settings.osie_url).replace("{address}", address).rstrip("/")
    kernel = (osie.kernel if osie else "") or f"{settings.kernel_name}-{arch}"
    initrd = (osie.initrd if osie else "") or f"{settings.initrd_name}-{arch}"
    return InMemoryOs(
        kernel_url=f"{base}/{kernel}",
        initrd_url=f"{base}/{initrd}",
        initrd_name=initrd.rsplit("/", 1)[-1],
        kernel_arguments=_kernel_arguments(hardware, interface, settings, address=address, initrd=initrd),
        retries=settings.retries,
        retry_delay_s=settings.retry_delay_s,
        syslog_host=settings.syslog_host.replace("{address}", address),
        arch=arch,
    )


def _kernel_arguments(
    hardware: Hardware, interface: Interface, settings: NetbootSettings, *, address: str, initrd: str
) -> tuple[str, ...]:
    """Upstream's arguments in upstream's order (reference, "Default (OSIE) script"); HookOS reads them by name."""
    dhcp = interface.dhcp
    mac = normal_mac(dhcp.mac) if dhcp else ""
    facility = hardware.spec.metadata.facility if hardware.spec.metadata else None
    osie = interface.netboot.osie if interface.netboot else None
    arguments = [f"vlan_id={dhcp.vlan_id}"] if dhcp and dhcp.vlan_id else []
    arguments += [
        f"facility={facility.facility_code if facility else ''}",
        f"syslog_host={settings.syslog_host.replace('{address}', address)}",
        f"grpc_authority={settings.grpc_authority.replace('{address}', address)}",
        f"tinkerbell_tls={_word(settings.tls)}",
        f"tinkerbell_insecure_tls={_word(settings.insecure_tls)}",
        f"worker_id={booted_agent_id(hardware, mac)}",
        f"hw_addr={mac}",
        FIXED_KERNEL_ARGUMENTS,
        f"initrd={initrd.rsplit('/', 1)[-1]}",
        *(f"console={console}" for console in settings.consoles),
        *(argument.replace("{address}", address) for argument in settings.extra_kernel_arguments),
        *(osie.kernel_params if osie else ()),
    ]
    return tuple(arguments)


def _scheme(url: str) -> str:
    try:
        return urlsplit(url).scheme
    except ValueError:
        return ""


def _word(value: bool) -> str:
    return "true" if value else "false"
