"""Rendering of bootstrap data from a KubeadmConfig's spec and the facts about its cluster.

Pure: referenced objects are passed as arguments. Takes some milliseconds: call it from a performer.

Source: kubernetes-sigs/cluster-api: bootstrap/kubeadm/reconcilers/kubeadmconfig/kubeadmconfig_controller.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from ironbell.api.cluster.names import TAINT_UNINITIALIZED
from ironbell.contract.clusters.secrets import Purpose
from ironbell.contract.pki import KeyPair
from ironbell.controllers.kubeadm.config.certificates import certificate_files, places
from ironbell.controllers.kubeadm.config.ignition import ignition_config
from ironbell.controllers.kubeadm.config.rendering import kubeadm
from ironbell.controllers.kubeadm.config.rendering.cloudinit import cloud_config
from ironbell.controllers.kubeadm.config.rendering.kubeadm import ClusterFacts, Spec
from ironbell.controllers.kubeadm.config.rendering.userdata import Part, Role, UserData, WriteFile, user_data

CLOUD_CONFIG, IGNITION = "cloud-config", "ignition"
Pairs: TypeAlias = Mapping[Purpose, KeyPair]
_UNINITIALIZED: Final = {"key": TAINT_UNINITIALIZED, "effect": "NoSchedule"}


@dataclass(frozen=True, slots=True)
class Inputs:
    """The inputs of bootstrap data."""

    role: Role
    spec: Spec
    """The KubeadmConfig's spec, with a complete discovery."""
    version: tuple[int, ...]
    """The machine's Kubernetes version."""
    cluster: ClusterFacts
    files: Sequence[WriteFile] = ()
    """The user's files, with their contents."""
    users: Sequence[Part] = ()
    """The users, with their passwords."""
    pairs: Pairs = field(default_factory=dict)
    join_attempts: int = 1

    def __repr__(self) -> str:
        return f"Inputs({self.role})"


def bootstrap_data(inputs: Inputs) -> str:
    """Return the bootstrap data in the spec's format.

    Raises:
        UnsupportedVersionError: this version of kubeadm is not supported.
        IgnitionError: the spec cannot be expressed in Ignition.
    """
    data = host(inputs)
    return ignition_config(data) if inputs.spec.get("format") == IGNITION else cloud_config(data)


def with_taint(spec: Spec) -> Spec:
    """Return a worker's spec with the taint that keeps Pods away until its labels are set. It is only rendered, not
    stored."""
    join: Spec = spec.get("joinConfiguration", {})
    registration: Spec = join.get("nodeRegistration", {})
    taints = registration.get("taints") or []
    if any((taint.get("key"), taint.get("effect")) == tuple(_UNINITIALIZED.values()) for taint in taints):
        return spec
    registration = {**registration, "taints": [*taints, _UNINITIALIZED]}
    return {**spec, "joinConfiguration": {**join, "nodeRegistration": registration}}


def host(inputs: Inputs) -> UserData:
    """Return the host's tasks, independent of the format."""
    spec = inputs.spec
    certificates: list[WriteFile] = []
    if inputs.role is not Role.WORKER:
        certificates += certificate_files(places(spec.get("clusterConfiguration", {})), inputs.pairs)
    return user_data(
        inputs.role,
        spec,
        documents=_documents(inputs, kubeadm.kubeadm_api(inputs.version)),
        files=[*certificates, *inputs.files],
        users=inputs.users,
        join_attempts=inputs.join_attempts,
    )


def _documents(inputs: Inputs, api: str) -> tuple[str, ...]:
    spec = inputs.spec
    if inputs.role is not Role.INIT:
        return (kubeadm.join_configuration(spec.get("joinConfiguration", {}), api),)
    init = spec.get("initConfiguration", {})
    cluster = kubeadm.cluster_configuration(spec.get("clusterConfiguration", {}), inputs.cluster, init, api)
    return cluster, kubeadm.init_configuration(init, api)
