"""Group `tinkerbell.org`: machines, and what is done on them."""

from typing import Any

from ironbell.api.kind import Kind
from ironbell.api.tinkerbell.hardware import HARDWARE
from ironbell.api.tinkerbell.template import TEMPLATE
from ironbell.api.tinkerbell.workflow import WORKFLOW
from ironbell.api.tinkerbell.workflowruleset import WORKFLOW_RULE_SET

KINDS: tuple[Kind[Any], ...] = (HARDWARE, TEMPLATE, WORKFLOW, WORKFLOW_RULE_SET)
"""All of them, in the order in which they are shown."""

__all__ = ["HARDWARE", "KINDS", "TEMPLATE", "WORKFLOW", "WORKFLOW_RULE_SET"]
