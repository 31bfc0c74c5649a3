"""grub2disk: make the system on a disk start by itself, with its own GRUB.

`GRUB_INSTALL_PATH` is the partition of the system's root, `FS_TYPE` its file system, `GRUB_DISK` the disk.
`EFI_PARTITION` names the EFI system partition, else it is found on the disk by its type; `KERNEL_ARGUMENTS` are added
to the kernel's command line; both are ours. Loaders are installed for the firmwares that the system has files for: for
UEFI the loader at the path that firmware tries on any disk, so that no variable of the firmware is needed; for BIOS
the disk's first sector. Then the system's own program creates the boot menu.

Source: tinkerbell/actions: grub2disk; GRUB manual, section 4; grub-install(8), grub-mkconfig(8), blkid(8).
"""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ironbell.agent.actions.cexec import bound, passed_on, run_command
from ironbell.agent.actions.context import ActionError, Context
from ironbell.agent.actions.disks import devices, kernel, mounts
from ironbell.agent.actions.disks.devices import Device

_ESP: Final = {"c12a7328-f81f-11d2-ba4b-00a0c93ec93b", "0xef"}
_EFI_TARGETS: Final = ("x86_64-efi", "arm64-efi")
_BIOS_TARGET: Final = "i386-pc"
_BY_UUID: Final = Path("/dev/disk/by-uuid")
_EFI_FOLDER: Final = "/boot/efi"
_SETTINGS: Final = "/etc/default/grub.d/ironbell.cfg"
_PATH: Final = "/usr/sbin:/usr/bin:/sbin:/bin"


def run(context: Context) -> None:
    """Install the boot loaders."""
    device = devices.resolve(context, context.required("GRUB_INSTALL_PATH"))
    disk = devices.resolve(context, context.required("GRUB_DISK"))
    environment = passed_on(context.environment) | {"PATH": _PATH, "LC_ALL": "C"}
    esp = _efi_partition(context, disk)
    _link_by_uuid(device)
    with mounts.mounted(device, context.required("FS_TYPE")) as root:
        efi = [name for name in _EFI_TARGETS if _modules(root, name).is_dir()] if esp is not None else []
        bios = _modules(root, _BIOS_TARGET).is_dir()
        if not efi and not bios:
            raise ActionError(
                f"the system on {device} has no GRUB for this disk: add grub-efi-amd64-bin (and an EFI system "
                "partition) or grub-pc-bin to it"
            )
        settings = "GRUB_DISABLE_OS_PROBER=true\nGRUB_TIMEOUT=1\nGRUB_RECORDFAIL_TIMEOUT=1\n"
        settings += f'GRUB_CMDLINE_LINUX="{_arguments(context)}"\n'
        mounts.write_file(root, _SETTINGS, settings.encode(), mode=0o644, folder_mode=0o755)
        with bound(root), _efi_mounted(root, esp if efi else None):
            for target in efi:
                words = ["grub-install", f"--target={target}", f"--efi-directory={_EFI_FOLDER}", "--removable"]
                run_command([*words, "--no-nvram"], root=root, environment=environment)
            if bios:
                words = ["grub-install", f"--target={_BIOS_TARGET}", disk.path]
                run_command(words, root=root, environment=environment)
            menu = ["grub-mkconfig", "-o", "/boot/grub/grub.cfg"]
            run_command(menu, root=root, environment=environment)
    context.log(f"{disk} starts by GRUB ({', '.join([*efi, *([_BIOS_TARGET] if bios else [])])})")


def _modules(root: Path, target: str) -> Path:
    return mounts.inside(root, f"/usr/lib/grub/{target}")


def _arguments(context: Context) -> str:
    text = context.text("KERNEL_ARGUMENTS")
    if any(character in text for character in '"\\`$\n'):
        raise ActionError("KERNEL_ARGUMENTS must not hold quotes, backslashes, $ or several lines", exit_status=10)
    return text


def _efi_partition(context: Context, disk: Device) -> Device | None:
    """The named partition, or the one on the disk with that type; None if neither exists."""
    if name := context.text("EFI_PARTITION"):
        return devices.resolve(context, name)
    names = [name for name in devices.partitions(disk.kernel_name) if _type(f"/dev/{name}") in _ESP]
    return devices.resolve(context, f"/dev/{names[0]}") if names else None


def _type(path: str) -> str:
    return _tag("PART_ENTRY_TYPE", path).lower()


def _tag(name: str, path: str) -> str:
    words = ["blkid", "--probe", "--output", "value", "--match-tag", name, path]
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()


def _link_by_uuid(device: Device) -> None:
    """Link the root by its UUID, which GRUB needs in /dev; udev may not have seen the new file system."""
    uuid = _tag("UUID", device.path)
    if not uuid:
        return
    place = _BY_UUID / uuid
    place.parent.mkdir(parents=True, exist_ok=True)
    if not place.exists():
        place.unlink(missing_ok=True)
        place.symlink_to(device.path)


@contextlib.contextmanager
def _efi_mounted(root: Path, esp: Device | None) -> Iterator[None]:
    if esp is None:
        yield
        return
    point = mounts.create_folders(root, _EFI_FOLDER, mode=0o755, owner=(0, 0))
    mounts.mount(esp, "vfat", str(point))
    try:
        yield
    finally:
        kernel.unmount(str(point), detach=True)
