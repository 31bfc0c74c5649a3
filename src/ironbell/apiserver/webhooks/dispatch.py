"""Calls webhooks for writes: the mutating ones in turn, the validating ones at once.

A webhook is called while nothing is held: the write is decided again if the object changed meanwhile.

Source: kubernetes/apiserver: pkg/admission/plugin/webhook/mutating/dispatcher.go, validating/dispatcher.go.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
import structlog

from ironbell.api.client import ApiError, BadRequest
from ironbell.apiserver import status
from ironbell.apiserver.admission import AdmissionRequest
from ironbell.apiserver.context import Context
from ironbell.apiserver.patches.jsonpatch import apply_json_patch
from ironbell.apiserver.resources import ResourceInfo
from ironbell.apiserver.verbs.bodies import converted
from ironbell.apiserver.warnings import annotate, warn
from ironbell.apiserver.webhooks.client import CallError, WebhookClient
from ironbell.apiserver.webhooks.configuration import MUTATING, VALIDATING, Webhook, Webhooks
from ironbell.apiserver.webhooks.matching import Invocation, invocation, is_exempt, may_match
from ironbell.apiserver.webhooks.review import (
    Answer,
    Shown,
    admission_review,
    denial,
    read_answer,
    request_data,
    shown_as,
)
from ironbell.apiserver.webhooks.services import UnreachableError
from ironbell.base.errors import IronbellError
from ironbell.base.randomness import uuid4
from ironbell.codec.cel import CelError

Object = dict[str, Any]


@dataclass(slots=True)
class _Called:
    """Webhooks of a request's first round."""

    since_change: set[Webhook] = field(default_factory=set)
    """Webhooks that may be called again, and have seen the object after the last webhook's change."""
    again: set[Webhook] = field(default_factory=set)
    """Webhooks that must be called again."""
    left: Object | None = None
    """The object after the first round."""


