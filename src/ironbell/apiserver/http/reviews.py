"""Reviews: questions of a client about itself, answered and not stored.

`kubectl auth can-i` and `kubectl auth whoami` ask these; every authenticated client may.

Source: kubernetes/api: authorization/v1/types.go, authentication/v1/types.go.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from ironbell.api.client import BadRequest
from ironbell.apiserver.core import ApiServer
from ironbell.apiserver.http.target import Target
from ironbell.apiserver.identity import Identity
from ironbell.apiserver.rbac.objects import as_data
from ironbell.apiserver.roles import Attributes

Answer = Callable[[ApiServer, Identity, dict[str, Any]], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Review:
    """One kind of question."""

    api_version: str
    kind: str
    answer: Answer


class _ResourceAttributes(msgspec.Struct, frozen=True):
    namespace: str = ""
    verb: str = ""
    group: str = ""
    resource: str = ""
    subresource: str = ""
    name: str = ""


class _NonResourceAttributes(msgspec.Struct, frozen=True):
    path: str = ""
    verb: str = ""


class _AccessSpec(msgspec.Struct, frozen=True, rename="camel"):
    resource_attributes: _ResourceAttributes | None = None
    non_resource_attributes: _NonResourceAttributes | None = None


def _access(server: ApiServer, identity: Identity, spec: dict[str, Any]) -> dict[str, Any]:
    try:
        asked = msgspec.convert(spec, _AccessSpec)
    except msgspec.ValidationError as error:
        raise BadRequest(f"spec of the review: {error}") from error
    wanted = asked.resource_attributes
    if wanted is None:
        outside = asked.non_resource_attributes or _NonResourceAttributes()
        return {"allowed": server.authorizer.decide(identity, Attributes(outside.verb, path=outside.path)).allowed}
    attributes = Attributes(
        verb=wanted.verb,
        group=wanted.group,
        resource=wanted.resource,
        namespace=wanted.namespace,
        name=wanted.name,
        subresource=wanted.subresource,
    )
    return {"allowed": server.authorizer.decide(identity, attributes).allowed}


def _rules(server: ApiServer, identity: Identity, spec: dict[str, Any]) -> dict[str, Any]:
    held = list(server.authorizer.rules(identity, str(spec.get("namespace", ""))))
    return {
        "resourceRules": [as_data(rule) for rule in held if rule.resources],
        "nonResourceRules": [as_data(rule) for rule in held if rule.urls],
        "incomplete": False,
    }


def _self(_server: ApiServer, identity: Identity, _spec: dict[str, Any]) -> dict[str, Any]:
    user: dict[str, Any] = {"username": identity.user, "groups": list(identity.groups)}
    return {"userInfo": user | ({"uid": identity.uid} if identity.uid else {})}


_REVIEWS = {
    ("authorization.k8s.io", "selfsubjectaccessreviews"): ("SelfSubjectAccessReview", _access),
    ("authorization.k8s.io", "selfsubjectrulesreviews"): ("SelfSubjectRulesReview", _rules),
    ("authentication.k8s.io", "selfsubjectreviews"): ("SelfSubjectReview", _self),
}


def find(target: Target) -> Review | None:
    """The review that a target names."""
    found = _REVIEWS.get((target.group, target.plural))
    if found is None or target.version != "v1" or target.namespace or target.name:
        return None
    return Review(f"{target.group}/{target.version}", *found)


def answer_review(review: Review, server: ApiServer, identity: Identity, body: bytes) -> bytes:
    """The question with its answer as status.

    Raises:
        BadRequest: the body is no question of this kind.
    """
    try:
        asked = msgspec.json.decode(body, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadRequest(f"the body is no {review.kind}: {error}") from error
    spec = asked.get("spec")
    spec = spec if isinstance(spec, dict) else {}
    status = review.answer(server, identity, spec)
    answered = {"kind": review.kind, "apiVersion": review.api_version, "metadata": {"creationTimestamp": None}}
    return msgspec.json.encode(answered | {"spec": spec, "status": status})
