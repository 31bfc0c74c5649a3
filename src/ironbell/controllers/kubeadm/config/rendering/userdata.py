"""What a host does at its first boot, before it is written as cloud-init or Ignition.

Source: kubernetes-sigs/cluster-api: bootstrap/kubeadm/pkg/cloudinit/{cloudinit,node,controlplane_init,
controlplane_join}.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeAlias

Part: TypeAlias = Mapping[str, Any]
"""A user, a disk and so on, as in a KubeadmConfig's spec (v1beta2), in plain data."""


class Role(Enum):
    """What the machine becomes."""

    INIT = "init"
    """The first of a control plane."""
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
    """Everything that goes into bootstrap data."""

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
        """What kubeadm is told of how much to say; empty leaves it to kubeadm."""
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
    """User data of a KubeadmConfig's spec; files and users with what they refer to filled in."""
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
