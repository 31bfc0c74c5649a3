"""The host's tasks as a Container Linux Config.

kubeadm runs from a unit, once: its configuration is moved away at the end. Defects of upstream's template are
corrected: a boolean that is false has an effect (`layout`, `ntp.enabled`), `overwrite` may be unset, a file's
permissions are octal with or without a leading zero, and units of mounts have the names that systemd requires.

Source: kubernetes-sigs/cluster-api: bootstrap/kubeadm/pkg/ignition/{ignition,clc/clc}.go.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from typing import Final

from ironbell.contract.clusters.bootstrap import SENTINEL
from ironbell.controllers.kubeadm.config.ignition.convert import IgnitionError
from ironbell.controllers.kubeadm.config.rendering.userdata import Part, Role, UserData, WriteFile, repeated
from ironbell.kube.decision import Fields

CONFIG_PATH: Final = "/etc/kubeadm.yml"
SCRIPT_PATH: Final = "/etc/kubeadm.sh"
_UNIT: Final = f"""\
[Unit]
Description=kubeadm
ConditionPathExists={CONFIG_PATH}
After=network.target
[Service]
Type=oneshot
ExecStart=/bin/bash {SCRIPT_PATH}
[Install]
WantedBy=multi-user.target
"""
_SSHD: Final = """\
Subsystem sftp internal-sftp
ClientAliveInterval 180
UseDNS no
UsePAM yes
PrintLastLog no
PrintMotd no

Match User {users}
  PasswordAuthentication yes
"""
_NTP: Final = """\
{servers}

restrict default nomodify nopeer noquery notrap limited kod
restrict 127.0.0.1
restrict [::1]
"""
_MOUNT: Final = """\
[Unit]
Description = Mount {label}

[Mount]
What={device}
Where={where}
Options={options}

