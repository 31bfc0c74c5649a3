"""The controller of ClusterClasses: owns their templates, and tells their variables.

Source: kubernetes-sigs/cluster-api: core/reconcilers/clusterclass.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from ironbell.api.cluster import CLUSTER_CLASS
from ironbell.api.cluster.classes.clusterclass import ClusterClass
from ironbell.api.cluster.common import TemplateReference
from ironbell.api.cluster.deprecated import LegacyCondition
from ironbell.api.meta import Condition, to_builtin
from ironbell.contract.clusters.external import External, State, look_up_version
from ironbell.contract.clusters.paused import is_paused, paused_condition
from ironbell.contract.clusters.references import BY_GROUP_KIND, DEFINITIONS, api_version
from ironbell.contract.conditions import conditions_of, set_condition
from ironbell.contract.conditions.legacy import (
    ERROR,
    WARNING,
    legacy_conditions,
    legacy_false,
    legacy_true,
    legacy_unknown,
    set_legacy,
)
from ironbell.contract.owners import owner_reference, owners_patch, with_owner
from ironbell.controllers.capi.topology.desired.objects import told
from ironbell.controllers.capi.topology.patches.engine import INLINE
from ironbell.controllers.capi.topology.plain import put
from ironbell.kube.decision import Action, Decision, Fields, Key, MergePatch, do, patch_status, wait
from ironbell.kube.finalizers import is_deleting
from ironbell.kube.patches import diff
from ironbell.kube.reconciler import Cache, Declaration

CLUSTER_CLASS_CONTROLLER: Final = "capi-clusterclass"
VARIABLES_READY: Final = "VariablesReady"
VARIABLES_RECONCILED: Final = "VariablesReconciled"
DISCOVERY_FAILED: Final = "VariableDiscoveryFailed"
REF_VERSIONS: Final = "RefVersionsUpToDate"


@dataclass(frozen=True, slots=True)
class Referred:
    """A template of a class: as it was found, and the apiVersion that references to it should have."""

    reference: TemplateReference
    external: External
    newest: str

    @property
    def is_outdated(self) -> bool:
        return bool(self.newest) and self.newest != self.reference.api_version


@dataclass(frozen=True, slots=True)
class Observed:
    """A ClusterClass with its templates, each once."""

    cluster_class: ClusterClass
    templates: tuple[Referred, ...] = ()


class ClusterClassReconciler:
    """Makes a class ready for use."""

    name = CLUSTER_CLASS_CONTROLLER
    declaration = Declaration(CLUSTER_CLASS, watches=(DEFINITIONS,), indexes=(BY_GROUP_KIND,))

    def observe(self, cache: Cache, key: Key) -> Observed | None:
        class_ = cache.get(CLUSTER_CLASS, *key)
        if class_ is None or is_deleting(class_):
            return None
        references = dict.fromkeys(references_of(class_))
        return Observed(class_, tuple(_referred(cache, reference, key[0]) for reference in references))

    def decide(self, observed: Observed, now: datetime) -> Decision:
        class_ = observed.cluster_class
        if is_paused(class_):
            said = paused_condition(CLUSTER_CLASS.kind, class_)
            return wait("Paused", said.message, _status(class_, [said], [], now))
        missing = [one.external for one in observed.templates if not one.external.is_found]
        actions: list[Action | None] = [_owned(class_, one.external) for one in observed.templates]
        not_listed = [one for one in missing if one.state is State.UNKNOWN and not one.problem]
        if not_listed:
            return wait("TemplatesNotListed", str(not_listed[0]), *actions)
        why = external_parts(class_)
        conditions = [
            paused_condition(CLUSTER_CLASS.kind, class_),
            _variables_condition(why),
            _versions_condition(observed.templates, missing),
        ]
        legacy = [_legacy_variables(why), _legacy_versions(conditions[-1])]
        is_complete = not missing and not why
        told = _status(class_, conditions, legacy, now, variables=None if why else _variables(class_), done=is_complete)
        if missing:
            return wait("TemplateNotFound", "; ".join(map(str, missing)), *actions, told)
        return wait(DISCOVERY_FAILED, why, *actions, told) if why else do(*actions, told)


def references_of(class_: ClusterClass) -> Iterator[TemplateReference]:
    """All references to templates that a class has."""
    spec = class_.spec
    yield spec.infrastructure.template_ref
    yield spec.control_plane.template_ref
    if spec.control_plane.machine_infrastructure.template_ref.name:
        yield spec.control_plane.machine_infrastructure.template_ref
    for deployment in spec.workers.machine_deployments:
        yield deployment.bootstrap.template_ref
        yield deployment.infrastructure.template_ref
    for pool in spec.workers.machine_pools:
        yield pool.bootstrap.template_ref
        yield pool.infrastructure.template_ref


def external_parts(class_: ClusterClass) -> str:
    """Why a class cannot be used because of runtime extensions that it names; empty if it names none."""
    named = [f"spec.patches[{one.name}].external" for one in class_.spec.patches if one.external is not None]
    if class_.spec.upgrade.external.generate_upgrade_plan_extension:
        named.append("spec.upgrade.external")
    if not named:
        return ""
    return f"runtime extensions are not supported: remove {', '.join(named)}, or write the patches inline"


def _referred(cache: Cache, reference: TemplateReference, namespace: str) -> Referred:
    external = look_up_version(cache, reference.api_version, reference.kind, namespace, reference.name)
    group = reference.api_version.rpartition("/")[0]
    return Referred(reference, external, api_version(cache, group, reference.kind))


def _owned(class_: ClusterClass, external: External) -> MergePatch | None:
    if not external.is_found or external.is_deleting:
        return None
    kind, obj = external.found
    reference = owner_reference(CLUSTER_CLASS, class_)
    return owners_patch(kind, obj, with_owner(obj.metadata.owner_references, reference))


def _variables(class_: ClusterClass) -> list[Fields]:
    return [
        {
            "name": one.name,
            "definitionsConflict": False,
            "definitions": [
                told(
                    {
                        "from": INLINE,
                        "required": bool(one.required_),
                        "deprecatedV1Beta1Metadata": to_builtin(one.deprecated_v1beta1_metadata),
                        "schema": to_builtin(one.schema),
                    }
                )
            ],
        }
        for one in sorted(class_.spec.variables, key=lambda one: one.name)
    ]


def _variables_condition(why: str) -> Condition:
    if why:
        message = f"VariableDiscovery failed: {why}"
        return Condition(type=VARIABLES_READY, status="False", reason=DISCOVERY_FAILED, message=message)
    return Condition(type=VARIABLES_READY, status="True", reason=VARIABLES_READY)


def _versions_condition(templates: Sequence[Referred], missing: Sequence[External]) -> Condition:
    if missing:
        said = "; ".join(map(str, missing))
        return Condition(type=REF_VERSIONS, status="Unknown", reason="InternalError", message=said)
    outdated = [one for one in templates if one.is_outdated]
    if not outdated:
        return Condition(type=REF_VERSIONS, status="True", reason=REF_VERSIONS)
    lines = [
        f"* {one.reference.kind} {one.reference.name}: current: {_version(one.reference.api_version)},"
        f" latest: {_version(one.newest)}"
        for one in outdated
    ]
    message = "\n".join(["The following templateRefs are not using the latest apiVersion:", *lines])
    return Condition(type=REF_VERSIONS, status="False", reason="RefVersionsNotUpToDate", message=message)


def _version(text: str) -> str:
    return text.rpartition("/")[2]


def _legacy_variables(why: str) -> LegacyCondition:
    if why:
        return legacy_false(VARIABLES_RECONCILED, DISCOVERY_FAILED, ERROR, f"VariableDiscovery failed: {why}")
    return legacy_true(VARIABLES_RECONCILED)


def _legacy_versions(condition: Condition) -> LegacyCondition:
    if condition.status == "True":
        return legacy_true(REF_VERSIONS)
    if condition.status == "Unknown":
        return legacy_unknown(REF_VERSIONS, condition.reason, condition.message)
    return legacy_false(REF_VERSIONS, "OutdatedRefVersions", WARNING, condition.message)


def _status(
    class_: ClusterClass,
    conditions: Sequence[Condition],
    legacy: Sequence[LegacyCondition],
    now: datetime,
    *,
    variables: Sequence[Fields] | None = None,
    done: bool = False,
) -> MergePatch | None:
    """The patch of the status; None if nothing changes. What a class observed it says only when all is well."""
    old: Fields = to_builtin(class_.status)
    held = list(conditions_of(class_))
    for condition in conditions:
        held = set_condition(held, condition, now=now, generation=class_.metadata.generation)
    new = put(old, to_builtin(held), ("conditions",))
    if legacy:
        older = list(legacy_conditions(class_))
        for one in legacy:
            older = set_legacy(older, one, now=now)
        new = put(new, to_builtin(older), ("deprecated", "v1beta1", "conditions"))
    if variables is not None and (variables or "variables" in old):
        new = put(new, list(variables), ("variables",))
    if done:
        new = put(new, class_.metadata.generation, ("observedGeneration",))
    change = diff(old, new)
    return patch_status(CLUSTER_CLASS, class_, change) if change else None
