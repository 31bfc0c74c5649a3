"""The table of built-in resources.

All but definitions come from the facts; definitions have a model of their own, because a schema inside a schema has no
end.

Source: kubernetes/kubernetes: pkg/registry/*/rest/storage_*.go (what is served where).
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import groupby
from typing import Any, Final

import msgspec

from ironbell.api.core import CUSTOM_RESOURCE_DEFINITION
from ironbell.api.crd.schema import root_schema
from ironbell.apiserver.builtin import names
from ironbell.apiserver.builtin.autoscalers import convert_autoscaler
from ironbell.apiserver.builtin.decode import compile_decode
from ironbell.apiserver.builtin.events import EventRules, convert_event
from ironbell.apiserver.builtin.facts import BuiltinResource, builtin_facts, expanded, referenced_types
from ironbell.apiserver.builtin.networking import DisruptionRules, IngressRules, ServiceRules
from ironbell.apiserver.builtin.normal import compile_normal
from ironbell.apiserver.builtin.required import compile_required
from ironbell.apiserver.builtin.strategies import (
    DataRules,
    LeaseRules,
    NamespaceRules,
    NodeRules,
    SecretRules,
)
from ironbell.apiserver.builtin.workloads import (
    CronJobRules,
    DaemonSetRules,
    JobRules,
    PodRules,
    StatefulSetRules,
    TemplateRules,
)
from ironbell.apiserver.crds.keywords import definition_misfit, prune_definition
from ironbell.apiserver.crds.rules import CrdRules
from ironbell.apiserver.fielderrors import Path
from ironbell.apiserver.flowcontrol.strategies import LevelRules, SchemaRules
from ironbell.apiserver.metadata import NameRule, label_name_fault, name_fault, path_segment_fault
from ironbell.apiserver.policies import strategies as policies
from ironbell.apiserver.policies.strategies import MutatingBindingRules, MutatingPolicyRules
from ironbell.apiserver.rbac.strategies import BindingRules, RoleRules
from ironbell.apiserver.resources import OBJECT_VERBS, ResourceInfo, ScalePaths
from ironbell.apiserver.schema.compiled import ROOT_FIELDS, CompiledSchema, Shape, compile_schema
from ironbell.apiserver.schema.prune import compile_prune
from ironbell.apiserver.strategy import PLAIN, Strategy
from ironbell.apiserver.webhooks.strategies import WebhookRules

_STRATEGIES: dict[str, Strategy] = {
    "namespaces": NamespaceRules(),
    "secrets": SecretRules(),
    "configmaps": DataRules(),
    "events": EventRules(),
    "leases": LeaseRules(),
    "nodes": NodeRules(),
    "mutatingwebhookconfigurations": WebhookRules(mutating=True),
    "validatingwebhookconfigurations": WebhookRules(mutating=False),
    "mutatingadmissionpolicies": MutatingPolicyRules(),
    "mutatingadmissionpolicybindings": MutatingBindingRules(),
    "validatingadmissionpolicies": policies.PolicyRules(),
    "validatingadmissionpolicybindings": policies.BindingRules(),
    "flowschemas": SchemaRules(),
    "prioritylevelconfigurations": LevelRules(),
    "roles": RoleRules(namespaced=True),
    "clusterroles": RoleRules(namespaced=False),
    "rolebindings": BindingRules(namespaced=True),
    "clusterrolebindings": BindingRules(namespaced=False),
    "deployments": TemplateRules(word="deployment"),
    "replicasets": TemplateRules(word="deployment"),
    "daemonsets": DaemonSetRules(word="daemonset"),
    "statefulsets": StatefulSetRules(word="statefulset"),
    "jobs": JobRules(),
    "cronjobs": CronJobRules(),
    "pods": PodRules(),
    "services": ServiceRules(),
    "ingresses": IngressRules(),
    "poddisruptionbudgets": DisruptionRules(),
}
_NAME_RULES: dict[str, NameRule] = {
    "namespaces": label_name_fault,
    **dict.fromkeys(("roles", "clusterroles", "rolebindings", "clusterrolebindings"), path_segment_fault),
}
_DEPRECATED = {"endpoints": "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"}
_VERBS = {
    "namespaces": tuple(verb for verb in OBJECT_VERBS if verb != "deletecollection"),
    # nothing is aggregated here: discovery and lists show that, and writes are not offered
    "apiservices": ("get", "list", "watch"),
}
_SCALE = ScalePaths(("spec", "replicas"), ("status", "replicas"), ("spec", "selector"))
_NOT_RUN = "this API runs no {plural}: the object is stored, and nothing acts on it"
_NOT_SIGNED = "this API signs no certificates: use `kubectl create token`, or a kubeconfig from the data folder"


def builtin_resources(crd_rules: CrdRules) -> list[list[ResourceInfo]]:
    """All built-in resources, each with its versions. All servers of a process share the resources that never change,
    with their compiled schemas.
    """
    return [*_plain(), [_definitions(crd_rules)]]


@cache
def _plain() -> tuple[list[ResourceInfo], ...]:
    versions = groupby(map(_info, builtin_facts()), key=lambda info: info.resource)
    return tuple(sorted(infos, key=lambda info: info.served_versions.index(info.version)) for _, infos in versions)


def _creation_warning(plural: str) -> str:
    """Warning for a client that creates an object that no controller acts on."""
    if plural == "certificatesigningrequests":
        return _NOT_SIGNED
    return _NOT_RUN.format(plural=plural) if plural in names.UNTOUCHED else ""


def _info(resource: BuiltinResource) -> ResourceInfo:
    plural = resource.plural
    served = names.VERSIONS.get(plural, (resource.version,))
    info = ResourceInfo(
        group=resource.group,
        version=resource.version,
        plural=plural,
        kind=resource.kind,
        namespaced=resource.namespaced,
        shape=_shape(resource),
        singular=resource.kind.lower(),
        list_kind=f"{resource.kind}List",
        short_names=names.SHORT_NAMES.get(plural, ()),
        categories=names.CATEGORIES.get(plural, ()),
        served_versions=served,
        storage_version=served[0],
        types=lambda: (resource.type, referenced_types(resource.type)),
        has_status=resource.status and "update" in _VERBS.get(plural, OBJECT_VERBS),
        scale=_SCALE if resource.scale else None,
        verbs=_VERBS.get(plural, OBJECT_VERBS),
        generations=plural in names.GENERATIONS,
        strategy=_STRATEGIES.get(plural, PLAIN),
        name_rule=_NAME_RULES.get(plural, name_fault),
        field_labels=tuple((label, _field_path(label)) for label in names.FIELD_LABELS.get(plural, ())),
        deprecation_warning=_DEPRECATED.get(plural, ""),
        updates_need_version=plural in names.NEEDS_VERSION,
        created_by_update=plural in names.CREATED_BY_UPDATE,
        kept_by_status=names.KEPT_BY_STATUS.get(plural, ()),
        keeps_first_status=plural in names.KEEPS_STATUS,
        answers_deleted=plural in names.ANSWERS_DELETED,
        creation_warning=_creation_warning(plural),
    )
    if plural == "horizontalpodautoscalers":
        return replace(info, convert=convert_autoscaler)
    if (resource.group, plural) == ("events.k8s.io", "events"):
        return replace(info, storage_group="", convert=convert_event, field_labels=_stored_as(names.EVENT_LABELS))
    return info


_DEFINITION_TYPES: Final = {
    "": "CustomResourceDefinition",
    "metadata": "ObjectMeta",
    "spec": "CustomResourceDefinitionSpec",
    "spec.names": "CustomResourceDefinitionNames",
    "spec.versions": "CustomResourceDefinitionVersion",
    "spec.versions.schema": "CustomResourceValidation",
    "spec.versions.subresources": "CustomResourceSubresources",
    "spec.versions.subresources.scale": "CustomResourceSubresourceScale",
    "spec.versions.additionalPrinterColumns": "CustomResourceColumnDefinition",
    "spec.versions.selectableFields": "SelectableField",
    "spec.conversion": "CustomResourceConversion",
    "spec.conversion.webhook": "WebhookConversion",
    "spec.conversion.webhook.clientConfig": "WebhookClientConfig",
    "spec.conversion.webhook.clientConfig.service": "ServiceReference",
    "status": "CustomResourceDefinitionStatus",
    "status.conditions": "CustomResourceDefinitionCondition",
    "status.acceptedNames": "CustomResourceDefinitionNames",
}
"""Go types of the structs of a definition, by path."""


def _shape(resource: BuiltinResource) -> Shape:
    return Shape(lambda: expanded(resource.type), _compile_typed)


def _stored_as(labels: dict[str, str]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Field labels whose value is stored under another label."""
    return tuple((label, _field_path(stored)) for label, stored in labels.items())