class AdmissionWebhooks:
    """The webhooks of a server, as admission plugins."""

    def __init__(self, context: Context, client: WebhookClient) -> None:
        self._context, self._client = context, client
        self._mutating, self._validating = Webhooks(MUTATING), Webhooks(VALIDATING)

    def start(self) -> None:
        """Follow the configurations, and take part in admission."""
        for webhooks in (self._mutating, self._validating):
            webhooks.follow(self._context.store)
        self._context.admission.mutating(self._concerns(self._mutating), self.mutate)
        self._context.admission.validating(self._concerns(self._validating), self.review)

    def _concerns(self, webhooks: Webhooks) -> Any:
        def applies(info: ResourceInfo) -> bool:
            configured = webhooks.all
            return bool(configured) and not is_exempt(info) and may_match(configured, self._versions(info))

        return applies

    async def mutate(self, request: AdmissionRequest) -> Object | None:
        """The object after all mutating webhooks; None if none changed it.

        Raises:
            ApiError: a webhook rejects the request, or fails and its failure is not ignored.
        """
        original, rounds = request.new, request.rounds
        called: _Called = rounds.kept(self, _Called)
        if rounds.is_second and request.new != called.left:
            called.again |= called.since_change
        for webhook in self._mutating.all:
            if rounds.is_second and webhook not in called.again:
                continue
            changed = await self._mutate_by(webhook, request)
            if changed is None:
                continue
            if changed is not request.new:
                request = replace(request, new=changed)
                rounds.needs_second_round = True
                called.again |= called.since_change
                called.since_change = set()
            if webhook.spec.reinvocation_policy == "IfNeeded":
                called.since_change.add(webhook)
        called.left = request.new
        return None if request.new is original else request.new

    async def _mutate_by(self, webhook: Webhook, request: AdmissionRequest) -> Object | None:
        """The object after one webhook (the same if it changed nothing); None if it was not called."""
        invocation = self._invocation(webhook, request)
        if invocation is None:
            return None
        shown = await shown_as(invocation.info, request)
        if not self._conditions_hold(invocation, request, shown):
            return None
        answer = await self._review(invocation, request, shown, mutating=True)
        if answer is None:
            return request.new if request.new is not None else {}
        operations = _operations(answer)
        if not operations:
            return request.new if request.new is not None else {}
        if shown.new is None:
            raise _internal(
                f'admission webhook "{webhook.name}" attempted to modify the object, which is not supported for this '
                "operation"
            )
        patched = _patched(shown.new, operations)
        if patched == shown.new:
            return request.new
        return await converted(request.info, patched, request.info.api_version)

    async def review(self, request: AdmissionRequest) -> None:
        """Call all validating webhooks at once.

        Raises:
            ApiError: a webhook rejects the request, or fails and its failure is not ignored; the first of several.
        """
        calls: list[tuple[Invocation, Shown]] = []
        for webhook in self._validating.all:
            invocation = self._invocation(webhook, request)
            if invocation is not None:
                shown = await shown_as(invocation.info, request)
                if self._conditions_hold(invocation, request, shown):
                    calls.append((invocation, shown))
        answers = (self._review(invocation, request, shown, mutating=False) for invocation, shown in calls)
        for result in await asyncio.gather(*answers, return_exceptions=True):
            if isinstance(result, BaseException):
                raise result

    def _invocation(self, webhook: Webhook, request: AdmissionRequest) -> Invocation | None:
        return invocation(webhook, request, self._versions(request.info), labels_of=self._labels_of)

    def _versions(self, info: ResourceInfo) -> tuple[ResourceInfo, ...]:
        return self._context.resources.versions(info.resource)

    def _labels_of(self, namespace: str) -> Mapping[str, str] | None:
        entry = self._context.store.latest("namespaces", ("", namespace))
        return None if entry is None else entry.labels or {}

    def _conditions_hold(self, invocation: Invocation, request: AdmissionRequest, shown: Shown) -> bool:
        webhook = invocation.webhook
        if not webhook.conditions:
            return True
        data = request_data(request, shown)
        values = {"object": shown.new, "oldObject": shown.old, "request": data, "authorizer": None}
        faults: list[str] = []
        for name, condition in webhook.conditions:
            try:
                if condition(values) is not True:
                    return False
            except CelError as error:
                faults.append(f"match condition {name} could not be evaluated: {error.message}")
        if faults and not webhook.ignores_failures:
            raise status.forbidden(request.info, request.name, detail=", ".join(faults))
        return not faults

    async def _review(
        self, invocation: Invocation, request: AdmissionRequest, shown: Shown, *, mutating: bool
    ) -> Answer | None:
        """A webhook's response; None if it failed and its failure is ignored.

        Raises:
            ApiError: the webhook rejects the request, or fails and its failure is not ignored.
        """
        webhook = invocation.webhook
        if request.dry_run and webhook.spec.side_effects not in ("None", "NoneOnDryRun"):
            raise BadRequest(f'admission webhook "{webhook.name}" does not support dry run')
        try:
            answer = await self._call(webhook, request, shown, mutating=mutating)
        except IronbellError as error:
            message = f'failed calling webhook "{webhook.name}": {error.message}'
            if not webhook.ignores_failures:
                raise _internal(message) from error
            structlog.get_logger().warning("webhook failed and is passed over", webhook=webhook.name, cause=message)
            annotate(f"{_failed_open(mutating=mutating)}.admission.k8s.io/{webhook.name}", webhook.configuration)
            return None
        for key, value in (answer.audit_annotations or {}).items():
            annotate(f"{webhook.name}/{key}", value)
        for text in answer.warnings or ():
            warn(text)
        if not answer.allowed:
            raise denial(webhook.name, answer.status)
        return answer

    async def _call(self, webhook: Webhook, request: AdmissionRequest, shown: Shown, *, mutating: bool) -> Answer:
        spec = webhook.spec
        uid = uuid4(self._context.randomness)
        review = admission_review(request, shown, uid=uid, versions=spec.admission_review_versions)
        try:
            answered = await self._client.call(spec.client_config, review, seconds=spec.timeout_seconds)
        except (CallError, UnreachableError) as error:
            raise CallError(f"failed to call webhook: {error.message}") from error
        return read_answer(answered, review, mutating=mutating)


def _failed_open(*, mutating: bool) -> str:
    return f"failed-open.{'mutating' if mutating else 'validating'}.webhook"


def _operations(answer: Answer) -> list[Any]:
    if not answer.patch:
        return []
    try:
        operations = msgspec.json.decode(base64.b64decode(answer.patch, validate=True), type=list[Any])
    except (binascii.Error, ValueError, msgspec.MsgspecError) as error:
        raise _internal(f"received undecodable patch in webhook response: {error}") from error
    return operations


def _patched(value: Object, operations: list[Any]) -> Object:
    copy = msgspec.json.decode(msgspec.json.encode(value))
    try:
        return apply_json_patch(copy, operations)
    except ApiError as error:
        raise _internal(error.message) from error


def _internal(message: str) -> ApiError:
    return ApiError(f"Internal error occurred: {message}", details={"causes": [{"message": message}]})
