"""The parts of Ironbell that run by themselves on a cluster: their names, and what each may do with the API.

Names are the field's newer ones; the older ones are understood. A group stands for all its members.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import chain
from typing import TypeAlias

from ironbell.app.wire_config import SMEE, TINK_SERVER, TOOTLES
from ironbell.base.errors import IronbellError, Retry
from ironbell.controllers.capi import controllers as capi
from ironbell.controllers.capt import controllers as capt
from ironbell.controllers.ipam import controllers as ipam
from ironbell.controllers.kubeadm import controllers as kubeadm
from ironbell.controllers.rufio import controllers as rufio
from ironbell.controllers.tink import controllers as tink

PolicyRules: TypeAlias = Sequence[Mapping[str, Sequence[str]]]

_TINKERBELL = ["tinkerbell.org"]
_READ = ["get", "list", "watch"]
_EVENTS: PolicyRules = [{"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch"]}]
_HARDWARE: PolicyRules = [
    {"apiGroups": _TINKERBELL, "resources": ["hardware"], "verbs": _READ},
    # which fields: app.write_rules; admission rejects all else
    {"apiGroups": _TINKERBELL, "resources": ["hardware"], "verbs": ["patch"]},
]
_SEES_WORKFLOWS: PolicyRules = [{"apiGroups": _TINKERBELL, "resources": ["workflows"], "verbs": _READ}]
_WORKFLOWS: PolicyRules = [
    *_SEES_WORKFLOWS,
    {"apiGroups": _TINKERBELL, "resources": ["workflows", "workflows/status"], "verbs": ["patch"]},
]


class UnknownComponentError(IronbellError):
    """A word names no component."""

    reason = "UnknownComponent"
    retry = Retry.NEVER


class Role(Enum):
    """How a component runs."""

    CONTROLLERS = "controllers"
    """One replica at a time works; it speaks to the API alone (and to BMCs)."""
    SERVER = "server"
    """Every replica works; it speaks to machines."""


@dataclass(frozen=True)
class Component:
    """One component."""

    name: str
    summary: str
    role: Role
    rules: PolicyRules
    aliases: tuple[str, ...] = ()


def _written(writes: Mapping[str, PolicyRules]) -> PolicyRules:
    return list(chain.from_iterable(writes.values()))


TINK_CONTROLLER = Component(
    "tink-controller",
    "Workflows, Templates and Hardware: renders, prepares and finishes installations.",
    Role.CONTROLLERS,
    [*tink.READS, *_written(tink.WRITES), *_EVENTS],
    ("tink", "workflow-controller"),
)
RUFIO = Component(
    "rufio",
    "BMC Machines, Jobs and Tasks: power, boot device, virtual media.",
    Role.CONTROLLERS,
    [*rufio.READS, *_written(rufio.WRITES), *_EVENTS],
    ("bmc", "pbnj"),
)
CLUSTER_API = Component(
    "cluster-api",
    "Clusters, Machines, MachineSets, MachineDeployments: from a manifest to nodes that run.",
    Role.CONTROLLERS,
    [*capi.READS, *capi.JUDGES_BY, *_written(capi.WRITES), *_EVENTS],
    ("capi", "core"),
)
KUBEADM_BOOTSTRAP = Component(
    "kubeadm-bootstrap",
    "KubeadmConfigs: what machines run at their first boot to become nodes.",
    Role.CONTROLLERS,
    [*kubeadm.BOOTSTRAP_READS, *_written(kubeadm.BOOTSTRAP_WRITES), *_EVENTS],
    ("cabpk", "capi-kubeadm-bootstrap"),
)
KUBEADM_CONTROL_PLANE = Component(
    "kubeadm-control-plane",
    "KubeadmControlPlanes: the Machines of control planes, their etcd, upgrades and certificates.",
    Role.CONTROLLERS,
    [*kubeadm.CONTROL_PLANE_READS, *_written(kubeadm.CONTROL_PLANE_WRITES), *_EVENTS],
    ("cacpk", "kcp", "capi-kubeadm-control-plane"),
)
CAPT = Component(
    "capt",
    "TinkerbellClusters and TinkerbellMachines: servers for Machines, installed, and given back wiped.",
    Role.CONTROLLERS,
    [*capt.READS, *_written(capt.WRITES), *_EVENTS],
    ("cluster-api-tinkerbell", "infrastructure-tinkerbell"),
)
IPAM = Component(
    "ipam",
    "InClusterIPPools: addresses for IPAddressClaims, and for Hardware that has none.",
    Role.CONTROLLERS,
    [*ipam.READS, *_written(ipam.WRITES), *_EVENTS],
    ("ipam-in-cluster",),
)
COMPONENTS = (
    TINK_CONTROLLER,
    RUFIO,
    CLUSTER_API,
    KUBEADM_BOOTSTRAP,
    KUBEADM_CONTROL_PLANE,
    CAPT,
    IPAM,
    Component(
        SMEE,
        "DHCP, TFTP, iPXE scripts and the in-memory OS over HTTP.",
        Role.SERVER,
        [*_HARDWARE, *_EVENTS],
        ("boots",),
    ),
    Component(
        TOOTLES,
        "Metadata and user data of machines over HTTP.",
        Role.SERVER,
        [*_HARDWARE, *_SEES_WORKFLOWS, *_EVENTS],
        ("hegel",),
    ),
    Component(
        TINK_SERVER,
        "The workflow service that agents ask for actions, over gRPC.",
        Role.SERVER,
        [*_HARDWARE, *_WORKFLOWS],
    ),
)
GROUPS = {"controllers": Role.CONTROLLERS, "wire": Role.SERVER}
"""A group's name, and whose it is."""


def members(word: str) -> tuple[Component, ...]:
    """The components that a word means.

    Raises:
        UnknownComponentError: none.
    """
    if word in GROUPS:
        return tuple(component for component in COMPONENTS if component.role is GROUPS[word])
    for component in COMPONENTS:
        if word in {component.name, *component.aliases}:
            return (component,)
    known = ", ".join([*(component.name for component in COMPONENTS), *GROUPS])
    raise UnknownComponentError(f"{word!r} is no component; known are: {known}")


def components_named(words: Iterable[str]) -> tuple[Component, ...]:
    """All that the words mean, each once, in a fixed order.

    Raises:
        UnknownComponentError: a word means none.
    """
    wanted = {component.name for word in words for component in members(word)}
    return tuple(component for component in COMPONENTS if component.name in wanted)


def rules_of(components: Iterable[Component]) -> PolicyRules:
    """The union of what components may do, each rule once."""
    found: list[Mapping[str, Sequence[str]]] = []
    for rule in chain.from_iterable(component.rules for component in components):
        if rule not in found:
            found.append(rule)
    return found