def _field_path(label: str) -> tuple[str, ...]:
    return names.FIELD_PATHS.get(label, tuple(label.split(".")))


def _compile_definition(schema: dict[str, Any]) -> CompiledSchema:
    typed = _with_go_types(schema)
    plain, decode, fill_nulls = compile_schema(schema), compile_decode(typed), compile_normal(typed)

    def prune(value: Any, _path: Path, dropped: list[str]) -> None:
        dropped += [*prune_definition(value), *plain.prune(value)]

    def default(value: Any) -> None:
        if fill_nulls is not None:
            fill_nulls(value)
        plain.default(value)

    return msgspec.structs.replace(
        plain,
        _prune=prune,
        _default=default,
        _decode=lambda value, struct, path: decode(value, struct, path) or definition_misfit(value),
    )


@cache
def _definition_schema() -> dict[str, Any]:
    kind = CUSTOM_RESOURCE_DEFINITION
    return root_schema(kind.model, description=kind.description)


def _with_go_types(schema: dict[str, Any], path: str = "") -> dict[str, Any]:
    """Return the schema of definitions with the names of Go types, which decoding errors show."""
    typed = dict(schema)
    if isinstance(items := schema.get("items"), dict):
        typed["items"] = _with_go_types(items, path)
    if "properties" in schema:
        if path in _DEFINITION_TYPES:
            typed["goType"] = f"v1.{_DEFINITION_TYPES[path]}"
        typed["properties"] = {
            name: _with_go_types(sub, f"{path}.{name}".removeprefix(".")) for name, sub in schema["properties"].items()
        }
    return typed


