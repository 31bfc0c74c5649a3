"""The tasks of a host at its first boot, independent of the format: cloud-init or Ignition.

Source: kubernetes-sigs/cluster-api: bootstrap/kubeadm/pkg/cloudinit/{cloudinit,node,controlplane_init,
controlplane_join}.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, TypeAlias

_RETRY_PAUSE_S: Final = 10
Part: TypeAlias = Mapping[str, Any]
"""A part of a KubeadmConfig's spec (v1beta2), such as a user or a disk, as plain data."""


class Role(Enum):
    """Role of a machine in its cluster."""

    INIT = "init"
    """The first machine of a control plane."""
    CONTROL_PLANE = "control plane"
    WORKER = "worker"


@dataclass(frozen=True, slots=True)
class WriteFile:
    """A file on the host."""

    path: str
    content: str
    owner: str = ""
    permissions: str = ""
    encoding: str = ""
    append: bool | None = None

    def __repr__(self) -> str:
        return f"WriteFile({self.path})"


@dataclass(frozen=True, slots=True)
class UserData:
    """The contents of bootstrap data."""

    role: Role
    documents: tuple[str, ...]
    """kubeadm's documents: ClusterConfiguration and InitConfiguration, or JoinConfiguration."""
    files: Sequence[WriteFile] = ()
    boot_commands: Sequence[str] = ()
    pre_kubeadm_commands: Sequence[str] = ()
    post_kubeadm_commands: Sequence[str] = ()
    verbosity: int | None = None
    ntp: Part | None = None
    users: Sequence[Part] = ()
    disk_setup: Part | None = None
    mounts: Sequence[Sequence[str]] = ()
    container_linux_config: Part = field(default_factory=dict)
    join_attempts: int = 1

    @property
    def verbosity_flag(self) -> str:
        """Option for kubeadm's log verbosity; empty for kubeadm's default."""
        return "" if self.verbosity is None else f"--v {self.verbosity}"

    def __repr__(self) -> str:
        return f"UserData({self.role})"


def user_data(
    role: Role,
    spec: Part,
    *,
    documents: tuple[str, ...],
    files: Sequence[WriteFile],
    users: Sequence[Part],
    join_attempts: int = 1,
) -> UserData:
    """Return the user data of a KubeadmConfig's spec, with the contents that its files and users refer to."""
    return UserData(
        role,
        documents,
        files=files,
        boot_commands=spec.get("bootCommands", ()),
        pre_kubeadm_commands=spec.get("preKubeadmCommands", ()),
        post_kubeadm_commands=spec.get("postKubeadmCommands", ()),
        verbosity=spec.get("verbosity"),
        ntp=spec.get("ntp") or None,
        users=users,
        disk_setup=spec.get("diskSetup") or None,
        mounts=spec.get("mounts", ()),
        container_linux_config=spec.get("ignition", {}).get("containerLinuxConfig", {}),
        join_attempts=join_attempts,
    )


def repeated(command: str, attempts: int) -> str:
    """Return a shell command that repeats another until it succeeds, and cleans up after each failed attempt."""
    if attempts == 1:
        return command
    tries = " ".join(str(number) for number in range(1, attempts + 1))
    undo = f"[ $try = {attempts} ] || {{ kubeadm reset --force; sleep {_RETRY_PAUSE_S}; }}"
    return f"sh -c 'for try in {tries}; do {command} && exit 0; {undo}; done; exit 1'"
