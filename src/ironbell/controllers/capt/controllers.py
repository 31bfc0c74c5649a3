"""The controllers of the Tinkerbell provider, and the permissions that each needs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ironbell.api.bmc import JOB
from ironbell.api.bmc import MACHINE as BMC_MACHINE
from ironbell.api.capt import (
    TINKERBELL_CLUSTER,
    TINKERBELL_MACHINE,
    TINKERBELL_MACHINE_TEMPLATE,
    TINKERBELL_REMEDIATION,
)
from ironbell.api.client import Api
from ironbell.api.cluster import CLUSTER, MACHINE
from ironbell.api.core import CUSTOM_RESOURCE_DEFINITION, NAMESPACE, SECRET
from ironbell.api.tinkerbell import HARDWARE, TEMPLATE, WORKFLOW
from ironbell.contract.access import READ, Permissions, may, may_in, may_read, policy_rules
from ironbell.contract.servers.node_images import NO_IMAGES, ImageSource
from ironbell.contract.servers.racks import INSTALLS_PER_RACK
from ironbell.contract.system import Runtime
from ironbell.controllers.capt.cluster import TinkerbellClusterReconciler
from ironbell.controllers.capt.machine import TinkerbellMachineReconciler
from ironbell.controllers.capt.machine_template import TinkerbellMachineTemplateReconciler
from ironbell.controllers.capt.remediation import TinkerbellRemediationReconciler
from ironbell.kube.manager.controller import Controller
from ironbell.kube.reconciler import Resolvers
from ironbell.provisioner.effects import image_resolvers, performers
from ironbell.provisioner.lifecycle.due import WipeDueReconciler
from ironbell.provisioner.node_images import InstallSettings
from ironbell.workload.access import Workloads, resolvers
from ironbell.workload.following import workloads_of
from ironbell.workload.kubeconfigs import http_link
from ironbell.workload.link import Connect
from ironbell.workload.nodes import Nodes

CLUSTER_NAME: Final = "capt-cluster"
MACHINE_NAME: Final = "capt-machine"
REMEDIATION_NAME: Final = "capt-remediation"
BOOTSTRAP_DATA: Final = "capt-bootstrap-data"
"""The identity that reads bootstrap data when it is given to the metadata service, and the kubeconfig of a cluster
whose Node is queried: after a restore, or because the Node does not report which machine it is."""

_SERVES_SERVERS: Final = (
    may(HARDWARE, "patch"),
    may(TEMPLATE, "create", "delete"),
    may(WORKFLOW, "create", "delete"),
    may(JOB, "create", "delete"),
)
PERMISSIONS: Final = Permissions(
    reads=policy_rules(
        [
            *may_read(TINKERBELL_CLUSTER, TINKERBELL_MACHINE, TINKERBELL_MACHINE_TEMPLATE, TINKERBELL_REMEDIATION),
            *may_read(CLUSTER, MACHINE),
            may_in(["controlplane.cluster.x-k8s.io"], *READ),  # the versions and servers that control planes need
            *may_read(CUSTOM_RESOURCE_DEFINITION, HARDWARE, TEMPLATE, WORKFLOW, JOB, BMC_MACHINE),
            *may_read(NAMESPACE, SECRET),  # who may claim the servers of a Namespace; which Secrets exist
        ]
    ),
    # `finalizers` is for owner references that block deletion
    writes={
        CLUSTER_NAME: policy_rules(
            [may(TINKERBELL_CLUSTER, "patch", status=True), may(CLUSTER, "update", subresource="finalizers")]
        ),
        MACHINE_NAME: policy_rules(
            [
                may(TINKERBELL_MACHINE, "patch", status=True),
                may(TINKERBELL_MACHINE, "update", subresource="finalizers"),
                may(MACHINE, "patch", status=True),
                *_SERVES_SERVERS,
            ]
        ),
        TinkerbellMachineTemplateReconciler.name: policy_rules(
            [may(TINKERBELL_MACHINE_TEMPLATE, "patch", subresource="status")]
        ),
        WipeDueReconciler.name: policy_rules(_SERVES_SERVERS),
        REMEDIATION_NAME: policy_rules(
            [
                may(TINKERBELL_REMEDIATION, "patch", subresource="status"),
                may(TINKERBELL_CLUSTER, "patch"),
                may(TINKERBELL_MACHINE, "patch"),
                may(TINKERBELL_MACHINE, "update", subresource="finalizers"),
                may(MACHINE, "patch", subresource="status"),
                may(JOB, "create", "delete"),
            ]
        ),
    },
    identities={BOOTSTRAP_DATA: policy_rules([may(SECRET, "get")])},
)


def create_controllers(runtime: Runtime) -> list[Controller]:
    """Create the system's controllers for a process."""
    settings = runtime.settings.of(InstallSettings)
    return controllers(
        runtime.own_api(BOOTSTRAP_DATA),
        settings.metadata_url,
        runtime.api_of,
        at_once=settings.per_rack,
        images=settings.images,
        image_resolvers=image_resolvers(settings.images),
        workloads=runtime.shared(workloads_of),
    )


def controllers(
    bootstrap_data: Api,
    site: str,
    api_of: Callable[[str], Api | None],
    *,
    at_once: int = INSTALLS_PER_RACK,
    images: ImageSource = NO_IMAGES,
    image_resolvers: Resolvers | None = None,
    workloads: Workloads,
    connect: Connect = http_link,
) -> list[Controller]:
    """Create the controllers.

    Args:
        bootstrap_data: the API under an identity that may read Secrets.
        site: address at which machines reach the metadata service, such as `http://192.0.2.1:7080`; empty if it is not
            known: then the default template cannot be used.
        api_of: the API under the identity of a controller, by its name; None for the manager's.
        at_once: maximum number of servers in a rack that are powered on at the same time; 0 means no limit.
        images: source of images for machines that name none.
        image_resolvers: resolvers that list the available images.
        workloads: connections to workload clusters: their Nodes are watched while servers boot.
        connect: opens a connection to a workload cluster, for rare queries.
    """
    nodes = Nodes(bootstrap_data, connect)
    machine = TinkerbellMachineReconciler(site, name=MACHINE_NAME, at_once=at_once, images=images)
    return [
        Controller(TinkerbellClusterReconciler(), workers=4, api=api_of(CLUSTER_NAME)),
        Controller(
            machine,
            performers={**performers(bootstrap_data), **nodes.performers()},
            resolvers={**nodes.resolvers(), **resolvers(workloads), **(image_resolvers or {})},
            feeds=(workloads.feed,),
            api=api_of(MACHINE_NAME),
        ),
        Controller(WipeDueReconciler(at_once), workers=2, api=api_of(WipeDueReconciler.name)),
        Controller(TinkerbellMachineTemplateReconciler(), api=api_of(TinkerbellMachineTemplateReconciler.name)),
        Controller(TinkerbellRemediationReconciler(at_once), workers=2, api=api_of(REMEDIATION_NAME)),
    ]
