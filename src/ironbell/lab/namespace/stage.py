"""Process 1 of a machine before it becomes its system: lays out the file tree and hands over.

Shows the machine its own hardware: identity (DMI), disks with serial numbers, the network card, by layers over what the
kernel shows of the host. What a system writes to the kernel's settings beyond its network ends in files of its own.

Source: mount(2), umount2(2), prctl(2), capabilities(7).
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import msgspec

from ironbell.lab.namespace import adaptations, cgroups
from ironbell.lab.namespace.initramfs import unpack
from ironbell.lab.namespace.plan import INTERFACE, Boot, Stage, initramfs

_libc = ctypes.CDLL(None, use_errno=True)
_BIND, _READ_ONLY, _REMOUNT = 4096, 1, 32
_DETACH = 2
_CAPBSET_DROP = 24
# Capabilities that would reach the host: its clock, its modules, its memory and ports.
_FORBIDDEN = {"CAP_SYS_MODULE": 16, "CAP_SYS_RAWIO": 17, "CAP_SYS_TIME": 25}
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "kmsg", "fuse", "net/tun", "loop-control")
_STANDARD = {"fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2", "ptmx": "pts/ptmx"}
_PARTITIONS = 8
_HOST = ".host"
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_SYSTEMD = ("/sbin/init",)
# As the in-memory OS's own first process, but for the device manager: devices are the host's.
_OSIE_INIT = """\
mkdir -p /run/ironbell /run/lock /run/lvm
ip link set lo up
while :; do
    python3 -m ironbell.osie.machine
    echo "ironbell: the boot stage ended with status $?; starting it again"
    sleep 2
