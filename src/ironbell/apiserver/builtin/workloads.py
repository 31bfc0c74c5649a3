"""Validation and defaults of the kinds that run containers.

Source: kubernetes/kubernetes: pkg/registry/apps/*/strategy.go, pkg/registry/batch/job/strategy.go,
pkg/registry/core/pod/strategy.go, pkg/apis/apps/validation/validation.go, pkg/apis/core/validation/validation.go,
pkg/apis/core/helper/qos/qos.go.
"""

from __future__ import annotations

from typing import Any

from ironbell.apiserver.builtin.containers import container_faults
from ironbell.apiserver.fielderrors import FieldError, forbidden, invalid, not_supported
from ironbell.apiserver.strategy import Plain

Object = dict[str, Any]

_IMMUTABLE = "field is immutable"
_JOB_LABELS = ("batch.kubernetes.io/controller-uid", "controller-uid")
_JOB_NAMES = ("batch.kubernetes.io/job-name", "job-name")
_GENERATION = "deprecated.daemonset.template.generation"
_STATEFUL = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
    "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)
_STATEFUL_FREE = (
    "replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy", "minReadySeconds",
)  # fmt: skip
_POD = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_STRATEGIES = ("Recreate", "RollingUpdate")
_COMPUTE = ("cpu", "memory")


def _spec(value: Object | None) -> Object:
    spec = (value or {}).get("spec")
    return spec if isinstance(spec, dict) else {}


def _labels(template: Any) -> Object:
    return ((template or {}).get("metadata") or {}).get("labels") or {}


def _matches(selector: Object, labels: Object) -> bool:
    if any(labels.get(key) != value for key, value in (selector.get("matchLabels") or {}).items()):
        return False
    return all(_meets(requirement, labels) for requirement in selector.get("matchExpressions") or ())


def _meets(requirement: Object, labels: Object) -> bool:
    key, values = str(requirement.get("key", "")), requirement.get("values") or ()
    match requirement.get("operator"):
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
    return key not in labels


class TemplateRules(Plain):
    """A workload finds its pods by a selector that must match their template, and that stays."""

    def __init__(self, *, word: str, policies: tuple[str, ...] = ("Always",)) -> None:
        self._word = word
        self._policies = policies

    def validate(self, new: Object, old: Object | None) -> list[FieldError]:
        spec = _spec(new)
        errors = _replicas_faults(spec)
        selector, template = spec.get("selector"), spec.get("template")
        errors += _strategy_faults(spec)
        if isinstance(selector, dict):
            if not selector.get("matchLabels") and not selector.get("matchExpressions"):
                errors.append(invalid("spec.selector", selector, f"empty selector is invalid for {self._word}"))
            elif not _matches(selector, _labels(template)):
                detail = "`selector` does not match template `labels`"
                errors.append(invalid("spec.template.metadata.labels", _labels(template), detail))
        errors += _template_faults(template, "spec.template", policies=self._policies)
        if old is not None and selector != _spec(old).get("selector"):
            errors.append(invalid("spec.selector", selector, _IMMUTABLE))
        return errors


def _replicas_faults(spec: Object) -> list[FieldError]:
    replicas = spec.get("replicas")
    if isinstance(replicas, int) and replicas < 0:
        return [invalid("spec.replicas", replicas, "must be greater than or equal to 0")]
    return []


def _strategy_faults(spec: Object) -> list[FieldError]:
    strategy = spec.get("strategy") or {}
    kind, rolling = strategy.get("type", "RollingUpdate"), strategy.get("rollingUpdate")
    if kind == "Recreate" and rolling is not None:
        return [forbidden("spec.strategy.rollingUpdate", "may not be specified when strategy `type` is 'Recreate'")]
    if kind not in _STRATEGIES:
        return [not_supported("spec.strategy", {"Type": kind, "RollingUpdate": rolling}, _STRATEGIES)]
    return []


def _template_faults(template: Any, path: str, *, policies: tuple[str, ...]) -> list[FieldError]:
    spec = _spec(template)
    errors = container_faults(spec, f"{path}.spec")
    policy = spec.get("restartPolicy", "")
    if policy and policy not in policies:
        errors.append(not_supported(f"{path}.spec.restartPolicy", policy, policies))
    return errors


