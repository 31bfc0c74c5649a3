"""Defaults and validation of MachineSets.

Source: kubernetes-sigs/cluster-api: core/webhooks/admission/machineset.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from ironbell.api.cluster import MACHINE_SET
from ironbell.api.cluster.names import ANNOTATION_SKIP_PREFLIGHT_CHECKS, LABEL_SET_NAME
from ironbell.contract.admission import Admission, FieldProblem, invalid
from ironbell.contract.hashing import label_value
from ironbell.controllers.capi.admission import checks
from ironbell.controllers.capi.admission.checks import at, put, replica_problems, with_replicas
from ironbell.controllers.capi.machineset.preflight import CHECKS, skipped
from ironbell.kube.decision import Fields


def default(new: Fields, old: Fields | None) -> Fields:
    """Return a MachineSet with defaults for all unset fields."""
    new = checks.with_cluster_label(new)
    new = with_replicas(new, old)
    selector = at(new, "spec", "selector") or {}
    # anything but a selector is left to the schema, which rejects it
    if isinstance(selector, Mapping) and not selector.get("matchLabels") and not selector.get("matchExpressions"):
        set_name = label_value(str(at(new, "metadata", "name") or ""))
        new = put(new, set_name, "spec", "selector", "matchLabels", LABEL_SET_NAME)
        new = put(new, set_name, "spec", "template", "metadata", "labels", LABEL_SET_NAME)
    return checks.with_v(new, "spec", "template", "spec", "version")


def validate(new: Fields, old: Fields | None) -> list[FieldProblem]:
    """Return the problems of a MachineSet."""
    return list(_problems(new, old))


def skipped_check_problems(obj: Fields) -> Iterator[FieldProblem]:
    """Reject unknown names of preflight checks to skip."""
    annotations = at(obj, "metadata", "annotations") or {}
    unknown = sorted(skipped(annotations.get(ANNOTATION_SKIP_PREFLIGHT_CHECKS, "")) - set(CHECKS))
    if unknown:
        known = ", ".join(sorted(CHECKS))
        path = f"metadata.annotations.{ANNOTATION_SKIP_PREFLIGHT_CHECKS}"
        yield invalid(path, unknown, f"skipped preflight check(s) must be among: {known}")


def template_problems(new: Fields) -> Iterator[FieldProblem]:
    """Check the template of Machines, and the template of their names."""
    spec = at(new, "spec") or {}
    path = "spec.template.spec"
    yield from checks.version_problems(at(spec, "template", "spec", "version"), f"{path}.version")
    yield from checks.taint_problems(at(spec, "template", "spec", "taints"), f"{path}.taints")
    yield from checks.naming_problems(at(spec, "machineNaming", "template"), "spec.machineNaming.template")
    yield from checks.metadata_problems(at(spec, "template", "metadata"), "spec.template.metadata")


def _problems(new: Fields, old: Fields | None) -> Iterator[FieldProblem]:
    yield from checks.bootstrap_problems(at(new, "spec") or {})
    yield from checks.selector_problems(new)
    yield from skipped_check_problems(new)
    yield from checks.cluster_name_problems(new, old)
    yield from replica_problems(new)
    yield from template_problems(new)


ADMISSION: Final = Admission(MACHINE_SET, default, validate)
