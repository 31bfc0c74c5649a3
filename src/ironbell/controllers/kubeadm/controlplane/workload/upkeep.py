"""What a control plane keeps in step inside its cluster: kubeadm's configuration, kube-proxy, CoreDNS. Pure.

`kubeadm-config` and kubeadm's roles are brought to the version to be before the first Machine of it joins; kube-proxy
and CoreDNS follow when all Machines are there.

Source: kubernetes-sigs/cluster-api: controlplane/kubeadm/reconcilers/kubeadmcontrolplane/update.go
(updateControlPlane).
"""

from __future__ import annotations

from typing import Any

from ironbell.api.cluster.names import ANNOTATION_SKIP_COREDNS, ANNOTATION_SKIP_KUBE_PROXY
from ironbell.api.controlplane.kubeadmcontrolplane import KubeadmControlPlane
from ironbell.base.errors import IronbellError
from ironbell.controllers.kubeadm.controlplane.model import ControlPlane
from ironbell.controllers.kubeadm.controlplane.observed import Asked
from ironbell.controllers.kubeadm.controlplane.steps import Step
from ironbell.controllers.kubeadm.controlplane.workload.addons import coredns_change, kube_proxy_image
from ironbell.controllers.kubeadm.controlplane.workload.corefile import check_migration
from ironbell.controllers.kubeadm.controlplane.workload.effects import prepare_upgrade, set_coredns, set_kube_proxy
from ironbell.controllers.kubeadm.controlplane.workload.kubeadmconfigmap import upgraded
from ironbell.controllers.kubeadm.controlplane.workload.queries import ROLLOUT_S, STEADY_S, AddonsView
from ironbell.kube.decision import Fact, Fields, Need, Waiting
from ironbell.workload.clusterkey import ClusterKey


def needs(kcp: KubeadmControlPlane, asked: Asked, *, initialized: bool, rolls: bool, busy: bool) -> list[Need[Any]]:
    """What has to be known for it."""
    if not initialized:
        return []
    if rolls:
        return [Need(asked.kubeadm_config, ROLLOUT_S)]
    return [] if busy or _skips_all(kcp) else [Need(asked.addons, STEADY_S)]


def before_rollout(
    fact: Fact[str | None] | None, cluster: ClusterKey, config_spec: Fields, version: tuple[int, int, int]
) -> Step | None:
    """The step that precedes the next Machine of a rollout, by kubeadm-config as it was read; None if there is none."""
    if fact is None or fact.error is not None or fact.at is None:
        return Step(waiting=Waiting("InProgress", "kubeadm-config of the workload cluster is being read"))
    if not fact.value:
        return Step(waiting=Waiting("KubeadmConfigMissing", "the workload cluster has no ConfigMap kubeadm-config"))
    configuration: Fields = config_spec.get("clusterConfiguration", {})
    try:
        document = upgraded(fact.value, configuration, version)
    except IronbellError as error:
        return Step(waiting=Waiting(error.reason, error.message))
    if document == fact.value:
        return None
    effect = prepare_upgrade(cluster, configuration, version)
    return Step((effect,), Waiting("InProgress", "kubeadm-config of the workload cluster is being updated"))


def steady(
    fact: Fact[AddonsView] | None, plane: ControlPlane, config_spec: Fields, version: tuple[int, int, int]
) -> Step:
    """The step once all Machines are what they should be, by the addons as they were read."""
    kcp, cluster = plane.kcp, ClusterKey.of(plane.cluster)
    view = fact.value if fact is not None and fact.error is None else None
    if view is None or plane.outdated or not plane.machines:
        return Step(done=True)
    configuration: Fields = config_spec.get("clusterConfiguration", {})
    annotations = kcp.metadata.annotations
    try:
        if view.kube_proxy_image and ANNOTATION_SKIP_KUBE_PROXY not in annotations:
            image = kube_proxy_image(view.kube_proxy_image, kcp.spec.version, configuration)
            if image != view.kube_proxy_image:
                return Step((set_kube_proxy(cluster, image),), Waiting("InProgress", "kube-proxy gets another image"))
        if view.coredns_image and view.corefile and configuration and ANNOTATION_SKIP_COREDNS not in annotations:
            change = coredns_change(view.coredns_image, configuration)
            if change is not None:
                check_migration(change.from_version, change.to_version)
                effect = set_coredns(cluster, change, configuration, version)
                return Step((effect,), Waiting("InProgress", "CoreDNS gets another image"))
    except IronbellError as error:
        return Step(waiting=Waiting(error.reason, error.message), done=True)
    return Step(done=True)


def _skips_all(kcp: KubeadmControlPlane) -> bool:
    return {ANNOTATION_SKIP_COREDNS, ANNOTATION_SKIP_KUBE_PROXY} <= kcp.metadata.annotations.keys()
