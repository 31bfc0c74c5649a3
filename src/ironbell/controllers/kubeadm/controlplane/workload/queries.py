"""The controller's queries about a workload cluster.

Queries for Nodes are in `workload.queries`, and are answered from a watch. The queries here cost requests each time:
Pods and objects in `kube-system` by name (Pods are never listed), and etcd through a port-forward to one of its Pods.
The reconciler repeats them rarely while the cluster is healthy, and before it acts on their results.

Source: kubernetes-sigs/cluster-api: controlplane/kubeadm/pkg/{workload_cluster,workload_cluster_conditions}.go.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Final

from ironbell.kube.decision import Query
from ironbell.workload.clusterkey import ClusterKey
from ironbell.workload.etcd import Alarm, Member

CALM_S: Final = 300.0
"""Maximum age of facts about Pods and etcd while the cluster is healthy. Actions need fresher facts."""
ROLLOUT_S: Final = 60.0
"""Maximum age of `kubeadm-config`."""
STEADY_S: Final = 600.0
"""Maximum age of the images of kube-proxy and CoreDNS."""
KUBECONFIG_S: Final = 24 * 3600.0
"""Maximum age of the expiry of a kubeconfig."""


@dataclass(frozen=True, slots=True)
class ContainerView:
    """The status of a container in a Pod; fields are empty if they are not set."""

    waiting: str = ""
    terminated: str = ""
    last_exit_code: int = 0


@dataclass(frozen=True, slots=True)
class PodView:
    """The relevant fields of a static Pod's status."""

    phase: str = ""
    conditions: tuple[tuple[str, str], ...] = ()
    containers: tuple[ContainerView, ...] = ()

    def condition(self, type_: str) -> str:
        """Return the status of a condition; Unknown if the Pod does not have it."""
        return next((status for name, status in self.conditions if name == type_), "Unknown")


@dataclass(frozen=True, slots=True)
class PodAnswer:
    """A static Pod, or the error of its query; neither if the Pod does not exist."""

    node: str
    component: str
    pod: PodView | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class ComponentsView:
    """Nodes with the control plane's label, and the static Pods of the queried nodes."""

    labelled: tuple[str, ...]
    pods: tuple[PodAnswer, ...]

    def pod(self, node: str, component: str) -> PodAnswer | None:
        """Return the Pod of a component on a node; None if it was not queried."""
        return next((answer for answer in self.pods if (answer.node, answer.component) == (node, component)), None)


@dataclass(frozen=True, slots=True)
class Components(Query[ComponentsView]):
    """Query for the control plane's Pods on these nodes, and for all nodes with its label."""

    subject: ClassVar[str] = "the pods of the control plane"

    cluster: ClusterKey
    nodes: tuple[str, ...]
    etcd: bool


@dataclass(frozen=True, slots=True)
class EtcdView:
    """The state of an etcd cluster, as one of its members reports it."""

    members: tuple[Member, ...]
    leader_id: int
    alarms: tuple[Alarm, ...] = ()

    @property
    def leader(self) -> Member | None:
        """The leading member."""
        return next((member for member in self.members if member.id == self.leader_id), None)

    def named(self, name: str) -> Member | None:
        """Return the member of this name, which is that of its node."""
        return next((member for member in self.members if member.name == name), None)


@dataclass(frozen=True, slots=True)
class EtcdCluster(Query[EtcdView]):
    """Query for members, leader and alarms, through any of these nodes.

    Fails with `EtcdUnreachableError` if no node can be connected to, else with `EtcdError`.
    """

    subject: ClassVar[str] = "the members of etcd"

    cluster: ClusterKey
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class KubeadmConfigMap(Query["str | None"]):
    """Query for `ClusterConfiguration` of the ConfigMap `kubeadm-config`; None if the ConfigMap does not exist."""

    subject: ClassVar[str] = "kubeadm's ConfigMap"

    cluster: ClusterKey


@dataclass(frozen=True, slots=True)
class AddonsView:
    """The installed images of kube-proxy and CoreDNS; empty if they are not installed."""

    kube_proxy_image: str = ""
    coredns_image: str = ""
    corefile: str = ""


@dataclass(frozen=True, slots=True)
class Addons(Query[AddonsView]):
    """Query for the images of kube-proxy and CoreDNS, and the Corefile."""

    subject: ClassVar[str] = "the add-ons of kubeadm"

    cluster: ClusterKey


@dataclass(frozen=True, slots=True)
class ServingCertificate(Query[datetime]):
    """Query for the expiry of the serving certificate of a node's API server."""

    subject: ClassVar[str] = "the API server's certificate"

    cluster: ClusterKey
    node: str
    port: int


@dataclass(frozen=True, slots=True)
class KubeconfigEnd(Query["datetime | None"]):
    """Query for the expiry of the client certificate in the Secret `<cluster>-kubeconfig`; None if it does not exist.

    `version` is the Secret's resourceVersion: another content is another query.
    """

    subject: ClassVar[str] = "the expiry of the kubeconfig"

    cluster: ClusterKey
    version: str
