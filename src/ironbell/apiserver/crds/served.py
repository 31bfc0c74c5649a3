"""Served versions of a stored definition: one `ResourceInfo` each."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from ironbell.api.kind import Column
from ironbell.apiserver.resources import Convert, Converter, ResourceInfo, ScalePaths
from ironbell.apiserver.schema.compiled import Shape, compile_schema
from ironbell.apiserver.schema.rules import CompileRule

_AGE = Column("Age", ".metadata.creationTimestamp", type="date")
_VERSION = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?")


def is_established(crd: dict[str, Any]) -> bool:
    """Return whether the definition's names were accepted, so that it is served."""
    conditions = (crd.get("status") or {}).get("conditions", ())
    return any(condition.get("type") == "Established" and condition.get("status") == "True" for condition in conditions)


def served_resources(
    crd: dict[str, Any],
    *,
    compile_rule: CompileRule | None,
    convert: Convert | None = None,
    converter: Converter | None = None,
    changed_at: int = 0,
) -> list[ResourceInfo]:
    """The served versions of a definition, the preferred one first."""
    spec = crd["spec"]
    versions = sorted(spec["versions"], key=lambda version: version_rank(version["name"]))
    served = tuple(version["name"] for version in versions if version.get("served"))
    storage = next(version["name"] for version in versions if version.get("storage"))
    return [
        replace(
            _info(spec, version, served=served, storage=storage, compile_rule=compile_rule, convert=convert),
            converter=converter,
            changed_at=changed_at,
        )
        for version in versions
        if version.get("served")
    ]


def version_rank(name: str) -> tuple[int, int, int, str]:
    """Kubernetes' order of versions: stable before beta before alpha, newer first."""
    version = _VERSION.fullmatch(name)
    if version is None:
        return (3, 0, 0, name)
    stage = {None: 0, "beta": 1, "alpha": 2}[version[2]]
    return (stage, -int(version[1]), -int(version[3] or 0), name)


def _info(
    spec: dict[str, Any],
    version: dict[str, Any],
    *,
    served: tuple[str, ...],
    storage: str,
    compile_rule: CompileRule | None,
    convert: Convert | None,
) -> ResourceInfo:
    names = spec["names"]
    schema = version["schema"]["openAPIV3Schema"]
    subresources = version.get("subresources") or {}
    return ResourceInfo(
        group=spec["group"],
        version=version["name"],
        plural=names["plural"],
        kind=names["kind"],
        namespaced=spec["scope"] == "Namespaced",
        shape=Shape(lambda: schema, lambda plain_schema: compile_schema(plain_schema, compile_rule=compile_rule)),
        singular=names.get("singular", ""),
        list_kind=names.get("listKind", ""),
        short_names=tuple(names.get("shortNames", ())),
        categories=tuple(names.get("categories", ())),
        columns=tuple(_column(field) for field in version.get("additionalPrinterColumns", ())) or (_AGE,),
        served_versions=served,
        storage_version=storage,
        has_status=subresources.get("status") is not None,
        scale=_scale(subresources.get("scale")),
        custom=True,
        updates_need_version=True,
        convert=convert,
        field_labels=tuple(_selectable(field) for field in version.get("selectableFields", ())),
        deprecation_warning=_deprecation(spec, version),
    )


def _column(column: dict[str, Any]) -> Column:
    return Column(
        name=column["name"],
        json_path=column["jsonPath"],
        type=column.get("type", "string"),
        priority=column.get("priority", 0),
        format=column.get("format", ""),
        description=column.get("description", ""),
    )


def _path(text: str) -> tuple[str, ...]:
    return tuple(part for part in text.split(".") if part)


def _scale(scale: dict[str, Any] | None) -> ScalePaths | None:
    if not scale:
        return None
    return ScalePaths(
        _path(scale.get("specReplicasPath", "")),
        _path(scale.get("statusReplicasPath", "")),
        _path(scale.get("labelSelectorPath") or ""),
    )


def _selectable(field: dict[str, Any]) -> tuple[str, tuple[str, ...]]:
    path = _path(field["jsonPath"])
    return ".".join(path), path


def _deprecation(spec: dict[str, Any], version: dict[str, Any]) -> str:
    """The warning about a deprecated version. Source: kubernetes/apiextensions-apiserver:
    pkg/apiserver/customresource_handler.go.
    """
    if not version.get("deprecated"):
        return ""
    if given := version.get("deprecationWarning"):
        return str(given)
    rank, kind = version_rank(version["name"]), spec["names"]["kind"]
    better = [
        candidate["name"]
        for candidate in spec["versions"]
        if candidate.get("served") and not candidate.get("deprecated")
    ]
    better = sorted((name for name in better if version_rank(name) < rank), key=version_rank)
    instead = f"; use {spec['group']}/{better[0]} {kind}" if better else ""
    return f"{spec['group']}/{version['name']} {kind} is deprecated{instead}"
