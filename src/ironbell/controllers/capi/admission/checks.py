"""Checks that several kinds of this group share, over plain data.

Source: kubernetes-sigs/cluster-api: core/webhooks/admission (machineset.go for replicas), internal/util/taints;
kubernetes/apimachinery: pkg/util/validation/validation.go for the syntax of label keys and values.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from ironbell.api.cluster.names import (
    ANNOTATION_AUTOSCALER_MAX_SIZE,
    ANNOTATION_AUTOSCALER_MIN_SIZE,
    LABEL_CLUSTER_NAME,
)
from ironbell.base.labels import SelectorError
from ironbell.base.quantities import decimal
from ironbell.contract.admission import FieldProblem, forbidden, invalid, required
from ironbell.contract.clusters.name_templates import RANDOM, NameTemplateError, render_name
from ironbell.contract.clusters.taints import reserved_taint_problem
from ironbell.contract.clusters.versions import VersionError, parse_version
from ironbell.contract.selectors import PlainSelector, compiled, text
from ironbell.kube.decision import Fields

BOTH_BOOTSTRAPS_EMPTY: Final = (
    "expected either spec.template.spec.bootstrap.dataSecretName or spec.template.spec.bootstrap.configRef to be"
    " populated"
)
_LABEL_NAME: Final = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_DNS_SUBDOMAIN: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*")
_ANNOTATIONS_MAX_BYTES: Final = 256 * 1024


def at(fields: Any, *path: str) -> Any:
    """Return the value at a path of plain data, or None if the path does not exist."""
    for name in path:
        if not isinstance(fields, Mapping):
            return None
        fields = fields.get(name)
    return fields


def put(fields: Fields, value: Any, *path: str) -> Fields:
    """Return plain data with a value set at a path; the input is not changed."""
    name, *rest = path
    inner = fields.get(name)
    return {**fields, name: put(inner if isinstance(inner, dict) else {}, value, *rest) if rest else value}


def with_v(fields: Fields, *path: str) -> Fields:
    """Return plain data whose version at a path, if set, starts with v."""
    version = at(fields, *path)
    return put(fields, f"v{version}", *path) if version and not str(version).startswith("v") else fields


def with_cluster_label(obj: Fields) -> Fields:
    """Return an object with the label of its cluster."""
    name = at(obj, "spec", "clusterName")
    return put(obj, name, "metadata", "labels", LABEL_CLUSTER_NAME) if name else obj


def label_value_problem(value: str) -> str:
    """Return the reason why a text is not a valid label value; empty if it is valid."""
    if value == "" or _LABEL_NAME.fullmatch(value):
        return ""
    return "expected up to 63 letters, digits, '-', '_' and '.' that begin and end with a letter or digit"


def label_key_problem(key: str) -> str:
    """Return the reason why a text is not a valid label key; empty if it is valid."""
    prefix, slash, name = key.rpartition("/")
    if _LABEL_NAME.fullmatch(name) and (not slash or dns_subdomain_problem(prefix) == ""):
        return ""
    return "expected [PREFIX/]NAME: the name is a label value, the prefix a DNS name"


def dns_subdomain_problem(name: str) -> str:
    """Return the reason why a text is not a valid object name; empty if it is valid."""
    if len(name) <= 253 and _DNS_SUBDOMAIN.fullmatch(name):
        return ""
    return "expected a DNS name of up to 253 lower-case letters, digits, '-' and '.'"


def name_problems(obj: Fields) -> Iterator[FieldProblem]:
    """Check that the name is a valid label value, because labels of other objects contain it."""
    name = str(at(obj, "metadata", "name") or "")
    if problem := label_value_problem(name):
        yield invalid("metadata.name", name, f"must be a valid label value: {problem}")


def metadata_problems(metadata: Any, path: str) -> Iterator[FieldProblem]:
    """Check the labels and annotations of a template."""
    for key, value in sorted((at(metadata, "labels") or {}).items()):
        if problem := label_key_problem(key):
            yield invalid(f"{path}.labels", key, problem)
        if problem := label_value_problem(value):
            yield invalid(f"{path}.labels", value, problem)
    annotations = at(metadata, "annotations") or {}
    for key in sorted(annotations):
        if problem := label_key_problem(key.lower()):
            yield invalid(f"{path}.annotations", key, problem)
    if sum(len(key) + len(value) for key, value in annotations.items()) > _ANNOTATIONS_MAX_BYTES:
        yield invalid(f"{path}.annotations", "", f"must have at most {_ANNOTATIONS_MAX_BYTES} bytes")


def bootstrap_problems(spec: Fields) -> Iterator[FieldProblem]:
    """Check that the template's bootstrap names a template to clone, or a Secret."""
    bootstrap = at(spec, "template", "spec", "bootstrap")
    if not at(bootstrap, "configRef", "name") and at(bootstrap, "dataSecretName") is None:
        yield required("spec.template.spec.bootstrap", BOTH_BOOTSTRAPS_EMPTY)


