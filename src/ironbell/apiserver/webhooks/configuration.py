"""Webhooks of the stored configurations, kept in step with the store.

Source: kubernetes/api: admissionregistration/v1/types.go; kubernetes/apiserver: pkg/admission/configuration (order).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from ironbell.apiserver.selectors.labels import LabelSelector
from ironbell.apiserver.store.entry import Change, Entry
from ironbell.apiserver.store.store import Store
from ironbell.base.ports import HTTPS_PORT
from ironbell.codec.cel import CelError, CelSyntaxError, compile_expression

GROUP = "admissionregistration.k8s.io"
MUTATING = f"mutatingwebhookconfigurations.{GROUP}"
VALIDATING = f"validatingwebhookconfigurations.{GROUP}"
CONDITION_VARIABLES = ("object", "oldObject", "request", "authorizer")


class ServiceReference(msgspec.Struct, frozen=True):
    """A Service that serves a webhook."""

    namespace: str
    name: str
    path: str = ""
    port: int = HTTPS_PORT


class ClientConfig(msgspec.Struct, frozen=True, rename="camel"):
    """Address of a webhook, and the authority of its certificate."""

    url: str = ""
    service: ServiceReference | None = None
    ca_bundle: str = ""
    """The authority in base 64; empty: the machine's own authorities."""


class HookRule(msgspec.Struct, frozen=True, rename="camel"):
    """Requests that a webhook matches."""

    operations: tuple[str, ...] = ()
    api_groups: tuple[str, ...] = ()
    api_versions: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    scope: str = "*"


class MatchCondition(msgspec.Struct, frozen=True):
    """A further condition, in CEL."""

    name: str
    expression: str


class WebhookSpec(msgspec.Struct, frozen=True, rename="camel"):
    """One webhook of a configuration."""

    name: str
    client_config: ClientConfig
    rules: tuple[HookRule, ...] | None = None
    failure_policy: str = "Fail"
    match_policy: str = "Equivalent"
    namespace_selector: LabelSelector = LabelSelector()
    object_selector: LabelSelector = LabelSelector()
    side_effects: str = "None"
    timeout_seconds: int = 10
    admission_review_versions: tuple[str, ...] = ()
    match_conditions: tuple[MatchCondition, ...] | None = None
    reinvocation_policy: str = "Never"


class _Configuration(msgspec.Struct, frozen=True):
    webhooks: tuple[WebhookSpec, ...] | None = None


Condition = Callable[[Mapping[str, Any]], Any]


class Webhook(msgspec.Struct, frozen=True, eq=False):
    """A webhook, compiled."""

    configuration: str
    spec: WebhookSpec
    conditions: tuple[tuple[str, Condition], ...] = ()

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def ignores_failures(self) -> bool:
        return self.spec.failure_policy == "Ignore"


class Webhooks:
    """The webhooks of one kind of configuration, in the order of calls: by configuration, then as listed."""

    def __init__(self, resource: str) -> None:
        self._resource = resource
        self._by_configuration: dict[str, tuple[Webhook, ...]] = {}
        self.all: tuple[Webhook, ...] = ()

    def follow(self, store: Store) -> None:
        """Read the stored objects, and follow changes."""
        for entry in store.objects(self._resource).entries():
            self._by_configuration[entry.name] = _read(entry)
        self._order()
        store.listen(self.apply)

    def apply(self, change: Change) -> None:
        """Apply one change."""
        if change.entry.resource != self._resource:
            return
        self._by_configuration.pop(change.entry.name, None)
        if not change.deleted:
            self._by_configuration[change.entry.name] = _read(change.entry)
        self._order()

    def _order(self) -> None:
        ordered = sorted(self._by_configuration.items())
        self.all = tuple(webhook for _, webhooks in ordered for webhook in webhooks)


def _read(entry: Entry) -> tuple[Webhook, ...]:
    try:
        webhooks = msgspec.json.decode(entry.body, type=_Configuration).webhooks or ()
    except msgspec.MsgspecError:
        return ()  # stored by another release; writes are checked
    return tuple(Webhook(entry.name, spec, _compiled(spec)) for spec in webhooks)


def _compiled(spec: WebhookSpec) -> tuple[tuple[str, Condition], ...]:
    return tuple((condition.name, compile_condition(condition.expression)) for condition in spec.match_conditions or ())


def compile_condition(expression: str) -> Condition:
    """A match condition as a closure; one that cannot be compiled fails when it is evaluated."""
    try:
        return compile_expression(expression, CONDITION_VARIABLES)
    except CelSyntaxError as error:
        message = error.message

        def fail(_: Mapping[str, Any]) -> Any:
            raise CelError(message)

        return fail
