"""The health, deletion and versions of Machines, as their owners report them.

Source: kubernetes-sigs/cluster-api: util/collections/machine_filters.go, internal/util/version/version.go,
core/reconcilers/machineset/machineset_controller_status.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final

from ironbell.api.cluster import CLUSTER
from ironbell.api.cluster.cluster import Cluster
from ironbell.api.cluster.common import StatusVersion
from ironbell.api.cluster.machine import Machine, MachineTemplateSpec
from ironbell.api.cluster.names import ANNOTATION_UPDATE_IN_PROGRESS
from ironbell.base.clock import parse_rfc3339
from ironbell.base.listing import listed
from ironbell.contract.clusters.external import External
from ironbell.contract.clusters.slow_deletions import stale_message
from ironbell.contract.clusters.versions import sort_key
from ironbell.contract.owners import owner_reference, owners_patch, with_owner
from ironbell.contract.templates import SUFFIX
from ironbell.kube.decision import MergePatch
from ironbell.kube.finalizers import is_deleting

_YOUNG: Final = timedelta(seconds=10)


def status_of(machine: Machine, condition_type: str) -> str:
    """Status of a condition; empty if it is missing."""
    for condition in machine.status.conditions:
        if condition.type == condition_type:
            return condition.status
    return ""


def is_true(machine: Machine, condition_type: str) -> bool:
    return status_of(machine, condition_type) == "True"


def is_false(machine: Machine, condition_type: str) -> bool:
    return status_of(machine, condition_type) == "False"


def has_node(machine: Machine) -> bool:
    """Return whether the Machine has a Node."""
    return bool(machine.status.node_ref.name)


def is_unhealthy(machine: Machine) -> bool:
    """Return whether a health check reports the Machine as unhealthy."""
    return is_false(machine, "HealthCheckSucceeded")


def is_to_be_remediated(machine: Machine) -> bool:
    """Return whether the Machine's owner is to replace it."""
    return is_unhealthy(machine) and is_false(machine, "OwnerRemediated")


def is_updating(machine: Machine) -> bool:
    """Return whether the Machine is being changed in place."""
    return ANNOTATION_UPDATE_IN_PROGRESS in machine.metadata.annotations


def counts_for_up_to_date(machine: Machine, now: datetime) -> bool:
    """Return whether UpToDate is expected of a Machine: very young Machines do not report it yet."""
    created = machine.metadata.creation_timestamp
    if status_of(machine, "UpToDate"):
        return True
    return created is not None and now - parse_rfc3339(created) > _YOUNG


def younger_until_s(machines: Iterable[Machine], now: datetime) -> float | None:
    """Seconds until the first of the Machines is expected to report UpToDate; None if none is so young."""
    waiting = [
        (parse_rfc3339(machine.metadata.creation_timestamp) + _YOUNG - now).total_seconds()
        for machine in machines
        if machine.metadata.creation_timestamp and not counts_for_up_to_date(machine, now)
    ]
    return max(min(waiting), 0.0) + 0.1 if waiting else None


def unhealthy_message(machines: Iterable[Machine], suffix: str) -> str:
    """The message that Machines are unhealthy and will not be replaced; empty if all are healthy."""
    names = [machine.metadata.name for machine in machines if is_unhealthy(machine)]
    if not names:
        return ""
    subject = "Machine {} is" if len(names) == 1 else "Machines {} are"
    return f"{subject.format(listed(sorted(names)))} not healthy (not to be remediated{suffix})"


def stale_line(machines: Iterable[Machine], now: datetime) -> str:
    """The same as a further line of a message."""
    message = stale_message(machines, now)
    return f"\n* {message}" if message else ""


def versions_of(machines: Sequence[Machine]) -> list[StatusVersion]:
    """Number of Machines per version: the version that the kubelet reports, else the desired version."""
    counts: dict[str, int] = {}
    for machine in sorted(machines, key=lambda m: (m.metadata.creation_timestamp or "", m.metadata.name)):
        info = machine.status.node_info
        version = (info.kubelet_version if info is not None else "") or machine.spec.version
        if version:
            counts[version] = counts.get(version, 0) + 1
    return _ordered(counts)


def joined_versions(versions: Iterable[StatusVersion]) -> list[StatusVersion]:
    """Sum of the counts of several objects, by version."""
    counts: dict[str, int] = {}
    for version in versions:
        if version.version:
            counts[version.version] = counts.get(version.version, 0) + (version.replicas or 0)
    return _ordered(counts)


def _ordered(counts: dict[str, int]) -> list[StatusVersion]:
    return [StatusVersion(version=version, replicas=counts[version]) for version in sorted(counts, key=sort_key)]


def differences(current: MachineTemplateSpec, desired: MachineTemplateSpec) -> list[str]:
    """The differences that require another Machine, a line for each."""
    old, new = current.spec, desired.spec
    lines = []
    if old.version != new.version:
        lines.append(f"Version {old.version}, {new.version} required")
    if old.bootstrap != new.bootstrap:
        if old.bootstrap.config_ref.name:
            lines.append(_outdated(old.bootstrap.config_ref.kind))
        else:
            secrets = (old.bootstrap.data_secret_name or "nil", new.bootstrap.data_secret_name or "nil")
            lines.append("spec.bootstrap.dataSecretName {}, {} required".format(*secrets))
    if old.infrastructure_ref != new.infrastructure_ref:
        lines.append(_outdated(old.infrastructure_ref.kind))
    if old.failure_domain != new.failure_domain:
        lines.append(f"Failure domain {old.failure_domain}, {new.failure_domain} required")
    return lines


def _outdated(template_kind: str) -> str:
    return f"{template_kind.removesuffix(SUFFIX)} is not up-to-date"


def owned_template(cluster: Cluster, template: External | None) -> MergePatch | None:
    """The patch that makes the Cluster an owner of a template; None if nothing has to be changed."""
    if template is None or not template.exists or not template.reference.kind.endswith(SUFFIX):
        return None
    if is_deleting(cluster) or template.is_deleting:
        return None
    kind, obj = template.kind_and_object
    return owners_patch(kind, obj, with_owner(obj.metadata.owner_references, owner_reference(CLUSTER, cluster)))
