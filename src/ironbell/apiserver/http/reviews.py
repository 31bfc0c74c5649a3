"""Reviews: questions about identities and what they may do, answered and not stored.

`kubectl auth can-i` and `kubectl auth whoami` ask about oneself, which every authenticated client may; about others one
needs a role that lets one `create` the review.

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


class Question(msgspec.Struct, frozen=True):
    """What is asked, by whom, of which server."""

    server: ApiServer
    tokens: BearerTokens
    identity: Identity
    namespace: str
    kind: str
    spec: dict[str, Any]
    meta: dict[str, Any]


Answer = Callable[[Question], dict[str, Any]]


class Review(msgspec.Struct, frozen=True):
    """One kind of question."""

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
        wanted = self.resource_attributes
        return Attributes(wanted.verb, wanted.group, wanted.resource, wanted.namespace, wanted.name, wanted.subresource)

    @property
    def identity(self) -> Identity:
        return Identity(self.user, self.groups or (), self.uid, tuple(sorted((self.extra or {}).items())))


class _TokenSpec(msgspec.Struct, frozen=True):
    token: str = ""
    audiences: tuple[str, ...] | None = None


def _self_access(asked: Question) -> dict[str, Any]:
    spec = _convert(asked.spec, _AccessSpec)
    _refuse(asked, _access_faults(asked, spec))
    return _decided(asked.server, asked.identity, spec)


def _access(asked: Question) -> dict[str, Any]:
    spec = _convert(asked.spec, _AccessSpec)
    _refuse(asked, [*_access_faults(asked, spec, of_others=True), *_local_faults(asked, spec)])
    return _decided(asked.server, spec.identity, spec)


def _decided(server: ApiServer, identity: Identity, spec: _AccessSpec) -> dict[str, Any]:
    decision = server.authorizer.decide(identity, spec.attributes)
    return {"allowed": decision.allowed} | ({"reason": decision.reason} if decision.reason else {})


def _access_faults(asked: Question, spec: _AccessSpec, *, of_others: bool = False) -> list[FieldError]:
    errors: list[FieldError] = []
    if spec.resource_attributes is not None and spec.non_resource_attributes is not None:
        errors.append(invalid("spec.nonResourceAttributes", asked.spec["nonResourceAttributes"], _NOT_BOTH))
    if spec.resource_attributes is None and spec.non_resource_attributes is None:
        errors.append(invalid("spec.resourceAttributes", None, _ONE_OF))
    if of_others and not spec.user and not spec.groups:
        errors.append(invalid("spec.user", "", "at least one of user or group must be specified"))
    if {name for name, value in asked.meta.items() if value} - {"managedFields", "namespace"}:
        errors.append(invalid("metadata", asked.meta, "must be empty"))
    return errors


def _local_faults(asked: Question, spec: _AccessSpec) -> list[FieldError]:
    if asked.kind != "LocalSubjectAccessReview":
        return []
    errors: list[FieldError] = []
    wanted = spec.resource_attributes
    if wanted is not None and wanted.namespace != asked.namespace:
        errors.append(invalid("spec.resourceAttributes.namespace", wanted.namespace, "must match metadata.namespace"))
    if spec.non_resource_attributes is not None:
        shown = asked.spec["nonResourceAttributes"]
        errors.append(invalid("spec.nonResourceAttributes", shown, "disallowed on this kind of request"))
    return errors


def _rules(asked: Question) -> dict[str, Any]:
    namespace = str(asked.spec.get("namespace") or "")
    if not namespace:
        raise BadRequest("no namespace on request")
    held = list(asked.server.authorizer.rules(asked.identity, namespace))
    return {
        "resourceRules": [as_data(rule) for rule in held if rule.resources],
        "nonResourceRules": [as_data(rule) for rule in held if rule.urls],
        "incomplete": False,
    }


def _token(asked: Question) -> dict[str, Any]:
    spec = _convert(asked.spec, _TokenSpec)
    if not spec.token:
        raise BadRequest("token is required for TokenReview in authentication")
    try:
        holder = asked.tokens.review(spec.token, spec.audiences or ())
    except Unauthorized as error:
        return {"user": {}, "error": f"[invalid bearer token, {error.message}]"}
    if holder is None:
        return {"user": {}, "error": "invalid bearer token"}
    return {"authenticated": True, "user": user_info(holder.identity), "audiences": holder.audiences}


def _self(asked: Question) -> dict[str, Any]:
    return {"userInfo": user_info(asked.identity)}


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
    found = _REVIEWS.get((target.group, target.plural))
    if found is None or target.version != "v1" or target.name or bool(target.namespace) is not found.namespaced:
        return None
    return found


def answer_review(
    review: Review, server: ApiServer, tokens: BearerTokens, *, identity: Identity, namespace: str, body: bytes
) -> bytes:
    """The question with its answer as status.

    Raises:
        BadRequest: the body is no question of this kind.
        Invalid: it asks too little or too much.
    """
    try:
        asked = msgspec.json.decode(body, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadRequest(f"the body is no {review.kind}: {error}") from error
    for field, expected in (("kind", review.kind), ("apiVersion", review.api_version)):
        if asked.get(field, expected) != expected:
            raise BadRequest(f"the {field} of the body is {asked[field]!r}; this path takes {expected}")
    spec, meta = _mapping(asked.get("spec")), _mapping(asked.get("metadata"))
    if review.namespaced and meta.setdefault("namespace", namespace) != namespace:
        raise BadRequest("the namespace of the provided object does not match the namespace sent on the request")
    status = review.answer(Question(server, tokens, identity, namespace, review.kind, spec, meta))
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


def _refuse(asked: Question, errors: list[FieldError]) -> None:
    if not errors:
        return
    texts = [str(error) for error in errors]
    listed = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    causes = [error.cause for error in errors]
    details = {"group": _AUTHORIZATION, "kind": asked.kind, "causes": causes}
    raise Invalid(f'{asked.kind}.{_AUTHORIZATION} "" is invalid: {listed}', details=details)
