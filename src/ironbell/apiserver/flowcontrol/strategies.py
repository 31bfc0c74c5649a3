"""Validation of FlowSchemas and PriorityLevelConfigurations.

Source: kubernetes/kubernetes: pkg/apis/flowcontrol/validation/validation.go;
kubernetes/apiserver: pkg/util/shufflesharding/shufflesharding.go (the limit of `handSize`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from ironbell.apiserver.fielderrors import FieldError, duplicate, forbidden, invalid, not_supported, required
from ironbell.apiserver.flowcontrol import suggested
from ironbell.apiserver.flowcontrol.spec import (
    BY_NAMESPACE,
    BY_USER,
    EXEMPT,
    Account,
    LevelSpec,
    Limited,
    Queuing,
    ResourceRule,
    Response,
    Rules,
    SchemaSpec,
    Subject,
    UrlRule,
)
from ironbell.apiserver.flowcontrol.spec import Exempt as ExemptSpec
from ironbell.apiserver.metadata import label_name_fault, name_fault
from ironbell.apiserver.strategy import Plain

_MAX_PRECEDENCE = 10000
_MAX_QUEUES = 10_000_000
_MAX_HASH_BITS = 60
_ANY = "*"
_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch")
_PRESERVE_ZERO = "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares"
_PERCENT = "must be between 0 and 100, inclusive"
_NOT_NEGATIVE = "must be a non-negative integer"
_GO_NAMES = {"api_groups": "APIGroups", "urls": "NonResourceURLs"}


class SchemaRules(Plain):
    """FlowSchema."""

    def validate(self, new: dict[str, Any], old: dict[str, Any] | None) -> list[FieldError]:
        name, spec = new["metadata"].get("name", ""), msgspec.convert(new.get("spec") or {}, SchemaSpec)
        faults = [*_schema_faults(spec, name)]
        if suggested.is_mandatory(name) and spec != msgspec.convert(suggested.SCHEMAS[name]["spec"], SchemaSpec):
            faults.append(invalid("spec", _as_go(spec), f"spec of '{name}' must equal the fixed value"))
        return [*faults, *_status_faults(new)]


class LevelRules(Plain):
    """PriorityLevelConfiguration."""

    def validate(self, new: dict[str, Any], old: dict[str, Any] | None) -> list[FieldError]:
        meta, spec = new["metadata"], msgspec.convert(new.get("spec") or {}, LevelSpec)
        faults: list[FieldError] = []
        if _PRESERVE_ZERO in (meta.get("annotations") or {}):
            faults.append(forbidden("metadata.annotations", f"annotation '{_PRESERVE_ZERO}' is forbidden"))
        name = meta.get("name", "")
        return [*faults, *_level_faults(spec, name), *_fixed_level_faults(spec, name), *_status_faults(new)]


def _schema_faults(spec: SchemaSpec, name: str) -> Iterator[FieldError]:
    path, precedence = "spec.matchingPrecedence", spec.matching_precedence
    if precedence <= 0:
        yield invalid(path, precedence, "must be a positive value")
    if precedence > _MAX_PRECEDENCE:
        yield invalid(path, precedence, f"must not be greater than {_MAX_PRECEDENCE}")
    if precedence == 1 and name != EXEMPT:
        yield invalid(path, precedence, "only the schema named 'exempt' may have matchingPrecedence 1")
    method, kinds = spec.distinguisher_method, (BY_NAMESPACE, BY_USER)
    if method is not None and method.type not in kinds:
        yield not_supported("spec.distinguisherMethod.type", _as_go(method), kinds)
    path, level = "spec.priorityLevelConfiguration.name", spec.priority_level_configuration.name
    if not level:
        yield required(path, "must reference a priority level")
    elif fault := name_fault(level):
        yield invalid(path, level, fault)
    for index, rules in enumerate(spec.rules or ()):
        yield from _rules_faults(rules, f"spec.rules[{index}]")


def _rules_faults(rules: Rules, path: str) -> Iterator[FieldError]:
    if not rules.subjects:
        yield required(f"{path}.subjects", "subjects must contain at least one value")
    for index, subject in enumerate(rules.subjects or ()):
        yield from _subject_faults(subject, f"{path}.subjects[{index}]")
    if not rules.resource_rules and not rules.non_resource_rules:
        yield required(path, "at least one of resourceRules and nonResourceRules has to be non-empty")
    for index, rule in enumerate(rules.resource_rules or ()):
        yield from _resource_faults(rule, f"{path}.resourceRules[{index}]")
    for index, urls in enumerate(rules.non_resource_rules or ()):
        yield from _url_rule_faults(urls, f"{path}.nonResourceRules[{index}]")


def _subject_faults(subject: Subject, path: str) -> Iterator[FieldError]:
    given = {"ServiceAccount": subject.service_account, "User": subject.user, "Group": subject.group}
    if subject.kind not in given:
        yield not_supported(f"{path}.kind", subject.kind, sorted(given))
        return
    field, named = _field(subject.kind), given.pop(subject.kind)
    if named is None:
        yield required(f"{path}.{field}", f"{field} is required when subject kind is '{subject.kind}'")
    elif isinstance(named, Account):
        yield from _account_faults(named, f"{path}.{field}")
    elif not named.name:
        yield required(f"{path}.{field}.name")
    for kind, other in given.items():
        if other is not None:
            yield forbidden(f"{path}.{_field(kind)}", f"{_field(kind)} is forbidden when subject kind is not '{kind}'")


def _field(kind: str) -> str:
    return kind[:1].lower() + kind[1:]


def _account_faults(account: Account, path: str) -> Iterator[FieldError]:
    if not account.name:
        yield required(f"{path}.name")
    elif account.name != _ANY and (fault := name_fault(account.name)):
        yield invalid(f"{path}.name", account.name, fault)
    if not account.namespace:
        yield required(f"{path}.namespace", "must specify namespace for service account")
    elif fault := label_name_fault(account.namespace):
        yield invalid(f"{path}.namespace", account.namespace, fault)


def _verb_faults(verbs: Sequence[str] | None, path: str) -> Iterator[FieldError]:
    if not verbs:
        yield required(path, "verbs must contain at least one value")
    elif _ANY in verbs:
        if len(verbs) > 1:
            yield invalid(path, verbs, "if '*' is present, must not specify other verbs")
    elif not set(verbs) <= set(_VERBS):
        yield not_supported(path, verbs, _VERBS)


def _resource_faults(rule: ResourceRule, path: str) -> Iterator[FieldError]:
    yield from _verb_faults(rule.verbs, f"{path}.verbs")
    for field, values, singular, plural in (
        ("apiGroups", rule.api_groups, "api group", "api groups"),
        ("resources", rule.resources, "resource", "resources"),
    ):
        if not values:
            yield required(f"{path}.{field}", f"resource rules must supply at least one {singular}")
        elif len(values) > 1 and _ANY in values:
            yield invalid(f"{path}.{field}", values, f"if '*' is present, must not specify other {plural}")
    namespaces = rule.namespaces or ()
    if not namespaces and not rule.cluster_scope:
        detail = "resource rules that are not cluster scoped must supply at least one namespace"
        yield required(f"{path}.namespaces", detail)
    elif _ANY in namespaces:
        if len(namespaces) > 1:
            detail = "if '*' is present, must not specify other namespaces"
            yield invalid(f"{path}.namespaces", namespaces, detail)
    else:
        for index, namespace in enumerate(namespaces):
            if fault := label_name_fault(namespace):
                detail = f"each member of this list must be '*' or a DNS-1123 label; {fault}"
                yield invalid(f"{path}.namespaces[{index}]", namespace, detail)


def _url_rule_faults(rule: UrlRule, path: str) -> Iterator[FieldError]:
    yield from _verb_faults(rule.verbs, f"{path}.verbs")
    path = f"{path}.nonResourceURLs"
    if not rule.urls:
        yield required(path, "nonResourceURLs must contain at least one value")
    elif _ANY in rule.urls:
        if len(rule.urls) > 1:
            yield invalid(path, rule.urls, "if '*' is present, must not specify other non-resource URLs")
    else:
        for index, url in enumerate(rule.urls):
            if detail := _url_fault(url):
                yield invalid(f"{path}[{index}]", url, detail)


def _url_fault(url: str) -> str:
    if not url:
        return "must not be empty"
    if not url.startswith("/"):
        return "must start with slash"
    if " " in url:
        return "must not contain white-space"
    if "//" in url:
        return "must not contain double slash"
    if url.count("*") > 1 or ("*" in url and not url.endswith("/*")):
        return "wildcard can only do suffix matching"
    return ""


def _level_faults(spec: LevelSpec, name: str) -> Iterator[FieldError]:
    if (name == EXEMPT) != (spec.type == "Exempt"):
        yield invalid("spec.type", spec.type, "must be 'Exempt' if and only if `name` is 'exempt'")
    if spec.type == "Exempt":
        if spec.limited is not None:
            yield forbidden("spec.limited", "must be nil if the type is not Limited")
        if spec.exempt is not None:
            yield from _exempt_faults(spec.exempt)
    elif spec.type == "Limited":
        if spec.exempt is not None:
            yield forbidden("spec.exempt", "must be nil if the type is Limited")
        if spec.limited is None:
            yield required("spec.limited", "must not be empty when type is Limited")
        else:
            yield from _limited_faults(spec.limited)
    elif not spec.type:
        yield required("spec.type")
    else:
        yield not_supported("spec.type", spec.type, ("Exempt", "Limited"))


def _exempt_faults(exempt: ExemptSpec) -> Iterator[FieldError]:
    if exempt.nominal_concurrency_shares < 0:
        yield invalid("spec.exempt.nominalConcurrencyShares", exempt.nominal_concurrency_shares, _NOT_NEGATIVE)
    if not 0 <= exempt.lendable_percent <= 100:
        yield invalid("spec.exempt.lendablePercent", exempt.lendable_percent, _PERCENT)


def _limited_faults(limited: Limited) -> Iterator[FieldError]:
    path, borrowing = "spec.limited", limited.borrowing_limit_percent
    if limited.nominal_concurrency_shares < 0:
        yield invalid(f"{path}.nominalConcurrencyShares", limited.nominal_concurrency_shares, _NOT_NEGATIVE)
    yield from _response_faults(limited.limit_response, f"{path}.limitResponse")
    if not 0 <= limited.lendable_percent <= 100:
        yield invalid(f"{path}.lendablePercent", limited.lendable_percent, _PERCENT)
    if borrowing is not None and borrowing < 0:
        yield invalid(f"{path}.borrowingLimitPercent", borrowing, "if specified, must be a non-negative integer")


def _response_faults(response: Response, path: str) -> Iterator[FieldError]:
    if response.type == "Reject":
        if response.queuing is not None:
            yield forbidden(f"{path}.queuing", "must be nil if limited.limitResponse.type is not Limited")
    elif response.type == "Queue":
        if response.queuing is None:
            yield required(f"{path}.queuing", "must not be empty if limited.limitResponse.type is Limited")
        else:
            yield from _queuing_faults(response.queuing, f"{path}.queuing")
    elif not response.type:
        yield required(f"{path}.type")
    else:
        yield not_supported(f"{path}.type", response.type, ("Queue", "Reject"))


def _queuing_faults(queuing: Queuing, path: str) -> Iterator[FieldError]:
    queues, hand = queuing.queues, queuing.hand_size
    if queuing.queue_length_limit <= 0:
        yield invalid(f"{path}.queueLengthLimit", queuing.queue_length_limit, "must be positive")
    if queues <= 0:
        yield invalid(f"{path}.queues", queues, "must be positive")
    elif queues > _MAX_QUEUES:
        yield invalid(f"{path}.queues", queues, f"must not be greater than {_MAX_QUEUES}")
    if hand <= 0:
        yield invalid(f"{path}.handSize", hand, "must be positive")
    elif hand > queues:
        yield invalid(f"{path}.handSize", hand, f"should not be greater than queues ({queues})")
    elif math.ceil(math.log2(queues) * hand) > _MAX_HASH_BITS:
        detail = (
            f"required entropy bits of deckSize {queues} and handSize {hand} should not be greater than "
            f"{_MAX_HASH_BITS}"
        )
        yield invalid(f"{path}.handSize", hand, detail)


def _fixed_level_faults(spec: LevelSpec, name: str) -> Iterator[FieldError]:
    """Problems of a mandatory level: of the exempt one, the seats that it takes and lends may be changed; of the other,
    nothing.
    """
    if not suggested.is_mandatory(name):
        return
    fixed = msgspec.convert(suggested.LEVELS[name]["spec"], LevelSpec)
    but, expected = "", fixed
    if name == EXEMPT:
        but, expected = " except the 'spec.exempt' field", msgspec.structs.replace(fixed, exempt=spec.exempt)
    if spec != expected:
        yield invalid("spec", _as_go(spec), f"spec of '{name}'{but} must equal the fixed value")


def _status_faults(new: Mapping[str, Any]) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, condition in enumerate((new.get("status") or {}).get("conditions") or ()):
        kind = condition.get("type", "")
        if kind in seen:
            yield duplicate(f"status.conditions[{index}].type", kind)
        seen.add(kind)
        if not kind:
            yield required(f"status.conditions[{index}].type")


def _as_go(value: Any) -> Any:
    """A value as upstream's messages show it: with the names of its Go fields."""
    if isinstance(value, msgspec.Struct):
        return {
            _GO_NAMES.get(field, "".join(part.capitalize() for part in field.split("_"))): _as_go(getattr(value, field))
            for field in value.__struct_fields__
        }
    return [_as_go(element) for element in value] if isinstance(value, tuple) else value