def cluster_name_problems(new: Fields, old: Fields | None) -> Iterator[FieldProblem]:
    """Check that the cluster's name never changes, and that the template has the same."""
    name = at(new, "spec", "clusterName")
    if old is not None and at(old, "spec", "clusterName") != name:
        yield forbidden("spec.clusterName", "field is immutable")
    if at(new, "spec", "template", "spec", "clusterName") != name:
        yield invalid(
            "spec.clusterName",
            name,
            "spec.clusterName and spec.template.spec.clusterName must be set to the same value",
        )


def version_problems(version: Any, path: str) -> Iterator[FieldProblem]:
    """Check a Kubernetes version, if it is set."""
    if not version:
        return
    if not str(version).startswith("v"):
        yield invalid(path, version, "must start with v")
    try:
        parse_version(str(version))
    except VersionError:
        yield invalid(path, version, "must be a valid semantic version")


def selector_problems(new: Fields) -> Iterator[FieldProblem]:
    """Check that the selector is valid and matches the labels of the template."""
    plain = at(new, "spec", "selector") or {}
    labels = at(new, "spec", "template", "metadata", "labels") or {}
    selector = PlainSelector.of(plain)
    try:
        matches = compiled(selector).matches(labels)
    except SelectorError as error:
        yield invalid("spec.selector", plain, error.message)
        return
    if not matches:
        yield invalid("spec.template.metadata.labels", labels, f'must match spec.selector "{text(selector)}"')


def naming_problems(template: Any, path: str) -> Iterator[FieldProblem]:
    """Check the naming template of a MachineSet's Machines, if it is set."""
    if not template:
        return
    if RANDOM not in template:
        yield invalid(path, template, "invalid template, {{ .random }} is missing")
    try:
        name = render_name(template, "cluster", "bcdfg", {"machineSet": {"name": "machineset"}})
    except NameTemplateError as error:
        yield invalid(path, template, f"invalid template: {error.message}")
        return
    if problem := dns_subdomain_problem(name):
        yield invalid(path, template, f"invalid template, generated names would not be valid object names: {problem}")


def taint_problems(taints: Any, path: str, *, worker: bool = True) -> Iterator[FieldProblem]:
    """Reject taints that other components manage."""
    for number, taint in enumerate(taints or ()):
        key = str(at(taint, "key") or "")
        for problem in _taint_key_problems(key, worker=worker):
            yield invalid(f"{path}[{number}].key", key, problem)


def _taint_key_problems(key: str, *, worker: bool) -> Iterable[str]:
    if problem := reserved_taint_problem(key):
        yield problem
    if problem := label_key_problem(key):
        yield problem
    if worker and key == "node-role.kubernetes.io/control-plane":
        yield "taint is not allowed for worker Machines"


_BOUNDS: Final = (ANNOTATION_AUTOSCALER_MIN_SIZE, ANNOTATION_AUTOSCALER_MAX_SIZE)


def with_replicas(new: Fields, old: Fields | None) -> Fields:
    """Set `spec.replicas` if unset: the old number within the autoscaler's bounds, else 1."""
    if at(new, "spec", "replicas") is not None:
        return new
    bounds = _bounds(new)
    if bounds is None:
        return new if list(replica_problems(new)) else put(new, 1, "spec", "replicas")
    smallest, largest = bounds
    old_replicas = at(old, "spec", "replicas") if old is not None else None
    if old_replicas is None or old_replicas < smallest:
        return put(new, smallest, "spec", "replicas")
    return put(new, min(old_replicas, largest), "spec", "replicas")


def replica_problems(new: Fields) -> Iterator[FieldProblem]:
    """Check the autoscaler's bounds where they are needed."""
    annotations = at(new, "metadata", "annotations") or {}
    if at(new, "spec", "replicas") is not None or not all(name in annotations for name in _BOUNDS):
        return
    for name in _BOUNDS:
        if _whole(annotations[name]) is None:
            yield invalid(f"metadata.annotations[{name}]", annotations[name], "must be a whole number")


def _bounds(new: Fields) -> tuple[int, int] | None:
    annotations = at(new, "metadata", "annotations") or {}
    smallest, largest = (_whole(annotations.get(name)) for name in _BOUNDS)
    return None if smallest is None or largest is None else (smallest, largest)


def _whole(text: str | None) -> int | None:
    digits = (text or "").removeprefix("+")
    number = decimal(digits.removeprefix("-"))
    return -number if number is not None and digits.startswith("-") else number
