"""The init lock: only one machine of a cluster runs `kubeadm init`.

The lock is a ConfigMap; its creation acquires the lock. It is acquired when the machine's data are ready to be stored,
so that a machine without valid data never blocks others. It is released when the control plane is initialized, or when
the Machine that holds it was deleted.

Source: kubernetes-sigs/cluster-api: bootstrap/kubeadm/pkg/locking/control_plane_init_mutex.go.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import msgspec

from ironbell.api.cluster.cluster import CLUSTER
from ironbell.api.cluster.names import LABEL_CLUSTER_NAME
from ironbell.api.core.configmap import CONFIG_MAP, ConfigMap
from ironbell.kube.decision import Create, Key, create

_KEY: Final = "lock-information"


class _Information(msgspec.Struct, rename="camel", frozen=True):
    machine_name: str = ""


@dataclass(frozen=True, slots=True)
class Lock:
    """A lock that is held."""

    config_map: ConfigMap
    holder: str
    """Name of the Machine; empty if it cannot be read."""
    holder_exists: bool


def lock_name(cluster: str) -> str:
    """Return the name of a cluster's lock."""
    return f"{cluster}-lock"


def holder_of(config_map: ConfigMap) -> str:
    """Return the name of the Machine that holds a lock; empty if it cannot be read."""
    try:
        return msgspec.json.decode(config_map.data.get(_KEY, ""), type=_Information).machine_name
    except msgspec.MsgspecError:
        return ""


def acquire(cluster: Key, cluster_uid: str, machine: str) -> Create:
    """Return the write that acquires the lock; it fails if the lock is held."""
    body = {
        "metadata": {
            "namespace": cluster[0],
            "name": lock_name(cluster[1]),
            "labels": {LABEL_CLUSTER_NAME: cluster[1]},
            "ownerReferences": [
                {"apiVersion": CLUSTER.api_version, "kind": CLUSTER.kind, "name": cluster[1], "uid": cluster_uid}
            ],
        },
        "data": {_KEY: msgspec.json.encode(_Information(machine)).decode()},
    }
    return create(CONFIG_MAP, body)
