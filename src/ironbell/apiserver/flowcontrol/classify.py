"""Classification of requests: the FlowSchema that each belongs to.

Source: kubernetes/apiserver: pkg/util/flowcontrol/rule.go.
"""

from __future__ import annotations

from collections.abc import Iterable

from ironbell.apiserver.access.identity import Identity
from ironbell.apiserver.access.roles import Attributes
from ironbell.apiserver.flowcontrol.spec import FlowSchema, ResourceRule, Rules, Subject, UrlRule

_ANY = "*"
_ACCOUNT = "system:serviceaccount:"


def ordered(schemas: Iterable[FlowSchema]) -> list[FlowSchema]:
    """Schemas in the order in which requests are compared with them."""
    return sorted(schemas, key=lambda schema: (schema.spec.matching_precedence, schema.metadata.name))


def rules_of(schema: FlowSchema, identity: Identity) -> tuple[Rules, ...]:
    """The rules of a schema that are about an identity."""
    return tuple(
        rules
        for rules in schema.spec.rules or ()
        if any(_is_meant(subject, identity) for subject in rules.subjects or ())
    )


def match(rules: Rules, attributes: Attributes) -> bool:
    """Return whether rules match the attributes of a request."""
    if attributes.path:
        return any(_url_fits(rule, attributes) for rule in rules.non_resource_rules or ())
    return any(_resource_fits(rule, attributes) for rule in rules.resource_rules or ())


def namespace_of(attributes: Attributes) -> str:
    """The namespace that a request is about; for a Namespace, that itself."""
    if (attributes.group, attributes.resource) == ("", "namespaces"):
        return attributes.name
    return attributes.namespace


def _is_meant(subject: Subject, identity: Identity) -> bool:
    match subject.kind:
        case "User":
            return subject.user is not None and subject.user.name in (_ANY, identity.user)
        case "Group":
            return subject.group is not None and (subject.group.name == _ANY or subject.group.name in identity.groups)
        case "ServiceAccount":
            return subject.service_account is not None and _is_account(
                subject.service_account.namespace, subject.service_account.name, identity.user
            )
    return False


def _is_account(namespace: str, name: str, user: str) -> bool:
    if name == _ANY:
        return user.startswith(f"{_ACCOUNT}{namespace}:")
    return user == f"{_ACCOUNT}{namespace}:{name}"


def _resource_fits(rule: ResourceRule, attributes: Attributes) -> bool:
    if not (
        _holds(rule.verbs, attributes.verb)
        and _holds(rule.resources, attributes.full_resource)
        and _holds(rule.api_groups, attributes.group)
    ):
        return False
    namespace = namespace_of(attributes)
    return _holds(rule.namespaces, namespace) if namespace else rule.cluster_scope


def _url_fits(rule: UrlRule, attributes: Attributes) -> bool:
    return _holds(rule.verbs, attributes.verb) and any(_url_covers(url, attributes.path) for url in rule.urls or ())


def _url_covers(url: str, path: str) -> bool:
    if url in (_ANY, path):
        return True
    start = url.removesuffix("*")
    return path.startswith(start if start.endswith("/") else f"{start}/")


def _holds(listed: tuple[str, ...] | None, value: str) -> bool:
    return listed is not None and (listed == (_ANY,) or value in listed)
