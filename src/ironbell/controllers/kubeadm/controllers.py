"""The controllers of the kubeadm bootstrap and control plane providers, and the permissions that each needs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ironbell.api.bootstrap import KUBEADM_CONFIG
from ironbell.api.client import Api
from ironbell.api.cluster import CLUSTER, MACHINE, MACHINE_POOL
from ironbell.api.controlplane import KUBEADM_CONTROL_PLANE
from ironbell.api.core import CONFIG_MAP, CUSTOM_RESOURCE_DEFINITION, SECRET
from ironbell.base.clock import Clock
from ironbell.base.randomness import Randomness
from ironbell.contract.access import READ, Permissions, may, may_in, may_read, policy_rules
from ironbell.contract.system import Runtime
from ironbell.controllers.kubeadm.config.performers import Outside, performers, resolvers
from ironbell.controllers.kubeadm.config.reconciler import KubeadmConfigReconciler
from ironbell.controllers.kubeadm.config.tokens import Lifetime
from ironbell.controllers.kubeadm.controlplane.reconciler import ControlPlaneReconciler
from ironbell.controllers.kubeadm.controlplane.workload.performers import Operator
from ironbell.controllers.kubeadm.controlplane.workload.resolvers import EtcdAccess, Inspector
from ironbell.kube.manager.controller import Controller
from ironbell.workload.access import Workloads
from ironbell.workload.access import resolvers as workload_resolvers
from ironbell.workload.etcd import EtcdConnect
from ironbell.workload.etcd_forward import forwarded_etcd
from ironbell.workload.following import workloads_of

_INFRASTRUCTURE: Final = "infrastructure.cluster.x-k8s.io"
BOOTSTRAP: Final = Permissions(
    reads=policy_rules(
        [
            *may_read(KUBEADM_CONFIG, CLUSTER, MACHINE_POOL, MACHINE, CONFIG_MAP, SECRET, CUSTOM_RESOURCE_DEFINITION),
            may_in([_INFRASTRUCTURE, KUBEADM_CONTROL_PLANE.group], *READ),  # objects that users refer to
        ]
    ),
    writes={
        KubeadmConfigReconciler.name: policy_rules(
            [
                may(KUBEADM_CONFIG, "get", "patch", status=True),
                may(KUBEADM_CONFIG, "update", subresource="finalizers"),  # for owner references that block deletion
                may(SECRET, "create", "get", "patch"),
                may(CONFIG_MAP, "create", "delete"),
            ]
        ),
    },
)
CONTROL_PLANE: Final = Permissions(
    reads=policy_rules(
        [
            *may_read(KUBEADM_CONTROL_PLANE, KUBEADM_CONFIG, CLUSTER, MACHINE_POOL, MACHINE, SECRET),
            *may_read(CUSTOM_RESOURCE_DEFINITION),
            may_in([_INFRASTRUCTURE], *READ),
        ]
    ),
    writes={
        ControlPlaneReconciler.name: policy_rules(
            [
                may(KUBEADM_CONTROL_PLANE, "patch", status=True),
                may(KUBEADM_CONTROL_PLANE, "update", subresource="finalizers"),
                may(MACHINE, "create", "delete", "patch"),
                may(MACHINE, "patch", subresource="status"),
                may(KUBEADM_CONFIG, "create", "delete", "patch"),
                may_in([_INFRASTRUCTURE], "create", "delete", "patch"),
                may(SECRET, "create", "delete", "get", "patch"),
            ]
        ),
    },
)


def create_bootstrap_controllers(runtime: Runtime) -> list[Controller]:
    """Create the bootstrap provider's controllers for a process."""
    return bootstrap_controllers(
        runtime.shared(workloads_of),
        runtime.api,
        runtime.clock,
        runtime.randomness,
        runtime.api_of,
        lifetime=runtime.settings.of(Lifetime),
    )


def create_control_plane_controllers(runtime: Runtime) -> list[Controller]:
    """Create the control plane provider's controllers for a process."""
    etcd = forwarded_etcd(runtime)
    return control_plane_controllers(
        runtime.shared(workloads_of), etcd.connect, runtime.api, runtime.clock, runtime.api_of
    )


def bootstrap_controllers(
    workloads: Workloads,
    api: Api,
    clock: Clock,
    randomness: Randomness,
    api_of: Callable[[str], Api | None],
    *,
    lifetime: Lifetime | None = None,
) -> list[Controller]:
    """Create the controllers of the bootstrap provider (CABPK).

    Args:
        workloads: the connections to workload clusters.
        api: the manager's API, for controllers without their own identity.
        clock: the clock for the lifetime of tokens.
        randomness: the source of tokens.
        api_of: the API under the identity of a controller, by its name; None for the manager's.
        lifetime: the lifetime of tokens; 15 minutes by default.
    """
    reconciler = KubeadmConfigReconciler(lifetime)
    own = api_of(reconciler.name)
    outside = Outside(own or api, workloads.api, clock, randomness, lifetime or Lifetime())
    return [
        Controller(
            reconciler,
            performers=performers(outside),
            resolvers={**workload_resolvers(workloads), **resolvers(outside)},
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
    """Create the controllers of the control plane provider (CACPK).

    Args:
        workloads: the connections to workload clusters.
        etcd: connects to the etcd members of workload clusters.
        api: the manager's API, for controllers without their own identity.
        clock: the clock for the validity of certificates.
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
            resolvers={**workload_resolvers(workloads), **inspector.resolvers()},
            api=own,
            feeds=(workloads.feed,),
        )
    ]
