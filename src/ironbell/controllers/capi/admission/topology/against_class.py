"""The topology of a Cluster against the class that it names.

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
from ironbell.controllers.capi.topology.variables.schemas import Schemas
from ironbell.kube.decision import Fields

_VARIABLES_READY: Final = "VariablesReady"
_WORDS: Final = {DEPLOYMENTS: "MachineDeploymentClass", POOLS: "MachinePoolClass"}


def class_key(cluster: Fields | None) -> tuple[str, str]:
    """Namespace and name of a Cluster's class; an empty name if it names none."""
    reference = at(cluster, "spec", "topology", "classRef")
    namespace = at(reference, "namespace") or at(cluster, "metadata", "namespace") or ""
    return str(namespace), str(at(reference, "name") or "")


def is_reconciled(class_: Fields) -> bool:
    """Whether the variables in a class's status are those of its spec."""
    if at(class_, "metadata", "generation") != at(class_, "status", "observedGeneration"):
        return False
    conditions = at(class_, "status", "conditions") or ()
    return any(one.get("type") == _VARIABLES_READY and one.get("status") != "False" for one in conditions)


def with_variables(cluster: Fields, class_: Fields, schemas: Schemas) -> Fields:
    """The Cluster with its variables filled in; as it is if it has faults that schemas will tell."""
    read = _read(cluster, class_)
    if read is None:
        return cluster
    topology, definitions = read
    filled = values.with_defaults(topology, definitions, schemas)
    if filled == topology:
        return cluster
    made: Fields = at(cluster, "spec", "topology")
    made = _put_variables(made, filled.variables, "variables")
    made = _put_variables(made, filled.control_plane.variables.overrides, "controlPlane", "variables", "overrides")
    filled_workers: dict[str, Sequence[MachineDeploymentTopology | MachinePoolTopology]] = {
        DEPLOYMENTS: filled.workers.machine_deployments,
        POOLS: filled.workers.machine_pools,
    }
    for kind, found in filled_workers.items():
        held = at(made, "workers", kind)
        if held:
            filled_in = [
                _put_variables(one, of.variables.overrides, "variables", "overrides")
                for one, of in zip(held, found, strict=True)
            ]
            made = put(made, filled_in, "workers", kind)
    return put(cluster, made, "spec", "topology")


def variable_problems(cluster: Fields, old: Fields | None, class_: Fields, schemas: Schemas) -> list[FieldProblem]:
    """What is wrong with the values of variables, defaults filled in."""
    read = _read(cluster, class_)
    if read is None:
        return []
    topology, definitions = read
    before = _read(old, class_) if old is not None else None
    filled = values.with_defaults(topology, definitions, schemas)
    return values.problems(filled, before[0] if before is not None else None, definitions, schemas)


def class_problems(cluster: Fields, class_: Fields) -> Iterator[FieldProblem]:
    """What a class does not allow, variables aside."""
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
    """Numbers of workers whose class gives them to an autoscaler."""
    classes = at(class_, "spec", "workers", DEPLOYMENTS) or ()
    autoscaled = {at(one, "class") for one in classes if is_autoscaled(at(one, "metadata"))}
    for one, path in workers(at(cluster, "spec", "topology"), DEPLOYMENTS):
        if one.get("replicas") is not None and one.get("class") in autoscaled:
            where = f"Cluster {at(cluster, 'metadata', 'namespace')}/{at(cluster, 'metadata', 'name')}"
            detail = f"cannot be set in {where} while its class {one.get('class')} has bounds for the autoscaler"
            yield invalid(f"{path}.replicas", one["replicas"], detail)


def class_workers(class_: Fields, kind: str) -> dict[str, Fields]:
    """The classes of workers that a ClusterClass has, by name."""
    return {str(one.get("class")): one for one in at(class_, "spec", "workers", kind) or () if isinstance(one, dict)}


def has_health_check(part: Any) -> bool:
    """Whether a health check is written out, not only enabled or disabled."""
    check = at(part, "healthCheck")
    return bool(at(check, "checks") or at(check, "remediation"))


def relies_on_class(part: Any) -> bool:
    """Whether a part of a topology asks for the health check of its class."""
    return at(part, "healthCheck", "enabled") is True and not has_health_check(part)


def _worker_problems(topology: Any, class_: Fields, kind: str) -> Iterator[FieldProblem]:
    classes, seen = class_workers(class_, kind), set[str]()
    for number, (one, _) in enumerate(workers(topology, kind)):
        path, of, name = f"{ROOT}.workers.{kind}[{number}]", str(one.get("class") or ""), str(one.get("name") or "")
        if of not in classes:
            known = f"it has {', '.join(sorted(classes))}" if classes else "it has none"
            detail = f'{_WORDS[kind]} with name "{of}" does not exist in ClusterClass "{_name(class_)}": {known}'
            yield invalid(f"{path}.class", of, detail)
        if name in seen:
            yield invalid(f"{path}.name", name, f'name must be unique, and "{name}" is there more than once')
        seen.add(name)


def _health_check_problems(topology: Any, spec: Fields) -> Iterator[FieldProblem]:
    plane, of = at(topology, "controlPlane"), at(spec, "controlPlane")
    path = f"{ROOT}.controlPlane.healthCheck"
    if has_health_check(plane) and not at(of, "machineInfrastructure", "templateRef", "name"):
        yield forbidden(path, "can be only set if spec.controlPlane.machineInfrastructure is set in ClusterClass")
    parts: list[tuple[Any, Any, str]] = [(plane, of, path)]
    classes = {str(one.get("class")): one for one in at(spec, "workers", DEPLOYMENTS) or ()}
    for one, where in workers(topology, DEPLOYMENTS):
        if str(one.get("class")) in classes:
            parts.append((one, classes[str(one.get("class"))], f"{where}.healthCheck"))
    for part, held, where in parts:
        if relies_on_class(part) and not has_health_check(held):
            detail = "cannot be set to true as neither the Cluster's topology nor the ClusterClass has a health check"
            yield forbidden(f"{where}.enabled", detail)


def _read(cluster: Fields, class_: Fields) -> tuple[Topology, Sequence[ClusterClassStatusVariable]] | None:
    try:
        topology = msgspec.convert(at(cluster, "spec", "topology"), Topology)
        found = msgspec.convert(at(class_, "status", "variables") or [], list[ClusterClassStatusVariable])
    except msgspec.ValidationError:
        return None
    return topology, found


def _put_variables(holder: Fields, found: Sequence[Any], *path: str) -> Fields:
    # a value may be null, which the struct leaves out
    plain = [{"value": None, **to_builtin(one)} for one in found]
    return put(holder, plain, *path) if plain else holder


def _name(class_: Fields) -> str:
    return str(at(class_, "metadata", "name"))
