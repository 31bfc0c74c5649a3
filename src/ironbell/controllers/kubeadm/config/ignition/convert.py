"""Conversion of Container Linux Configs to Ignition: the same values under other names.

A table lists for every object its fields, and their names in Ignition. Fields that are not in it are reported and left
out. The sections for Flatcar's own units (etcd, flannel, update, docker, locksmith) are rejected: they depend on the
platform. Their units can be written under `systemd`.

Source: flatcar/container-linux-config-transpiler: config/types.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias
from urllib.parse import quote

from ironbell.base.errors import IronbellError, Retry
from ironbell.kube.decision import Fields


class IgnitionError(IronbellError):
    """The spec cannot be expressed in Ignition. The message names the field, and never contains a value."""

    reason, retry = "IgnitionUnusable", Retry.NEVER


VERSION: Final = "2.3.0"
_UNRESERVED: Final = "!~*'()"
"""Characters that upstream's library does not escape in data URLs, in addition to those of `quote`."""
_UNSUPPORTED: Final = ("etcd", "flannel", "update", "docker", "locksmith")
_TYPE_GUIDS: Final = {
    "raid_containing_root": "be9067b9-ea49-4f15-b4f6-f36f8c9e1818",
    "linux_filesystem_data": "0fc63daf-8483-4772-8e79-3d69d8477de4",
    "swap_partition": "0657fd6d-a4ab-43c4-84e5-0933c84b4f4f",
    "raid_partition": "a19d880f-05fc-4d3b-a006-743f0f84911e",
}
_SIZE: Final = re.compile(r"(\d+)(B|KiB|MiB|GiB|TiB|PiB|EiB)")
_FACTORS: Final = {
    name: 1 << (10 * power) for power, name in enumerate(("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"))
}


@dataclass(frozen=True, slots=True)
class Text:
    """A string; left out if it is empty, unless it is `kept`."""

    kept: bool = False


@dataclass(frozen=True, slots=True)
class Number:
    """A whole number."""

    kept: bool = True


@dataclass(frozen=True, slots=True)
class Flag:
    """A boolean; left out if it is false, unless it is `kept`."""

    kept: bool = False


@dataclass(frozen=True, slots=True)
class Many:
    """A list."""

    of: Shape


@dataclass(frozen=True, slots=True)
class Table:
    """An object: its fields with their names in Ignition, and a function that completes the result."""

    fields: Mapping[str, tuple[str, Shape]]
    finish: Callable[[Fields, str], Fields] | None = None


Shape: TypeAlias = Text | Number | Flag | Many | Table


def converted(document: Any, where: str) -> tuple[Fields, list[str]]:
    """Return a Container Linux Config as Ignition config, and its unknown fields.

    Raises:
        IgnitionError: a field has the wrong type, or is not supported.
    """
    if isinstance(document, dict):
        for name in _UNSUPPORTED:
            if document.get(name) is not None:
                raise IgnitionError(f"{where}: section {name} is not supported; write its units under systemd")
    unknown: list[str] = []
    fields = _object(document, _CONFIG, where, unknown)
    ignition = fields.get("ignition", {})
    config = {
        "ignition": {
            "version": VERSION,
            "config": ignition.get("config", {}),
            "timeouts": ignition.get("timeouts", {}),
            "security": {"tls": ignition.get("security", {}).get("tls", {})},
        },
        **{name: fields.get(name, {}) for name in ("networkd", "passwd", "storage", "systemd")},
    }
    return config, unknown


def data_url(content: str) -> str:
    """Return a file's content as its source; bytes that are not UTF-8 are lone surrogates in the content."""
    return f"data:,{quote(content, safe=_UNRESERVED, errors='surrogateescape')}"


def _value(value: Any, shape: Shape, where: str, unknown: list[str]) -> Any:
    if isinstance(shape, Table):
        return _object(value, shape, where, unknown)
    if isinstance(shape, Many):
        if not isinstance(value, list):
            raise IgnitionError(f"{where} is not a list")
        return [_value(item, shape.of, f"{where}[{number}]", unknown) for number, item in enumerate(value)]
    if isinstance(shape, Text):
        if isinstance(value, dict | list):
            raise IgnitionError(f"{where} is not text")
        return str(value).lower() if isinstance(value, bool) else str(value)
    if isinstance(shape, Flag):
        if not isinstance(value, bool):
            raise IgnitionError(f"{where} is neither true nor false")
        return value
    if not isinstance(value, int) or isinstance(value, bool):
        raise IgnitionError(f"{where} is not an integer")
    return value


