"""What the controller asks about the inside of a workload cluster.

Nodes are asked for by `workload.queries`, from a watch. What is here costs requests each time it is asked: pods and
objects of `kube-system` by name (pods are never listed), and etcd through a port-forward to one of its pods. The
reconciler asks for it seldom while all is well, and anew before it acts on it.

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
"""How old may be what is known of pods and etcd while all is well. Before something is done, more is asked."""
ROLLOUT_S: Final = 60.0
"""The same of `kubeadm-config`."""
STEADY_S: Final = 600.0
"""The same of kube-proxy and CoreDNS."""
LOOK_S: Final = 24 * 3600.0
"""The same of the end of a kubeconfig."""


@dataclass(frozen=True, slots=True)
class ContainerView:
    """What a pod's status says of one container; empty where it says nothing."""

    waiting: str = ""
    terminated: str = ""
    last_exit_code: int = 0


@dataclass(frozen=True, slots=True)
class PodView:
    """What matters of a static pod's status."""

    phase: str = ""
    conditions: tuple[tuple[str, str], ...] = ()
    containers: tuple[ContainerView, ...] = ()

    def condition(self, type_: str) -> str:
        """The status of one of its conditions; Unknown if it has none."""
        return next((status for name, status in self.conditions if name == type_), "Unknown")


@dataclass(frozen=True, slots=True)
class PodAnswer:
    """One static pod: what was seen of it, or why nothing was; neither means that there is none."""

    node: str
    component: str
    pod: PodView | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class ComponentsView:
    """Nodes with the control plane's label, and the static pods of the nodes that were asked for."""

    labelled: tuple[str, ...]
    pods: tuple[PodAnswer, ...]

    def pod(self, node: str, component: str) -> PodAnswer | None:
        """The pod of a component on a node; None if it was not asked for."""
        return next((answer for answer in self.pods if (answer.node, answer.component) == (node, component)), None)


@dataclass(frozen=True, slots=True)
class Components(Query[ComponentsView]):
    """The control plane's pods on these nodes, and which nodes carry its label."""

    subject: ClassVar[str] = "the pods of the control plane"

    cluster: ClusterKey
    nodes: tuple[str, ...]
    etcd: bool


@dataclass(frozen=True, slots=True)
class EtcdView:
    """An etcd cluster, as one of its members sees it."""

    members: tuple[Member, ...]
    leader_id: int
    alarms: tuple[Alarm, ...] = ()

    @property
    def leader(self) -> Member | None:
        """The leading member."""
        return next((member for member in self.members if member.id == self.leader_id), None)

    def named(self, name: str) -> Member | None:
        """The member of this name, which is that of its node."""
        return next((member for member in self.members if member.name == name), None)


@dataclass(frozen=True, slots=True)
class EtcdCluster(Query[EtcdView]):
    """Members, leader and alarms; any of these nodes may be asked.

    Fails with `EtcdUnreachableError` when none of them can be connected to, else with `EtcdError`.
    """

    subject: ClassVar[str] = "the members of etcd"

    cluster: ClusterKey
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class KubeadmConfigMap(Query["str | None"]):
    """`ClusterConfiguration` of the ConfigMap `kubeadm-config`; None if there is no such ConfigMap."""

    subject: ClassVar[str] = "kubeadm's ConfigMap"

    cluster: ClusterKey


@dataclass(frozen=True, slots=True)
class AddonsView:
    """What runs of kube-proxy and CoreDNS; empty where there is none."""

    kube_proxy_image: str = ""
    coredns_image: str = ""
    corefile: str = ""


@dataclass(frozen=True, slots=True)
class Addons(Query[AddonsView]):
    """Images of kube-proxy and CoreDNS, and the Corefile."""

    subject: ClassVar[str] = "the add-ons of kubeadm"

    cluster: ClusterKey


@dataclass(frozen=True, slots=True)
class ServingCertificate(Query[datetime]):
    """When the certificate ends that the API server on a node shows."""

    subject: ClassVar[str] = "the API server's certificate"

    cluster: ClusterKey
    node: str
    port: int


@dataclass(frozen=True, slots=True)
class KubeconfigEnd(Query["datetime | None"]):
    """When the client certificate in the Secret `<cluster>-kubeconfig` ends; None if there is no such Secret.

    `version` is the Secret's resourceVersion: another content is another question.
    """

    subject: ClassVar[str] = "the expiry of the kubeconfig"

    cluster: ClusterKey
    version: str
