"""Reviews: requests about identities and their permissions, answered and not stored.

`kubectl auth can-i` and `kubectl auth whoami` are about the client itself and open to every authenticated client.
Reviews about others need a role that allows `create` on the review.

Source: kubernetes/kubernetes: pkg/registry/authorization, pkg/registry/authentication,
pkg/apis/authorization/validation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from ironbell.api.client import BadRequest, Invalid, Unauthorized
from ironbell.apiserver.access.identity import Identity, user_info
from ironbell.apiserver.access.roles import Attributes
from ironbell.apiserver.core import ApiServer
from ironbell.apiserver.fielderrors import FieldError, invalid
from ironbell.apiserver.http.target import Target
from ironbell.apiserver.identities.bearer import BearerTokens
from ironbell.apiserver.rbac.objects import as_data
from ironbell.base.clock import rfc3339

_AUTHORIZATION, _AUTHENTICATION = "authorization.k8s.io", "authentication.k8s.io"
_ONE_OF = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
_NOT_BOTH = "cannot be specified in combination with resourceAttributes"


class ReviewRequest(msgspec.Struct, frozen=True):
    """A review, its sender, and the server that answers it."""

    server: ApiServer
    tokens: BearerTokens
    identity: Identity
    namespace: str
    kind: str
    spec: dict[str, Any]
    meta: dict[str, Any]


Answer = Callable[[ReviewRequest], dict[str, Any]]


class Review(msgspec.Struct, frozen=True):
    """One kind of review."""

    group: str
    kind: str
    answer: Answer
    namespaced: bool = False

    @property
    def api_version(self) -> str:
        return f"{self.group}/v1"


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
    user: str = ""
    groups: tuple[str, ...] | None = None
    uid: str = ""
    extra: dict[str, tuple[str, ...]] | None = None

    @property
    def attributes(self) -> Attributes:
        if self.resource_attributes is None:
            outside = self.non_resource_attributes or _NonResourceAttributes()
            return Attributes(outside.verb, path=outside.path)
        resource = self.resource_attributes
        return Attributes(
            resource.verb, resource.group, resource.resource, resource.namespace, resource.name, resource.subresource
        )

    @property
    def identity(self) -> Identity:
        return Identity(self.user, self.groups or (), self.uid, tuple(sorted((self.extra or {}).items())))


class _TokenSpec(msgspec.Struct, frozen=True):
    token: str = ""
    audiences: tuple[str, ...] | None = None


def _self_access(review: ReviewRequest) -> dict[str, Any]:
    spec = _convert(review.spec, _AccessSpec)
    _raise_invalid(review, _access_faults(review, spec))
    return _decided(review.server, review.identity, spec)


def _access(review: ReviewRequest) -> dict[str, Any]:
    spec = _convert(review.spec, _AccessSpec)
    _raise_invalid(review, [*_access_faults(review, spec, of_others=True), *_local_faults(review, spec)])
    return _decided(review.server, spec.identity, spec)


def _decided(server: ApiServer, identity: Identity, spec: _AccessSpec) -> dict[str, Any]:
    decision = server.authorizer.decide(identity, spec.attributes)
    return {"allowed": decision.allowed} | ({"reason": decision.reason} if decision.reason else {})


def _access_faults(review: ReviewRequest, spec: _AccessSpec, *, of_others: bool = False) -> list[FieldError]:
    errors: list[FieldError] = []
    if spec.resource_attributes is not None and spec.non_resource_attributes is not None:
        errors.append(invalid("spec.nonResourceAttributes", review.spec["nonResourceAttributes"], _NOT_BOTH))
    if spec.resource_attributes is None and spec.non_resource_attributes is None:
        errors.append(invalid("spec.resourceAttributes", None, _ONE_OF))
    if of_others and not spec.user and not spec.groups:
        errors.append(invalid("spec.user", "", "at least one of user or group must be specified"))
    if {name for name, value in review.meta.items() if value} - {"managedFields", "namespace"}:
        errors.append(invalid("metadata", review.meta, "must be empty"))
    return errors


def _local_faults(review: ReviewRequest, spec: _AccessSpec) -> list[FieldError]:
    if review.kind != "LocalSubjectAccessReview":
        return []
    errors: list[FieldError] = []
    attributes = spec.resource_attributes
    if attributes is not None and attributes.namespace != review.namespace:
        errors.append(
            invalid("spec.resourceAttributes.namespace", attributes.namespace, "must match metadata.namespace")
        )
    if spec.non_resource_attributes is not None:
        shown = review.spec["nonResourceAttributes"]
        errors.append(invalid("spec.nonResourceAttributes", shown, "disallowed on this kind of request"))
    return errors


def _rules(review: ReviewRequest) -> dict[str, Any]:
    namespace = str(review.spec.get("namespace") or "")
    if not namespace:
        raise BadRequest("no namespace on request")
    held = list(review.server.authorizer.rules(review.identity, namespace))
    return {
        "resourceRules": [as_data(rule) for rule in held if rule.resources],
        "nonResourceRules": [as_data(rule) for rule in held if rule.urls],
        "incomplete": False,
    }


def _token(review: ReviewRequest) -> dict[str, Any]:
    spec = _convert(review.spec, _TokenSpec)
    if not spec.token:
        raise BadRequest("token is required for TokenReview in authentication")
    try:
        holder = review.tokens.review(spec.token, spec.audiences or ())
    except Unauthorized as error:
        return {"user": {}, "error": f"[invalid bearer token, {error.message}]"}
    if holder is None:
        return {"user": {}, "error": "invalid bearer token"}
    return {"authenticated": True, "user": user_info(holder.identity), "audiences": holder.audiences}


def _self(review: ReviewRequest) -> dict[str, Any]:
    return {"userInfo": user_info(review.identity)}


_REVIEWS = {
    (review.group, f"{review.kind.lower()}s"): review
    for review in (
        Review(_AUTHORIZATION, "SelfSubjectAccessReview", _self_access),
        Review(_AUTHORIZATION, "SelfSubjectRulesReview", _rules),
        Review(_AUTHORIZATION, "SubjectAccessReview", _access),
        Review(_AUTHORIZATION, "LocalSubjectAccessReview", _access, namespaced=True),
        Review(_AUTHENTICATION, "SelfSubjectReview", _self),
        Review(_AUTHENTICATION, "TokenReview", _token),
    )
}


def find(target: Target) -> Review | None:
    """The review that a target names."""
    review = _REVIEWS.get((target.group, target.plural))
    if review is None or target.version != "v1" or target.name or bool(target.namespace) is not review.namespaced:
        return None
    return review


def answer_review(
    review: Review, server: ApiServer, tokens: BearerTokens, *, identity: Identity, namespace: str, body: bytes
) -> bytes:
    """The review with its result as status.

    Raises:
        BadRequest: the body is not a review of this kind.
        Invalid: the spec has too few or too many fields.
    """
    try:
        document = msgspec.json.decode(body, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadRequest(f"the body is not a valid {review.kind}: {error}") from error
    for field, expected in (("kind", review.kind), ("apiVersion", review.api_version)):
        if document.get(field, expected) != expected:
            raise BadRequest(f"the {field} of the body is {document[field]!r}; this path takes {expected}")
    spec, meta = _mapping(document.get("spec")), _mapping(document.get("metadata"))
    if review.namespaced and meta.setdefault("namespace", namespace) != namespace:
        raise BadRequest("the namespace of the provided object does not match the namespace sent on the request")
    status = review.answer(ReviewRequest(server, tokens, identity, namespace, review.kind, spec, meta))
    answered: dict[str, Any] = {"kind": review.kind, "apiVersion": review.api_version, "metadata": meta}
    if review.kind == "SelfSubjectReview":
        answered["metadata"] = {"creationTimestamp": rfc3339(server.clock.now())}
    elif review.kind == "SelfSubjectRulesReview":
        spec = {}
    return msgspec.json.encode(answered | {"spec": spec, "status": status})


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _convert(spec: dict[str, Any], model: type[Any]) -> Any:
    try:
        return msgspec.convert(spec, model)
    except msgspec.ValidationError as error:
        raise BadRequest(f"spec of the review: {error}") from error


def _raise_invalid(review: ReviewRequest, errors: list[FieldError]) -> None:
    if not errors:
        return
    texts = [str(error) for error in errors]
    listed = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    causes = [error.cause for error in errors]
    details = {"group": _AUTHORIZATION, "kind": review.kind, "causes": causes}
    raise Invalid(f'{review.kind}.{_AUTHORIZATION} "" is invalid: {listed}', details=details)
