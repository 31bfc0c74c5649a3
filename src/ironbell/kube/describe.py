"""Decisions as plain data: for dry runs, logs and explanations.

Values of Secrets are replaced by stars, so that what is printed can be passed on.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec

from ironbell.api.client import Propagation
from ironbell.kube.decision import Action, AnyKind, Apply, Create, Decision, Delete, Effect, Emit, Fields, JsonPatch

_HIDDEN = ("data", "stringData")


def describe(decision: Decision) -> Fields:
    """A decision as a JSON object, without empty parts."""
    parts: Fields = {
        "actions": [describe_action(action) for action in decision.actions],
        "needs": [
            {"question": type(need.query).__name__, **plain(need.query), "maxAgeSeconds": need.max_age_s}
            for need in decision.needs
        ],
        "waiting": plain(decision.waiting) if decision.waiting else None,
        "requeueAfterSeconds": decision.requeue_after_s,
    }
    return {name: value for name, value in parts.items() if value}


def describe_action(action: Action) -> Fields:
    """An action as a JSON object."""
    if isinstance(action, Effect):
        parts: Fields = {"effect": action.performer, "arguments": plain(action.arguments), "intent": action.intent}
    elif isinstance(action, Emit):
        parts = {"event": action.reason, "type": action.type, "message": action.message}
    elif isinstance(action, Delete):
        propagation = "" if action.propagation is Propagation.BACKGROUND else action.propagation.value
        parts = {"delete": str(action.kind), "propagation": propagation, "uid": action.uid}
    elif isinstance(action, JsonPatch):
        hide = _is_secret(action.kind)
        operations = [{**op, "value": "***"} if hide and "value" in op else op for op in action.operations]
        parts = {"jsonPatch": str(action.kind), "operations": operations, "subresource": action.subresource}
    elif isinstance(action, Create):
        parts = {"create": str(action.kind), "body": _hidden(action.kind, action.body), "intent": action.intent}
    else:
        verb = "apply" if isinstance(action, Apply) else "patch"
        parts = {verb: str(action.kind), "body": _hidden(action.kind, action.body), "subresource": action.subresource}
    if not isinstance(action, Effect | Create):
        parts |= {"namespace": action.namespace, "name": action.name}
    version = getattr(action, "resource_version", "")
    return {name: value for name, value in {**parts, "resourceVersion": version}.items() if value != ""}


def plain(value: Any) -> Fields:
    """A frozen struct or dataclass as plain data."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: msgspec.to_builtins(getattr(value, field.name)) for field in dataclasses.fields(value)}
    built = msgspec.to_builtins(value, str_keys=True)
    return built if isinstance(built, dict) else {"value": built}


def _is_secret(kind: AnyKind) -> bool:
    return kind.group == "" and kind.kind == "Secret"


def _hidden(kind: AnyKind, body: Fields) -> Fields:
    if not _is_secret(kind):
        return body
    return {
        name: dict.fromkeys(value, "***") if name in _HIDDEN and isinstance(value, dict) else value
        for name, value in body.items()
    }
