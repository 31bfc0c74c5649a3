"""Coverage of rules: whether some rules allow everything that others allow.

Source: kubernetes/component-helpers: auth/rbac/validation/policy_comparator.go;
kubernetes/kubernetes: pkg/registry/rbac/validation/policy_compact.go, pkg/apis/rbac/v1/evaluation_helpers.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product

from ironbell.apiserver.access.roles import Rule, url_covers
from ironbell.apiserver.fielderrors import quoted


def missing(owned: Sequence[Rule], requested: Iterable[Rule]) -> list[Rule]:
    """The rules of `requested` that `owned` does not cover, broken down to single verbs and resources."""
    parts = (part for rule in requested for part in _broken_down(rule))
    return [part for part in parts if not any(_covers(rule, part) for rule in owned)]


def describe(rules: Iterable[Rule]) -> str:
    """Rules as lines for a message: the verbs of one resource together, sorted."""
    compact: dict[tuple[object, ...], Rule] = {}
    for rule in rules:
        key = (rule.api_groups, rule.resources, rule.resource_names, rule.urls, rule.verbs if rule.urls else ())
        known = compact.get(key)
        if known is not None and rule.verbs != known.verbs:
            rule = Rule((*known.verbs, *rule.verbs), rule.resources, rule.api_groups, rule.resource_names, rule.urls)
        compact[key] = rule
    return "\n".join(sorted({_line(rule) for rule in compact.values()}))


def _line(rule: Rule) -> str:
    parts = (
        ("APIGroups", rule.api_groups),
        ("Resources", rule.resources),
        ("NonResourceURLs", rule.urls),
        ("ResourceNames", rule.resource_names),
        ("Verbs", rule.verbs),
    )
    return "{" + ", ".join(f"{name}:{listed(values)}" for name, values in parts if values) + "}"


def listed(values: Iterable[str]) -> str:
    """Words as Go prints a list of strings with `%q`."""
    return "[" + " ".join(quoted(value) for value in values) + "]"


def _broken_down(rule: Rule) -> Iterator[Rule]:
    for group, resource, verb in product(rule.api_groups, rule.resources, rule.verbs):
        names: list[tuple[str, ...]] = [(name,) for name in rule.resource_names]
        for chosen in names or [()]:
            yield Rule((verb,), (resource,), (group,), chosen)
    for url, verb in product(rule.urls, rule.verbs):
        yield Rule((verb,), (), (), (), (url,))


def _covers(owned: Rule, part: Rule) -> bool:
    """Return whether one rule covers a part that has one verb and one resource or one path."""
    if "*" not in owned.verbs and part.verbs[0] not in owned.verbs:
        return False
    if part.urls:
        return any(url_covers(url, part.urls[0]) for url in owned.urls)
    if "*" not in owned.api_groups and part.api_groups[0] not in owned.api_groups:
        return False
    if owned.resource_names and not (part.resource_names and part.resource_names[0] in owned.resource_names):
        return False
    return _resource_covers(owned.resources, part.resources[0])


def _resource_covers(owned: Sequence[str], resource: str) -> bool:
    if "*" in owned or resource in owned:
        return True
    _, slash, subresource = resource.partition("/")
    return bool(slash) and f"*/{subresource}" in owned
