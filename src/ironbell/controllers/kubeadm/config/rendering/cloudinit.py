"""cloud-config, byte for byte as upstream writes it, because providers and users rely on its layout.

Values are inserted without quotes: the user writes YAML, with jinja where cloud-init expands it.

Source: kubernetes-sigs/cluster-api: bootstrap/kubeadm/pkg/cloudinit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from ironbell.codec.gotemplate.golib.quoting import quote
from ironbell.contract.clusters.bootstrap import SENTINEL
from ironbell.controllers.kubeadm.config.rendering.userdata import Part, Role, UserData, WriteFile, repeated

INIT_PATH: Final = "/run/kubeadm/kubeadm.yaml"
JOIN_PATH: Final = "/run/kubeadm/kubeadm-join-config.yaml"
_HEADER: Final = "## template: jinja\n#cloud-config\n\n"
_PLACEHOLDER: Final = WriteFile("/run/cluster-api/placeholder", "", owner="root:root", permissions="0640")
_PLACEHOLDER_TEXT: Final = "Makes the folder that the sentinel file is written to."
_PARTITION_TYPES: Final = {
    "Linux": "83",
    "LinuxSwap": "82",
    "LinuxRAID": "fd",
    "LVM": "8e",
    "Fat32": "0c",
    "NTFS": "07",
    "LinuxExtended": "85",
}
_USER_FIELDS: Final = (
    ("passwd", "passwd"),
    ("gecos", "gecos"),
    ("groups", "groups"),
    ("homedir", "homeDir"),
    ("inactive", "inactive"),
    ("lock_passwd", "lockPassword"),
    ("shell", "shell"),
    ("primary_group", "primaryGroup"),
    ("sudo", "sudo"),
)
_FILESYSTEM_FIELDS: Final = (("partition", "partition"), ("overwrite", "overwrite"), ("replace_fs", "replaceFS"))


def cloud_config(data: UserData) -> str:
    """Return the document."""
    return "".join(
        (
            _HEADER,
            "write_files:",
            *(_file(file) for file in data.files),
            _kubeadm_file(data),
            _placeholder(),
            _items("bootcmd", (quote(command) for command in data.boot_commands)),
            "\nruncmd:",
            *(f"\n  - {quote(command)}" for command in data.pre_kubeadm_commands),
            f"\n  - {_kubeadm_command(data)}",
            *(f"\n  - {quote(command)}" for command in data.post_kubeadm_commands),
            _ntp(data.ntp),
            *_users(data.users),
            *_disk_setup(data.disk_setup),
            *_fs_setup(data.disk_setup),
            *_mounts(data.mounts),
            "\n",
        )
    )


def _kubeadm_command(data: UserData) -> str:
    path = INIT_PATH if data.role is Role.INIT else JOIN_PATH
    verb = "init" if data.role is Role.INIT else "join"
    kubeadm = repeated(f"kubeadm {verb} --config {path} {data.verbosity_flag}", data.join_attempts)
    command = f"{kubeadm} && echo success > {SENTINEL}"
    if data.join_attempts > 1:
        return quote(command)
    return f"'{command}'" if data.role is Role.INIT else command


def _kubeadm_file(data: UserData) -> str:
    path = INIT_PATH if data.role is Role.INIT else JOIN_PATH
    separator = "      ---\n"
    documents = [_indented(document) for document in data.documents]
    content = f"\n{separator}".join(documents)
    # upstream leaves out the separator in this case only
    first = "" if data.role is Role.CONTROL_PLANE else separator
    return f"{_entry(WriteFile(path, '', owner='root:root', permissions='0640'))}content: |\n{first}{content}"


def _placeholder() -> str:
    return f'{_entry(_PLACEHOLDER)}content: "{_PLACEHOLDER_TEXT}"'


def _file(file: WriteFile) -> str:
    return f"{_entry(file)}content: |\n{_indented(file.content)}"


def _entry(file: WriteFile) -> str:
    """Return an entry of write_files up to its content."""
    lines = [f"-   path: {file.path}"]
    if file.encoding:
        lines.append(f'encoding: "{file.encoding}"')
    if file.owner:
        lines.append(f"owner: {file.owner}")
    if file.permissions:
        lines.append(f"permissions: '{file.permissions}'")
    if file.append is not None:
        lines.append(f"append: {_text(file.append)}")
    return "\n" + "\n    ".join(lines) + "\n    "


def _indented(content: str) -> str:
    return "\n".join(f"      {line}" for line in content.split("\n"))


def _items(name: str, items: Iterable[str]) -> str:
    text = "".join(f"\n  - {item}" for item in items)
    return f"\n{name}:{text}" if text else ""


def _ntp(ntp: Part | None) -> str:
    if ntp is None:
        return ""
    enabled = "" if ntp.get("enabled") is None else f"enabled: {_text(ntp['enabled'])}\n  "
    servers = "".join(f"\n    - {server}" for server in ntp.get("servers", ()))
    return f"\nntp:\n  {enabled}servers:{servers}"


def _users(users: Iterable[Part]) -> Iterator[str]:
    for number, user in enumerate(users):
        yield f"{'' if number else chr(10) + 'users:'}\n  - name: {user.get('name', '')}"
        for name, field in _USER_FIELDS:
            if _is_set(user.get(field)):
                yield f"\n    {name}: {_text(user[field])}"
        if user.get("sshAuthorizedKeys"):
            yield "\n    ssh_authorized_keys:"
            yield from (f"\n      - {key}" for key in user["sshAuthorizedKeys"])


def _disk_setup(setup: Part | None) -> Iterator[str]:
    if setup is None:
        return
    yield "\ndisk_setup:"
    for partition in setup.get("partitions", ()):
        yield f"\n  {partition.get('device', '')}:"
        if partition.get("tableType"):
            yield f"\n    table_type: {partition['tableType']}"
        if partition.get("diskLayout"):
            yield "\n    layout:"
            yield from (f"\n      - {_layout(item)}" for item in partition["diskLayout"])
        else:
            yield f"\n    layout: {_text(partition.get('layout'))}"
        if partition.get("overwrite") is not None:
            yield f"\n    overwrite: {_text(partition['overwrite'])}"


def _layout(item: Part) -> str:
    percentage, kind = item.get("percentage", 0), item.get("partitionType", "")
    return f"[{percentage}, {_PARTITION_TYPES.get(kind, kind)}]" if kind else str(percentage)


def _fs_setup(setup: Part | None) -> Iterator[str]:
    if setup is None:
        return
    yield "\nfs_setup:"
    for filesystem in setup.get("filesystems", ()):
        yield f"\n  - label: {filesystem.get('label', '')}"
        yield f"\n    filesystem: {filesystem.get('filesystem', '')}"
        yield f"\n    device: {filesystem.get('device', '')}"
        for name, field in _FILESYSTEM_FIELDS:
            if _is_set(filesystem.get(field)):
                yield f"\n    {name}: {_text(filesystem[field])}"
        if filesystem.get("extraOpts"):
            yield "\n    extra_opts:"
            yield from (f"\n      - {option}" for option in filesystem["extraOpts"])


def _mounts(mounts: Iterable[Iterable[str]]) -> Iterator[str]:
    for number, points in enumerate(mounts):
        yield f"{'' if number else chr(10) + 'mounts:'}\n  - "
        yield from (f"- {point}\n    " for point in points)


def _is_set(value: Any) -> bool:
    """Return whether upstream prints a value: text that is not empty, and every boolean."""
    return value is not None and value != ""


def _text(value: Any) -> str:
    if value is None:
        return "<nil>"
    return str(value).lower() if isinstance(value, bool) else str(value)
