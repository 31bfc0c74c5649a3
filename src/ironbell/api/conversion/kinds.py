"""All kinds that have an older version, with the rules for it."""

from __future__ import annotations

from typing import Any, Final

from ironbell.api import addons, bootstrap, cluster, clusteripam, clusterruntime, controlplane
from ironbell.api.addons import conversion as addons_rules
from ironbell.api.bootstrap import conversion as bootstrap_rules
from ironbell.api.cluster.conversion.cluster import CLUSTER
from ironbell.api.cluster.conversion.clusterclass import CLUSTER_CLASS
from ironbell.api.cluster.conversion.health import MACHINE_HEALTH_CHECK
from ironbell.api.cluster.conversion.machines import MACHINE, MACHINE_DEPLOYMENT, MACHINE_POOL, MACHINE_SET
from ironbell.api.clusteripam import conversion as ipam_rules
from ironbell.api.clusterruntime import conversion as runtime_rules
from ironbell.api.controlplane import conversion as controlplane_rules
from ironbell.api.conversion.convert import Versions
from ironbell.api.conversion.rules import Rule
from ironbell.api.kind import Kind

_OLD: Final = "v1beta1"
_OLDEST: Final = "v1alpha1"


def _annotated(kind: Kind[Any], rules: tuple[Rule, ...]) -> Versions:
    return Versions(kind, {_OLD: rules}, frozenset({_OLD}))


VERSIONS: Final = (
    _annotated(cluster.CLUSTER, CLUSTER),
    _annotated(cluster.MACHINE, MACHINE),
    Versions(cluster.MACHINE_SET, {_OLD: MACHINE_SET}),
    _annotated(cluster.MACHINE_DEPLOYMENT, MACHINE_DEPLOYMENT),
    _annotated(cluster.MACHINE_POOL, MACHINE_POOL),
    _annotated(cluster.MACHINE_HEALTH_CHECK, MACHINE_HEALTH_CHECK),
    Versions(cluster.MACHINE_DRAIN_RULE, {_OLD: ()}),
    _annotated(cluster.CLUSTER_CLASS, CLUSTER_CLASS),
    _annotated(bootstrap.KUBEADM_CONFIG, bootstrap_rules.KUBEADM_CONFIG),
    _annotated(bootstrap.KUBEADM_CONFIG_TEMPLATE, bootstrap_rules.KUBEADM_CONFIG_TEMPLATE),
    _annotated(controlplane.KUBEADM_CONTROL_PLANE, controlplane_rules.KUBEADM_CONTROL_PLANE),
    _annotated(controlplane.KUBEADM_CONTROL_PLANE_TEMPLATE, controlplane_rules.KUBEADM_CONTROL_PLANE_TEMPLATE),
    Versions(addons.CLUSTER_RESOURCE_SET, {_OLD: addons_rules.CLUSTER_RESOURCE_SET}),
    Versions(addons.CLUSTER_RESOURCE_SET_BINDING, {_OLD: addons_rules.CLUSTER_RESOURCE_SET_BINDING}),
    Versions(clusteripam.IP_ADDRESS, {_OLDEST: ipam_rules.IP_ADDRESS, _OLD: ipam_rules.IP_ADDRESS}),
    Versions(
        clusteripam.IP_ADDRESS_CLAIM,
        {_OLDEST: ipam_rules.IP_ADDRESS_CLAIM_V1ALPHA1, _OLD: ipam_rules.IP_ADDRESS_CLAIM},
        frozenset({_OLDEST}),
    ),
    Versions(clusterruntime.EXTENSION_CONFIG, {_OLDEST: runtime_rules.EXTENSION_CONFIG}),
)
