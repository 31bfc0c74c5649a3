"""Updates in the workload cluster: kubeadm's configuration, kube-proxy and CoreDNS. Pure.

`kubeadm-config` and kubeadm's roles are updated before the first Machine of a new version joins; kube-proxy and CoreDNS
are updated when all Machines have it.

Source: kubernetes-sigs/cluster-api: controlplane/kubeadm/reconcilers/kubeadmcontrolplane/update.go
(updateControlPlane).
"""

from __future__ import annotations

from typing import Any

from ironbell.api.cluster.names import ANNOTATION_SKIP_COREDNS, ANNOTATION_SKIP_KUBE_PROXY
from ironbell.api.controlplane.kubeadmcontrolplane import KubeadmControlPlane
from ironbell.base.errors import IronbellError
from ironbell.controllers.kubeadm.controlplane.model import ControlPlane
from ironbell.controllers.kubeadm.controlplane.observed import Queries
from ironbell.controllers.kubeadm.controlplane.steps import Step
from ironbell.controllers.kubeadm.controlplane.workload.addons import check_migration, coredns_change, kube_proxy_image
from ironbell.controllers.kubeadm.controlplane.workload.effects import prepare_upgrade, set_coredns, set_kube_proxy
from ironbell.controllers.kubeadm.controlplane.workload.kubeadmconfigmap import upgraded
from ironbell.controllers.kubeadm.controlplane.workload.queries import ROLLOUT_S, STEADY_S, AddonsView
from ironbell.kube.decision import Fact, Fields, Need, Waiting
from ironbell.workload.clusterkey import ClusterKey


def needs(kcp: KubeadmControlPlane, queries: Queries, *, initialized: bool, rolls: bool, busy: bool) -> list[Need[Any]]:
    """Return the needed queries."""
    if not initialized:
        return []
    if rolls:
        return [Need(queries.kubeadm_config, ROLLOUT_S)]
    return [] if busy or _skips_all(kcp) else [Need(queries.addons, STEADY_S)]


def before_rollout(
    fact: Fact[str | None] | None, cluster: ClusterKey, config_spec: Fields, version: tuple[int, int, int]
) -> Step | None:
    """Return the step that precedes the next Machine of a rollout; None if `kubeadm-config` is up to date."""
    if fact is None or fact.error is not None or fact.at is None:
        return Step(waiting=Waiting("InProgress", "Reading kubeadm-config of the workload cluster"))
    if not fact.value:
        return Step(waiting=Waiting("KubeadmConfigMissing", "The workload cluster has no ConfigMap kubeadm-config"))
    configuration: Fields = config_spec.get("clusterConfiguration", {})
    try:
        document = upgraded(fact.value, configuration, version)
    except IronbellError as error:
        return Step(waiting=Waiting(error.reason, error.message))
    if document == fact.value:
        return None
    effect = prepare_upgrade(cluster, configuration, version)
    return Step((effect,), Waiting("InProgress", "Updating kubeadm-config of the workload cluster"))


def steady(
    fact: Fact[AddonsView] | None, plane: ControlPlane, config_spec: Fields, version: tuple[int, int, int]
) -> Step:
    """Return the step once all Machines are up to date, which updates the addons."""
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
                return Step(
                    (set_kube_proxy(cluster, image),), Waiting("InProgress", "Updating the image of kube-proxy")
                )
        if view.coredns_image and view.corefile and configuration and ANNOTATION_SKIP_COREDNS not in annotations:
            change = coredns_change(view.coredns_image, configuration)
            if change is not None:
                check_migration(change.from_version, change.to_version)
                effect = set_coredns(cluster, change, configuration, version)
                return Step((effect,), Waiting("InProgress", "Updating the image of CoreDNS"))
    except IronbellError as error:
        return Step(waiting=Waiting(error.reason, error.message), done=True)
    return Step(done=True)


def _skips_all(kcp: KubeadmControlPlane) -> bool:
    return {ANNOTATION_SKIP_COREDNS, ANNOTATION_SKIP_KUBE_PROXY} <= kcp.metadata.annotations.keys()
