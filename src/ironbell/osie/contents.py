"""Contents of the in-memory OS: package names, programs kept from them, and parts that are dropped.

Only data. Programs are named without folder; the libraries that they need are added automatically
(`ironbell.osie.tree`). A program that busybox has is busybox's unless an action needs the real one.
"""

from __future__ import annotations

KERNEL_PACKAGE = {"amd64": "linux-image-amd64", "arm64": "linux-image-arm64"}
# Names as the kernel and iPXE know architectures; served files carry them.
MACHINE_NAME = {"amd64": "x86_64", "arm64": "aarch64"}
PLATFORM_TAG = {"amd64": "x86_64", "arm64": "aarch64"}

PACKAGES = (
    "busybox-static", "ca-certificates", "dmidecode", "dosfstools", "e2fsprogs", "ethtool", "fdisk", "gdisk", "hdparm",
    "iproute2", "kexec-tools", "kmod", "libpython3-stdlib", "lvm2", "mdadm", "mount", "nvme-cli", "parted",
    "python3-minimal", "udev", "util-linux", "xfsprogs", "xz-utils",
)  # fmt: skip

# Real programs, from the packages above.
PROGRAMS = (
    # disks and partitions
    "blkdiscard", "blkid", "blockdev", "dmsetup", "findmnt", "fdisk", "hdparm", "losetup", "lsblk", "lvm", "mdadm",
    "nvme", "parted", "partprobe", "partx", "sfdisk", "sgdisk", "wipefs", "mount", "umount",
    # file systems
    "badblocks", "e2fsck", "e2label", "fsck.fat", "fsfreeze", "fstrim", "mke2fs", "mkfs.fat", "mkfs.xfs", "mkswap",
    "resize2fs", "tune2fs", "xfs_repair",
    # kernel, devices, network
    "bridge", "dmidecode", "ethtool", "ip", "kexec", "kmod", "nsenter", "setpriv", "udevadm", "unshare",
    # the rest
    "xz",
)  # fmt: skip

# Names under which kept programs are also called.
ALIASES = {
    "e2fsck": ("fsck.ext2", "fsck.ext3", "fsck.ext4"),
    "fsck.fat": ("fsck.vfat", "dosfsck"),
    "kmod": ("depmod", "insmod", "lsmod", "modinfo", "modprobe", "rmmod"),
    "lvm": (
        "lvchange", "lvcreate", "lvremove", "lvs", "pvcreate", "pvremove", "pvs", "vgchange", "vgcreate", "vgremove",
        "vgs", "vgscan", "pvscan",
    ),
    "mke2fs": ("mkfs.ext2", "mkfs.ext3", "mkfs.ext4"),
    "mkfs.fat": ("mkfs.vfat", "mkdosfs"),
    "xz": ("unxz", "xzcat"),
}  # fmt: skip

# Names that link to busybox, where no real program has the name.
APPLETS = (
    "[", "acpid", "arping", "ash", "awk", "base64", "basename", "bunzip2", "bzcat", "bzip2", "cat", "chgrp", "chmod",
    "chown", "chroot", "clear", "cmp", "cp", "cut", "date", "dd", "df", "diff", "dirname", "dmesg", "du", "echo",
    "egrep", "env", "expr", "false", "fgrep", "find", "free", "getty", "grep", "gunzip", "gzip", "head", "hexdump",
    "hostname", "hwclock", "id", "kill", "killall", "less", "ln", "login", "ls", "md5sum", "mkdir", "mkfifo", "mknod",
    "mktemp", "more", "mv", "nc", "netstat", "nproc", "nslookup", "od", "pidof", "ping", "printf", "ps", "pwd",
    "readlink", "realpath", "reset", "rm", "rmdir", "sed", "seq", "setsid", "sh", "sha256sum", "sha512sum", "sleep",
    "sort", "stat", "strings", "stty", "sync", "sysctl", "tail", "tar", "tee", "test", "time", "timeout", "top",
    "touch", "tr", "true", "truncate", "tty", "udhcpc", "uname", "uniq", "unzip", "uptime", "usleep", "vi", "watch",
    "wc", "wget", "which", "xargs", "xxd", "yes", "zcat",
)  # fmt: skip

UDEV_RULES = (
    "50-firmware.rules", "50-udev-default.rules", "55-dm.rules", "60-block.rules", "60-cdrom_id.rules",
    "60-persistent-storage-dm.rules", "60-persistent-storage.rules", "60-serial.rules", "63-md-raid-arrays.rules",
    "64-btrfs.rules", "75-net-description.rules", "80-drivers.rules", "95-dm-notify.rules",
)  # fmt: skip
UDEV_HELPERS = ("ata_id", "cdrom_id", "scsi_id")

# Parts of Python's library that neither the agent nor what it imports touches.
PYTHON_UNUSED = (
    "__phello__", "config-*", "ctypes/macholib", "ctypes/test", "curses", "dbm", "distutils", "ensurepip", "idlelib",
    "lib2to3", "msilib", "pydoc_data", "sqlite3", "test", "tkinter", "turtledemo", "unittest", "venv", "wsgiref",
    "xmlrpc", "turtle.py", "doctest.py", "pdb.py", "pydoc.py", "mailbox.py", "imaplib.py", "nntplib.py", "smtpd.py",
    "lib-dynload/_curses*", "lib-dynload/_dbm*", "lib-dynload/_gdbm*", "lib-dynload/_sqlite3*",
    "lib-dynload/_test*", "lib-dynload/_xxtestfuzz*", "lib-dynload/_codecs_*", "lib-dynload/audioop*",
    "lib-dynload/nis*", "lib-dynload/ossaudiodev*", "lib-dynload/readline*", "lib-dynload/xxlimited*",
    "encodings/big5*", "encodings/cp[0-35-9]*", "encodings/euc_*", "encodings/gb*", "encodings/hz*",
    "encodings/iso2022*", "encodings/johab*", "encodings/mac_*", "encodings/shift*",
)  # fmt: skip

# Loaded by the C library or Python at run time, so no file's header names them.
LOADED_LIBRARIES = ("libgcc_s.so.1", "libnss_files.so.2", "libnss_dns.so.2")

CONFIGURATION = ("etc/mke2fs.conf", "etc/lvm/lvm.conf", "usr/share/dosfstools")

# Distributions that the agent imports, as they are installed beside this program.
AGENT_DISTRIBUTIONS = (
    "msgspec", "grpclib", "h2", "hpack", "hyperframe", "multidict", "protobuf", "urllib3", "isal", "backports.zstd",
)  # fmt: skip
AGENT_PACKAGES = ("agent", "base", "codec", "osie/machine")
