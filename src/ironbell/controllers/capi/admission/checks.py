"""Faults that several kinds of this group share, over plain data.

Source: kubernetes-sigs/cluster-api: core/webhooks/admission, internal/util/taints; kubernetes/apimachinery:
pkg/util/validation/validation.go for what label keys and values may be.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from ironbell.api.cluster.names import LABEL_CLUSTER_NAME, TAINT_OUTDATED_REVISION, TAINT_UNINITIALIZED
from ironbell.base.labels import SelectorError
from ironbell.contract.admission import FieldProblem, forbidden, invalid, required
from ironbell.contract.clusters.name_templates import RANDOM, NameTemplateError, render_name
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
    """What is at a path of plain data; None where there is nothing."""
    for name in path:
        if not isinstance(fields, Mapping):
            return None
        fields = fields.get(name)
    return fields


def put(fields: Fields, value: Any, *path: str) -> Fields:
    """Plain data with a value at a path; the input is not changed."""
    name, *rest = path
    inner = fields.get(name)
    return {**fields, name: put(inner if isinstance(inner, dict) else {}, value, *rest) if rest else value}


def with_v(fields: Fields, *path: str) -> Fields:
    """Plain data whose version at a path starts with v, if there is one."""
    version = at(fields, *path)
    return put(fields, f"v{version}", *path) if version and not str(version).startswith("v") else fields


def with_cluster_label(obj: Fields) -> Fields:
    """An object with the label of its cluster."""
    name = at(obj, "spec", "clusterName")
    return put(obj, name, "metadata", "labels", LABEL_CLUSTER_NAME) if name else obj


def label_value_fault(value: str) -> str:
    """Why a text cannot be the value of a label; empty if it can."""
    if value == "" or _LABEL_NAME.fullmatch(value):
        return ""
    return "it may have up to 63 letters, digits, '-', '_' and '.', and begins and ends with a letter or digit"


def label_key_fault(key: str) -> str:
    """Why a text cannot be the key of a label; empty if it can."""
    prefix, slash, name = key.rpartition("/")
    if _LABEL_NAME.fullmatch(name) and (not slash or dns_subdomain_fault(prefix) == ""):
        return ""
    return "it is [PREFIX/]NAME, the name as a label's value, the prefix a DNS name"


def dns_subdomain_fault(name: str) -> str:
    """Why a text cannot be the name of an object; empty if it can."""
    if len(name) <= 253 and _DNS_SUBDOMAIN.fullmatch(name):
        return ""
    return "it is a DNS name of up to 253 lower-case letters, digits, '-' and '.'"


def name_problems(obj: Fields) -> Iterator[FieldProblem]:
    """The name goes into labels of other objects."""
    name = str(at(obj, "metadata", "name") or "")
    if fault := label_value_fault(name):
        yield invalid("metadata.name", name, f"must be a valid label value: {fault}")


def metadata_problems(metadata: Any, path: str) -> Iterator[FieldProblem]:
    """Labels and annotations of a template."""
    for key, value in sorted((at(metadata, "labels") or {}).items()):
        if fault := label_key_fault(key):
            yield invalid(f"{path}.labels", key, fault)
        if fault := label_value_fault(value):
            yield invalid(f"{path}.labels", value, fault)
    annotations = at(metadata, "annotations") or {}
    for key in sorted(annotations):
        if fault := label_key_fault(key.lower()):
            yield invalid(f"{path}.annotations", key, fault)
    if sum(len(key) + len(value) for key, value in annotations.items()) > _ANNOTATIONS_MAX_BYTES:
        yield invalid(f"{path}.annotations", "", f"must have at most {_ANNOTATIONS_MAX_BYTES} bytes")


def bootstrap_problems(spec: Fields) -> Iterator[FieldProblem]:
    """The template's bootstrap: a template to clone, or a Secret."""
    bootstrap = at(spec, "template", "spec", "bootstrap")
    if not at(bootstrap, "configRef", "name") and at(bootstrap, "dataSecretName") is None:
        yield required("spec.template.spec.bootstrap", BOTH_BOOTSTRAPS_EMPTY)


def cluster_name_problems(new: Fields, old: Fields | None) -> Iterator[FieldProblem]:
    """The cluster's name: never another, and the same in the template."""
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
    """A Kubernetes version, if there is one."""
    if not version:
        return
    if not str(version).startswith("v"):
        yield invalid(path, version, "must start with v")
    try:
        parse_version(str(version))
    except VersionError:
        yield invalid(path, version, "must be a valid semantic version")


def selector_problems(new: Fields) -> Iterator[FieldProblem]:
    """The selector must be one, and find what is made from the template."""
    plain = at(new, "spec", "selector") or {}
    labels = at(new, "spec", "template", "metadata", "labels") or {}
    selector = PlainSelector.of(plain)
    try:
        found = compiled(selector).matches(labels)
    except SelectorError as error:
        yield invalid("spec.selector", plain, error.message)
        return
    if not found:
        yield invalid("spec.template.metadata.labels", labels, f'must match spec.selector "{text(selector)}"')


def naming_problems(template: Any, path: str) -> Iterator[FieldProblem]:
    """A naming template of a MachineSet's Machines, if there is one."""
    if not template:
        return
    if RANDOM not in template:
        yield invalid(path, template, "invalid template, {{ .random }} is missing")
    try:
        name = render_name(template, "cluster", "bcdfg", {"machineSet": {"name": "machineset"}})
    except NameTemplateError as error:
        yield invalid(path, template, f"invalid template: {error.message}")
        return
    if fault := dns_subdomain_fault(name):
        yield invalid(path, template, f"invalid template, generated names would be no names of objects: {fault}")


def taint_problems(taints: Any, path: str, *, worker: bool = True) -> Iterator[FieldProblem]:
    """Taints that others manage cannot be asked for."""
    for number, taint in enumerate(taints or ()):
        key = str(at(taint, "key") or "")
        for fault in _taint_faults(key, worker=worker):
            yield invalid(f"{path}[{number}].key", key, fault)


def _taint_faults(key: str, *, worker: bool) -> Iterable[str]:
    if key in (TAINT_UNINITIALIZED, TAINT_OUTDATED_REVISION):
        yield "taint key is not allowed"
    elif key.startswith("node.kubernetes.io/") and key != "node.kubernetes.io/out-of-service":
        yield "taint key must not have the prefix node.kubernetes.io/, except for node.kubernetes.io/out-of-service"
    elif key.startswith("node.cloudprovider.kubernetes.io/"):
        yield "taint key must not have the prefix node.cloudprovider.kubernetes.io/"
    elif key == "node-role.kubernetes.io/master":
        yield "taint is deprecated since 1.24 and should not be used anymore"
    if fault := label_key_fault(key):
        yield fault
    if worker and key == "node-role.kubernetes.io/control-plane":
        yield "taint is not allowed for worker Machines"
