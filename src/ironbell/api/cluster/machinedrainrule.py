"""MachineDrainRule: what is done with Pods when a Node is drained.

Source: kubernetes-sigs/cluster-api: api/core/v1beta2.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from ironbell.api.cluster.names import CORE_LABELS
from ironbell.api.crd.markers import Int32, Rule, Schema, required
from ironbell.api.kind import Column, Kind
from ironbell.api.meta import LabelSelector, Model, Resource


class MachineDrainRuleDrainBehavior(StrEnum):
    """Behavior of the drain for a matching Pod."""

    DRAIN = "Drain"
    SKIP = "Skip"
    WAIT_COMPLETED = "WaitCompleted"


class MachineDrainRuleDrainConfig(Model, frozen=True):
    """Behavior of the drain for the Pods, and their order."""

    behavior: Annotated[str, Schema(enum=tuple(MachineDrainRuleDrainBehavior))] = required(str)
    order: Int32 | None = None


class MachineDrainRuleMachineSelector(Model, frozen=True):
    """Machines by their labels and their cluster's."""

    schema_ = Schema(min_properties=1)

    selector: LabelSelector | None = None
    cluster_selector: LabelSelector | None = None


class MachineDrainRulePodSelector(Model, frozen=True):
    """Pods by their labels and their namespace's."""

    schema_ = Schema(min_properties=1)

    selector: LabelSelector | None = None
    namespace_selector: LabelSelector | None = None


class MachineDrainRuleSpec(Model, frozen=True):
    """Pods on Machines that the rule selects, and how they are drained."""

    drain: MachineDrainRuleDrainConfig = required(MachineDrainRuleDrainConfig)
    machines: Annotated[
        list[MachineDrainRuleMachineSelector],
        Schema(
            min_items=1,
            max_items=32,
            rules=(Rule("self.all(x, self.exists_one(y, x == y))", "entries in machines must be unique"),),
            list_type="atomic",
        ),
    ] = []
    pods: Annotated[
        list[MachineDrainRulePodSelector],
        Schema(
            min_items=1,
            max_items=32,
            rules=(Rule("self.all(x, self.exists_one(y, x == y))", "entries in pods must be unique"),),
            list_type="atomic",
        ),
    ] = []


class MachineDrainRule(Resource, frozen=True):
    """Rule for Pods when their Machine's Node is drained."""

    schema_ = Schema(required=("metadata",))

    spec: MachineDrainRuleSpec = required(MachineDrainRuleSpec)


MACHINE_DRAIN_RULE: Kind[MachineDrainRule] = Kind(
    group="cluster.x-k8s.io",
    version="v1beta2",
    kind="MachineDrainRule",
    plural="machinedrainrules",
    model=MachineDrainRule,
    categories=("cluster-api",),
    columns=(
        Column("Behavior", ".spec.drain.behavior"),
        Column("Order", ".spec.drain.order"),
        Column("Age", ".metadata.creationTimestamp", "date"),
    ),
    crd_labels=CORE_LABELS,
    older_versions="ironbell.api.cluster",
)
