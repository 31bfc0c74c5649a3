"""Selects the kernel modules of the in-memory OS.

These are all that a server may need to reach its network and its disks and to report its hardware; none for desktops,
sound, radio or measuring. Modules are chosen by folder of the kernel's source tree, then their dependencies are added,
so that a new driver of a kept kind is included without a change here.

Source: kmod: modules.dep(5); the folder layout of the Linux kernel.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

# Folders or modules below /lib/modules/VERSION/kernel that are kept as a whole.
KEPT = (
    "arch",
    "block",
    "crypto",
    "drivers/acpi",
    "drivers/ata",
    "drivers/block",
    "drivers/cdrom",
    "drivers/char/hw_random",
    "drivers/char/ipmi",
    "drivers/char/tpm",
    "drivers/dax",
    "drivers/dca",
    "drivers/firmware",
    "drivers/hid/hid-generic",
    "drivers/hid/hid",
    "drivers/hid/usbhid",
    "drivers/hid/hid-hyperv",
    "drivers/hv",
    "drivers/i2c/busses/i2c-i801",
    "drivers/input/evdev",
    "drivers/input/keyboard/atkbd",
    "drivers/input/serio",
    "drivers/md",
    "drivers/message/fusion",
    "drivers/mfd",
    "drivers/misc/enclosure",
    "drivers/mmc",
    "drivers/net/bonding",
    "drivers/net/dummy",
    "drivers/net/ethernet",
    "drivers/net/fjes",
    "drivers/net/hyperv",
    "drivers/net/macvlan",
    "drivers/net/mdio",
    "drivers/net/pcs",
    "drivers/net/phy",
    "drivers/net/tun",
    "drivers/net/usb",
    "drivers/net/veth",
    "drivers/net/virtio_net",
    "drivers/net/vmxnet3",
    "drivers/net/xen-netfront",
    "drivers/nvdimm",
    "drivers/nvme",
    "drivers/nvmem",
    "drivers/pci",
    "drivers/pinctrl",
    "drivers/ptp",
    "drivers/scsi",
    "drivers/target/target_core_mod",
    "drivers/thunderbolt",
    "drivers/usb/common",
    "drivers/usb/core",
    "drivers/usb/host",
    "drivers/usb/roles",
    "drivers/usb/serial",
    "drivers/usb/storage",
    "drivers/usb/typec",
    "drivers/virtio",
    "drivers/watchdog/iTCO_wdt",
    "drivers/watchdog/softdog",
    "drivers/xen",
    "fs/btrfs",
    "fs/efivarfs",
    "fs/exfat",
    "fs/ext4",
    "fs/fat",
    "fs/fuse",
    "fs/isofs",
    "fs/jbd2",
    "fs/nls/nls_ascii",
    "fs/nls/nls_cp437",
    "fs/nls/nls_iso8859-1",
    "fs/nls/nls_utf8",
    "fs/ntfs3",
    "fs/overlayfs",
    "fs/squashfs",
    "fs/udf",
    "fs/xfs",
    "lib",
    "net/802",
    "net/8021q",
    "net/core",
    "net/llc",
    "net/packet",
    "net/tls",
)

# Parts of the above that no server in a rack boots from or is reached by.
LEFT_OUT = (
    "arch/x86/kvm",
    "arch/x86/events",
    "drivers/acpi/acpi_video",
    "drivers/block/aoe",
    "drivers/block/drbd",
    "drivers/block/rbd",
    "drivers/block/rnbd",
    "drivers/hv/hv_balloon",
    "drivers/mfd/intel_soc_pmic_bxtwc",
    "drivers/mmc/host/sdhci-acpi",
    "drivers/net/ethernet/dec/tulip/xircom_cb",
    "drivers/net/ethernet/mellanox/mlxsw",
    "drivers/pinctrl/cirrus",
    "drivers/scsi/bnx2i",
    "drivers/scsi/pcmcia",
    "drivers/usb/host/u132-hcd",
    "drivers/usb/serial/keyspan",
    "lib/test_",
    "lib/kunit",
    "net/core/pktgen",
)


def is_kept(name: str) -> bool:
    """Return whether a module is kept for its own sake. `name` is its path below `kernel/`; a suffix is ignored."""
    stem = _stem(name)
    return any(_is_below(stem, folder) for folder in KEPT) and not any(
        stem.startswith(folder) if folder.endswith("_") else _is_below(stem, folder) for folder in LEFT_OUT
    )


def parse_dependencies(text: str) -> dict[str, tuple[str, ...]]:
    """The content of `modules.dep`: each module's path with the paths of its dependencies."""
    pairs = (line.partition(":") for line in text.splitlines() if ":" in line)
    return {name.strip(): tuple(rest.split()) for name, _, rest in pairs}


def parse_soft_dependencies(text: str) -> dict[str, tuple[str, ...]]:
    """The content of `modules.softdep`: names of modules that another loads if they are present."""
    soft_dependencies: dict[str, tuple[str, ...]] = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) > 2 and words[0] == "softdep":
            names = tuple(word for word in words[2:] if not word.endswith(":"))
            soft_dependencies[words[1]] = soft_dependencies.get(words[1], ()) + names
    return soft_dependencies


def select(dependencies: Mapping[str, tuple[str, ...]], soft: Mapping[str, tuple[str, ...]]) -> set[str]:
    """Paths (as in `modules.dep`) of all modules to carry: the kept ones and their dependencies, hard or soft."""
    by_name = {module_name(path): path for path in dependencies}
    pending = [path for path in dependencies if is_kept(path.removeprefix("kernel/"))]
    kept: set[str] = set()
    while pending:
        path = pending.pop()
        if path in kept:
            continue
        kept.add(path)
        pending += dependencies.get(path, ())
        pending += _present(soft.get(module_name(path), ()), by_name)
    return kept


def module_name(path: str) -> str:
    """A module's name as the kernel shows it."""
    return PurePosixPath(_stem(path)).name.replace("-", "_")


def _present(names: Iterable[str], by_name: Mapping[str, str]) -> list[str]:
    normal = (name.replace("-", "_") for name in names)
    return [by_name[name] for name in normal if name in by_name]


def _stem(path: str) -> str:
    for suffix in (".xz", ".zst", ".gz"):
        path = path.removesuffix(suffix)
    return path.removesuffix(".ko")


def _is_below(stem: str, folder: str) -> bool:
    return stem == folder or stem.startswith(folder + "/")