def _definitions(rules: CrdRules) -> ResourceInfo:
    kind = CUSTOM_RESOURCE_DEFINITION
    return ResourceInfo(
        group=kind.group,
        version=kind.version,
        plural=kind.plural,
        kind=kind.kind,
        namespaced=False,
        shape=Shape(_definition_schema, _compile_definition),
        singular=kind.singular,
        list_kind=kind.list_kind,
        short_names=kind.short_names,
        categories=kind.categories,
        columns=kind.columns,
        served_versions=(kind.version,),
        storage_version=kind.version,
        has_status=True,
        generations=True,
        strategy=rules,
    )


def _compile_typed(schema: dict[str, Any]) -> CompiledSchema:
    """Compile the schema of a built-in kind.

    It differs from a custom resource's as a Go struct does: values of the wrong type are rejected as undecodable, zero
    values vanish, and the server's defaults are code.
    """
    properties = {name: sub for name, sub in schema.get("properties", {}).items() if name not in ROOT_FIELDS}
    body = {**schema, "properties": properties}
    return CompiledSchema(
        _prune=compile_prune(body, keep=ROOT_FIELDS, is_typed=True),
        _default=compile_normal(body),
        _check=compile_required(body),
        _rules=None,
        _decode=compile_decode(schema),
    )
