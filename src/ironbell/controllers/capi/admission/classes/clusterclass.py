"""Validation of ClusterClasses by themselves.

Checks that depend on the Clusters that use a class (its deletion, removals from it) and on the schemas of variables are
in `informed`.

Source: kubernetes-sigs/cluster-api: core/webhooks/admission/clusterclass.go, patch_validation.go,
internal/topology/check/compatibility.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ironbell.api.cluster import CLUSTER_CLASS
from ironbell.contract.admission import Admission, FieldProblem, forbidden, invalid, required, unchanged
from ironbell.contract.clusters.name_templates import NameTemplateError, render_name
from ironbell.contract.clusters.versions import compare_builds, find_version
from ironbell.contract.templates import SUFFIX
from ironbell.controllers.capi.admission import checks
from ironbell.controllers.capi.admission.checks import at, dns_subdomain_problem
from ironbell.controllers.capi.admission.classes.patches import patch_problems
from ironbell.controllers.capi.admission.classes.variables import variable_problems
from ironbell.controllers.capi.admission.machinedeployment import count_problems, rolling_problems
from ironbell.controllers.capi.admission.machinehealthcheck import limit_problems
from ironbell.kube.decision import Fields

_WORKERS: Final = ("machineDeployments", "machinePools")


def validate(new: Fields, old: Fields | None) -> list[FieldProblem]:
    """Return the problems of a ClusterClass."""
    return list(_problems(new, old))


def _problems(new: Fields, old: Fields | None) -> Iterator[FieldProblem]:
    spec = at(new, "spec") or {}
    for path, reference in references(spec):
        yield from _reference_problems(reference, path)
    yield from checks.metadata_problems(at(spec, "controlPlane", "metadata"), "spec.controlPlane.metadata")
    yield from checks.taint_problems(at(spec, "controlPlane", "taints"), "spec.controlPlane.taints", worker=False)
    yield from limit_problems(at(spec, "controlPlane", "healthCheck"), "spec.controlPlane.healthCheck")
    if at(spec, "controlPlane", "healthCheck") and not at(spec, "controlPlane", "machineInfrastructure"):
        yield forbidden(
            "spec.controlPlane.healthCheck", "can be only set if spec.controlPlane.machineInfrastructure is set"
        )
    yield from _naming_templates_problems(spec)
    for worker in at(spec, "workers", "machineDeployments") or ():
        path = f"spec.workers.machineDeployments[{at(worker, 'class')}]"
        rolling = at(worker, "rollout", "strategy", "rollingUpdate")
        yield from rolling_problems(rolling, f"{path}.rollout.strategy.rollingUpdate")
        yield from limit_problems(at(worker, "healthCheck"), f"{path}.healthCheck")
        limit = at(worker, "healthCheck", "remediation", "maxInFlight")
        yield from count_problems(limit, f"{path}.healthCheck.remediation.maxInFlight")
    for kind in _WORKERS:
        seen: set[str] = set()
        for number, worker in enumerate(at(spec, "workers", kind) or ()):
            name = str(at(worker, "class") or "")
            if name in seen:
                yield invalid(f"spec.workers.{kind}[{number}].class", name, f"class {name} is defined more than once")
            seen.add(name)
            path = f"spec.workers.{kind}[{name}]"
            yield from checks.metadata_problems(at(worker, "metadata"), f"{path}.metadata")
            yield from checks.taint_problems(at(worker, "taints"), f"{path}.taints")
    yield from variable_problems(spec)
    yield from patch_problems(spec)
    yield from _version_problems(at(spec, "kubernetesVersions") or ())
    if old is not None:
        yield from compatibility_problems(at(old, "spec") or {}, spec)


def references(spec: Fields) -> Iterator[tuple[str, Any]]:
    """All references to templates, each with its path."""
    yield "spec.infrastructure.templateRef", at(spec, "infrastructure", "templateRef")
    yield "spec.controlPlane.templateRef", at(spec, "controlPlane", "templateRef")
    machine = at(spec, "controlPlane", "machineInfrastructure", "templateRef")
    if machine:
        yield "spec.controlPlane.machineInfrastructure.templateRef", machine
    for kind in _WORKERS:
        for number, worker in enumerate(at(spec, "workers", kind) or ()):
            for part in ("bootstrap", "infrastructure"):
                yield f"spec.workers.{kind}[{number}].{part}.templateRef", at(worker, part, "templateRef")


def _reference_problems(reference: Any, path: str) -> Iterator[FieldProblem]:
    kind = str(at(reference, "kind") or "")
    if not at(reference, "name"):
        yield required(f"{path}.name", "template name must be defined")
    if not kind.endswith(SUFFIX) or kind == SUFFIX:
        yield invalid(f"{path}.kind", kind, f'template kind must be of form "<name>{SUFFIX}"')
    if not at(reference, "apiVersion"):
        yield required(f"{path}.apiVersion", "template apiVersion must be defined")


def _version_problems(versions: Any) -> Iterator[FieldProblem]:
    previous = None
    for number, text in enumerate(versions):
        path, version = f"spec.kubernetesVersions[{number}]", find_version(str(text))
        if version is None:
            yield invalid(path, text, "version must be a valid semantic version")
            continue
        if previous is not None:
            order = compare_builds(version, previous)
            if order is not None and order <= 0:
                yield invalid(path, text, f"version must be greater than v{previous}")
            if version.minor not in (previous.minor, previous.minor + 1):
                expected = f"{previous.minor} or {previous.minor + 1}"
                yield invalid(path, text, f"expecting a version with minor {expected}, found version {version}")
        previous = version


def compatibility_problems(old: Fields, new: Fields) -> Iterator[FieldProblem]:
    """Check that Clusters can move from one class to another, or to a class's new version: the kinds that running
    clusters consist of cannot change. Bootstrap may change.
    """
    old_references = dict(_compared(old))
    for path, reference in _compared(new):
        if path not in old_references:
            continue  # a new class of workers
        previous = old_references[path]
        for field, old_value, new_value in (
            ("apiVersion", _group(previous), _group(reference)),
            ("kind", str(at(previous, "kind") or ""), str(at(reference, "kind") or "")),
        ):
            if old_value != new_value:
                change = f'cannot be changed from "{old_value}" to "{new_value}"'
                yield forbidden(f"{path}.{field}", f"{change} to prevent incompatible changes in the Clusters")


def _compared(spec: Fields) -> Iterator[tuple[str, Any]]:
    for part in (("infrastructure",), ("controlPlane",), ("controlPlane", "machineInfrastructure")):
        yield f"spec.{'.'.join(part)}.templateRef", at(spec, *part, "templateRef")
    for kind in _WORKERS:
        for worker in at(spec, "workers", kind) or ():
            path = f"spec.workers.{kind}[{at(worker, 'class')}].infrastructure.templateRef"
            yield path, at(worker, "infrastructure", "templateRef")


def _group(reference: Any) -> str:
    return str(at(reference, "apiVersion") or "").rpartition("/")[0]


_NAMING_VARIABLES: Final = {
    "machineDeployments": {"machineDeployment": {"topologyName": "topology"}},
    "machinePools": {"machinePool": {"topologyName": "topology"}},
}


def _naming_templates_problems(spec: Fields) -> Iterator[FieldProblem]:
    """Check that naming templates can be rendered, and render valid object names."""
    for part in ("infrastructure", "controlPlane"):
        yield from _naming_problems(at(spec, part, "naming", "template"), f"spec.{part}.naming.template", {})
    for kind, variables in _NAMING_VARIABLES.items():
        for worker in at(spec, "workers", kind) or ():
            path = f"spec.workers.{kind}[{at(worker, 'class')}].naming.template"
            yield from _naming_problems(at(worker, "naming", "template"), path, variables)


def _naming_problems(
    template: str | None, path: str, variables: Mapping[str, Mapping[str, str]]
) -> Iterator[FieldProblem]:
    if not template:
        return
    try:
        name = render_name(template, "cluster", "bcdfg", variables)
    except NameTemplateError as error:
        yield invalid(path, template, f"invalid name template: {error.message}")
        return
    if problem := dns_subdomain_problem(name):
        yield invalid(path, template, f'it would render the name "{name}": {problem}')


ADMISSION: Final = Admission(CLUSTER_CLASS, unchanged, validate)
