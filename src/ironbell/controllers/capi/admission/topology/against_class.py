"""Validation of a Cluster's topology against its class.

Source: kubernetes-sigs/cluster-api: core/webhooks/admission/cluster.go (ValidateClusterForClusterClass,
validateMachineHealthChecks, validateAutoscalerAnnotationsForCluster), internal/topology/check/compatibility.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from ironbell.api.cluster.classes.clusterclass import ClusterClassStatusVariable
from ironbell.api.cluster.topology import MachineDeploymentTopology, MachinePoolTopology, Topology
from ironbell.api.meta import to_builtin
from ironbell.contract.admission import FieldProblem, forbidden, invalid
from ironbell.controllers.capi.admission.checks import at, put
from ironbell.controllers.capi.admission.topology.topology import DEPLOYMENTS, POOLS, ROOT, is_autoscaled, workers
from ironbell.controllers.capi.topology.variables import values
from ironbell.controllers.capi.topology.variables.values import Schemas
from ironbell.kube.decision import Fields

_VARIABLES_READY: Final = "VariablesReady"
_CLASS_KINDS: Final = {DEPLOYMENTS: "MachineDeploymentClass", POOLS: "MachinePoolClass"}


def class_key(cluster: Fields | None) -> tuple[str, str]:
    """Namespace and name of a Cluster's class; the name is empty if the Cluster has none."""
    reference = at(cluster, "spec", "topology", "classRef")
    namespace = at(reference, "namespace") or at(cluster, "metadata", "namespace") or ""
    return str(namespace), str(at(reference, "name") or "")


def is_reconciled(class_: Fields) -> bool:
    """Return whether the variables in a class's status are up to date with its spec."""
    if at(class_, "metadata", "generation") != at(class_, "status", "observedGeneration"):
        return False
    conditions = at(class_, "status", "conditions") or ()
    return any(
        condition.get("type") == _VARIABLES_READY and condition.get("status") != "False" for condition in conditions
    )


def with_variables(cluster: Fields, class_: Fields, schemas: Schemas) -> Fields:
    """Return the Cluster with defaults for its variables; unchanged if it has problems that its schema reports."""
    read = _read(cluster, class_)
    if read is None:
        return cluster
    topology, definitions = read
    filled = values.with_defaults(topology, definitions, schemas)
    if filled == topology:
        return cluster
    result: Fields = at(cluster, "spec", "topology")
    result = _put_variables(result, filled.variables, "variables")
    result = _put_variables(result, filled.control_plane.variables.overrides, "controlPlane", "variables", "overrides")
    filled_workers: dict[str, Sequence[MachineDeploymentTopology | MachinePoolTopology]] = {
        DEPLOYMENTS: filled.workers.machine_deployments,
        POOLS: filled.workers.machine_pools,
    }
    for kind, workers_with_defaults in filled_workers.items():
        old_workers = at(result, "workers", kind)
        if old_workers:
            new_workers = [
                _put_variables(worker, with_defaults.variables.overrides, "variables", "overrides")
                for worker, with_defaults in zip(old_workers, workers_with_defaults, strict=True)
            ]
            result = put(result, new_workers, "workers", kind)
    return put(cluster, result, "spec", "topology")


def variable_problems(cluster: Fields, old: Fields | None, class_: Fields, schemas: Schemas) -> list[FieldProblem]:
    """Check the values of variables, with defaults."""
    read = _read(cluster, class_)
    if read is None:
        return []
    topology, definitions = read
    old_topology = _read(old, class_) if old is not None else None
    filled = values.with_defaults(topology, definitions, schemas)
    return values.problems(filled, old_topology[0] if old_topology is not None else None, definitions, schemas)


def class_problems(cluster: Fields, class_: Fields) -> Iterator[FieldProblem]:
    """Check a topology against its class, except for variables."""
    topology, spec = at(cluster, "spec", "topology"), at(class_, "spec") or {}
    versions, version = at(spec, "kubernetesVersions") or (), at(topology, "version")
    if versions and version not in versions:
        detail = f"version must match one of the versions defined in the ClusterClass: {', '.join(map(str, versions))}"
        yield invalid(f"{ROOT}.version", version, detail)
    for kind in (DEPLOYMENTS, POOLS):
        yield from _worker_problems(topology, class_, kind)
    yield from _health_check_problems(topology, spec)
    yield from autoscaler_problems(cluster, class_)


