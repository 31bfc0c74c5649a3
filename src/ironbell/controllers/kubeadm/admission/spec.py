"""Validation of a KubeadmConfig's spec, on its own, in templates, and in control planes; and of templates' metadata.

Contents of files and passwords never appear in messages; upstream's messages contain them.

Source: kubernetes-sigs/cluster-api: bootstrap/kubeadm/webhooks/admission/kubeadmconfig.go, api/core/v1beta2/
common_types.go (ObjectMeta.Validate); kubernetes/apimachinery: pkg/util/validation/validation.go,
pkg/api/validation/objectmeta.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from ironbell.contract.admission import FieldProblem, forbidden, invalid, required
from ironbell.contract.fields import at, map_at
from ironbell.controllers.kubeadm.config.rendering.files import EXEC_API
from ironbell.controllers.kubeadm.config.rendering.render import CLOUD_CONFIG, IGNITION
from ironbell.kube.decision import Fields

_NOT_WITH_IGNITION: Final = f'not supported when spec.format is set to: "{IGNITION}"'
_SOURCES: Final = (("files", "content", "contentFrom", "file"), ("users", "passwd", "passwdFrom", "user"))


def spec_problems(spec: Fields, path: str, *, is_control_plane: bool = False) -> Iterator[FieldProblem]:
    """Yield the problems of a spec; in a control plane some timeouts must be set to the same value twice."""
    yield from _source_problems(spec, path)
    yield from _path_problems(spec, path)
    yield from _ignition_problems(spec, path)
    yield from _disk_problems(spec, path)
    user = at(spec, "joinConfiguration", "discovery", "file", "kubeConfig", "user")
    if at(user, "authProvider") and at(user, "exec"):
        where = f"{path}.joinConfiguration.discovery.file.kubeconfig.user"
        yield invalid(where, sorted(user), "only one of authProvider or exec must be defined")
    if is_control_plane:
        yield from _timeout_problems(spec, path)


def with_previous_defaults(spec: Fields) -> Fields:
    """Return the spec with the defaults of older versions, for comparisons with specs that lack them."""
    spec = {**spec, "format": spec.get("format") or CLOUD_CONFIG}
    for name in ("initConfiguration", "joinConfiguration"):
        configuration = spec.get(name) or {}
        registration = configuration.get("nodeRegistration") or {}
        registration = {**registration, "imagePullPolicy": registration.get("imagePullPolicy") or "IfNotPresent"}
        spec[name] = {**configuration, "nodeRegistration": registration}
    if at(spec, "joinConfiguration", "discovery", "file", "kubeConfig", "user", "exec"):
        return _with_exec_version(spec, "joinConfiguration", "discovery", "file", "kubeConfig", "user", "exec")
    return spec


def _with_exec_version(fields: Fields, *path: str) -> Fields:
    if not path:
        return {**fields, "apiVersion": fields.get("apiVersion") or EXEC_API}
    name, *rest = path
    return {**fields, name: _with_exec_version(fields[name], *rest)}


def _items(spec: Fields, *path: str) -> Iterator[tuple[int, Any]]:
    yield from enumerate(at(spec, *path) or ())


def _source_problems(spec: Fields, path: str) -> Iterator[FieldProblem]:
    for section, value, reference, noun in _SOURCES:
        for number, item in _items(spec, section):
            if not at(item, reference):
                continue
            where = f"{path}.{section}[{number}]"
            if at(item, value):
                named = at(item, "path") or at(item, "name") or ""
                yield invalid(where, named, f"only one of {value} or {reference} may be specified for a single {noun}")
            for key in ("name", "key"):
                if not at(item, reference, "secret", key):
                    yield required(
                        f"{where}.{reference}.secret.{key}", f"secret file source must specify non-empty secret {key}"
                    )


def _path_problems(spec: Fields, path: str) -> Iterator[FieldProblem]:
    known: set[str] = set()
    for number, file in _items(spec, "files"):
        where = str(at(file, "path") or "")
        if where in known:
            yield invalid(f"{path}.files[{number}].path", where, "path property must be unique among all files")
        known.add(where)


def _ignition_problems(spec: Fields, path: str) -> Iterator[FieldProblem]:
    if spec.get("format") != IGNITION:
        if spec.get("ignition"):
            value = spec.get("format") or ""
            yield invalid(f"{path}.format", value, f'must be set to "{IGNITION}" if spec.ignition is set')
        return
    for number, user in _items(spec, "users"):
        if at(user, "inactive"):
            yield forbidden(f"{path}.users[{number}].inactive", _NOT_WITH_IGNITION)
    for number, file in _items(spec, "files"):
        if str(at(file, "encoding") or "").startswith("gzip"):
            yield forbidden(f"{path}.files[{number}].encoding", _NOT_WITH_IGNITION)
    if spec.get("bootCommands") is not None:
        yield forbidden(f"{path}.bootCommands", _NOT_WITH_IGNITION)
    for number, partition in _items(spec, "diskSetup", "partitions"):
        if (table := at(partition, "tableType")) not in (None, "", "gpt"):
            detail = f'only partition type "gpt" is supported when spec.format is set to "{IGNITION}"'
            yield invalid(f"{path}.diskSetup.partitions[{number}].tableType", table, detail)
    for number, filesystem in _items(spec, "diskSetup", "filesystems"):
        for name in ("replaceFS", "partition"):
            if at(filesystem, name):
                yield forbidden(f"{path}.diskSetup.filesystems[{number}].{name}", _NOT_WITH_IGNITION)


def _disk_problems(spec: Fields, path: str) -> Iterator[FieldProblem]:
    for number, partition in _items(spec, "diskSetup", "partitions"):
        total = sum(int(at(layout, "percentage") or 0) for _, layout in _items(partition, "diskLayout"))
        if total > 100:
            detail = "the sum of all partition percentages must not be greater than 100"
            yield invalid(f"{path}.diskSetup.partitions[{number}].diskLayout", total, detail)


def _timeout_problems(spec: Fields, path: str) -> Iterator[FieldProblem]:
    name = "controlPlaneComponentHealthCheckSeconds"
    places = [f"{kind}Configuration" for kind in ("init", "join")]
    values = [at(spec, place, "timeouts", name) for place in places]
    init, join = ("unset" if value is None else str(value) for value in values)
    if init != join:
        detail = (
            f"{name} must be set to the same value both in initConfiguration.timeouts ({init}) and in"
            f" joinConfiguration.timeouts ({join})"
        )
        for place, value in zip(places, (init, join), strict=True):
            yield invalid(f"{path}.{place}.timeouts.{name}", value, detail)


_WORD: Final = r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_DNS: Final = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*"
_KEY: Final = re.compile(rf"(?:(?=.{{1,253}}/){_DNS}/)?{_WORD}")
_VALUE: Final = re.compile(rf"(?:{_WORD})?")
_KEY_RULE: Final = "must be [PREFIX/]NAME: a DNS name, and up to 63 letters, digits, '-', '_' and '.'"
_VALUE_RULE: Final = "must be up to 63 letters, digits, '-', '_' and '.', with a letter or digit at both ends"
_ANNOTATIONS_BYTES: Final = 256 * 1024


def metadata_problems(metadata: Any, path: str) -> Iterator[FieldProblem]:
    """Yield the problems of a template's labels and annotations, which the objects created from it get."""
    for key, value in sorted(map_at(metadata, "labels").items()):
        if not _KEY.fullmatch(key):
            yield invalid(f"{path}.labels", key, _KEY_RULE)
        if not _VALUE.fullmatch(str(value)):
            yield invalid(f"{path}.labels", value, _VALUE_RULE)
    annotations = map_at(metadata, "annotations")
    for key in sorted(annotations):
        if not _KEY.fullmatch(key.lower()):
            yield invalid(f"{path}.annotations", key, _KEY_RULE)
    if sum(len(key) + len(str(value)) for key, value in annotations.items()) > _ANNOTATIONS_BYTES:
        yield invalid(f"{path}.annotations", "", f"must have at most {_ANNOTATIONS_BYTES} bytes")
