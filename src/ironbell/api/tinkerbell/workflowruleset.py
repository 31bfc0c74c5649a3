"""WorkflowRuleSet: which Workflow an agent without work gets.

Source: tinkerbell/tinkerbell: api/v1alpha1/tinkerbell/workflow_rule_set.go.
"""

from __future__ import annotations

from typing import Annotated

from ironbell.api.crd.markers import Schema
from ironbell.api.kind import Kind
from ironbell.api.meta import Model, Resource


class RuleSetTemplate(Model, frozen=True):
    """Template of the Workflow, and the values that go into it."""

    ref: Annotated[str, Schema("Name of the Template.")] = ""
    agent_value: Annotated[str, Schema("Template variable that receives the agent's id.")] = ""
    kvs: Annotated[dict[str, str], Schema("Further template variables; they win over agentValue.")] = {}


class RuleSetWorkflow(Model, frozen=True):
    """The Workflow that a match makes."""

    namespace: Annotated[str, Schema("Namespace that the Workflow is created in.")] = ""
    disabled: Annotated[bool | None, Schema("Whether the Workflow is created disabled.")] = None
    add_attributes: Annotated[bool, Schema("Keep the agent's attributes in an annotation of the Workflow.")] = False
    template: Annotated[RuleSetTemplate, Schema("Template of the Workflow.")] = RuleSetTemplate()


class WorkflowRuleSetSpec(Model, frozen=True):
    """Patterns, and what a match makes."""

    rules: Annotated[list[str], Schema("JSON patterns over the agent's attributes; one match is enough.")] = []
    workflow: Annotated[RuleSetWorkflow, Schema("The Workflow that a match makes.")] = RuleSetWorkflow()


class WorkflowRuleSetStatus(Model, frozen=True):
    """Empty so far."""


class WorkflowRuleSet(Resource, frozen=True):
    """Gives a Workflow to agents whose attributes match a pattern."""

    spec: WorkflowRuleSetSpec = WorkflowRuleSetSpec()
    status: WorkflowRuleSetStatus = WorkflowRuleSetStatus()


WORKFLOW_RULE_SET: Kind[WorkflowRuleSet] = Kind(
    group="tinkerbell.org",
    version="v1alpha1",
    kind="WorkflowRuleSet",
    plural="workflowrulesets",
    model=WorkflowRuleSet,
    short_names=("wrs",),
    categories=("tinkerbell",),
    has_status=True,
)
