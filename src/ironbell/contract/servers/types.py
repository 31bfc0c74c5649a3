"""The Go types of a Hardware's spec, which templates see.

`.Hardware` (deprecated) exposes them as structs with their Go names; `.hardware` is the whole object by its JSON
names, but after a round trip through these types: unknown fields are dropped, and so are zero values.

Source: tinkerbell/tinkerbell: api/v1alpha1/tinkerbell/hardware.go.
"""

from __future__ import annotations

from typing import Any, Final

from ironbell.codec.gotemplate import Field, Int64, Pointer, Struct, StructType, TypedList

# Type: fields as "GoName json_name type", a trailing ! for those that JSON always has.
_TABLE: Final = {
    "HardwareSpec": """
        AgentID agentID string; Auto auto AutoCapabilities; BMCRef bmcRef *TypedLocalObjectReference
        Interfaces interfaces []Interface; References references map:Reference; Metadata metadata *HardwareMetadata
        TinkVersion tinkVersion int64; Disks disks []Disk; Resources resources map:string; UserData userData *string
        VendorData vendorData *string""",
    "AutoCapabilities": "EnrollmentEnabled enrollmentEnabled bool",
    "TypedLocalObjectReference": "APIGroup apiGroup *string !; Kind kind string !; Name name string !",
    "Reference": """
        Namespace namespace string; Name name string; Group group string; Version version string
        Resource resource string""",
    "Disk": "Device device string",
    "Interface": "Netboot netboot *Netboot; Isoboot isoboot *Isoboot; DHCP dhcp *DHCP; DisableDHCP disableDhcp bool",
    "Netboot": """
        AllowPXE allowPXE *bool; AllowWorkflow allowWorkflow *bool; IPXE ipxe *IPXE; OSIE osie *OSIE
        PXELINUX pxelinux *PXELINUX; RPI rpi *RPI""",
    "Isoboot": "SourceISO sourceISO string",
    "IPXE": "URL url string; Contents contents string; Binary binary string",
    "OSIE": "BaseURL baseURL string; Kernel kernel string; Initrd initrd string; KernelParams kernelParams []string",
    "PXELINUX": "Config config string",
    "RPI": "ConfigTxt configTxt string; FirmwarePath firmwarePath string; SerialNum serialNum string !",
    "DHCP": """
        MAC mac string; Hostname hostname string; DomainName domain_name string; LeaseTime lease_time int64
        NameServers name_servers []string; TimeServers time_servers []string; Arch arch string; UEFI uefi bool
        IfaceName iface_name string; IP ip *IP; VLANID vlan_id string
        ClasslessStaticRoutes classless_static_routes []ClasslessStaticRoute
        TFTPServerName tftp_server_name string; BootFileName boot_file_name string""",
    "IP": "Address address string; Netmask netmask string; Gateway gateway string; Family family int64",
    "ClasslessStaticRoute": "DestinationDescriptor destination_descriptor string !; Router router string !",
    "HardwareMetadata": """
        State state string; BondingMode bonding_mode int64; Manufacturer manufacturer *MetadataManufacturer
        Instance instance *MetadataInstance; Custom custom *MetadataCustom; Facility facility *MetadataFacility""",
    "MetadataManufacturer": "ID id string; Slug slug string",
    "MetadataInstance": """
        ID id string; State state string; Hostname hostname string; AllowPxe allow_pxe bool; Rescue rescue bool
        OperatingSystem operating_system *MetadataInstanceOperatingSystem; AlwaysPxe always_pxe bool
        IpxeScriptURL ipxe_script_url string; Ips ips []*MetadataInstanceIP; Userdata userdata string
        CryptedRootPassword crypted_root_password string; Tags tags []string
        Storage storage *MetadataInstanceStorage; SSHKeys ssh_keys []string; NetworkReady network_ready bool""",
    "MetadataInstanceOperatingSystem": """
        Slug slug string; Distro distro string; Version version string; ImageTag image_tag string
        OsSlug os_slug string""",
    "MetadataInstanceIP": """
        Address address string; Netmask netmask string; Gateway gateway string; Family family int64
        Public public bool; Management management bool""",
    "MetadataInstanceStorage": """
        Disks disks []*MetadataInstanceStorageDisk; Raid raid []*MetadataInstanceStorageRAID
        Filesystems filesystems []*MetadataInstanceStorageFilesystem""",
    "MetadataInstanceStorageDisk": """
        Device device string; WipeTable wipe_table bool
        Partitions partitions []*MetadataInstanceStorageDiskPartition""",
    "MetadataInstanceStorageDiskPartition": """
        Label label string; Number number int64; Size size int64; Start start int64; TypeGUID type_guid string""",
    "MetadataInstanceStorageRAID": """
        Name name string; Level level string; Devices devices []string; Spare spare int64""",
    "MetadataInstanceStorageFilesystem": "Mount mount *MetadataInstanceStorageMount",
    "MetadataInstanceStorageMount": """
        Device device string; Format format string; Files files []*MetadataInstanceStorageFile
        Create create *MetadataInstanceStorageMountFilesystemOptions; Point point string""",
    "MetadataInstanceStorageFile": """
        Path path string; Contents contents string; Mode mode int64; UID uid int64; GID gid int64""",
    "MetadataInstanceStorageMountFilesystemOptions": "Force force bool; Options options []string",
    "MetadataCustom": """
        PreinstalledOperatingSystemVersion preinstalled_operating_system_version *MetadataInstanceOperatingSystem
        PrivateSubnets private_subnets []string""",
    "MetadataFacility": """
        PlanSlug plan_slug string; PlanVersionSlug plan_version_slug string; FacilityCode facility_code string""",
}
_PREFIX = "tinkerbell."


def _fields(text: str) -> tuple[Field, ...]:
    parts = [part.split() for part in text.replace("\n", ";").split(";") if part.strip()]
    return tuple(Field(name, json, kind, omit_empty=not always) for name, json, kind, *always in parts)


TYPES: Final = {name: StructType(_PREFIX + name, _fields(text)) for name, text in _TABLE.items()}
"""Struct types by their Go names; field types are in the table's notation."""


def decode(kind: str, value: Any) -> Any:
    """A Go value of a type in the table's notation, from JSON; what has another type counts as absent."""
    if kind.startswith("[]"):
        items = value if isinstance(value, list) else ()
        element = kind[2:]
        return TypedList((decode(element, item) for item in items), elem=_go_name(element), is_nil=value is None)
    if kind.startswith("*"):
        return Pointer(_go_name(kind[1:]), None if value is None else decode(kind[1:], value))
    if kind.startswith("map:"):
        content = value if isinstance(value, dict) else {}
        return {key: decode(kind[4:], item) for key, item in content.items()}
    if kind in TYPES:
        content = value if isinstance(value, dict) else {}
        struct = TYPES[kind]
        return Struct(struct, {field.name: decode(field.type, content.get(field.json)) for field in struct.fields})
    match kind:
        case "string":
            return value if isinstance(value, str) else ""
        case "bool":
            return value if isinstance(value, bool) else False
    return Int64(value if isinstance(value, int) and not isinstance(value, bool) else 0)


def _go_name(kind: str) -> str:
    if kind.startswith("*"):
        return "*" + _go_name(kind[1:])
    return _PREFIX + kind if kind in TYPES else kind
