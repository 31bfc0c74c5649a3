"""The controller of ClusterClasses: owns their templates, and publishes their variables.

Source: kubernetes-sigs/cluster-api: core/reconcilers/clusterclass.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from ironbell.api.cluster import CLUSTER_CLASS
from ironbell.api.cluster.classes.clusterclass import (
    ClusterClass,
    ClusterClassStatusVariable,
    ClusterClassStatusVariableDefinition,
)
from ironbell.api.cluster.classes.variables import ClusterClassVariable
from ironbell.api.cluster.common import TemplateReference
from ironbell.api.cluster.deprecated import LegacyCondition
from ironbell.api.meta import Condition
from ironbell.contract.clusters.external import External, State, read_version
from ironbell.contract.clusters.paused import PAUSED, is_paused, paused_condition
from ironbell.contract.clusters.references import BY_GROUP_KIND, DEFINITIONS, api_version
from ironbell.contract.conditions.draft import ConditionsDraft
from ironbell.contract.conditions.legacy import ERROR, WARNING, legacy_false, legacy_true, legacy_unknown
from ironbell.contract.owners import owner_reference, owners_patch, with_owner
from ironbell.controllers.capi.topology.patches.engine import INLINE
from ironbell.kube.decision import Decision, Key, MergePatch
from ironbell.kube.draft import replace
from ironbell.kube.finalizers import is_deleting
from ironbell.kube.reconciler import Cache, Declaration

CLUSTER_CLASS_CONTROLLER: Final = "capi-clusterclass"
VARIABLES_READY: Final = "VariablesReady"
VARIABLES_RECONCILED: Final = "VariablesReconciled"
DISCOVERY_FAILED: Final = "VariableDiscoveryFailed"
REF_VERSIONS: Final = "RefVersionsUpToDate"


@dataclass(frozen=True, slots=True)
class Referred:
    """A template of a class as observed, and the apiVersion that references to it should have."""

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
    """Prepares a class for use."""

    name = CLUSTER_CLASS_CONTROLLER
    declaration = Declaration(CLUSTER_CLASS, watches=(DEFINITIONS,), indexes=(BY_GROUP_KIND,))

    def observe(self, cache: Cache, key: Key) -> Observed | None:
        class_ = cache.get(CLUSTER_CLASS, *key)
        if class_ is None or is_deleting(class_):
            return None
        references = dict.fromkeys(references_of(class_))
        return Observed(class_, tuple(_referred(cache, reference, key[0]) for reference in references))

    def decide(self, observed: Observed, now: datetime) -> Decision:
        draft = ConditionsDraft(CLUSTER_CLASS, observed.cluster_class, now)
        pause = paused_condition(CLUSTER_CLASS.kind, draft.obj)
        if is_paused(draft.obj):
            draft.put(pause)
            draft.wait(PAUSED, pause.message)
            return draft.decision()
        draft.owned += [_owned(draft.obj, template.external) for template in observed.templates]
        missing = [template.external for template in observed.templates if not template.external.exists]
        not_listed = [template for template in missing if template.state is State.UNKNOWN and not template.problem]
        if not_listed:
            draft.wait("TemplatesNotListed", str(not_listed[0]))
            return draft.decision()
        problem = external_parts(draft.obj)
        if missing:
            draft.wait("TemplateNotFound", "; ".join(map(str, missing)))
        if problem:
            draft.wait(DISCOVERY_FAILED, problem)
        else:
            draft.status = replace(draft.status, variables=_variables(draft.obj))
        versions = _versions_condition(observed.templates, missing)
        draft.put(pause, _variables_condition(problem), versions)
        draft.put_legacy(_legacy_variables(problem), _legacy_versions(versions))
        if draft.waiting is None:
            draft.observe_generation()
        return draft.decision()


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
    """The reason why a class cannot be used: it names runtime extensions; empty if it names none."""
    fields = [f"spec.patches[{patch.name}].external" for patch in class_.spec.patches if patch.external is not None]
    if class_.spec.upgrade.external.generate_upgrade_plan_extension:
        fields.append("spec.upgrade.external")
    if not fields:
        return ""
    return f"runtime extensions are not supported: remove {', '.join(fields)}, or write the patches inline"


def _referred(cache: Cache, reference: TemplateReference, namespace: str) -> Referred:
    external = read_version(cache, reference.api_version, reference.kind, namespace, reference.name)
    group = reference.api_version.rpartition("/")[0]
    return Referred(reference, external, api_version(cache, group, reference.kind))


def _owned(class_: ClusterClass, external: External) -> MergePatch | None:
    if not external.exists or external.is_deleting:
        return None
    kind, obj = external.kind_and_object
    reference = owner_reference(CLUSTER_CLASS, class_)
    return owners_patch(kind, obj, with_owner(obj.metadata.owner_references, reference))


def _variables(class_: ClusterClass) -> list[ClusterClassStatusVariable]:
    variables = sorted(class_.spec.variables, key=lambda variable: variable.name)
    return [
        ClusterClassStatusVariable(name=variable.name, definitions_conflict=False, definitions=[_definition(variable)])
        for variable in variables
    ]


def _definition(variable: ClusterClassVariable) -> ClusterClassStatusVariableDefinition:
    definition = ClusterClassStatusVariableDefinition(
        from_=INLINE, required_=bool(variable.required_), schema=variable.schema
    )
    return replace(definition, deprecated_v1beta1_metadata=variable.deprecated_v1beta1_metadata)


def _variables_condition(problem: str) -> Condition:
    if problem:
        message = f"VariableDiscovery failed: {problem}"
        return Condition(type=VARIABLES_READY, status="False", reason=DISCOVERY_FAILED, message=message)
    return Condition(type=VARIABLES_READY, status="True", reason=VARIABLES_READY)


def _versions_condition(templates: Sequence[Referred], missing: Sequence[External]) -> Condition:
    if missing:
        message = "; ".join(map(str, missing))
        return Condition(type=REF_VERSIONS, status="Unknown", reason="InternalError", message=message)
    outdated = [template for template in templates if template.is_outdated]
    if not outdated:
        return Condition(type=REF_VERSIONS, status="True", reason=REF_VERSIONS)
    lines = [
        f"* {template.reference.kind} {template.reference.name}: current: {_version(template.reference.api_version)},"
        f" latest: {_version(template.newest)}"
        for template in outdated
    ]
    message = "\n".join(["The following templateRefs are not using the latest apiVersion:", *lines])
    return Condition(type=REF_VERSIONS, status="False", reason="RefVersionsNotUpToDate", message=message)


def _version(text: str) -> str:
    return text.rpartition("/")[2]


def _legacy_variables(problem: str) -> LegacyCondition:
    if problem:
        return legacy_false(VARIABLES_RECONCILED, DISCOVERY_FAILED, ERROR, f"VariableDiscovery failed: {problem}")
    return legacy_true(VARIABLES_RECONCILED)


def _legacy_versions(condition: Condition) -> LegacyCondition:
    if condition.status == "True":
        return legacy_true(REF_VERSIONS)
    if condition.status == "Unknown":
        return legacy_unknown(REF_VERSIONS, condition.reason, condition.message)
    return legacy_false(REF_VERSIONS, "OutdatedRefVersions", WARNING, condition.message)