class DaemonSetRules(TemplateRules):
    """Daemon sets count the generations of their template in an annotation as well."""

    def prepare_create(self, new: Object) -> None:
        new["metadata"].setdefault("annotations", {})[_GENERATION] = "1"

    def prepare_update(self, new: Object, old: Object) -> None:
        count = int((old["metadata"].get("annotations") or {}).get(_GENERATION, "1"))
        if _spec(new).get("template") != _spec(old).get("template"):
            count += 1
        new["metadata"].setdefault("annotations", {})[_GENERATION] = str(count)


class StatefulSetRules(TemplateRules):
    """Most fields of a StatefulSet cannot be changed."""

    def validate(self, new: Object, old: Object | None) -> list[FieldError]:
        errors = super().validate(new, None)
        if old is not None:
            old_spec, new_spec = (
                {k: v for k, v in _spec(value).items() if k not in _STATEFUL_FREE} for value in (old, new)
            )
            if old_spec != new_spec:
                errors.append(forbidden("spec", _STATEFUL))
        return errors


class JobRules(Plain):
    """A Job creates the selector of its pods from its own uid."""

    def prepare_create(self, new: Object) -> None:
        spec, meta = _spec(new), new["metadata"]
        if spec.get("manualSelector") or not isinstance(spec.get("template"), dict):
            return
        labels = dict.fromkeys(_JOB_LABELS, meta["uid"]) | dict.fromkeys(_JOB_NAMES, meta.get("name", ""))
        inner = spec["template"].setdefault("metadata", {})
        inner["labels"] = {**(inner.get("labels") or {}), **labels}
        selector = spec.setdefault("selector", {})
        selector["matchLabels"] = {**(selector.get("matchLabels") or {}), _JOB_LABELS[0]: meta["uid"]}
        if not meta.get("labels") or meta["labels"].items() <= inner["labels"].items():
            meta["labels"] = dict(inner["labels"])

    def validate(self, new: Object, old: Object | None) -> list[FieldError]:
        spec, old_spec = _spec(new), _spec(old)
        errors = _template_faults(spec.get("template"), "spec.template", policies=("OnFailure", "Never"))
        if old is not None:
            errors += [
                invalid(f"spec.{name}", spec.get(name), _IMMUTABLE)
                for name in ("completionMode", "selector", "template")
                if spec.get(name) != old_spec.get(name) and not old_spec.get("suspend")
            ]
        return errors


class CronJobRules(Plain):
    """A cron job holds the template of a job."""

    def validate(self, new: Object, old: Object | None) -> list[FieldError]:
        job = _spec(_spec(new).get("jobTemplate"))
        path = "spec.jobTemplate.spec.template"
        return _template_faults(job.get("template"), path, policies=("OnFailure", "Never"))


class PodRules(Plain):
    """A pod waits for a node, and is hardly changed once it exists."""

    def prepare_create(self, new: Object) -> None:
        new["status"] = {"phase": "Pending", "qosClass": qos_class(_spec(new))}

    def validate(self, new: Object, old: Object | None) -> list[FieldError]:
        errors = container_faults(_spec(new), "spec")
        policy = _spec(new).get("restartPolicy", "")
        if policy not in ("", "Always", "OnFailure", "Never"):
            errors.append(not_supported("spec.restartPolicy", policy, ("Always", "OnFailure", "Never")))
        if old is not None and _fixed(new) != _fixed(old):
            errors.append(forbidden("spec", _POD))
        return errors


def _fixed(pod: Object) -> Object:
    """The part of a pod's spec that must not change."""
    free = ("activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds", "schedulingGates", "nodeName")
    spec = {name: part for name, part in _spec(pod).items() if name not in free}
    for name in ("containers", "initContainers"):
        spec[name] = [{**container, "image": ""} for container in spec.get(name) or ()]
    return spec


def qos_class(spec: Object) -> str:
    """Return the quality of service of a pod's resources."""
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    resources = [container.get("resources") or {} for container in containers]
    limits = [container.get("limits") or {} for container in resources]
    requests = [container.get("requests") or {} for container in resources]
    if not any(name in container for container in (*limits, *requests) for name in _COMPUTE):
        return "BestEffort"
    for limit, request in zip(limits, requests, strict=True):
        if any(name not in limit or request.get(name, limit[name]) != limit[name] for name in _COMPUTE):
            return "Burstable"
    return "Guaranteed"