[Install]
WantedBy=multi-user.target
"""
_PLAIN: Final = re.compile(r"[A-Za-z0-9:_.]")


def container_linux_config(data: UserData) -> Fields:
    """Return the config.

    Raises:
        IgnitionError: a file or mount is not valid.
    """
    setup = data.disk_setup or {}
    return {
        "passwd": {"users": [_user(user) for user in data.users]},
        "systemd": {"units": [*_units(data)]},
        "storage": {
            "disks": [_disk(partition) for partition in setup.get("partitions", ())],
            "filesystems": [_filesystem(filesystem) for filesystem in setup.get("filesystems", ())],
            "files": [*_files(data)],
        },
    }


def mount_unit(path: str) -> str:
    """Return the name that systemd requires for the unit of a mount (`systemd-escape --path --suffix=mount`)."""
    parts = [part for part in path.split("/") if part]
    escaped = ["".join(_escaped(char) for char in part.encode()) for part in parts]
    name = "-".join(escaped) or "-"
    hidden = r"\x2e"
    return f"{hidden + name[1:] if name.startswith('.') else name}.mount"


def _escaped(byte: int) -> str:
    char = chr(byte)
    return char if _PLAIN.fullmatch(char) else f"\\x{byte:02x}"


def _user(user: Part) -> Fields:
    groups = user.get("groups", "")
    return {
        "name": user.get("name", ""),
        "gecos": user.get("gecos"),
        "groups": groups.split(", ") if groups else [],
        "home_dir": user.get("homeDir"),
        "shell": user.get("shell"),
        "password_hash": user.get("passwd"),
        "primary_group": user.get("primaryGroup"),
        "ssh_authorized_keys": user.get("sshAuthorizedKeys"),
    }


def _units(data: UserData) -> Iterator[Fields]:
    yield {"name": "kubeadm.service", "enabled": True, "contents": _UNIT}
    if (data.ntp or {}).get("enabled"):
        yield {"name": "ntpd.service", "enabled": True}
    setup = data.disk_setup or {}
    devices = {item.get("label", ""): item.get("device", "") for item in setup.get("filesystems", ())}
    for number, mount in enumerate(data.mounts):
        if len(mount) < 2:
            raise IgnitionError(f"spec.mounts[{number}] needs a filesystem's label and a path")
        label, where, *options = mount
        if label not in devices:
            raise IgnitionError(f"spec.mounts[{number}]: no filesystem of spec.diskSetup has the label {label!r}")
        contents = _MOUNT.format(label=label, device=devices[label], where=where, options=",".join(options))
        yield {"name": mount_unit(where), "enabled": True, "contents": contents}


def _disk(partition: Part) -> Fields:
    return {
        "device": partition.get("device", ""),
        "wipe_table": bool(partition.get("overwrite")),
        "partitions": [{}] if partition.get("layout") else [],
    }


def _filesystem(filesystem: Part) -> Fields:
    label = filesystem.get("label", "")
    return {
        "name": label,
        "mount": {
            "device": filesystem.get("device", ""),
            "format": filesystem.get("filesystem", ""),
            "wipe_filesystem": bool(filesystem.get("overwrite")),
            "label": label,
            "options": filesystem.get("extraOpts"),
        },
    }


def _files(data: UserData) -> Iterator[Fields]:
    for user in data.users:
        if user.get("sudo"):
            yield _inline(f"/etc/sudoers.d/{user['name']}", 0o600, f"{user['name']} {user['sudo']}\n")
    by_password = [user.get("name", "") for user in data.users if user.get("lockPassword") is False]
    if by_password:
        yield _inline("/etc/ssh/sshd_config", 0o600, _SSHD.format(users=",".join(by_password)))
    for number, file in enumerate(data.files):
        yield _file(number, file)
    yield _inline(SCRIPT_PATH, 0o700, _script(data))
    yield _inline(CONFIG_PATH, 0o600, _clipped("---\n" + "\n---\n".join(data.documents)))
    servers = (data.ntp or {}).get("servers")
    if servers and (data.ntp or {}).get("enabled"):
        yield _inline("/etc/ntp.conf", 0o644, _NTP.format(servers="\n".join(f"server {name}" for name in servers)))


def _inline(path: str, mode: int, content: str) -> Fields:
    return {"path": path, "mode": mode, "contents": {"inline": content}}


def _file(number: int, file: WriteFile) -> Fields:
    user, _, group = file.owner.partition(":")
    written: Fields = {
        "path": file.path,
        "mode": _mode(number, file.permissions),
        "contents": {"inline": _content(number, file)},
    }
    if user.strip():
        written["user"] = {"name": user.strip()}
    if group.strip():
        written["group"] = {"name": group.strip()}
    return written


def _mode(number: int, permissions: str) -> int | None:
    try:
        return int(permissions, 8) if permissions else None
    except ValueError:
        raise IgnitionError(f"spec.files[{number}].permissions {permissions!r} is not an octal number") from None


def _content(number: int, file: WriteFile) -> str:
    if file.encoding != "base64":
        return _clipped(file.content)
    try:
        return base64.b64decode(file.content).decode("utf-8", "surrogateescape")
    except binascii.Error:
        raise IgnitionError(f"spec.files[{number}].content is not valid base64") from None


def _clipped(text: str) -> str:
    """Return text with one final line break, as in a YAML block; empty text stays empty."""
    stripped = text.rstrip("\n")
    return f"{stripped}\n" if stripped else ""


def _script(data: UserData) -> str:
    verb = "init" if data.role is Role.INIT else "join"
    lines = [
        "#!/bin/bash",
        "set -e",
        "",
        *data.pre_kubeadm_commands,
        "",
        repeated(f"kubeadm {verb} --config {CONFIG_PATH} {data.verbosity_flag}", data.join_attempts),
        f"mkdir -p /run/cluster-api && echo success > {SENTINEL}",
        f"mv {CONFIG_PATH} /tmp/",
        "",
        *data.post_kubeadm_commands,
    ]
    return _clipped("\n".join(lines))
