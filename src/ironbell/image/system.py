"""Turns freshly installed packages into a system that boots: our files, initramfs, boot menu, boot loaders, sealing.

Failure modes: `BuildError` of the program that failed inside the tree.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from ironbell.image import contents
from ironbell.image.debian import BuildError, run

_OVERLAY = Path(__file__).parent / "files/overlay"
_MENU = """\
serial --unit=0 --speed=115200
terminal_input serial console
terminal_output serial console
set timeout=0
set default=0
menuentry "Debian GNU/Linux" {{
    search --no-floppy --fs-uuid --set=root {root_id}
    linux /vmlinuz root=UUID={root_id} {arguments}
    initrd /initrd.img
}}
"""
_EFI_CONFIGURATION = """\
search --no-floppy --fs-uuid --set=root {root_id}
set prefix=($root)/boot/grub
configfile ($root)/boot/grub/grub.cfg
"""


@dataclass(frozen=True)
class Loaders:
    """Boot loaders built for one disk: the EFI program's path, and the two parts for BIOS."""

    efi: Path
    boot: bytes
    core: bytes


def configure(tree: Path, *, is_virtual: bool, root_id: str) -> str:
    """Turn the tree into a system that boots from a file system with this id; return the kernel's version."""
    shutil.copytree(_OVERLAY, tree, dirs_exist_ok=True)
    (tree / "etc/fstab").write_text(f"UUID={root_id} / ext4 defaults,errors=remount-ro,x-systemd.growfs 0 1\n")
    (tree / "etc/default/locale").write_text("LANG=C.UTF-8\n")
    if not (tree / "usr/sbin/sshd").exists():
        settings = tree / "etc/cloud/cloud.cfg"
        settings.write_text(without_modules(settings.read_text(), contents.SSH_MODULES))
    _configure_initramfs(tree, is_virtual=is_virtual)
    kernel = _kernel_version(tree)
    run(["chroot", str(tree), "update-initramfs", "-c" if not _has_initramfs(tree, kernel) else "-u", "-k", kernel])
    _link_kernel(tree, kernel)
    menu = tree / "boot/grub/grub.cfg"
    menu.parent.mkdir(parents=True, exist_ok=True)
    menu.write_text(_MENU.format(root_id=root_id, arguments=contents.KERNEL_ARGUMENTS))
    run(["systemctl", f"--root={tree}", "--quiet", "enable", *contents.ENABLED_UNITS])
    run(["systemctl", f"--root={tree}", "--quiet", "mask", *contents.MASKED_UNITS])
    _seal(tree)
    return kernel


def without_modules(settings: str, names: tuple[str, ...]) -> str:
    """cloud-init's settings without some of its modules: without a server for SSH they only warn, at every boot."""
    lines = settings.splitlines(keepends=True)
    return "".join(line for line in lines if line.strip().removeprefix("- ") not in names)


def build_loaders(tree: Path, *, scratch: Path, root_id: str) -> Loaders:
    """Build both boot loaders with the tree's own GRUB."""
    work = tree / "boot/loaders"
    work.mkdir()
    (work / "early.cfg").write_text(_EFI_CONFIGURATION.format(root_id=root_id))
    mkimage = ["chroot", str(tree), "grub-mkimage"]
    bios = ["-O", "i386-pc", "-p", "(,gpt3)/boot/grub", "-o", "/boot/loaders/core.img"]
    efi = ["-O", "x86_64-efi", "-p", "/boot/grub", "-c", "/boot/loaders/early.cfg", "-o", "/boot/loaders/boot.efi"]
    run([*mkimage, *bios, *contents.BIOS_GRUB_MODULES])
    run([*mkimage, *efi, *contents.EFI_GRUB_MODULES])
    shutil.copytree(tree / "usr/lib/grub/i386-pc", tree / "boot/grub/i386-pc", ignore=shutil.ignore_patterns("*.img"))
    shutil.move(work / "boot.efi", scratch / "boot.efi")
    loaders = Loaders(
        efi=scratch / "boot.efi",
        boot=(tree / "usr/lib/grub/i386-pc/boot.img").read_bytes(),
        core=(work / "core.img").read_bytes(),
    )
    shutil.rmtree(work)
    return loaders


def _configure_initramfs(tree: Path, *, is_virtual: bool) -> None:
    """Include a virtual machine's few drivers by name, and on a real server all drivers."""
    kind = "list" if is_virtual else "most"
    with (tree / "etc/initramfs-tools/conf.d/ironbell").open("a") as stream:
        stream.write(f"MODULES={kind}\n")
    if is_virtual:
        (tree / "etc/initramfs-tools/modules").write_text("\n".join(contents.INITRAMFS_MODULES) + "\n")


def _kernel_version(tree: Path) -> str:
    kernels = sorted((tree / "boot").glob("vmlinuz-*"))
    if len(kernels) != 1:
        raise BuildError(f"expected one kernel in the image, found {[path.name for path in kernels]}")
    return kernels[0].name.removeprefix("vmlinuz-")


def _has_initramfs(tree: Path, kernel: str) -> bool:
    return (tree / f"boot/initrd.img-{kernel}").exists()


def _link_kernel(tree: Path, kernel: str) -> None:
    """The names that the boot menu uses; Debian's kernel packages keep them up to date afterwards."""
    for name in ("vmlinuz", "initrd.img"):
        link = tree / name
        link.unlink(missing_ok=True)
        link.symlink_to(f"boot/{name}-{kernel}")


def _seal(tree: Path) -> None:
    """Remove caches, and all that every machine must create for itself."""
    for name in contents.REMOVED:
        path = tree / name
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    for name in contents.KEPT_FOLDERS:
        (tree / name).mkdir(parents=True, exist_ok=True)
    for path in (*tree.glob("etc/ssh/ssh_host_*"), *tree.glob("var/log/*.log")):
        path.unlink()
    (tree / "etc/machine-id").write_text("")
    (tree / "etc/hostname").write_text("localhost\n")
    (tree / "etc/resolv.conf").symlink_to("/run/systemd/resolve/stub-resolv.conf")