done
"""
_OSIE_ENVIRONMENT = {
    "PATH": "/usr/bin:/usr/sbin", "HOME": "/root", "LC_ALL": "C.UTF-8", "TERM": "linux",
    "PYTHONPATH": "/usr/lib/ironbell", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUNBUFFERED": "1",
    "SSL_CERT_FILE": "/etc/ssl/certs/ca-certificates.crt",
}  # fmt: skip


def main() -> None:
    """Become the system. Returns only by an error, which ends the machine."""
    stage = msgspec.json.decode(sys.argv[1], type=Stage)
    boot = stage.boot
    root = Path(boot.folder) / "root"
    root.mkdir(exist_ok=True)
    layers = Path(boot.folder) / "layers"
    layers.mkdir(exist_ok=True)
    _mount("tmpfs", layers, "tmpfs", options="mode=0755")
    if stage.root:
        _mount(stage.root, root, "ext4")
    else:
        _mount("tmpfs", root, "tmpfs", options="mode=0755")
        unpack(initramfs(boot).read_bytes(), root)
    _kernel_views(root, boot, layers, command_line=stage.arguments, is_installed=bool(stage.root))
    _devices(root, boot, is_installed=bool(stage.root))
    _mount("tmpfs", root / "run", "tmpfs", options="mode=0755")
    if stage.root:
        _adapt(root, layers)
    _enter(root)
    _forbid()
    if stage.root:
        os.execve(_SYSTEMD[0], _SYSTEMD, {"container": "ironbell-lab", "PATH": _PATH})  # noqa: S606
    os.execve("/usr/bin/busybox", ("sh", "-c", _OSIE_INIT), _OSIE_ENVIRONMENT)  # noqa: S606


def _kernel_views(root: Path, boot: Boot, layers: Path, *, command_line: str, is_installed: bool) -> None:
    """/proc and /sys."""
    _mount("proc", root / "proc", "proc")
    shown = layers / "cmdline"
    shown.write_text(f"{command_line}\n")
    _bind(shown, root / "proc/cmdline")
    for name, value in adaptations.TUNABLES.items():
        own = layers / name.replace("/", "-")
        own.write_text(f"{value}\n")
        _bind(own, root / "proc/sys" / name)
    mounted = cgroups.host_hierarchies()
    _mount("sysfs", root / "sys", "sysfs")
    _layer(root / "sys/class", layers / "class", _identity(boot))
    _layer(root / f"sys/devices/virtual/net/{INTERFACE}", layers / "nic", {"device/vendor": "0x1af4"})
    _disks(root, boot, is_installed=is_installed)
    _cgroups(root / "sys/fs/cgroup", mounted)
    if is_installed:
        # By this systemd knows that it does not manage the devices, and its network waits for no device manager.
        _mount("", root / "sys", flags=_REMOUNT | _BIND | _READ_ONLY)


def _identity(boot: Boot) -> dict[str, str]:
    serial = boot.uuid[-12:]
    identity = {
        "product_uuid": boot.uuid, "product_serial": serial, "product_name": "Namespace machine",
        "sys_vendor": "Ironbell", "chassis_serial": serial, "chassis_vendor": "Ironbell", "bios_vendor": "Ironbell",
        "bios_version": "stand-in",
    }  # fmt: skip
    return {**{f"dmi/id/{name}": value for name, value in identity.items()}, "tty/console/active": "console"}


def _disks(root: Path, boot: Boot, *, is_installed: bool) -> None:
    """The machine's disks and no others: no action may ever see those of the host.

    Links lead to the kernel's own entries, because partitions change; links to missing partitions lead nowhere.
    The in-memory OS finds them by the machine's names too, by which its agent reports them.
    """
    classes, blocks = root / "sys/class/block", root / "sys/block"
    _mount("tmpfs", classes, "tmpfs", options="mode=0755")
    _mount("tmpfs", blocks, "tmpfs", options="mode=0755")
    for disk in boot.disks:
        name = Path(disk.device).name
        kept = f"/sys/devices/virtual/block/{name}"
        shown = classes / name
        (shown / "device").mkdir(parents=True)
        (shown / "serial").write_text(f"{disk.serial}\n")
        (shown / "device/model").write_text("Namespace disk\n")
        (shown / "device/vendor").write_text("Ironbell\n")
        for entry in Path(kept).iterdir():
            if not entry.name.startswith(name):
                (shown / entry.name).symlink_to(f"{kept}/{entry.name}")
        for partition in (f"{name}p{number}" for number in range(1, _PARTITIONS + 1)):
            (shown / partition).symlink_to(f"{kept}/{partition}")
            (classes / partition).symlink_to(f"{kept}/{partition}")
        (blocks / name).symlink_to(f"../class/block/{name}")
        if not is_installed:
            (classes / disk.name).symlink_to(name)
            (blocks / disk.name).symlink_to(f"../class/block/{name}")


def _layer(place: Path, scratch: Path, files: dict[str, str]) -> None:
    """Lay files over a folder that the kernel makes."""
    upper, work = scratch / "upper", scratch / "work"
    work.mkdir(parents=True)
    for name, content in files.items():
        path = upper / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{content}\n")
    _mount("overlay", place, "overlay", options=f"lowerdir={place},upperdir={upper},workdir={work}")


def _cgroups(folder: Path, mounted: list[cgroups.Hierarchy]) -> None:
    if mounted and mounted[0].fs_type == "cgroup2":
        _mount("cgroup2", folder, "cgroup2")
        return
    _mount("tmpfs", folder, "tmpfs", options="mode=0755")
    for hierarchy in mounted:
        (folder / hierarchy.name).mkdir()
        _mount("cgroup", folder / hierarchy.name, "cgroup", options=hierarchy.options)


def _devices(root: Path, boot: Boot, *, is_installed: bool) -> None:
    """Give an installed system nodes of its own disks; the in-memory OS makes partitions, so it sees them appear."""
    host, place = Path("/dev"), root / "dev"
    _mount("tmpfs", place, "tmpfs", options="mode=0755")
    for name in _DEVICES:
        if (host / name).exists():
            _copy_device(host / name, place / name)
    for name, target in _STANDARD.items():
        (place / name).symlink_to(target)
    if not is_installed:
        (place / _HOST).mkdir(mode=0o700)
        _bind(host, place / _HOST)
    for disk in boot.disks:
        name = Path(disk.device).name
        (place / disk.name).symlink_to(name)
        for number in range(1, _PARTITIONS + 1):
            (place / f"{disk.name}{number}").symlink_to(f"{name}p{number}")
        if is_installed:
            for device in (disk.device, *disk.partitions):
                _copy_device(Path(device), place / Path(device).name)
        else:
            for known in (name, *(f"{name}p{number}" for number in range(1, _PARTITIONS + 1))):
                (place / known).symlink_to(f"{_HOST}/{known}")
    for name in ("pts", "shm"):
        (place / name).mkdir()
    _mount("devpts", place / "pts", "devpts", options="newinstance,ptmxmode=0666,mode=620,gid=5")
    _mount("tmpfs", place / "shm", "tmpfs", options="mode=1777")
    (place / "console").touch()
    _bind(Path(boot.console), place / "console")


def _copy_device(source: Path, target: Path) -> None:
    """Create the same device under another root."""
    target.parent.mkdir(parents=True, exist_ok=True)
    status = source.stat()
    os.mknod(target, status.st_mode, status.st_rdev)
    target.chmod(status.st_mode & 0o7777)


def _adapt(root: Path, layers: Path) -> None:
    """Lay the settings of `adaptations` over those of an installed Kubernetes node."""
    folder = root / adaptations.KUBELET_FOLDER
    if folder.is_dir():
        own = layers / "kubelet"
        own.mkdir()
        (own / adaptations.KUBELET_FILE).write_text(adaptations.KUBELET_SETTINGS)
        _bind(own, folder)
    settings = root / adaptations.CONTAINERD_FILE
    if settings.is_file():
        changed = layers / "containerd.toml"
        changed.write_text(adaptations.containerd_settings(settings.read_text()))
        _bind(changed, settings)
    program = root / adaptations.KUBEADM
    if program.is_file():
        moved = root / adaptations.KUBEADM_MOVED.lstrip("/")
        moved.parent.mkdir(parents=True, exist_ok=True)
        moved.touch()
        _bind(program, moved)
        wrapper = layers / moved.name
        wrapper.write_text(adaptations.KUBEADM_WRAPPER)
        wrapper.chmod(0o755)
        _bind(wrapper, program)


def _enter(root: Path) -> None:
    """Make the tree the root, and the console the standard streams."""
    os.chdir(root)
    subprocess.run(["pivot_root", ".", "mnt"], check=True)
    os.chroot(".")
    os.chdir("/")
    _detach(Path("/mnt"))
    console = os.open("/dev/console", os.O_RDWR | os.O_NOCTTY)
    for number in (0, 1, 2):
        os.dup2(console, number)


def _mount(source: str, target: Path, fs_type: str = "", *, flags: int = 0, options: str = "") -> None:
    """Mount something at an existing folder or file.

    Raises:
        OSError: names the target.
    """
    words = [source.encode(), str(target).encode(), fs_type.encode() or None]
    if _libc.mount(*words, ctypes.c_ulong(flags), options.encode() or None) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{os.strerror(number)}: mount {fs_type or source}", str(target))


def _bind(source: Path, target: Path) -> None:
    """Show a file or folder at another place."""
    _mount(str(source), target, flags=_BIND)


def _detach(target: Path) -> None:
    """Unmount as soon as the mount is not in use any more."""
    if _libc.umount2(str(target).encode(), _DETACH) != 0:
        raise OSError(ctypes.get_errno(), "umount", str(target))


def _forbid() -> None:
    """Drop, for this process and its children, the capabilities that would reach the host."""
    for number in _FORBIDDEN.values():
        _libc.prctl(_CAPBSET_DROP, ctypes.c_ulong(number), 0, 0, 0)


if __name__ == "__main__":
    main()
