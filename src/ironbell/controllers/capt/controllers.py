"""The controllers of the Tinkerbell provider, ready to be added to a manager, and what each must be allowed to write.

Reading is the manager's identity's business, of Secrets that one is there. What is in a bootstrap Secret is read by
one more identity, at the moment it is given to the metadata service.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from ironbell.api.client import Api
from ironbell.contract.node_images import NO_IMAGES, ImageSource
from ironbell.contract.racks import INSTALLS_PER_RACK
from ironbell.controllers.capt.cluster import TinkerbellClusterReconciler
from ironbell.controllers.capt.due import WipeDueReconciler
from ironbell.controllers.capt.machine import TinkerbellMachineReconciler
from ironbell.controllers.capt.machine_template import TinkerbellMachineTemplateReconciler
from ironbell.controllers.capt.nodes import Nodes
from ironbell.controllers.capt.performers import performers
from ironbell.controllers.capt.remediation import TinkerbellRemediationReconciler
from ironbell.kube.controller import Controller
from ironbell.kube.reconciler import Askers
from ironbell.workload.access import Workloads
from ironbell.workload.askers import askers
from ironbell.workload.kubeconfigs import http_link
from ironbell.workload.link import Connect

_CORE, _CLUSTER, _TINKERBELL, _BMC = [""], ["cluster.x-k8s.io"], ["tinkerbell.org"], ["bmc.tinkerbell.org"]
_CONTROL_PLANE: Final = ["controlplane.cluster.x-k8s.io"]
_INFRASTRUCTURE: Final = ["infrastructure.cluster.x-k8s.io"]
CLUSTER_NAME: Final = "capt-cluster"
MACHINE_NAME: Final = "capt-machine"
REMEDIATION_NAME: Final = "capt-remediation"

WRITES: Final[Mapping[str, Sequence[Mapping[str, Sequence[str]]]]] = {
    CLUSTER_NAME: [
        {
            "apiGroups": _INFRASTRUCTURE,
            "resources": ["tinkerbellclusters", "tinkerbellclusters/status"],
            "verbs": ["patch"],
        },
        {"apiGroups": _CLUSTER, "resources": ["clusters/finalizers"], "verbs": ["update"]},
    ],
    MACHINE_NAME: [
        {
            "apiGroups": _INFRASTRUCTURE,
            "resources": ["tinkerbellmachines", "tinkerbellmachines/status"],
            "verbs": ["patch"],
        },
        {"apiGroups": _INFRASTRUCTURE, "resources": ["tinkerbellmachines/finalizers"], "verbs": ["update"]},
        {"apiGroups": _CLUSTER, "resources": ["machines", "machines/status"], "verbs": ["patch"]},
        {"apiGroups": _TINKERBELL, "resources": ["hardware"], "verbs": ["patch"]},
        {"apiGroups": _TINKERBELL, "resources": ["templates", "workflows"], "verbs": ["create", "delete"]},
        {"apiGroups": _BMC, "resources": ["jobs"], "verbs": ["create", "delete"]},
    ],
    TinkerbellMachineTemplateReconciler.name: [
        {"apiGroups": _INFRASTRUCTURE, "resources": ["tinkerbellmachinetemplates/status"], "verbs": ["patch"]},
    ],
    WipeDueReconciler.name: [
        {"apiGroups": _TINKERBELL, "resources": ["hardware"], "verbs": ["patch"]},
        {"apiGroups": _TINKERBELL, "resources": ["templates", "workflows"], "verbs": ["create", "delete"]},
        {"apiGroups": _BMC, "resources": ["jobs"], "verbs": ["create", "delete"]},
    ],
    REMEDIATION_NAME: [
        {
            "apiGroups": _INFRASTRUCTURE,
            "resources": ["tinkerbellremediations/status", "tinkerbellclusters", "tinkerbellmachines"],
            "verbs": ["patch"],
        },
        {"apiGroups": _INFRASTRUCTURE, "resources": ["tinkerbellmachines/finalizers"], "verbs": ["update"]},
        {"apiGroups": _CLUSTER, "resources": ["machines/status"], "verbs": ["patch"]},
        {"apiGroups": _BMC, "resources": ["jobs"], "verbs": ["create", "delete"]},
    ],
}
"""PolicyRules by the controller's name. `finalizers` is for owner references that block deletion."""

_READ: Final = ["get", "list", "watch"]
READS: Final[Sequence[Mapping[str, Sequence[str]]]] = [
    {
        "apiGroups": _INFRASTRUCTURE,
        "resources": [
            "tinkerbellclusters",
            "tinkerbellmachines",
            "tinkerbellmachinetemplates",
            "tinkerbellremediations",
        ],
        "verbs": _READ,
    },
    {"apiGroups": _CLUSTER, "resources": ["clusters", "machines"], "verbs": _READ},
    {"apiGroups": _CONTROL_PLANE, "resources": ["*"], "verbs": _READ},
    {"apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"], "verbs": _READ},
    {"apiGroups": _TINKERBELL, "resources": ["hardware", "templates", "workflows"], "verbs": _READ},
    {"apiGroups": _BMC, "resources": ["jobs", "machines"], "verbs": _READ},
    {"apiGroups": _CORE, "resources": ["namespaces", "secrets"], "verbs": _READ},
]
"""PolicyRules for what all of them watch: of Secrets, that one is there; of control planes, which servers they want; of
Namespaces, who may claim their servers."""

BOOTSTRAP_DATA_READS: Final[Sequence[Mapping[str, Sequence[str]]]] = [
    {"apiGroups": _CORE, "resources": ["secrets"], "verbs": ["get"]},
]
"""PolicyRules of the identity that bootstrap data is read under, and the kubeconfig of a cluster whose Node is asked
for: after a restore, or because it does not say which machine it is."""


def controllers(
    bootstrap_data: Api,
    site: str,
    api_of: Callable[[str], Api | None],
    *,
    at_once: int = INSTALLS_PER_RACK,
    images: ImageSource = NO_IMAGES,
    image_askers: Askers | None = None,
    workloads: Workloads,
    connect: Connect = http_link,
) -> list[Controller]:
    """The controllers.

    Args:
        bootstrap_data: the API under an identity that may read Secrets.
        site: where machines reach the metadata service, such as `http://192.0.2.1:7080`; empty if that is not known,
            then only templates of one's own can be used.
        api_of: the API under the identity of a controller, by its name; None for the manager's.
        at_once: how many servers of a rack are installed at the same time; 0 is no bound.
        images: where machines that name no image get theirs.
        image_askers: who reads which images there are.
        workloads: connections to the clusters that were made: their Nodes are watched while servers boot.
        connect: the way to a cluster that was made, for what is asked seldom.
    """
    nodes = Nodes(bootstrap_data, connect)
    machine = TinkerbellMachineReconciler(site, name=MACHINE_NAME, at_once=at_once, images=images)
    return [
        Controller(TinkerbellClusterReconciler(), workers=4, api=api_of(CLUSTER_NAME)),
        Controller(
            machine,
            performers={**performers(bootstrap_data), **nodes.performers()},
            askers={**nodes.askers(), **askers(workloads), **(image_askers or {})},
            feeds=(workloads.feed,),
            api=api_of(MACHINE_NAME),
        ),
        Controller(WipeDueReconciler(), workers=2, api=api_of(WipeDueReconciler.name)),
        Controller(TinkerbellMachineTemplateReconciler(), api=api_of(TinkerbellMachineTemplateReconciler.name)),
        Controller(TinkerbellRemediationReconciler(), workers=2, api=api_of(REMEDIATION_NAME)),
    ]
