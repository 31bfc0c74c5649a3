"""Matching of webhooks: whether a request matches, and in which version of the resource.

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
"""Returns the labels of a namespace; None if it does not exist."""

_EXEMPT = frozenset({
    "mutatingwebhookconfigurations", "validatingwebhookconfigurations", "validatingadmissionpolicies",
    "validatingadmissionpolicybindings", "mutatingadmissionpolicies", "mutatingadmissionpolicybindings",
})  # fmt: skip


class Invocation(msgspec.Struct, frozen=True):
    """A webhook that is to be called, with the version of the resource that it sees."""

    webhook: Webhook
    info: ResourceInfo


def is_exempt(info: ResourceInfo) -> bool:
    """Return whether no webhook ever sees a resource, so that a webhook cannot lock itself in."""
    return info.group == GROUP and info.plural in _EXEMPT


def may_match(webhooks: Iterable[Webhook], versions: Iterable[ResourceInfo]) -> bool:
    """Return whether any webhook could match a resource at all: called before every write, so it is cheap."""
    infos = list(versions)
    return any(names_version(rule, info) for webhook in webhooks for rule in webhook.spec.rules or () for info in infos)


def names_version(rule: HookRule, info: ResourceInfo) -> bool:
    """Return whether a rule is for a resource's group and version."""
    return (info.group in rule.api_groups or "*" in rule.api_groups) and (
        info.version in rule.api_versions or "*" in rule.api_versions
    )


def invocation(
    webhook: Webhook, request: AdmissionRequest, versions: Iterable[ResourceInfo], *, labels_of: LabelsOf
) -> Invocation | None:
    """The call of a webhook for a request; None if the request does not match.

    `versions` are all served versions of the resource. Match conditions are not evaluated.

    Raises:
        NotFound: the request's namespace does not exist, and the webhook selects by its labels.
    """
    spec = webhook.spec
    candidates = _candidates(webhook, request, versions)
    info = next((version for version in candidates if _rules_match(spec.rules, request, version)), None)
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
    """Return whether a rule for the request's version matches a request."""
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
    """Return whether a selector matches the namespace of a request.

    Raises:
        NotFound: the namespace does not exist.
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
    """Return whether a selector matches the new or the old object of a request."""
    if selector.is_empty:
        return True
    return any(selector.matches(_labels(value)) for value in (request.new, request.old) if value is not None)


def _labels(value: dict[str, Any] | None) -> Mapping[str, str]:
    return ((value or {}).get("metadata") or {}).get("labels") or {}
