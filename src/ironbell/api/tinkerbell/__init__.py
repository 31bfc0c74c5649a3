"""Group `tinkerbell.org`: machines, and what is done on them."""

from ironbell.api.tinkerbell.hardware import HARDWARE
from ironbell.api.tinkerbell.template import TEMPLATE
from ironbell.api.tinkerbell.workflow import WORKFLOW
from ironbell.api.tinkerbell.workflowruleset import WORKFLOW_RULE_SET

__all__ = ["HARDWARE", "TEMPLATE", "WORKFLOW", "WORKFLOW_RULE_SET"]
