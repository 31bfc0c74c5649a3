"""Values of variables in a Cluster: filled in, and checked.

Source: kubernetes-sigs/cluster-api: internal/topology/variables (cluster_variable_defaulting.go,
cluster_variable_validation.go), core/webhooks/admission/cluster.go (DefaultAndValidateVariables).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from ironbell.api.cluster.classes.clusterclass import ClusterClassStatusVariable
from ironbell.api.cluster.topology import ClusterVariable, Topology, VariableOverrides
from ironbell.api.meta import to_builtin
from ironbell.contract.admission import FieldProblem, invalid, required, type_invalid
from ironbell.controllers.capi.topology.variables.schemas import UNSET, Schemas, ValueSchema

ROOT = "spec.topology"


def with_defaults(topology: Topology, definitions: Sequence[ClusterClassStatusVariable], schemas: Schemas) -> Topology:
    """The topology with its variables filled in; those that nobody defined stay as they are.

    A variable that is missing is made if its schema has a default; an override is not.
    """
    known = _usable(definitions)
    workers = topology.workers

    def overrides(held: VariableOverrides) -> VariableOverrides:
        if not held.overrides:
            return held
        return VariableOverrides(overrides=_defaulted(held.overrides, known, schemas, make=False))

    plane = topology.control_plane
    return msgspec.structs.replace(
        topology,
        variables=_defaulted(topology.variables, known, schemas, make=True),
        control_plane=msgspec.structs.replace(plane, variables=overrides(plane.variables)),
        workers=msgspec.structs.replace(
            workers,
            machine_deployments=[
                msgspec.structs.replace(one, variables=overrides(one.variables)) for one in workers.machine_deployments
            ],
            machine_pools=[
                msgspec.structs.replace(one, variables=overrides(one.variables)) for one in workers.machine_pools
            ],
        ),
    )


def problems(
    topology: Topology,
    old: Topology | None,
    definitions: Sequence[ClusterClassStatusVariable],
    schemas: Schemas,
) -> list[FieldProblem]:
    """What is wrong with the values of a topology's variables, defaults filled in."""
    return list(_problems(topology, old, definitions, schemas))


def _problems(
    topology: Topology,
    old: Topology | None,
    definitions: Sequence[ClusterClassStatusVariable],
    schemas: Schemas,
) -> Iterator[FieldProblem]:
    unusable = [
        f'variable "{one.name}" has {"conflicting" if one.definitions_conflict else "no"} definitions'
        for one in definitions
        if one.definitions_conflict or not one.definitions
    ]
    if unusable:
        detail = f"variable definitions in the ClusterClass not valid: {', '.join(unusable)}"
        held = [path for path, overrides, _ in _overrides(topology, old) if overrides]
        for path in (f"{ROOT}.variables", *held):
            yield type_invalid(path, [one.name for one in definitions], detail)
        return
    known = _usable(definitions)
    for name, definition in known.items():
        if definition.definitions[0].required_ and all(one.name != name for one in topology.variables):
            yield required(f"{ROOT}.variables", f'required variable "{name}" must be set')
    yield from _list_problems(topology.variables, old.variables if old else (), known, schemas, f"{ROOT}.variables")
    for path, values, before in _overrides(topology, old):
        yield from _list_problems(values, before, known, schemas, path)


def _overrides(
    topology: Topology, old: Topology | None
) -> Iterator[tuple[str, Sequence[ClusterVariable], Sequence[ClusterVariable]]]:
    plane = topology.control_plane.variables.overrides
    before = old.control_plane.variables.overrides if old is not None else []
    yield f"{ROOT}.controlPlane.variables.overrides", plane, before
    held_deployments = {one.name: one for one in old.workers.machine_deployments} if old is not None else {}
    for one in topology.workers.machine_deployments:
        path = f"{ROOT}.workers.machineDeployments[{one.name}].variables.overrides"
        was = held_deployments.get(one.name)
        yield path, one.variables.overrides, was.variables.overrides if was is not None else []
    held_pools = {one.name: one for one in old.workers.machine_pools} if old is not None else {}
    for pool in topology.workers.machine_pools:
        path = f"{ROOT}.workers.machinePools[{pool.name}].variables.overrides"
        held = held_pools.get(pool.name)
        yield path, pool.variables.overrides, held.variables.overrides if held is not None else []


def _list_problems(
    values: Sequence[ClusterVariable],
    old: Sequence[ClusterVariable],
    known: Mapping[str, ClusterClassStatusVariable],
    schemas: Schemas,
    path: str,
) -> Iterator[FieldProblem]:
    before = {one.name: one.value for one in old}
    seen: set[str] = set()
    for one in values:
        where = f"{path}[{one.name}]"
        if one.name in seen:
            yield invalid(where, one.value, f'variable "{one.name}" is set more than once')
        seen.add(one.name)
        definition = known.get(one.name)
        if definition is None:
            yield invalid(where, one.value, "variable is not defined")
            continue
        yield from _schema(definition, schemas).problems(one.value, before.get(one.name, UNSET), f"{where}.value")


def _usable(definitions: Sequence[ClusterClassStatusVariable]) -> dict[str, ClusterClassStatusVariable]:
    return {one.name: one for one in definitions if one.definitions and not one.definitions_conflict}


def _schema(definition: ClusterClassStatusVariable, schemas: Schemas) -> ValueSchema:
    return schemas.compiled(to_builtin(definition.definitions[0].schema.open_apiv3_schema))


def _defaulted(
    values: Sequence[ClusterVariable],
    known: Mapping[str, ClusterClassStatusVariable],
    schemas: Schemas,
    *,
    make: bool,
) -> list[ClusterVariable]:
    result = [
        ClusterVariable(name=one.name, value=_schema(known[one.name], schemas).default(one.value))
        if one.name in known
        else one
        for one in values
    ]
    if make:
        there = {one.name for one in values}
        for name, definition in known.items():
            value: Any = UNSET if name in there else _schema(definition, schemas).default(UNSET)
            if value is not UNSET:
                result.append(ClusterVariable(name=name, value=value))
    return result
