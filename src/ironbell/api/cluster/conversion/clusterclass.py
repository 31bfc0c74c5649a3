"""Both versions of ClusterClass.

Source: kubernetes-sigs/cluster-api: api/core/v1beta1/conversion.go, core/webhooks/conversion/clusterclass.go.
"""

from __future__ import annotations

from typing import Final

from ironbell.api.cluster.conversion.health import checks
from ironbell.api.cluster.conversion.machines import deletion, rollout
from ironbell.api.conversion.paths import Body, objects, path, value_at
from ironbell.api.conversion.rules import (
    Rule,
    Target,
    TemplateReference,
    apply_down,
    apply_up,
    below,
    dropped,
    flag,
    for_each,
    move,
    within,
)
from ironbell.api.conversion.status import Status

_HEALTH_CHECK: Final[tuple[Rule, ...]] = (
    *checks("machineHealthCheck.", "healthCheck."),
    *dropped("machineHealthCheck"),
)

_FLAGS: Final = tuple(
    flag(name)
    for name in (
        "uniqueItems",
        "exclusiveMaximum",
        "exclusiveMinimum",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-int-or-string",
    )
)


class _ValueSchema:
    """A schema with all schemas inside: bools that are optional in the stored version."""

    def up(self, body: Body, kept: Body | None) -> None:
        apply_up(_FLAGS, body, kept)
        for name in ("additionalProperties", "items", "not"):
            inner = body.get(name)
            if isinstance(inner, dict):
                self.up(inner, below(kept, (name,)))
        properties = body.get("properties")
        if isinstance(properties, dict):
            for name, inner in properties.items():
                if isinstance(inner, dict):
                    self.up(inner, below(kept, ("properties", name)))
        for name in ("allOf", "oneOf", "anyOf"):
            entries, stored = objects(body.get(name)), objects(value_at(kept, (name,)))
            for number, entry in enumerate(entries):
                known = stored[number] if len(stored) == len(entries) else {}
                self.up(entry, None if kept is None else known)

    def down(self, body: Body, target: Target) -> None:
        """A bool that is false means the same as none."""


_VALUE_SCHEMA: Final = within("schema.openAPIV3Schema", _ValueSchema())
_METADATA: Final = move("metadata", "deprecatedV1Beta1Metadata")
_NAMING: Final = move("namingStrategy.template", "naming.template")


def _template(old: str, new: str) -> TemplateReference:
    return TemplateReference(path(f"{old}.ref"), path(f"{new}.templateRef"))


_WORKERS: Final[tuple[Rule, ...]] = (
    move("template.metadata", "metadata"),
    _template("template.bootstrap", "bootstrap"),
    _template("template.infrastructure", "infrastructure"),
    *dropped("template"),
    *deletion(),
    _NAMING,
    *dropped("namingStrategy"),
)

_MATCH: Final = tuple(flag(f"selector.matchResources.{name}") for name in ("infrastructureCluster", "controlPlane"))

_PATCH: Final[tuple[Rule, ...]] = (
    move("external.generateExtension", "external.generatePatchesExtension"),
    move("external.validateExtension", "external.validateTopologyExtension"),
    for_each("definitions", *_MATCH),
)


class _Kept:
    """Definitions of a variable's value are found by where they come from."""

    def up(self, body: Body, kept: Body | None) -> None:
        apply_up(
            (flag("definitionsConflict"), for_each("definitions", _METADATA, _VALUE_SCHEMA, key="from")), body, kept
        )

    def down(self, body: Body, target: Target) -> None:
        apply_down((for_each("definitions", _METADATA),), body, target)


CLUSTER_CLASS: Final[tuple[Rule, ...]] = (
    move("spec.infrastructureNamingStrategy.template", "spec.infrastructure.naming.template"),
    *dropped("spec.infrastructureNamingStrategy"),
    _template("spec.infrastructure", "spec.infrastructure"),
    TemplateReference(path("spec.controlPlane.ref"), path("spec.controlPlane.templateRef")),
    _template("spec.controlPlane.machineInfrastructure", "spec.controlPlane.machineInfrastructure"),
    within("spec.controlPlane", *deletion(), *_HEALTH_CHECK, _NAMING, *dropped("namingStrategy")),
    for_each("spec.workers.machineDeployments", *rollout("healthCheck.remediation"), *_HEALTH_CHECK, *_WORKERS),
    for_each("spec.workers.machinePools", *_WORKERS),
    for_each("spec.patches", *_PATCH, key="name"),
    for_each("spec.variables", _METADATA, _VALUE_SCHEMA, key="name"),
    for_each("status.variables", _Kept(), key="name"),
    Status(),
)
