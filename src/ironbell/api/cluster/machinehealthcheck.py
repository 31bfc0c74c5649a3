"""MachineHealthCheck: which Machines are unhealthy, and what is done with them.

Source: kubernetes-sigs/cluster-api: api/core/v1beta2.
"""

from __future__ import annotations

from typing import Annotated

from ironbell.api.cluster.common import QUALIFIED_NAME, TemplateReference
from ironbell.api.cluster.deprecated import DeprecatedConditionsStatus
from ironbell.api.cluster.names import CORE_LABELS
from ironbell.api.crd.markers import Int32, Int64, Rule, Schema, Text63, Text253, required
from ironbell.api.kind import Column, Kind
from ironbell.api.meta import Condition, LabelSelector, Model, Resource


class UnhealthyNodeCondition(Model, frozen=True):
    """A Node condition that makes a Machine unhealthy after some time."""

    schema_ = Schema(required=("timeoutSeconds",))

    type: Annotated[str, Schema(min_length=1)] = required(str)
    status: Annotated[str, Schema(min_length=1)] = required(str)
    timeout_seconds: Annotated[Int32 | None, Schema(minimum=0)] = None


class UnhealthyMachineCondition(Model, frozen=True):
    """A Machine condition that makes a Machine unhealthy after some time."""

    schema_ = Schema(required=("timeoutSeconds",))

    type: Annotated[
        str,
        Schema(
            pattern=QUALIFIED_NAME,
            min_length=1,
            max_length=316,
            rules=(
                Rule(
                    (
                        "!(self in ['Ready','Available','HealthCheckSucceeded','OwnerRemediated','Exter"
                        "nallyRemediated'])"
                    ),
                    (
                        "type must not be one of: Ready, Available, HealthCheckSucceeded, "
                        "OwnerRemediated, ExternallyRemediated"
                    ),
                ),
            ),
        ),
    ] = required(str)
    status: Annotated[str, Schema(enum=("True", "False", "Unknown"))] = required(str)
    timeout_seconds: Annotated[Int32 | None, Schema(minimum=0)] = None


class MachineHealthCheckChecks(Model, frozen=True):
    """Conditions under which a Machine is unhealthy."""

    schema_ = Schema(min_properties=1)

    node_startup_timeout_seconds: Annotated[Int32 | None, Schema(minimum=0)] = None
    unhealthy_node_conditions: Annotated[
        list[UnhealthyNodeCondition], Schema(min_items=1, max_items=100, list_type="atomic")
    ] = []
    unhealthy_machine_conditions: Annotated[
        list[UnhealthyMachineCondition], Schema(min_items=1, max_items=100, list_type="atomic")
    ] = []


class MachineHealthCheckRemediationTriggerIf(Model, frozen=True):
    """Limits within which Machines are remediated."""

    schema_ = Schema(min_properties=1)

    unhealthy_less_than_or_equal_to: Annotated[int | str | None, Schema(int_or_string=True)] = None
    unhealthy_in_range: Annotated[str, Schema(pattern=r"^\[[0-9]+-[0-9]+\]$", min_length=1, max_length=32)] = ""


class MachineHealthCheckRemediation(Model, frozen=True):
    """Limits and template of the remediation of unhealthy Machines."""

    schema_ = Schema(min_properties=1)

    trigger_if: MachineHealthCheckRemediationTriggerIf = MachineHealthCheckRemediationTriggerIf()
    template_ref: TemplateReference = TemplateReference()


class MachineDeploymentHealthCheckRemediation(Model, frozen=True):
    """Limits and template of the remediation of unhealthy worker Machines."""

    schema_ = Schema(min_properties=1)

    max_in_flight: Annotated[int | str | None, Schema(int_or_string=True)] = None
    trigger_if: MachineHealthCheckRemediationTriggerIf = MachineHealthCheckRemediationTriggerIf()
    template_ref: TemplateReference = TemplateReference()


class MachineHealthCheckSpec(Model, frozen=True):
    """Machines that are checked, and the checks."""

    cluster_name: Text63 = required(str)
    selector: LabelSelector = required(LabelSelector)
    checks: MachineHealthCheckChecks = MachineHealthCheckChecks()
    remediation: MachineHealthCheckRemediation = MachineHealthCheckRemediation()


class MachineHealthCheckStatus(Model, frozen=True):
    """Observed state: numbers of Machines that are checked, and that are healthy."""

    schema_ = Schema(min_properties=1)

    conditions: Annotated[list[Condition], Schema(max_items=32, list_type="map", list_map_keys=("type",))] = []
    expected_machines: Annotated[Int32 | None, Schema(minimum=0)] = None
    current_healthy: Annotated[Int32 | None, Schema(minimum=0)] = None
    remediations_allowed: Annotated[Int32 | None, Schema(minimum=0)] = None
    observed_generation: Annotated[Int64, Schema(minimum=1)] = 0
    targets: Annotated[list[Text253], Schema(max_items=10000, list_type="atomic")] = []
    deprecated: DeprecatedConditionsStatus | None = None


class MachineHealthCheck(Resource, frozen=True):
    """Health check of Machines, and the remediation of unhealthy ones."""

    spec: MachineHealthCheckSpec = required(MachineHealthCheckSpec)
    status: MachineHealthCheckStatus = MachineHealthCheckStatus()


MACHINE_HEALTH_CHECK: Kind[MachineHealthCheck] = Kind(
    group="cluster.x-k8s.io",
    version="v1beta2",
    kind="MachineHealthCheck",
    plural="machinehealthchecks",
    model=MachineHealthCheck,
    short_names=("mhc", "mhcs"),
    categories=("cluster-api",),
    columns=(
        Column("Cluster", ".spec.clusterName"),
        Column("Replicas", ".status.expectedMachines", "integer"),
        Column("Healthy", ".status.currentHealthy", "integer"),
        Column("Paused", '.status.conditions[?(@.type=="Paused")].status', priority=10),
        Column("Age", ".metadata.creationTimestamp", "date"),
    ),
    has_status=True,
    crd_labels=CORE_LABELS,
    older_versions="ironbell.api.cluster",
)
