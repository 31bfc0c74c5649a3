"""Group `infrastructure.cluster.x-k8s.io`, provider Tinkerbell: clusters and machines made of Hardware."""

from typing import Any

from ironbell.api.capt.tinkerbellcluster import TINKERBELL_CLUSTER
from ironbell.api.capt.tinkerbellclustertemplate import TINKERBELL_CLUSTER_TEMPLATE
from ironbell.api.capt.tinkerbellmachine import TINKERBELL_MACHINE
from ironbell.api.capt.tinkerbellmachinetemplate import TINKERBELL_MACHINE_TEMPLATE
from ironbell.api.capt.tinkerbellremediation import TINKERBELL_REMEDIATION, TINKERBELL_REMEDIATION_TEMPLATE
from ironbell.api.kind import Kind

KINDS: tuple[Kind[Any], ...] = (
    TINKERBELL_CLUSTER,
    TINKERBELL_CLUSTER_TEMPLATE,
    TINKERBELL_MACHINE,
    TINKERBELL_MACHINE_TEMPLATE,
    TINKERBELL_REMEDIATION,
    TINKERBELL_REMEDIATION_TEMPLATE,
)
"""All of them, in the order in which they are shown."""

__all__ = [
    "KINDS",
    "TINKERBELL_CLUSTER",
    "TINKERBELL_CLUSTER_TEMPLATE",
    "TINKERBELL_MACHINE",
    "TINKERBELL_MACHINE_TEMPLATE",
    "TINKERBELL_REMEDIATION",
    "TINKERBELL_REMEDIATION_TEMPLATE",
]
