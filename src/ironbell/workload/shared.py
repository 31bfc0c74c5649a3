"""The connections to workload clusters that all controllers of a process share."""

from __future__ import annotations

from typing import Final

from ironbell.contract.system import Runtime
from ironbell.workload.access import Workloads
from ironbell.workload.etcd_forward import ForwardedEtcd
from ironbell.workload.following import follow, kubeconfigs_from
from ironbell.workload.kubeconfigs import http_link

WORKLOAD_ACCESS: Final = "workload-access"
"""The identity that reads the kubeconfigs of workload clusters."""


def workloads_of(runtime: Runtime) -> Workloads:
    """Create connections to all workload clusters that have a kubeconfig; for `Runtime.shared`."""
    kubeconfigs = kubeconfigs_from(runtime.own_api(WORKLOAD_ACCESS))
    connections = Workloads(http_link, kubeconfigs, clock=runtime.clock, randomness=runtime.randomness)
    follow(connections, runtime.informers)
    return connections


def forwarded_etcd(runtime: Runtime) -> ForwardedEtcd:
    """Return access to the etcd members of workload clusters, through their API servers."""
    return ForwardedEtcd(runtime.shared(workloads_of), runtime.own_api(WORKLOAD_ACCESS), runtime.clock)
