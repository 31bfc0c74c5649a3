"""Contents of the disk image: packages, services that stay off, files that are left out. Only data."""

from __future__ import annotations

PACKAGES = (
    "ca-certificates", "cloud-guest-utils", "cloud-init", "dbus", "e2fsprogs", "gdisk", "grub-efi-amd64-bin",
    "grub-pc-bin", "grub2-common", "initramfs-tools", "iproute2", "iputils-ping", "kmod", "less", "libpam-systemd",
    "netbase", "procps", "sudo", "systemd", "systemd-resolved", "systemd-sysv", "systemd-timesyncd", "udev", "zstd",
)  # fmt: skip

KERNEL_PACKAGES = {"cloud": "linux-image-cloud-amd64", "server": "linux-image-amd64"}

# Modules for the first stage of a virtual machine's boot, beside what the kernel has built in.
INITRAMFS_MODULES = (
    "virtio_pci", "virtio_blk", "virtio_scsi", "nvme", "sd_mod", "ahci", "ata_piix", "xen_blkfront", "hv_storvsc",
    "ext4",
)  # fmt: skip

# Timers and services that only cost time on a machine that is replaced rather than maintained.
MASKED_UNITS = (
    "apt-daily.timer", "apt-daily-upgrade.timer", "dpkg-db-backup.timer", "e2scrub_all.timer", "e2scrub_reap.service",
    "man-db.timer", "systemd-pcrphase.service", "systemd-pcrphase-initrd.service", "systemd-pcrphase-sysinit.service",
    "cloud-init-hotplugd.socket", "systemd-network-generator.service", "systemd-binfmt.service",
    "proc-sys-fs-binfmt_misc.automount",
)  # fmt: skip
SSH_MODULES = ("ssh", "ssh-authkey-fingerprints")
ENABLED_UNITS = ("systemd-networkd.service", "systemd-networkd-wait-online.service", "systemd-resolved.service")

EXCLUDED_PATHS = (
    "/usr/share/man/*", "/usr/share/doc/*", "/usr/share/info/*", "/usr/share/locale/*", "/usr/share/lintian/*",
    "/usr/share/gtk-doc/*", "/usr/share/bug/*",
)  # fmt: skip
INCLUDED_PATHS = ("/usr/share/doc/*/copyright",)

# Emptied or removed last: caches, and what must differ between machines.
REMOVED = (
    "etc/cloud/cloud.cfg.d/90_dpkg.cfg", "etc/hostname", "etc/resolv.conf", "etc/apt/sources.list.d/0000sources.list",
    "etc/apt/apt.conf.d/99mmdebstrap", "var/lib/cloud", "var/lib/systemd/random-seed", "var/lib/dbus/machine-id",
    "var/cache/apt", "var/lib/apt/lists", "var/cache/debconf/templates.dat-old", "var/cache/debconf/config.dat-old",
    "var/cache/ldconfig", "var/log/apt", "var/log/dpkg.log", "var/log/alternatives.log", "var/log/bootstrap.log",
    "usr/share/grub", "usr/lib/grub/x86_64-efi-signed",
)  # fmt: skip
KEPT_FOLDERS = ("var/cache/apt/archives/partial", "var/lib/apt/lists/partial", "var/log/apt")

KERNEL_ARGUMENTS = "ro console=tty0 console=ttyS0,115200 net.ifnames=0 quiet loglevel=3"

BIOS_GRUB_MODULES = ("biosdisk", "part_gpt", "ext2")
EFI_GRUB_MODULES = (
    "all_video", "configfile", "echo", "efi_gop", "ext2", "fat", "linux", "normal", "part_gpt", "search",
    "search_fs_uuid", "serial", "terminal", "test", "gzio", "reboot", "halt",
)  # fmt: skip
