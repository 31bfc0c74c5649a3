"""Validation of the variables of a ClusterClass: their names and schemas.

Source: kubernetes-sigs/cluster-api: internal/topology/variables/clusterclass_variable_validation.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ironbell.contract.admission import FieldProblem, invalid, required
from ironbell.controllers.capi.admission import checks
from ironbell.controllers.capi.admission.checks import at
from ironbell.controllers.capi.topology.variables.values import UNSET, Schemas
from ironbell.kube.decision import Fields


def variable_problems(spec: Fields) -> Iterator[FieldProblem]:
    """Check the names and metadata of variables."""
    seen: set[str] = set()
    for variable in at(spec, "variables") or ():
        name = str(at(variable, "name") or "")
        path = f"spec.variables[{name}]"
        if not name:
            yield required(f"{path}.name", "variable name must be defined")
        if name in seen:
            detail = f'variable name must be unique. Variable with name "{name}" is defined more than once'
            yield invalid(f"{path}.name", name, detail)
        if name == "builtin":
            yield invalid(f"{path}.name", name, '"builtin" is a reserved variable name')
        if "." in name:
            yield invalid(f"{path}.name", name, 'variable name cannot contain "."')
        seen.add(name)
        old_metadata = at(variable, "deprecatedV1Beta1Metadata")
        yield from checks.metadata_problems(old_metadata, f"{path}.deprecatedV1Beta1Metadata")
        yield from _metadata_problems(at(variable, "schema", "openAPIV3Schema"), f"{path}.schema.openAPIV3Schema")


def schema_problems(class_: Fields, schemas: Schemas) -> Iterator[FieldProblem]:
    """Check the schemas of variables: their structure, defaults and rules."""
    for variable in at(class_, "spec", "variables") or ():
        schema = at(variable, "schema", "openAPIV3Schema")
        if not isinstance(schema, dict):
            continue
        path = f"spec.variables[{at(variable, 'name')}].schema.openAPIV3Schema"
        yield from schemas.problems(schema, path) or _value_problems(schema, schemas, path)


def _value_problems(schema: Any, schemas: Schemas, path: str) -> Iterator[FieldProblem]:
    """Check the values in a valid schema: alternatives and examples, at any depth."""
    if not isinstance(schema, dict):
        return
    alternatives = schema.get("enum")
    values = [
        (value, f"{path}.enum[{number}]")
        for number, value in enumerate(alternatives if isinstance(alternatives, list) else ())
    ]
    if "example" in schema:
        values.append((schema["example"], f"{path}.example"))
    if values := [(value, where) for value, where in values if value is not None]:
        compiled = schemas.compiled(schema)
        for value, where in values:
            yield from compiled.problems(value, UNSET, where)
    for inner, where in _inner(schema, path):
        yield from _value_problems(inner, schemas, where)


def _inner(schema: Fields, path: str) -> Iterator[tuple[Any, str]]:
    for name in ("additionalProperties", "items"):
        yield schema.get(name), f"{path}.{name}"
    properties = schema.get("properties")
    for name, inner in properties.items() if isinstance(properties, dict) else ():
        yield inner, f"{path}.properties[{name}]"


def _metadata_problems(schema: Any, path: str) -> Iterator[FieldProblem]:
    if not isinstance(schema, dict):
        return
    yield from checks.metadata_problems(schema.get("x-metadata"), f"{path}.x-metadata")
    for inner, where in _inner(schema, path):
        yield from _metadata_problems(inner, where)
