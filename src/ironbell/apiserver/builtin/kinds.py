"""The table of built-in resources.

Source: kubernetes/kubernetes: pkg/registry/*/rest/storage_*.go (what is served where).
"""

from __future__ import annotations

from typing import Any

from ironbell.api.core import (
    CONFIG_MAP,
    CUSTOM_RESOURCE_DEFINITION,
    EVENT,
    EVENTS_EVENT,
    LEASE,
    NAMESPACE,
    NODE,
    SECRET,
    SERVICE_ACCOUNT,
)
from ironbell.api.crd.schema import root_schema
from ironbell.api.kind import Kind
from ironbell.apiserver.builtin.events import convert_event
from ironbell.apiserver.builtin.strategies import (
    DataRules,
    EventRules,
    LeaseRules,
    NamespaceRules,
    NodeRules,
    SecretRules,
)
from ironbell.apiserver.crds.rules import CrdRules
from ironbell.apiserver.resources import OBJECT_VERBS, ResourceInfo
from ironbell.apiserver.schema.compiled import compile_schema
from ironbell.apiserver.strategy import PLAIN, Strategy

_STRATEGIES: dict[str, Strategy] = {
    "namespaces": NamespaceRules(),
    "secrets": SecretRules(),
    "configmaps": DataRules(),
    "events": EventRules(),
    "leases": LeaseRules(),
    "nodes": NodeRules(),
}
_EVENT_FIELDS = (
    "involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid",
    "involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath", "reason", "type",
    "reportingComponent",
)  # fmt: skip
_FIELDS: dict[str, tuple[str, ...]] = {
    "namespaces": ("status.phase",),
    "secrets": ("type",),
    "nodes": ("spec.unschedulable",),
    "events": _EVENT_FIELDS,
}
_NAMESPACE_VERBS = tuple(verb for verb in OBJECT_VERBS if verb != "deletecollection")


def builtin_resources(crd_rules: CrdRules) -> list[list[ResourceInfo]]:
    """All built-in resources, each with its versions."""
    plain: tuple[Kind[Any], ...] = (NAMESPACE, SECRET, CONFIG_MAP, SERVICE_ACCOUNT, NODE, EVENT, LEASE)
    crd = _info(CUSTOM_RESOURCE_DEFINITION, strategy=crd_rules, generations=True)
    events = _info(EVENTS_EVENT, strategy=EventRules(), storage_group="", convert=convert_event)
    return [*([_info(kind, strategy=_STRATEGIES.get(kind.plural, PLAIN))] for kind in plain), [crd], [events]]


def _info(kind: Kind[Any], *, strategy: Strategy, generations: bool = False, **more: Any) -> ResourceInfo:
    schema = root_schema(kind.model, description=kind.description)
    return ResourceInfo(
        group=kind.group,
        version=kind.version,
        plural=kind.plural,
        kind=kind.kind,
        namespaced=kind.namespaced,
        compiled=compile_schema(_checked(kind, schema)),
        singular=kind.singular,
        list_kind=kind.list_kind,
        short_names=kind.short_names,
        categories=kind.categories,
        columns=kind.columns,
        served_versions=(kind.version,),
        storage_version=kind.version,
        schema=schema,
        has_status=kind.has_status,
        verbs=_NAMESPACE_VERBS if kind.plural == "namespaces" else OBJECT_VERBS,
        generations=generations,
        strategy=strategy,
        field_labels=tuple((label, tuple(label.split("."))) for label in _FIELDS.get(kind.plural, ())),
        **more,
    )


def _checked(kind: Kind[Any], schema: dict[str, Any]) -> dict[str, Any]:
    """The schema to check by: the data of Secrets is checked without showing it (`SecretRules`)."""
    if kind is not SECRET:
        return schema
    data = {"type": "object", "additionalProperties": {"type": "string"}}
    return {**schema, "properties": {**schema["properties"], "data": data}}