def _object(value: Any, table: Table, where: str, unknown: list[str]) -> Fields:
    if not isinstance(value, dict):
        raise IgnitionError(f"{where} is not an object")
    unknown += [f"{where}.{name}" for name in value if name not in table.fields]
    fields: Fields = {}
    for name, (becomes, shape) in table.fields.items():
        if value.get(name) is None:
            if isinstance(shape, Text) and shape.kept:
                fields[becomes] = ""
            continue
        item = _value(value[name], shape, f"{where}.{name}", unknown)
        if item or isinstance(shape, Table) or (not isinstance(shape, Many) and shape.kept):
            fields[becomes] = item
    return fields if table.finish is None else table.finish(fields, where)


def _node(fields: Fields, where: str) -> Fields:
    return {**fields, "filesystem": fields.get("filesystem") or "root"}


def _file(fields: Fields, where: str) -> Fields:
    contents: Fields = fields.get("contents", {})
    if contents.pop("local", None):
        raise IgnitionError(f"{where}.contents.local names a file of another machine; write the content inline")
    remote: Fields = contents.get("remote", {})
    if remote.get("source") and contents.get("inline"):
        raise IgnitionError(f"{where}.contents has both inline and remote; leave one out")
    source = remote.get("source") or data_url(contents.get("inline", ""))
    reference = {"source": source, "verification": remote.get("verification", {})}
    if remote.get("compression"):
        reference["compression"] = remote["compression"]
    return {**_node(fields, where), "mode": fields.get("mode", 0o644), "contents": reference}


def _directory(fields: Fields, where: str) -> Fields:
    return {**_node(fields, where), "mode": fields.get("mode", 0o755)}


def _partition(fields: Fields, where: str) -> Fields:
    for name in ("sizeMiB", "startMiB"):
        if name in fields:
            fields[name] = _mebibytes(fields[name], where)
    if "typeGuid" in fields:
        fields["typeGuid"] = _TYPE_GUIDS.get(fields["typeGuid"], fields["typeGuid"])
    return fields


def _mebibytes(text: str, where: str) -> int:
    match = _SIZE.fullmatch(text)
    if match is None:
        raise IgnitionError(f"{where}: {text!r} is not a size such as 512MiB")
    size = int(match[1]) * _FACTORS[match[2]]
    if size % _FACTORS["MiB"]:
        raise IgnitionError(f"{where}: {text!r} is not a whole number of MiB")
    return size // _FACTORS["MiB"]


def _verification(fields: Fields, where: str) -> Fields:
    digest = fields.get("hash", {})
    is_whole = bool(digest.get("function") and digest.get("sum"))
    return {"hash": f"{digest['function']}-{digest['sum']}"} if is_whole else {}


def _verified(fields: Fields, where: str) -> Fields:
    return {**fields, "verification": fields.get("verification", {})}


