"""Admission of the provider's objects: defaults and validation, over plain data.

Source: tinkerbell/cluster-api-provider-tinkerbell: api/v1beta1/*_webhook.go; the template rule of
kubernetes-sigs/cluster-api: docs/book/src/developer/providers/contracts/infra-machine.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ironbell.api.capt import (
    TINKERBELL_CLUSTER,
    TINKERBELL_CLUSTER_TEMPLATE,
    TINKERBELL_MACHINE,
    TINKERBELL_MACHINE_TEMPLATE,
)
from ironbell.api.capt.imagelookup import DEFAULT_FORMAT, DEFAULT_OS_VERSIONS
from ironbell.api.cluster.names import ANNOTATION_TOPOLOGY_DRY_RUN
from ironbell.api.tinkerbell.workflow import BootMode
from ironbell.base.labels import SelectorError
from ironbell.base.quantities import amount, is_quantity
from ironbell.codec import gotemplate
from ironbell.codec.gotemplate.errors import BRIEF_SECONDS, BRIEF_STEPS
from ironbell.contract.admission import Admission, FieldProblem, forbidden, invalid, required, unchanged
from ironbell.contract.selectors import PlainSelector, compiled
from ironbell.contract.system import KindAdmission
from ironbell.kube.decision import Fields

_FIXED: Final = ("hardwareName", "providerID", "failureDomain")


def default_cluster(new: Fields, old: Fields | None) -> Fields:
    """Fill in the image format, and the version of a distribution that has a default version."""
    del old
    spec = dict(new.get("spec") or {})
    if not spec.get("imageLookupFormat"):
        spec["imageLookupFormat"] = DEFAULT_FORMAT
    version = DEFAULT_OS_VERSIONS.get(str(spec.get("imageLookupOSDistro", "")).lower())
    if version and not spec.get("imageLookupOSVersion"):
        spec["imageLookupOSVersion"] = version
    return {**new, "spec": spec}


def validate_cluster(new: Fields, old: Fields | None) -> list[FieldProblem]:
    """Check that the image format parses."""
    del old
    return list(_image_format(new.get("spec") or {}, "spec"))


def validate_cluster_template(new: Fields, old: Fields | None) -> list[FieldProblem]:
    """Check the image format of the clusters, and that the template does not change."""
    problems = _image_format(_template_spec(new), "spec.template.spec")
    return [*problems, *_unchangeable(new, old, "TinkerbellClusterTemplate")]


def validate_machine(new: Fields, old: Fields | None) -> list[FieldProblem]:
    """Check weights, selectors, quantities and boot options, and that the claimed server does not change."""
    spec, old_spec = new.get("spec") or {}, (old or {}).get("spec") or {}
    changed = [field for field in _FIXED if old_spec.get(field) and spec.get(field) != old_spec[field]]
    return [*_machine(spec, "spec"), *(forbidden(f"spec.{field}", "is immutable once set") for field in changed)]


def validate_machine_template(new: Fields, old: Fields | None) -> list[FieldProblem]:
    """Check the machines' spec, that it names no server, and that the template does not change."""
    spec = _template_spec(new)
    problems = list(_machine(spec, "spec.template.spec"))
    problems += [
        forbidden(f"spec.template.spec.{name}", "cannot be set in templates") for name in _FIXED if spec.get(name)
    ]
    return [*problems, *_unchangeable(new, old, "TinkerbellMachineTemplate")]


def _template_spec(new: Fields) -> Fields:
    return ((new.get("spec") or {}).get("template") or {}).get("spec") or {}


def _unchangeable(new: Fields, old: Fields | None, kind: str) -> Iterator[FieldProblem]:
    """Reject changes of the spec, except in the dry runs of a topology, which carry an annotation."""
    annotations = (new.get("metadata") or {}).get("annotations") or {}
    if old is None or ANNOTATION_TOPOLOGY_DRY_RUN in annotations:
        return
    if (new.get("spec") or {}) != (old.get("spec") or {}):
        yield forbidden("spec", f"{kind}.Spec is immutable; create another template and reference it")


def _image_format(spec: Fields, path: str) -> Iterator[FieldProblem]:
    text = spec.get("imageLookupFormat")
    if text:
        try:
            gotemplate.check(text, steps=BRIEF_STEPS, seconds=BRIEF_SECONDS)
        except gotemplate.TemplateError as error:
            yield invalid(f"{path}.imageLookupFormat", text, str(error))


def _machine(spec: Fields, path: str) -> Iterator[FieldProblem]:
    yield from _image_format(spec, path)
    affinity = spec.get("hardwareAffinity") or {}
    for number, term in enumerate(affinity.get("required") or ()):
        yield from _selector(
            term.get("labelSelector") or {}, f"{path}.hardwareAffinity.required[{number}].labelSelector"
        )
    for number, weighted in enumerate(affinity.get("preferred") or ()):
        where = f"{path}.hardwareAffinity.preferred[{number}]"
        weight = weighted.get("weight", 0)
        if not 1 <= weight <= 100:
            yield invalid(f"{where}.weight", weight, "must be in the range [1,100]")
        selector = (weighted.get("hardwareAffinityTerm") or {}).get("labelSelector") or {}
        yield from _selector(selector, f"{where}.hardwareAffinityTerm.labelSelector")
    yield from _requirements(spec.get("hardwareRequirements") or {}, f"{path}.hardwareRequirements")
    yield from _boot(spec.get("bootOptions") or {}, f"{path}.bootOptions")


def _selector(selector: Fields, path: str) -> Iterator[FieldProblem]:
    try:
        compiled(PlainSelector.of(selector))
    except SelectorError as error:
        yield invalid(path, selector, str(error))


def _requirements(requirements: Fields, path: str) -> Iterator[FieldProblem]:
    values: dict[str, Any] = {f"{path}.{name}": requirements.get(name) for name in ("memory", "nicSpeed")}
    values[f"{path}.disks.size"] = (requirements.get("disks") or {}).get("size")
    for where, value in values.items():
        if value is not None and (not is_quantity(value) or amount(value) < 0):
            yield invalid(where, value, "must be a non-negative quantity, such as 64Gi")


def _boot(options: Fields, path: str) -> Iterator[FieldProblem]:
    if options.get("bootMode") in (BootMode.ISO, BootMode.ISOBOOT) and not options.get("isoURL"):
        yield required(f"{path}.isoURL", f"bootMode {options['bootMode']} needs the address of an ISO image")


ADMISSIONS: Final = (
    Admission(TINKERBELL_CLUSTER, default_cluster, validate_cluster),
    Admission(TINKERBELL_CLUSTER_TEMPLATE, unchanged, validate_cluster_template),
    Admission(TINKERBELL_MACHINE, unchanged, validate_machine),
    Admission(TINKERBELL_MACHINE_TEMPLATE, unchanged, validate_machine_template),
)
"""Admission by kind."""
ADMISSION: Final = KindAdmission(ADMISSIONS)
