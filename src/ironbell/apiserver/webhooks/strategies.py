"""Defaults and validation of webhook configurations.

Source: kubernetes/kubernetes: pkg/apis/admissionregistration/v1/defaults.go, validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ironbell.apiserver.fielderrors import FieldError, duplicate, invalid, not_supported, required
from ironbell.apiserver.metadata import name_fault, qualified_fault
from ironbell.apiserver.selectors.labels import selector_faults
from ironbell.apiserver.strategy import Plain
from ironbell.apiserver.webhooks.addresses import client_faults
from ironbell.apiserver.webhooks.configuration import CONDITION_VARIABLES
from ironbell.base.ports import HTTPS_PORT
from ironbell.codec.cel import CelSyntaxError, compile_expression

_OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_SCOPES = ("*", "Cluster", "Namespaced")
_POLICIES = ("Fail", "Ignore")
_MATCHES = ("Equivalent", "Exact")
_SIDE_EFFECTS = ("None", "NoneOnDryRun")
_REINVOCATIONS = ("IfNeeded", "Never")
_REVIEWS = ("v1", "v1beta1")
_MAX_CONDITIONS = 64


class WebhookRules(Plain):
    """MutatingWebhookConfiguration and ValidatingWebhookConfiguration."""

    def __init__(self, *, mutating: bool) -> None:
        self._mutating = mutating

    def prepare_create(self, new: dict[str, Any]) -> None:
        self._fill_in(new)

    def prepare_update(self, new: dict[str, Any], old: dict[str, Any]) -> None:
        self._fill_in(new)

    def _fill_in(self, new: dict[str, Any]) -> None:
        for webhook in new.get("webhooks") or ():
            webhook.setdefault("failurePolicy", "Fail")
            webhook.setdefault("matchPolicy", "Equivalent")
            webhook.setdefault("namespaceSelector", {})
            webhook.setdefault("objectSelector", {})
            webhook.setdefault("timeoutSeconds", 10)
            if self._mutating:
                webhook.setdefault("reinvocationPolicy", "Never")
            for rule in webhook.get("rules") or ():
                rule.setdefault("scope", "*")
            service = (webhook.get("clientConfig") or {}).get("service")
            if service is not None:
                service.setdefault("port", HTTPS_PORT)

    def validate(self, new: dict[str, Any], old: dict[str, Any] | None) -> list[FieldError]:
        errors: list[FieldError] = []
        names: set[str] = set()
        for index, webhook in enumerate(new.get("webhooks") or ()):
            path = f"webhooks[{index}]"
            errors += _webhook_faults(webhook, path, mutating=self._mutating)
            name = webhook.get("name", "")
            if name and name in names:
                errors.append(duplicate(f"{path}.name", name))
            names.add(name)
        return errors


def _webhook_faults(webhook: dict[str, Any], path: str, *, mutating: bool) -> Iterator[FieldError]:
    yield from _name_faults(webhook.get("name", ""), f"{path}.name")
    for index, rule in enumerate(webhook.get("rules") or ()):
        yield from rule_faults(rule, f"{path}.rules[{index}]")
    choices = [("failurePolicy", _POLICIES), ("matchPolicy", _MATCHES), ("sideEffects", _SIDE_EFFECTS)]
    if mutating:
        choices.append(("reinvocationPolicy", _REINVOCATIONS))
    for field, known in choices:
        if field == "sideEffects" and webhook.get(field) is None:
            yield required(f"{path}.{field}", f"must specify one of {', '.join(known)}")
        elif webhook.get(field) not in known:
            yield not_supported(f"{path}.{field}", webhook.get(field), known)
    if not 1 <= webhook["timeoutSeconds"] <= 30:
        detail = "the timeout value must be between 1 and 30 seconds"
        yield invalid(f"{path}.timeoutSeconds", webhook["timeoutSeconds"], detail)
    for field in ("namespaceSelector", "objectSelector"):
        yield from selector_faults(webhook.get(field), f"{path}.{field}")
    yield from client_faults(webhook.get("clientConfig") or {}, f"{path}.clientConfig")
    yield from condition_faults(webhook.get("matchConditions") or (), f"{path}.matchConditions", _expression_faults)
    yield from _review_faults(webhook.get("admissionReviewVersions") or (), f"{path}.admissionReviewVersions")


def _name_faults(name: str, path: str) -> Iterator[FieldError]:
    if not name:
        yield required(path)
    elif fault := name_fault(name):
        yield invalid(path, name, fault)
    elif len(name.split(".")) < 3:
        yield invalid(path, name, "should be a domain with at least three segments separated by dots")


def rule_faults(rule: dict[str, Any], path: str) -> Iterator[FieldError]:
    """Errors in a rule that matches requests."""
    operations = rule.get("operations") or ()
    if not operations:
        yield required(f"{path}.operations")
    if len(operations) > 1 and "*" in operations:
        yield invalid(f"{path}.operations", operations, "if '*' is present, must not specify other operations")
    for index, operation in enumerate(operations):
        if operation not in _OPERATIONS:
            yield not_supported(f"{path}.operations[{index}]", operation, _OPERATIONS)
    for field, words in (("apiGroups", "API groups"), ("apiVersions", "API versions")):
        values = rule.get(field) or ()
        if not values:
            yield required(f"{path}.{field}")
        if len(values) > 1 and "*" in values:
            yield invalid(f"{path}.{field}", values, f"if '*' is present, must not specify other {words}")
    for index, version in enumerate(rule.get("apiVersions") or ()):
        if not version:
            yield required(f"{path}.apiVersions[{index}]")
    yield from _resource_faults(rule.get("resources") or (), f"{path}.resources")
    if rule.get("scope") not in _SCOPES:
        yield not_supported(f"{path}.scope", rule.get("scope"), _SCOPES)


def _resource_faults(resources: Sequence[str], path: str) -> Iterator[FieldError]:
    if not resources:
        yield required(path)
    everything_of: set[str] = set()
    of_everything: set[str] = set()
    for index, text in enumerate(resources):
        if not text:
            yield required(f"{path}[{index}]")
            continue
        resource, slash, subresource = text.partition("/")
        if not slash:
            continue
        if resource in everything_of:
            yield invalid(f"{path}[{index}]", text, f"if '{resource}/*' is present, must not specify {text}")
        if subresource in of_everything:
            yield invalid(f"{path}[{index}]", text, f"if '*/{subresource}' is present, must not specify {text}")
        if subresource == "*":
            everything_of.add(resource)
        if resource == "*":
            of_everything.add(subresource)
    if len(resources) > 1 and "*/*" in resources:
        yield invalid(path, resources, "if '*/*' is present, must not specify other resources")
    if "*" in resources and any("/" not in text and text != "*" for text in resources):
        detail = "if '*' is present, must not specify other resources without subresources"
        yield invalid(path, resources, detail)


def condition_faults(
    conditions: Sequence[Mapping[str, Any]],
    path: str,
    expression_faults: Callable[[str, str], Iterator[FieldError]],
) -> Iterator[FieldError]:
    """Errors in match conditions; `expression_faults` gives those of an expression, by its text and path."""
    if len(conditions) > _MAX_CONDITIONS:
        yield invalid(path, len(conditions), f"must have at most {_MAX_CONDITIONS} items")
    names: set[str] = set()
    for index, condition in enumerate(conditions):
        where, name = f"{path}[{index}]", condition.get("name", "")
        yield from expression_faults((condition.get("expression") or "").strip(), f"{where}.expression")
        if not name:
            yield required(f"{where}.name")
        elif fault := qualified_fault(name):
            yield invalid(f"{where}.name", name, fault)
        if name and name in names:
            yield duplicate(f"{where}.name", name)
        names.add(name)


def _expression_faults(expression: str, path: str) -> Iterator[FieldError]:
    if not expression:
        yield required(path)
        return
    try:
        compile_expression(expression, CONDITION_VARIABLES)
    except CelSyntaxError as error:
        yield invalid(path, expression, f"compilation failed: {error.message}")


def _review_faults(versions: Sequence[str], path: str) -> Iterator[FieldError]:
    if not versions:
        yield required(path, f"must specify one of {', '.join(_REVIEWS)}")
        return
    for index, version in enumerate(versions):
        if version in versions[:index]:
            yield invalid(f"{path}[{index}]", version, "duplicate version")
    if not set(versions) & set(_REVIEWS):
        yield invalid(path, versions, f"must include at least one of {', '.join(_REVIEWS)}")
