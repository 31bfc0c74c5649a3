"""Validation of the patches of a ClusterClass.

Source: kubernetes-sigs/cluster-api: core/webhooks/admission/patch_validation.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from ironbell.contract.admission import FieldProblem, forbidden, invalid, not_supported, required
from ironbell.controllers.capi.admission.checks import at, label_key_problem
from ironbell.controllers.capi.topology.patches.items import is_named
from ironbell.controllers.capi.topology.patches.rendering import template_problem
from ironbell.controllers.capi.topology.variables.builtin import BUILTIN, is_builtin
from ironbell.kube.decision import Fields

_OPERATIONS: Final = ("add", "remove", "replace")
_NAME: Final = re.compile(r"[.\[]")
_INDEX: Final = re.compile(r"[+-]?[0-9]+")


def patch_problems(spec: Fields) -> Iterator[FieldProblem]:
    """Return the problems of a class's patches."""
    variables = {str(at(variable, "name")) for variable in at(spec, "variables") or ()}
    seen: set[str] = set()
    for number, patch in enumerate(at(spec, "patches") or ()):
        path, name = f"spec.patches[{number}]", str(at(patch, "name") or "")
        if name == "inline":
            yield required(f"{path}.name", '"inline" can not be used as the name of a patch')
        if name in seen:
            detail = f'patch names must be unique. Patch with name "{name}" is defined more than once'
            yield invalid(f"{path}.name", name, detail)
        seen.add(name)
        yield from _patch_problems(patch, spec, variables, path)


def _patch_problems(patch: Any, spec: Fields, variables: set[str], path: str) -> Iterator[FieldProblem]:
    condition = str(at(patch, "enabledIf") or "")
    if condition and (problem := template_problem(condition)):
        yield invalid(f"{path}.enabledIf", condition, f"template can not be parsed: {problem}")
    definitions, external = at(patch, "definitions"), at(patch, "external")
    if external is not None:
        yield forbidden(f"{path}.external", "runtime extensions are not supported; use definitions")
        if definitions is not None:
            yield invalid(path, patch, "only one of definitions or external can be defined")
    elif definitions is None:
        yield required(path, "one of definitions or external must be defined")
    for number, definition in enumerate(definitions or ()):
        where = f"{path}.definitions[{number}]"
        yield from _selector_problems(at(definition, "selector") or {}, spec, f"{where}.selector")
        for index, operation in enumerate(at(definition, "jsonPatches") or ()):
            yield from _operation_problems(operation, variables, f"{where}.jsonPatches[{index}]")


def _operation_problems(operation: Fields, variables: set[str], path: str) -> Iterator[FieldProblem]:
    op, target = operation.get("op"), str(operation.get("path") or "")
    if op not in _OPERATIONS:
        yield not_supported(f"{path}.op", op, _OPERATIONS)
    if not target.startswith("/spec"):
        yield invalid(f"{path}.path", target, 'jsonPatch path must start with "/spec"')
    for step in target.split("/"):
        if _INDEX.fullmatch(step) is None:
            continue
        if op != "add":
            yield invalid(f"{path}.path", target, f"elements in arrays can not be accessed in a {op} operation")
        elif int(step) != 0:
            yield invalid(f"{path}.path", target, 'arrays can only be accessed using "0" (prepend) or "-" (append)')
    if op in ("add", "replace"):
        yield from _value_problems(operation, variables, path)


def _value_problems(operation: Fields, variables: set[str], path: str) -> Iterator[FieldProblem]:
    source, has_value = operation.get("valueFrom"), operation.get("value") is not None
    if has_value == (source is not None):
        detail = "can not define both value and valueFrom" if has_value else "must define one of value or valueFrom"
        yield invalid(path, operation, f"jsonPatch {detail}")
    if source is None:
        return
    template, variable = str(at(source, "template") or ""), str(at(source, "variable") or "")
    if bool(template) == bool(variable):
        detail = "can not set both template and variable" if template else "must set either template or variable"
        yield invalid(f"{path}.valueFrom", source, f"valueFrom {detail}")
    if template and (problem := template_problem(template)):
        yield invalid(f"{path}.valueFrom.template", template, f"template can not be parsed: {problem}")
    if variable.startswith(f"{BUILTIN}."):
        if not is_builtin(variable):
            yield invalid(f"{path}.valueFrom.variable", variable, "not a defined builtin variable")
    elif variable and _NAME.split(variable.lstrip(".["), maxsplit=1)[0] not in variables:
        known = f"the class has {', '.join(sorted(variables))}" if variables else "the class has none"
        yield invalid(f"{path}.valueFrom.variable", variable, f"variable with name {variable} cannot be found: {known}")


def _selector_problems(selector: Fields, spec: Fields, path: str) -> Iterator[FieldProblem]:
    resources = at(selector, "matchResources") or {}
    names = {kind: at(resources, f"{kind}Class", "names") or [] for kind in ("machineDeployment", "machinePool")}
    if not (resources.get("infrastructureCluster") or resources.get("controlPlane") or any(names.values())):
        yield invalid(path, selector, "no selector enabled")
        return
    infrastructure = at(spec, "infrastructure", "templateRef")
    if resources.get("infrastructureCluster") and not _means(selector, infrastructure):
        detail = "selector is enabled but does not match the infrastructure ref"
        yield invalid(f"{path}.matchResources.infrastructureCluster", True, detail)
    plane = (at(spec, "controlPlane", "templateRef"), at(spec, "controlPlane", "machineInfrastructure", "templateRef"))
    if resources.get("controlPlane") and not any(_means(selector, reference) for reference in plane):
        detail = "selector is enabled but matches neither the controlPlane ref nor its machineInfrastructure ref"
        yield invalid(f"{path}.matchResources.controlPlane", True, detail)
    for kind, class_names in names.items():
        for number, name in enumerate(class_names):
            where = f"{path}.matchResources.{kind}Class.names[{number}]"
            if problem := _name_problem(str(name), where):
                yield problem
                break
            if not any(
                is_named(str(at(worker, "class")), [str(name)])
                and any(_means(selector, at(worker, part, "templateRef")) for part in ("bootstrap", "infrastructure"))
                for worker in at(spec, "workers", f"{kind}s") or ()
            ):
                detail = "selector is enabled but matches neither the bootstrap nor the infrastructure ref of a class"
                yield invalid(where, name, detail)


def _name_problem(name: str, path: str) -> FieldProblem | None:
    if "*" not in name:
        return None
    if name.count("*") > 1:
        return invalid(path, name, 'selector can at most contain a single "*" rune')
    if "*" in name[1:-1]:
        return invalid(path, name, '"*" rune can only appear at the beginning, or ending of the selector')
    if problem := label_key_problem(name.replace("*", "a")):
        return invalid(path, name, f"selector does not comply with the Kubernetes naming standards: {problem}")
    return None


def _means(selector: Fields, reference: Any) -> bool:
    return (at(reference, "kind"), at(reference, "apiVersion")) == (selector.get("kind"), selector.get("apiVersion"))
