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
from ironbell.kube.controller import Controller
from ironbell.workload.access import Workloads
from ironbell.workload.askers import askers as workload_askers

_CORE, _CLUSTER, _BOOTSTRAP = [""], ["cluster.x-k8s.io"], ["bootstrap.cluster.x-k8s.io"]
_PROVIDERS: Final = ["infrastructure.cluster.x-k8s.io", "controlplane.cluster.x-k8s.io"]

BOOTSTRAP_WRITES: Final[Mapping[str, Sequence[Mapping[str, Sequence[str]]]]] = {
    KubeadmConfigReconciler.name: [
        {"apiGroups": _BOOTSTRAP, "resources": ["kubeadmconfigs", "kubeadmconfigs/status"], "verbs": ["get", "patch"]},
        {"apiGroups": _BOOTSTRAP, "resources": ["kubeadmconfigs/finalizers"], "verbs": ["update"]},
        {"apiGroups": _CORE, "resources": ["secrets"], "verbs": ["create", "get", "patch"]},
        {"apiGroups": _CORE, "resources": ["configmaps"], "verbs": ["create", "delete"]},
    ],
}
WRITES: Final[Mapping[str, Sequence[Mapping[str, Sequence[str]]]]] = {**BOOTSTRAP_WRITES}
"""PolicyRules by the controller's name. `kubeadmconfigs/finalizers` is for owner references that block deletion."""

_READ: Final = ["get", "list", "watch"]
BOOTSTRAP_READS: Final[Sequence[Mapping[str, Sequence[str]]]] = [
    {"apiGroups": _BOOTSTRAP, "resources": ["kubeadmconfigs"], "verbs": _READ},
    {"apiGroups": _CLUSTER, "resources": ["clusters", "machinepools", "machines"], "verbs": _READ},
    {"apiGroups": _CORE, "resources": ["configmaps", "secrets"], "verbs": _READ},
    {"apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"], "verbs": _READ},
    {"apiGroups": _PROVIDERS, "resources": ["*"], "verbs": _READ},
]
"""PolicyRules for what it watches: of Secrets, that one is there; of providers' objects, those that are referred to."""


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
