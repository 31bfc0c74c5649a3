"""Defaults and validation of the variables in a Cluster, and the JSON schemas that this takes.

Source: kubernetes-sigs/cluster-api: internal/topology/variables (cluster_variable_defaulting.go,
cluster_variable_validation.go), core/webhooks/admission/cluster.go (DefaultAndValidateVariables).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Protocol

import msgspec

from ironbell.api.cluster.classes.clusterclass import ClusterClassStatusVariable
from ironbell.api.cluster.topology import ClusterVariable, Topology, VariableOverrides
from ironbell.api.meta import to_builtin
from ironbell.contract.admission import FieldProblem, invalid, required, type_invalid
from ironbell.kube.decision import Fields

ROOT = "spec.topology"


def with_defaults(topology: Topology, definitions: Sequence[ClusterClassStatusVariable], schemas: Schemas) -> Topology:
    """The topology with defaults for its variables; variables without a definition stay unchanged.

    A missing variable is created if its schema has a default; an override is not.
    """
    known = _usable(definitions)
    workers = topology.workers

    def overrides(held: VariableOverrides) -> VariableOverrides:
        if not held.overrides:
            return held
        return VariableOverrides(overrides=_defaulted(held.overrides, known, schemas, create=False))

    plane = topology.control_plane
    return msgspec.structs.replace(
        topology,
        variables=_defaulted(topology.variables, known, schemas, create=True),
        control_plane=msgspec.structs.replace(plane, variables=overrides(plane.variables)),
        workers=msgspec.structs.replace(
            workers,
            machine_deployments=[
                msgspec.structs.replace(worker, variables=overrides(worker.variables))
                for worker in workers.machine_deployments
            ],
            machine_pools=[
                msgspec.structs.replace(worker, variables=overrides(worker.variables))
                for worker in workers.machine_pools
            ],
        ),
    )


def problems(
    topology: Topology,
    old: Topology | None,
    definitions: Sequence[ClusterClassStatusVariable],
    schemas: Schemas,
) -> list[FieldProblem]:
    """The problems of a topology's variables, defaults included."""
    return list(_problems(topology, old, definitions, schemas))


def _problems(
    topology: Topology,
    old: Topology | None,
    definitions: Sequence[ClusterClassStatusVariable],
    schemas: Schemas,
) -> Iterator[FieldProblem]:
    unusable = [
        f'variable "{definition.name}" has {"conflicting" if definition.definitions_conflict else "no"} definitions'
        for definition in definitions
        if definition.definitions_conflict or not definition.definitions
    ]
    if unusable:
        detail = f"variable definitions in the ClusterClass not valid: {', '.join(unusable)}"
        paths = [path for path, overrides, _ in _overrides(topology, old) if overrides]
        for path in (f"{ROOT}.variables", *paths):
            yield type_invalid(path, [definition.name for definition in definitions], detail)
        return
    known = _usable(definitions)
    for name, definition in known.items():
        if definition.definitions[0].required_ and all(variable.name != name for variable in topology.variables):
            yield required(f"{ROOT}.variables", f'required variable "{name}" must be set')
    yield from _list_problems(topology.variables, old.variables if old else (), known, schemas, f"{ROOT}.variables")
    for path, values, old_values in _overrides(topology, old):
        yield from _list_problems(values, old_values, known, schemas, path)


def _overrides(
    topology: Topology, old: Topology | None
) -> Iterator[tuple[str, Sequence[ClusterVariable], Sequence[ClusterVariable]]]:
    plane = topology.control_plane.variables.overrides
    old_overrides = old.control_plane.variables.overrides if old is not None else []
    yield f"{ROOT}.controlPlane.variables.overrides", plane, old_overrides
    old_deployments = {worker.name: worker for worker in old.workers.machine_deployments} if old is not None else {}
    for worker in topology.workers.machine_deployments:
        path = f"{ROOT}.workers.machineDeployments[{worker.name}].variables.overrides"
        old_worker = old_deployments.get(worker.name)
        yield path, worker.variables.overrides, old_worker.variables.overrides if old_worker is not None else []
    old_pools = {worker.name: worker for worker in old.workers.machine_pools} if old is not None else {}
    for pool in topology.workers.machine_pools:
        path = f"{ROOT}.workers.machinePools[{pool.name}].variables.overrides"
        old_pool = old_pools.get(pool.name)
        yield path, pool.variables.overrides, old_pool.variables.overrides if old_pool is not None else []


def _list_problems(
    values: Sequence[ClusterVariable],
    old: Sequence[ClusterVariable],
    known: Mapping[str, ClusterClassStatusVariable],
    schemas: Schemas,
    path: str,
) -> Iterator[FieldProblem]:
    old_values = {variable.name: variable.value for variable in old}
    seen: set[str] = set()
    for variable in values:
        where = f"{path}[{variable.name}]"
        if variable.name in seen:
            yield invalid(where, variable.value, f'variable "{variable.name}" is set more than once')
        seen.add(variable.name)
        definition = known.get(variable.name)
        if definition is None:
            yield invalid(where, variable.value, "variable is not defined")
            continue
        yield from _schema(definition, schemas).problems(
            variable.value, old_values.get(variable.name, UNSET), f"{where}.value"
        )


def _usable(definitions: Sequence[ClusterClassStatusVariable]) -> dict[str, ClusterClassStatusVariable]:
    return {
        definition.name: definition
        for definition in definitions
        if definition.definitions and not definition.definitions_conflict
    }


def _schema(definition: ClusterClassStatusVariable, schemas: Schemas) -> ValueSchema:
    return schemas.compiled(to_builtin(definition.definitions[0].schema.open_apiv3_schema))


def _defaulted(
    values: Sequence[ClusterVariable],
    known: Mapping[str, ClusterClassStatusVariable],
    schemas: Schemas,
    *,
    create: bool,
) -> list[ClusterVariable]:
    result = [
        ClusterVariable(name=variable.name, value=_schema(known[variable.name], schemas).default(variable.value))
        if variable.name in known
        else variable
        for variable in values
    ]
    if create:
        names = {variable.name for variable in values}
        for name, definition in known.items():
            value: Any = UNSET if name in names else _schema(definition, schemas).default(UNSET)
            if value is not UNSET:
                result.append(ClusterVariable(name=name, value=value))
    return result


UNSET: Final = object()
"""Marks a missing old value."""


class ValueSchema(Protocol):
    """The schema of one variable."""

    def default(self, value: Any) -> Any:
        """The value with defaults below it; for `UNSET` the schema's own default, `UNSET` if it has none."""
        ...

    def problems(self, value: Any, old: Any, path: str) -> list[FieldProblem]:
        """The problems of a value at a path: its structure, unknown fields, rules."""
        ...


class Schemas(Protocol):
    """Reads schemas of classes (`openAPIV3Schema`). The machinery of the embedded API implements it."""

    def compiled(self, schema: Fields) -> ValueSchema:
        """The compiled schema of values. It may be requested often."""
        ...

    def problems(self, schema: Fields, path: str) -> list[FieldProblem]:
        """The problems of the schema itself."""
        ...
