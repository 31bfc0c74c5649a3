"""Tables of roles, bindings, quotas and policies.

Source: kubernetes/kubernetes: pkg/printers/internalversion/printers.go.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from ironbell.apiserver.builtin import autoscalers
from ironbell.apiserver.builtin.autoscalers import convert_autoscaler
from ironbell.apiserver.tables.cells import (
    AGE,
    NAME,
    NONE,
    UNSET,
    Printer,
    age_of,
    column,
    entries,
    labels_text,
    name_of,
    named,
    nested,
    number,
)
from ironbell.base.wording import INVALID, human_duration


def _created_at(item: dict[str, Any], _now: datetime) -> list[Any]:
    return [name_of(item), nested(item, "metadata").get("creationTimestamp") or INVALID]


def _subjects(item: dict[str, Any]) -> list[Any]:
    subjects = entries(item, "subjects")

    def names(kind: str) -> str:
        return ", ".join(_subject(entry) for entry in subjects if entry.get("kind") == kind)

    return [names("User"), names("Group"), names("ServiceAccount")]


def _subject(entry: dict[str, Any]) -> str:
    name = str(entry.get("name", ""))
    return f"{entry.get('namespace', '')}/{name}" if entry.get("kind") == "ServiceAccount" else name


def _role(item: dict[str, Any]) -> list[Any]:
    role = nested(item, "roleRef")
    return [f"{role.get('kind', '')}/{role.get('name', '')}"]


def _request(item: dict[str, Any], now: datetime) -> list[Any]:
    spec, status = nested(item, "spec"), nested(item, "status")
    kinds = {entry.get("type") for entry in entries(status, "conditions")}
    state = "Denied" if "Denied" in kinds else "Approved" if "Approved" in kinds else "Pending"
    state += (",Failed" if "Failed" in kinds else "") + (",Issued" if status.get("certificate") else "")
    lasts = spec.get("expirationSeconds")
    duration = human_duration(lasts) if isinstance(lasts, int) else NONE
    return [name_of(item), age_of(item, now), spec.get("signerName") or NONE, spec.get("username", ""), duration, state]


def _quota(item: dict[str, Any]) -> list[Any]:
    hard, used = nested(item, "status", "hard"), nested(item, "status", "used")
    shown = {name: f"{name}: {used.get(name, 0)}/{hard[name]}" for name in sorted(hard)}
    limits = [text for name, text in shown.items() if name.startswith("limits.")]
    return [", ".join(text for text in shown.values() if text not in limits), ", ".join(limits)]


def _budget(item: dict[str, Any]) -> list[Any]:
    spec = nested(item, "spec")
    bounds = [str(spec[name]) if spec.get(name) is not None else "N/A" for name in ("minAvailable", "maxUnavailable")]
    return [*bounds, number(nested(item, "status"), "disruptionsAllowed")]


def _autoscaler(shown: dict[str, Any]) -> list[Any]:
    item = convert_autoscaler(shown, autoscalers.NEW)
    spec, status, target = nested(item, "spec"), nested(item, "status"), nested(item, "spec", "scaleTargetRef")
    least = spec.get("minReplicas")
    return [
        f"{target.get('kind', '')}/{target.get('name', '')}", _metrics(item), UNSET if least is None else str(least),
        number(spec, "maxReplicas"), number(status, "currentReplicas"),
    ]  # fmt: skip


def _metrics(item: dict[str, Any]) -> str:
    metrics = entries(nested(item, "spec"), "metrics")
    seen = entries(nested(item, "status"), "currentMetrics")
    shown = [_metric(metric, seen[index] if index < len(seen) else {}) for index, metric in enumerate(metrics)]
    text = ", ".join(shown[:2]) or NONE
    return f"{text} + {len(shown) - 2} more..." if len(shown) > 2 else text


def _metric(metric: dict[str, Any], seen: dict[str, Any]) -> str:
    kind = str(metric.get("type", ""))
    field = kind[:1].lower() + kind[1:]
    target, current = nested(metric, field, "target"), nested(seen, field, "current")
    prefix = f"{nested(metric, field).get('name', '')}: " if kind in {"Resource", "ContainerResource"} else ""
    if target.get("averageValue") is not None:
        suffix = " (avg)" if kind in {"External", "Object"} else ""
        return f"{prefix}{current.get('averageValue', '<unknown>')}/{target['averageValue']}{suffix}"
    if not prefix:
        return f"{current.get('value', '<unknown>')}/{target.get('value', '')}"
    used, aim = current.get("averageUtilization"), target.get("averageUtilization")
    shown = ["<unknown>" if used is None else f"{used}%", "<auto>" if aim is None else f"{aim}%"]
    return prefix + "/".join(shown)


def _policy(counted: str) -> Callable[[dict[str, Any]], list[Any]]:
    def cells(item: dict[str, Any]) -> list[Any]:
        kind = nested(item, "spec", "paramKind")
        shown = f"{kind.get('apiVersion', '')}/{kind.get('kind', '')}" if kind else UNSET
        return [len(entries(nested(item, "spec"), counted)), shown]

    return cells


def _policy_binding(item: dict[str, Any]) -> list[Any]:
    spec, ref = nested(item, "spec"), nested(item, "spec", "paramRef")
    shown = UNSET
    if ref.get("name"):
        shown = f"{ref.get('namespace') or '*'}/{ref['name']}"
    elif ref.get("selector") is not None:
        selector = nested(ref, "selector")
        shown = labels_text(nested(selector, "matchLabels")) if not entries(selector, "matchExpressions") else "*"
    return [spec.get("policyName", ""), shown]


_BINDING = named(
    column("Role", "Role that it grants."), cells=_role,
    more=(
        column("Users", "Users who get it.", wide=True), column("Groups", "Groups that get it.", wide=True),
        column("ServiceAccounts", "ServiceAccounts that get it.", wide=True),
    ),
    more_cells=_subjects,
)  # fmt: skip
_CREATED_AT = Printer((NAME, column("Created At", "When it was created.", type="date")), _created_at)
_WEBHOOKS = named(
    column("Webhooks", "How many webhooks it has.", type="integer"), cells=lambda item: [len(entries(item, "webhooks"))]
)
_PARAM_KIND = column("ParamKind", "The kind of its parameters.")
_POLICY_BINDING = named(
    column("PolicyName", "The policy that it puts into force."), column("ParamRef", "The parameters that it uses."),
    cells=_policy_binding,
)  # fmt: skip
PRINTERS: dict[tuple[str, str], Printer] = {
    ("rbac.authorization.k8s.io", "Role"): _CREATED_AT,
    ("rbac.authorization.k8s.io", "ClusterRole"): _CREATED_AT,
    ("rbac.authorization.k8s.io", "RoleBinding"): _BINDING,
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): _BINDING,
    ("", "LimitRange"): _CREATED_AT,
    ("", "ResourceQuota"): named(
        column("Request", "Used and permitted requests."), column("Limit", "Used and permitted limits."),
        cells=_quota,
    ),
    ("certificates.k8s.io", "CertificateSigningRequest"): Printer(
        (
            NAME, AGE, column("SignerName", "Signer of the certificate."), column("Requestor", "User that sent it."),
            column("RequestedDuration", "Requested validity."), column("Condition", "State of the request."),
        ),
        _request,
    ),
    ("policy", "PodDisruptionBudget"): named(
        column("Min Available", "Pods that must stay available."),
        column("Max Unavailable", "Pods that may be unavailable."),
        column("Allowed Disruptions", "Pods that may be disrupted now.", type="integer"), cells=_budget,
    ),
    ("autoscaling", "HorizontalPodAutoscaler"): named(
        column("Reference", "Object that it scales."), column("Targets", "Measured and target values."),
        column("MinPods", "Fewest replicas."), column("MaxPods", "Most replicas."),
        column("Replicas", "Replicas there are."), cells=_autoscaler,
    ),
    ("scheduling.k8s.io", "PriorityClass"): named(
        column("Value", "The priority.", type="integer"),
        column("Global-Default", "Whether pods that name none have it.", type="boolean"),
        cells=lambda item: [number(item, "value"), bool(item.get("globalDefault"))],
        more=(column("PreemptionPolicy", "Whether others make room for it."),),
        more_cells=lambda item: [item.get("preemptionPolicy", "")],
    ),
    ("node.k8s.io", "RuntimeClass"): named(
        column("Handler", "Handler that runs its containers."), cells=lambda item: [item.get("handler", "")]
    ),
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): _WEBHOOKS,
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"): _WEBHOOKS,
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicy"): named(
        column("Mutations", "How many changes it makes.", type="integer"), _PARAM_KIND, cells=_policy("mutations"),
    ),
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding"): _POLICY_BINDING,
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"): named(
        column("Validations", "How many rules it has.", type="integer"), _PARAM_KIND, cells=_policy("validations"),
    ),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"): _POLICY_BINDING,
}  # fmt: skip
