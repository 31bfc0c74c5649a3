"""The network side of a Hardware: DHCP data and netboot settings of each interface.

Names inside `dhcp` are snake_case on the wire, as upstream has them.

Source: tinkerbell/tinkerbell: api/v1alpha1/tinkerbell/hardware.go.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import field

from ironbell.api.crd.markers import Int64, Rule, Schema, required
from ironbell.api.meta import Model, SnakeModel

_OCTET = "(25[0-5]|2[0-4][0-9]|[01]?[0-9][0-9]?)"
_IPV4 = rf"({_OCTET}\.){{3}}{_OCTET}"
_VLAN_TAIL = "[1-3][0-9][0-9][0-9]|40([0-8][0-9]|9[0-6])"


class Ip(SnakeModel, frozen=True):
    """Address that DHCP hands out."""

    address: Annotated[str, Schema("IPv4 address of the interface.")] = ""
    netmask: Annotated[str, Schema("Netmask in dotted form.")] = ""
    gateway: Annotated[str, Schema("Default gateway.")] = ""
    family: Annotated[Int64, Schema("4 or 6; the address itself decides.")] = 0


class ClasslessStaticRoute(SnakeModel, frozen=True):
    """One route that DHCP option 121 hands out."""

    destination_descriptor: Annotated[
        str, Schema("Destination network in CIDR form.", pattern=rf"^{_IPV4}/(3[0-2]|[12]?[0-9])$")
    ] = required(str)
    router: Annotated[str, Schema("Address of the router to that network.", pattern=rf"^{_IPV4}$")] = required(str)


class Dhcp(SnakeModel, frozen=True):
    """DHCP answers to the interface."""

    schema_: ClassVar[Schema] = Schema(
        rules=(
            Rule(
                '(has(self.tftp_server_name) && self.tftp_server_name != "") == '
                '(has(self.boot_file_name) && self.boot_file_name != "")',
                "TFTPServerName and BootFileName must both be specified or both be empty",
            ),
        )
    )

    mac: Annotated[
        str, Schema("MAC address in lower case, with colons.", pattern="([0-9a-f]{2}[:]){5}([0-9a-f]{2})")
    ] = ""
    hostname: Annotated[str, Schema("Host name (option 12).")] = ""
    domain_name: Annotated[str, Schema("Domain name (option 15) and only search domain (option 119).")] = ""
    lease_time: Annotated[Int64 | None, Schema("Seconds that the lease holds; a week where it is not given.")] = None
    name_servers: Annotated[list[str], Schema("Addresses of DNS servers (option 6).")] = []
    time_servers: Annotated[list[str], Schema("Addresses of NTP servers (option 42).")] = []
    arch: Annotated[str, Schema("Architecture for the boot script: x86_64 (also where it is empty) or aarch64.")] = ""
    uefi: Annotated[bool, Schema("The machine boots in UEFI mode.")] = False
    iface_name: Annotated[str, Schema("Name of the interface in the installed system.")] = ""
    ip: Annotated[Ip | None, Schema("Address that the interface gets.")] = None
    vlan_id: Annotated[
        str,
        Schema(
            "VLAN that the in-memory OS uses on the interface.",
            pattern=rf"^(([0-9][0-9]{{0,2}}|{_VLAN_TAIL})(,[1-9][0-9]{{0,2}}|{_VLAN_TAIL})*)$",
        ),
    ] = ""
    classless_static_routes: Annotated[list[ClasslessStaticRoute], Schema("Further routes (option 121).")] = []
    tftp_server_name: Annotated[str, Schema("TFTP server (option 66) instead of ours; needs boot_file_name.")] = ""
    boot_file_name: Annotated[str, Schema("Boot file (option 67) instead of ours; needs tftp_server_name.")] = ""


class Ipxe(Model, frozen=True):
    """iPXE settings of the interface, in place of the default script."""

    url: Annotated[str, Schema("Address of a script to run instead of ours.")] = ""
    contents: Annotated[str, Schema("Script to run instead of ours, where no url is given.")] = ""
    binary: Annotated[str, Schema("iPXE binary to boot instead of the one for the machine's architecture.")] = ""


class Osie(Model, frozen=True):
    """In-memory OS that the interface boots, in place of the default one."""

    base_url: Annotated[str, Schema("Address of the folder that holds kernel and initrd.")] = field(
        default="", name="baseURL"
    )
    kernel: Annotated[str, Schema("File name of the kernel.")] = ""
    initrd: Annotated[str, Schema("File name of the initial file system.")] = ""
    kernel_params: Annotated[list[str], Schema("Kernel arguments added after all others.")] = []


class Pxelinux(Model, frozen=True):
    """PXELINUX settings of the interface."""

    config: Annotated[str, Schema("Text of the configuration file.")] = ""


class RaspberryPi(Model, frozen=True):
    """Files for a Raspberry Pi's boot ROM."""

    serial_num: Annotated[str, Schema("Serial number, in full or its last eight characters.")] = required(str)
    firmware_path: Annotated[str, Schema("Folder of the firmware, below the asset folder.")] = ""
    config_txt: Annotated[str, Schema("Text served as config.txt.")] = ""


class Netboot(Model, frozen=True):
    """Netboot settings of the interface."""

    allow_pxe: Annotated[bool | None, Schema("Netboot is allowed; not given is no.")] = field(
        default=None, name="allowPXE"
    )
    allow_workflow: Annotated[bool | None, Schema("The machine may run Workflows.")] = None
    ipxe: Annotated[Ipxe | None, Schema("Own iPXE script or binary.")] = None
    osie: Annotated[Osie | None, Schema("Own in-memory OS.")] = None
    pxelinux: Annotated[Pxelinux | None, Schema("Own PXELINUX configuration.")] = None
    rpi: Annotated[RaspberryPi | None, Schema("Raspberry Pi netboot.")] = None


class IsoBoot(Model, frozen=True):
    """Boot from an ISO image as virtual media."""

    source_iso: Annotated[str, Schema("Address of the image, instead of the site's.", format="uri")] = field(
        default="", name="sourceISO"
    )


class Interface(Model, frozen=True):
    """One network interface."""

    dhcp: Annotated[Dhcp | None, Schema("DHCP answers to the interface.")] = None
    disable_dhcp: Annotated[bool, Schema("Never answer DHCP here, in any mode.", default=False)] = False
    isoboot: Annotated[IsoBoot | None, Schema("Boot from an ISO image.")] = None
    netboot: Annotated[Netboot | None, Schema("Whether and how the interface netboots.")] = None
