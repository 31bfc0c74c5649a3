"""Whether a webhook wants to see a request, and in which version of the resource.

Source: kubernetes/apiserver: pkg/admission/plugin/webhook/generic/webhook.go, predicates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from ironbell.api.client import NotFound
from ironbell.apiserver.admission import AdmissionRequest, Operation
from ironbell.apiserver.resources import ResourceInfo
from ironbell.apiserver.selectors.labels import LabelSelector
from ironbell.apiserver.webhooks.configuration import GROUP, HookRule, Webhook

LabelsOf = Callable[[str], Mapping[str, str] | None]
"""The labels of a namespace; None if there is none of that name."""

_EXEMPT = frozenset({
    "mutatingwebhookconfigurations", "validatingwebhookconfigurations", "validatingadmissionpolicies",
    "validatingadmissionpolicybindings", "mutatingadmissionpolicies", "mutatingadmissionpolicybindings",
})  # fmt: skip


class Invocation(msgspec.Struct, frozen=True):
    """A webhook that is to be called, with the version that it gets to see."""

    webhook: Webhook
    info: ResourceInfo


def is_exempt(info: ResourceInfo) -> bool:
    """Whether no webhook ever sees a resource, so that one cannot lock itself in."""
    return info.group == GROUP and info.plural in _EXEMPT


def may_match(webhooks: Iterable[Webhook], versions: Iterable[ResourceInfo]) -> bool:
    """Whether any webhook could want to see a resource at all: asked before every write, so it is cheap."""
    infos = list(versions)
    return any(names_version(rule, info) for webhook in webhooks for rule in webhook.spec.rules or () for info in infos)


def names_version(rule: HookRule, info: ResourceInfo) -> bool:
    """Whether a rule is for a resource's group and version."""
    return (info.group in rule.api_groups or "*" in rule.api_groups) and (
        info.version in rule.api_versions or "*" in rule.api_versions
    )


def invocation(
    webhook: Webhook, request: AdmissionRequest, versions: Iterable[ResourceInfo], *, labels_of: LabelsOf
) -> Invocation | None:
    """How a webhook is to be called for a request; None if it does not want to be.

    `versions` are all served versions of the resource. Match conditions are not looked at.

    Raises:
        NotFound: the request's namespace does not exist, and the webhook asks for its labels.
    """
    spec = webhook.spec
    candidates = _candidates(webhook, request, versions)
    info = next((one for one in candidates if _rules_match(spec.rules, request, one)), None)
    if info is None:
        return None
    if not namespace_matches(spec.namespace_selector, request, labels_of):
        return None
    return Invocation(webhook, info) if object_matches(spec.object_selector, request) else None


def _candidates(
    webhook: Webhook, request: AdmissionRequest, versions: Iterable[ResourceInfo]
) -> Iterable[ResourceInfo]:
    yield request.info
    if webhook.spec.match_policy == "Equivalent":
        yield from (info for info in versions if info is not request.info)


def _rules_match(rules: tuple[HookRule, ...] | None, request: AdmissionRequest, info: ResourceInfo) -> bool:
    return any(names_version(rule, info) and rule_fits(rule, request, info) for rule in rules or ())


def rule_fits(rule: HookRule, request: AdmissionRequest, info: ResourceInfo) -> bool:
    """Whether a rule that is for its version is for a request."""
    if "*" not in rule.operations and request.operation.value not in rule.operations:
        return False
    if rule.scope == "Namespaced" and not info.namespaced:
        return False
    if rule.scope == "Cluster" and info.namespaced:
        return False
    return any(_resource_fits(resource, info.plural, request.subresource) for resource in rule.resources)


def _resource_fits(pattern: str, plural: str, subresource: str) -> bool:
    resource, _, sub = pattern.partition("/")
    return resource in ("*", plural) and (sub == subresource or (sub == "*"))


def namespace_matches(selector: LabelSelector, request: AdmissionRequest, labels_of: LabelsOf) -> bool:
    """Whether a selector takes the namespace of a request.

    Raises:
        NotFound: that namespace does not exist.
    """
    if selector.is_empty:
        return True
    name = request.namespace
    if (request.info.group, request.info.plural) == ("", "namespaces"):
        if request.operation in (Operation.CREATE, Operation.UPDATE) and not request.subresource:
            return selector.matches(_labels(request.new))
        name = request.name
    if not name:
        return True
    labels = labels_of(name)
    if labels is None:
        raise NotFound(f'namespaces "{name}" not found', details={"name": name, "kind": "namespaces"})
    return selector.matches(labels)


def object_matches(selector: LabelSelector, request: AdmissionRequest) -> bool:
    """Whether a selector takes the object of a request, as it is or as it was."""
    if selector.is_empty:
        return True
    return any(selector.matches(_labels(value)) for value in (request.new, request.old) if value is not None)


def _labels(value: dict[str, Any] | None) -> Mapping[str, str]:
    return ((value or {}).get("metadata") or {}).get("labels") or {}
