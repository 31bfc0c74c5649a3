"""The controller of TinkerbellMachineTemplates: it reports the least capacity of their Nodes, so that an autoscaler
can scale from zero.

A machine claims only Hardware that meets the template's requirements, so its Node has at least that much: cores as
CPUs (hardware threads come on top), and memory. For a template without requirements nothing is reported; annotations
of the MachineDeployment can state the capacity.

Source: kubernetes-sigs/cluster-api: docs/book/src/developer/providers/contracts/infra-machine.md (autoscaling from
zero); docs/proposals/20210310-opt-in-autoscaling-from-zero.md.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

import msgspec

from ironbell.api.capt import TINKERBELL_MACHINE_TEMPLATE
from ironbell.api.capt.tinkerbellmachinetemplate import NodeInfo, TinkerbellMachineTemplate
from ironbell.api.tinkerbell.inventory import HardwareRequirements
from ironbell.base.quantities import amount, canonical, is_quantity
from ironbell.kube.decision import Decision, Key, do
from ironbell.kube.finalizers import is_deleting
from ironbell.kube.patches import status_change
from ironbell.kube.reconciler import Cache, Declaration

_ARCHITECTURES: Final = ("amd64", "arm64", "s390x", "ppc64le")
_LINUX: Final = "linux"


def capacity(requirements: HardwareRequirements | None) -> dict[str, int | str]:
    """Return the least capacity of a Node, as resources."""
    if requirements is None:
        return {}
    resources: dict[str, int | str] = {}
    if requirements.cpu_cores > 0:
        resources["cpu"] = str(requirements.cpu_cores)
    if is_quantity(requirements.memory) and amount(requirements.memory) > 0:
        resources["memory"] = canonical(requirements.memory)
    return resources


def node_info(requirements: HardwareRequirements | None) -> NodeInfo | None:
    """Return the architecture and operating system of the Nodes, if the template fixes them."""
    architecture = requirements.architecture.lower() if requirements is not None else ""
    return NodeInfo(architecture=architecture, operating_system=_LINUX) if architecture in _ARCHITECTURES else None


class TinkerbellMachineTemplateReconciler:
    """Keeps `status.capacity` and `status.nodeInfo` up to date."""

    name = "capt-machine-template"
    declaration = Declaration(TINKERBELL_MACHINE_TEMPLATE)

    def observe(self, cache: Cache, key: Key) -> TinkerbellMachineTemplate | None:
        template = cache.get(TINKERBELL_MACHINE_TEMPLATE, *key)
        return None if template is None or is_deleting(template) else template

    def decide(self, observed: TinkerbellMachineTemplate, now: datetime) -> Decision:
        del now
        requirements = observed.spec.template.spec.hardware_requirements
        status = msgspec.structs.replace(
            observed.status, capacity=capacity(requirements), node_info=node_info(requirements)
        )
        return do(status_change(TINKERBELL_MACHINE_TEMPLATE, observed, observed.status, status))
