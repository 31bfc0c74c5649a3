"""ClusterClasses as they are written: what is refused.

What depends on the Clusters that use a class (its deletion, what may be taken out of it) and the schemas of variables
are in `informed_clusterclass`.

Source: kubernetes-sigs/cluster-api: core/webhooks/admission/clusterclass.go, patch_validation.go,
internal/topology/check/compatibility.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ironbell.api.cluster import CLUSTER_CLASS
from ironbell.contract.admission import Admission, FieldProblem, forbidden, invalid, required, unchanged
from ironbell.contract.clusters.versions import compare_builds, find_version
from ironbell.contract.templates import SUFFIX
from ironbell.controllers.capi.admission import checks
from ironbell.controllers.capi.admission.checks import at
from ironbell.controllers.capi.admission.classes.naming import class_naming_problems
from ironbell.controllers.capi.admission.classes.patches import patch_problems
from ironbell.controllers.capi.admission.classes.variables import variable_problems
from ironbell.controllers.capi.admission.machinedeployment import count_problems, rolling_problems
from ironbell.controllers.capi.admission.machinehealthcheck import limit_problems
from ironbell.kube.decision import Fields

_WORKERS: Final = ("machineDeployments", "machinePools")


def validate(new: Fields, old: Fields | None) -> list[FieldProblem]:
    """What is wrong with a ClusterClass."""
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
    yield from class_naming_problems(spec)
    for one in at(spec, "workers", "machineDeployments") or ():
        path = f"spec.workers.machineDeployments[{at(one, 'class')}]"
        rolling = at(one, "rollout", "strategy", "rollingUpdate")
        yield from rolling_problems(rolling, f"{path}.rollout.strategy.rollingUpdate")
        yield from limit_problems(at(one, "healthCheck"), f"{path}.healthCheck")
        most = at(one, "healthCheck", "remediation", "maxInFlight")
        yield from count_problems(most, f"{path}.healthCheck.remediation.maxInFlight")
    for kind in _WORKERS:
        seen: set[str] = set()
        for number, one in enumerate(at(spec, "workers", kind) or ()):
            name = str(at(one, "class") or "")
            if name in seen:
                yield invalid(f"spec.workers.{kind}[{number}].class", name, f"class {name} is defined more than once")
            seen.add(name)
            path = f"spec.workers.{kind}[{name}]"
            yield from checks.metadata_problems(at(one, "metadata"), f"{path}.metadata")
            yield from checks.taint_problems(at(one, "taints"), f"{path}.taints")
    yield from variable_problems(spec)
    yield from patch_problems(spec)
    yield from _version_problems(at(spec, "kubernetesVersions") or ())
    if old is not None:
        yield from compatibility_problems(at(old, "spec") or {}, spec)


def references(spec: Fields) -> Iterator[tuple[str, Any]]:
    """All references to templates with where they are."""
    yield "spec.infrastructure.templateRef", at(spec, "infrastructure", "templateRef")
    yield "spec.controlPlane.templateRef", at(spec, "controlPlane", "templateRef")
    machine = at(spec, "controlPlane", "machineInfrastructure", "templateRef")
    if machine:
        yield "spec.controlPlane.machineInfrastructure.templateRef", machine
    for kind in _WORKERS:
        for number, one in enumerate(at(spec, "workers", kind) or ()):
            for part in ("bootstrap", "infrastructure"):
                yield f"spec.workers.{kind}[{number}].{part}.templateRef", at(one, part, "templateRef")


def _reference_problems(reference: Any, path: str) -> Iterator[FieldProblem]:
    kind = str(at(reference, "kind") or "")
    if not at(reference, "name"):
        yield required(f"{path}.name", "template name must be defined")
    if not kind.endswith(SUFFIX) or kind == SUFFIX:
        yield invalid(f"{path}.kind", kind, f'template kind must be of form "<name>{SUFFIX}"')
    if not at(reference, "apiVersion"):
        yield required(f"{path}.apiVersion", "template apiVersion must be defined")


def _version_problems(versions: Any) -> Iterator[FieldProblem]:
    before = None
    for number, text in enumerate(versions):
        path, version = f"spec.kubernetesVersions[{number}]", find_version(str(text))
        if version is None:
            yield invalid(path, text, "version must be a valid semantic version")
            continue
        if before is not None:
            order = compare_builds(version, before)
            if order is not None and order <= 0:
                yield invalid(path, text, f"version must be greater than v{before}")
            if version.minor not in (before.minor, before.minor + 1):
                expected = f"{before.minor} or {before.minor + 1}"
                yield invalid(path, text, f"expecting a version with minor {expected}, found version {version}")
        before = version


def compatibility_problems(old: Fields, new: Fields) -> Iterator[FieldProblem]:
    """Why Clusters cannot go from one class to another, or from a class to what it is to be: kinds that running
    clusters are made of stay. Bootstrap may change."""
    held = dict(_compared(old))
    for path, reference in _compared(new):
        if path not in held:
            continue  # a new class of workers
        before = held[path]
        for field, one, other in (
            ("apiVersion", _group(before), _group(reference)),
            ("kind", str(at(before, "kind") or ""), str(at(reference, "kind") or "")),
        ):
            if one != other:
                detail = f'cannot be changed from "{one}" to "{other}" to prevent incompatible changes in the Clusters'
                yield forbidden(f"{path}.{field}", detail)


def _compared(spec: Fields) -> Iterator[tuple[str, Any]]:
    for part in (("infrastructure",), ("controlPlane",), ("controlPlane", "machineInfrastructure")):
        yield f"spec.{'.'.join(part)}.templateRef", at(spec, *part, "templateRef")
    for kind in _WORKERS:
        for one in at(spec, "workers", kind) or ():
            path = f"spec.workers.{kind}[{at(one, 'class')}].infrastructure.templateRef"
            yield path, at(one, "infrastructure", "templateRef")


def _group(reference: Any) -> str:
    return str(at(reference, "apiVersion") or "").rpartition("/")[0]


ADMISSION: Final = Admission(CLUSTER_CLASS, unchanged, validate)
