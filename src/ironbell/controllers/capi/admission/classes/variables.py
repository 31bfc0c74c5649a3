"""Variables of a ClusterClass as they are written: names and schemas.

Source: kubernetes-sigs/cluster-api: internal/topology/variables/clusterclass_variable_validation.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ironbell.contract.admission import FieldProblem, invalid, required
from ironbell.controllers.capi.admission import checks
from ironbell.controllers.capi.admission.checks import at
from ironbell.controllers.capi.topology.variables.schemas import UNSET, Schemas
from ironbell.kube.decision import Fields


def variable_problems(spec: Fields) -> Iterator[FieldProblem]:
    """What is wrong with names and metadata of variables."""
    seen: set[str] = set()
    for one in at(spec, "variables") or ():
        name = str(at(one, "name") or "")
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
        old_metadata = at(one, "deprecatedV1Beta1Metadata")
        yield from checks.metadata_problems(old_metadata, f"{path}.deprecatedV1Beta1Metadata")
        yield from _metadata_problems(at(one, "schema", "openAPIV3Schema"), f"{path}.schema.openAPIV3Schema")


def schema_problems(class_: Fields, schemas: Schemas) -> Iterator[FieldProblem]:
    """What is wrong with the schemas of variables: their structure, defaults and rules."""
    for one in at(class_, "spec", "variables") or ():
        schema = at(one, "schema", "openAPIV3Schema")
        if not isinstance(schema, dict):
            continue
        path = f"spec.variables[{at(one, 'name')}].schema.openAPIV3Schema"
        found = schemas.problems(schema, path)
        yield from found or _value_problems(schema, schemas, path)


def _value_problems(schema: Any, schemas: Schemas, path: str) -> Iterator[FieldProblem]:
    """Values in a sound schema that do not fit it: alternatives and examples, at any depth."""
    if not isinstance(schema, dict):
        return
    listed = schema.get("enum")
    shown = [(one, f"{path}.enum[{number}]") for number, one in enumerate(listed if isinstance(listed, list) else ())]
    if "example" in schema:
        shown.append((schema["example"], f"{path}.example"))
    shown = [(value, where) for value, where in shown if value is not None]
    if shown:
        compiled = schemas.compiled(schema)
        for value, where in shown:
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
