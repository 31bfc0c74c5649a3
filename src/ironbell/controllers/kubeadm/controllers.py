"""The controllers of this group, ready to be added to a manager, and what each must be allowed to write.

Reading is the manager's identity's business: the objects of clusters, and of Secrets that one is there and whose it
is. What is in a Secret each controller reads under its own identity when it uses it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from ironbell.api.client import Api
from ironbell.base.clock import Clock
from ironbell.base.randomness import Randomness
from ironbell.controllers.kubeadm.config.performers import Outside, askers, performers
from ironbell.controllers.kubeadm.config.reconciler import KubeadmConfigReconciler
from ironbell.controllers.kubeadm.config.tokens import Lifetime
from ironbell.controllers.kubeadm.controlplane.askers import EtcdAccess, Inspector
from ironbell.controllers.kubeadm.controlplane.performers import Operator
from ironbell.controllers.kubeadm.controlplane.reconciler import ControlPlaneReconciler
from ironbell.kube.controller import Controller
from ironbell.workload.access import Workloads
from ironbell.workload.askers import askers as workload_askers
from ironbell.workload.etcd import EtcdConnect

_CORE, _CLUSTER, _BOOTSTRAP = [""], ["cluster.x-k8s.io"], ["bootstrap.cluster.x-k8s.io"]
_INFRASTRUCTURE, _CONTROL_PLANE = ["infrastructure.cluster.x-k8s.io"], ["controlplane.cluster.x-k8s.io"]
_PROVIDERS: Final = [*_INFRASTRUCTURE, *_CONTROL_PLANE]

BOOTSTRAP_WRITES: Final[Mapping[str, Sequence[Mapping[str, Sequence[str]]]]] = {
    KubeadmConfigReconciler.name: [
        {"apiGroups": _BOOTSTRAP, "resources": ["kubeadmconfigs", "kubeadmconfigs/status"], "verbs": ["get", "patch"]},
        {"apiGroups": _BOOTSTRAP, "resources": ["kubeadmconfigs/finalizers"], "verbs": ["update"]},
        {"apiGroups": _CORE, "resources": ["secrets"], "verbs": ["create", "get", "patch"]},
        {"apiGroups": _CORE, "resources": ["configmaps"], "verbs": ["create", "delete"]},
    ],
}
CONTROL_PLANE_WRITES: Final[Mapping[str, Sequence[Mapping[str, Sequence[str]]]]] = {
    ControlPlaneReconciler.name: [
        {
            "apiGroups": _CONTROL_PLANE,
            "resources": ["kubeadmcontrolplanes", "kubeadmcontrolplanes/status"],
            "verbs": ["patch"],
        },
        {"apiGroups": _CONTROL_PLANE, "resources": ["kubeadmcontrolplanes/finalizers"], "verbs": ["update"]},
        {"apiGroups": _CLUSTER, "resources": ["machines"], "verbs": ["create", "delete", "patch"]},
        {"apiGroups": _CLUSTER, "resources": ["machines/status"], "verbs": ["patch"]},
        {"apiGroups": _BOOTSTRAP, "resources": ["kubeadmconfigs"], "verbs": ["create", "delete", "patch"]},
        {"apiGroups": _INFRASTRUCTURE, "resources": ["*"], "verbs": ["create", "delete", "patch"]},
        {"apiGroups": _CORE, "resources": ["secrets"], "verbs": ["create", "delete", "get", "patch"]},
    ],
}
WRITES: Final[Mapping[str, Sequence[Mapping[str, Sequence[str]]]]] = {**BOOTSTRAP_WRITES, **CONTROL_PLANE_WRITES}
"""PolicyRules by the controller's name. `finalizers` is for owner references that block deletion."""

_READ: Final = ["get", "list", "watch"]
BOOTSTRAP_READS: Final[Sequence[Mapping[str, Sequence[str]]]] = [
    {"apiGroups": _BOOTSTRAP, "resources": ["kubeadmconfigs"], "verbs": _READ},
    {"apiGroups": _CLUSTER, "resources": ["clusters", "machinepools", "machines"], "verbs": _READ},
    {"apiGroups": _CORE, "resources": ["configmaps", "secrets"], "verbs": _READ},
    {"apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"], "verbs": _READ},
    {"apiGroups": _PROVIDERS, "resources": ["*"], "verbs": _READ},
]
"""PolicyRules for what it watches: of Secrets, that one is there; of providers' objects, those that are referred to."""
CONTROL_PLANE_READS: Final[Sequence[Mapping[str, Sequence[str]]]] = [
    {"apiGroups": _CONTROL_PLANE, "resources": ["kubeadmcontrolplanes"], "verbs": _READ},
    {"apiGroups": _BOOTSTRAP, "resources": ["kubeadmconfigs"], "verbs": _READ},
    {"apiGroups": _CLUSTER, "resources": ["clusters", "machinepools", "machines"], "verbs": _READ},
    {"apiGroups": _CORE, "resources": ["secrets"], "verbs": _READ},
    {"apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"], "verbs": _READ},
    {"apiGroups": _INFRASTRUCTURE, "resources": ["*"], "verbs": _READ},
]
"""PolicyRules for what it watches."""


def bootstrap_controllers(
    workloads: Workloads,
    api: Api,
    clock: Clock,
    randomness: Randomness,
    api_of: Callable[[str], Api | None],
    *,
    lifetime: Lifetime | None = None,
) -> list[Controller]:
    """The bootstrap provider (CABPK).

    Args:
        workloads: the connections to workload clusters.
        api: the manager's API, for those without an identity of their own.
        clock: for how long tokens live.
        randomness: for tokens.
        api_of: the API under the identity of a controller, by its name; None for the manager's.
        lifetime: how long tokens live, if not 15 minutes.
    """
    reconciler = KubeadmConfigReconciler(lifetime)
    own = api_of(reconciler.name)
    outside = Outside(own or api, workloads.api, clock, randomness, lifetime or Lifetime())
    return [
        Controller(
            reconciler,
            performers=performers(outside),
            askers={**workload_askers(workloads), **askers(outside)},
            api=own,
            feeds=(workloads.feed,),
        )
    ]


def control_plane_controllers(
    workloads: Workloads,
    etcd: EtcdConnect,
    api: Api,
    clock: Clock,
    api_of: Callable[[str], Api | None],
) -> list[Controller]:
    """The control plane provider (CACPK).

    Args:
        workloads: the connections to workload clusters.
        etcd: connects to the etcd members of workload clusters.
        api: the manager's API, for those without an identity of their own.
        clock: for how long certificates are valid.
        api_of: the API under the identity of a controller, by its name; None for the manager's.
    """
    reconciler = ControlPlaneReconciler()
    own = api_of(reconciler.name)
    access = EtcdAccess(etcd)
    inspector = Inspector(own or api, workloads, access)
    return [
        Controller(
            reconciler,
            performers=Operator(own or api, workloads, access, clock).performers(),
            askers={**workload_askers(workloads), **inspector.askers()},
            api=own,
            feeds=(workloads.feed,),
        )
    ]