_HASH: Final = Table({"function": ("function", Text()), "sum": ("sum", Text())})
_VERIFICATION: Final = Table({"hash": ("hash", _HASH)}, _verification)
_REFERENCE: Final = Table(
    {"source": ("source", Text(kept=True)), "verification": ("verification", _VERIFICATION)}, _verified
)
_OWNER: Final = Table({"id": ("id", Number()), "name": ("name", Text())})
_NODE: Final[Mapping[str, tuple[str, Shape]]] = {
    "filesystem": ("filesystem", Text()),
    "path": ("path", Text(kept=True)),
    "user": ("user", _OWNER),
    "group": ("group", _OWNER),
    "overwrite": ("overwrite", Flag(kept=True)),
}
_REMOTE: Final = Table(
    {
        "url": ("source", Text()),
        "compression": ("compression", Text()),
        "verification": ("verification", _VERIFICATION),
    }
)
_CONTENTS: Final = Table({"inline": ("inline", Text()), "local": ("local", Text()), "remote": ("remote", _REMOTE)})
_FILE: Final = Table(
    {**_NODE, "mode": ("mode", Number()), "append": ("append", Flag()), "contents": ("contents", _CONTENTS)}, _file
)
_DIRECTORY: Final = Table({**_NODE, "mode": ("mode", Number())}, _directory)
_LINK: Final = Table({**_NODE, "hard": ("hard", Flag()), "target": ("target", Text(kept=True))}, _node)
_PARTITION: Final = Table(
    {
        "label": ("label", Text(kept=False)),
        "number": ("number", Number(kept=False)),
        "size": ("sizeMiB", Text()),
        "start": ("startMiB", Text()),
        "guid": ("guid", Text()),
        "type_guid": ("typeGuid", Text()),
    },
    _partition,
)
_DISK: Final = Table(
    {
        "device": ("device", Text(kept=True)),
        "wipe_table": ("wipeTable", Flag()),
        "partitions": ("partitions", Many(_PARTITION)),
    }
)
_RAID: Final = Table(
    {
        "name": ("name", Text(kept=True)),
        "level": ("level", Text(kept=True)),
        "devices": ("devices", Many(Text())),
        "spares": ("spares", Number(kept=False)),
        "options": ("options", Many(Text())),
    }
)
_CREATE: Final = Table({"force": ("force", Flag()), "options": ("options", Many(Text()))})
_MOUNT: Final = Table(
    {
        "device": ("device", Text(kept=True)),
        "format": ("format", Text(kept=True)),
        "create": ("create", _CREATE),
        "wipe_filesystem": ("wipeFilesystem", Flag()),
        "label": ("label", Text()),
        "uuid": ("uuid", Text()),
        "options": ("options", Many(Text())),
    }
)
_FILESYSTEM: Final = Table({"name": ("name", Text()), "mount": ("mount", _MOUNT), "path": ("path", Text())})
_STORAGE: Final = Table(
    {
        "disks": ("disks", Many(_DISK)),
        "raid": ("raid", Many(_RAID)),
        "filesystems": ("filesystems", Many(_FILESYSTEM)),
        "files": ("files", Many(_FILE)),
        "directories": ("directories", Many(_DIRECTORY)),
        "links": ("links", Many(_LINK)),
    }
)
_DROPIN: Final = Table({"name": ("name", Text(kept=True)), "contents": ("contents", Text())})
_NETWORK_UNIT: Final[Mapping[str, tuple[str, Shape]]] = {
    "name": ("name", Text(kept=True)),
    "contents": ("contents", Text()),
    "dropins": ("dropins", Many(_DROPIN)),
}
_UNIT: Final[Mapping[str, tuple[str, Shape]]] = {
    **_NETWORK_UNIT,
    "enable": ("enable", Flag()),
    "enabled": ("enabled", Flag(kept=True)),
    "mask": ("mask", Flag()),
}
_USER_SHARED: Final[Mapping[str, tuple[str, Shape]]] = {
    "uid": ("uid", Number()),
    "gecos": ("gecos", Text()),
    "home_dir": ("homeDir", Text()),
    "no_create_home": ("noCreateHome", Flag()),
    "primary_group": ("primaryGroup", Text()),
    "groups": ("groups", Many(Text())),
    "no_user_group": ("noUserGroup", Flag()),
    "system": ("system", Flag()),
    "no_log_init": ("noLogInit", Flag()),
    "shell": ("shell", Text()),
}
_USER: Final = Table(
    {
        **_USER_SHARED,
        "name": ("name", Text(kept=True)),
        "password_hash": ("passwordHash", Text()),
        "ssh_authorized_keys": ("sshAuthorizedKeys", Many(Text())),
        "create": ("create", Table(_USER_SHARED)),
    }
)
_GROUP: Final = Table(
    {
        "name": ("name", Text(kept=True)),
        "gid": ("gid", Number()),
        "password_hash": ("passwordHash", Text()),
        "system": ("system", Flag()),
    }
)
_TIMEOUTS: Final = Table(
    {"http_response_headers": ("httpResponseHeaders", Number()), "http_total": ("httpTotal", Number())}
)
_TLS: Final = Table({"certificate_authorities": ("certificateAuthorities", Many(_REFERENCE))})
_IGNITION: Final = Table(
    {
        "config": ("config", Table({"append": ("append", Many(_REFERENCE)), "replace": ("replace", _REFERENCE)})),
        "timeouts": ("timeouts", _TIMEOUTS),
        "security": ("security", Table({"tls": ("tls", _TLS)})),
    }
)
_CONFIG: Final = Table(
    {
        "ignition": ("ignition", _IGNITION),
        "storage": ("storage", _STORAGE),
        "systemd": ("systemd", Table({"units": ("units", Many(Table(_UNIT)))})),
        "networkd": ("networkd", Table({"units": ("units", Many(Table(_NETWORK_UNIT)))})),
        "passwd": ("passwd", Table({"users": ("users", Many(_USER)), "groups": ("groups", Many(_GROUP))})),
    }
)