def autoscaler_problems(cluster: Fields, class_: Fields) -> Iterator[FieldProblem]:
    """Check that the number of replicas is unset for workers whose class has bounds for the autoscaler."""
    classes = at(class_, "spec", "workers", DEPLOYMENTS) or ()
    autoscaled = {at(worker, "class") for worker in classes if is_autoscaled(at(worker, "metadata"))}
    for worker, path in workers(at(cluster, "spec", "topology"), DEPLOYMENTS):
        if worker.get("replicas") is not None and worker.get("class") in autoscaled:
            where = f"Cluster {at(cluster, 'metadata', 'namespace')}/{at(cluster, 'metadata', 'name')}"
            detail = f"cannot be set in {where} while its class {worker.get('class')} has bounds for the autoscaler"
            yield invalid(f"{path}.replicas", worker["replicas"], detail)


def class_workers(class_: Fields, kind: str) -> dict[str, Fields]:
    """The worker classes of a ClusterClass, by name."""
    return {
        str(worker.get("class")): worker
        for worker in at(class_, "spec", "workers", kind) or ()
        if isinstance(worker, dict)
    }


def has_health_check(part: Any) -> bool:
    """Return whether a health check is defined, not only enabled or disabled."""
    check = at(part, "healthCheck")
    return bool(at(check, "checks") or at(check, "remediation"))


def relies_on_class(part: Any) -> bool:
    """Return whether a part of a topology requests the health check of its class."""
    return at(part, "healthCheck", "enabled") is True and not has_health_check(part)


def _worker_problems(topology: Any, class_: Fields, kind: str) -> Iterator[FieldProblem]:
    classes, seen = class_workers(class_, kind), set[str]()
    for number, (worker, _) in enumerate(workers(topology, kind)):
        path, class_name, name = (
            f"{ROOT}.workers.{kind}[{number}]",
            str(worker.get("class") or ""),
            str(worker.get("name") or ""),
        )
        if class_name not in classes:
            known = f"it has {', '.join(sorted(classes))}" if classes else "it has none"
            missing = f'{_CLASS_KINDS[kind]} with name "{class_name}" does not exist in ClusterClass "{_name(class_)}"'
            yield invalid(f"{path}.class", class_name, f"{missing}: {known}")
        if name in seen:
            yield invalid(f"{path}.name", name, f'name must be unique, and "{name}" is used more than once')
        seen.add(name)


def _health_check_problems(topology: Any, spec: Fields) -> Iterator[FieldProblem]:
    plane, plane_class = at(topology, "controlPlane"), at(spec, "controlPlane")
    path = f"{ROOT}.controlPlane.healthCheck"
    if has_health_check(plane) and not at(plane_class, "machineInfrastructure", "templateRef", "name"):
        yield forbidden(path, "can be only set if spec.controlPlane.machineInfrastructure is set in ClusterClass")
    parts: list[tuple[Any, Any, str]] = [(plane, plane_class, path)]
    classes = {str(worker.get("class")): worker for worker in at(spec, "workers", DEPLOYMENTS) or ()}
    for worker, where in workers(topology, DEPLOYMENTS):
        if str(worker.get("class")) in classes:
            parts.append((worker, classes[str(worker.get("class"))], f"{where}.healthCheck"))
    for part, class_part, where in parts:
        if relies_on_class(part) and not has_health_check(class_part):
            detail = "cannot be set to true as neither the Cluster's topology nor the ClusterClass has a health check"
            yield forbidden(f"{where}.enabled", detail)


def _read(cluster: Fields, class_: Fields) -> tuple[Topology, Sequence[ClusterClassStatusVariable]] | None:
    try:
        topology = msgspec.convert(at(cluster, "spec", "topology"), Topology)
        definitions = msgspec.convert(at(class_, "status", "variables") or [], list[ClusterClassStatusVariable])
    except msgspec.ValidationError:
        return None
    return topology, definitions


def _put_variables(holder: Fields, variables: Sequence[Any], *path: str) -> Fields:
    # a value may be null, which the struct leaves out
    plain = [{"value": None, **to_builtin(variable)} for variable in variables]
    return put(holder, plain, *path) if plain else holder


def _name(class_: Fields) -> str:
    return str(at(class_, "metadata", "name"))
