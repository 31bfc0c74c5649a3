"""The controller of TinkerbellMachineTemplates: what their machines have at least, so that an autoscaler can begin at
zero.

A machine takes only Hardware that has what the template asks for, so that is what its node has at least: cores as
CPUs (hardware threads come on top), and memory. Who asks for nothing is told nothing: annotations of the
MachineDeployment say it then.

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


def capacity(wanted: HardwareRequirements | None) -> dict[str, int | str]:
    """What a node has at least, as resources."""
    if wanted is None:
        return {}
    found: dict[str, int | str] = {}
    if wanted.cpu_cores > 0:
        found["cpu"] = str(wanted.cpu_cores)
    if is_quantity(wanted.memory) and amount(wanted.memory) > 0:
        found["memory"] = canonical(wanted.memory)
    return found


def node_info(wanted: HardwareRequirements | None) -> NodeInfo | None:
    """What a node says of itself, where the template leaves no choice."""
    architecture = wanted.architecture.lower() if wanted is not None else ""
    return NodeInfo(architecture=architecture, operating_system=_LINUX) if architecture in _ARCHITECTURES else None


class TinkerbellMachineTemplateReconciler:
    """Keeps `status.capacity` and `status.nodeInfo`."""

    name = "capt-machine-template"
    declaration = Declaration(TINKERBELL_MACHINE_TEMPLATE)

    def observe(self, cache: Cache, key: Key) -> TinkerbellMachineTemplate | None:
        template = cache.get(TINKERBELL_MACHINE_TEMPLATE, *key)
        return None if template is None or is_deleting(template) else template

    def decide(self, observed: TinkerbellMachineTemplate, now: datetime) -> Decision:
        del now
        wanted = observed.spec.template.spec.hardware_requirements
        status = msgspec.structs.replace(observed.status, capacity=capacity(wanted), node_info=node_info(wanted))
        return do(status_change(TINKERBELL_MACHINE_TEMPLATE, observed, observed.status, status))
