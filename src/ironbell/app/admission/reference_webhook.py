"""References into other namespaces on another API server: a webhook that queries the rights of their writers.

Source: admission.k8s.io/v1 AdmissionReview; authorization.k8s.io/v1 SubjectAccessReview.
"""

from __future__ import annotations

from typing import Any, Final, Protocol

import msgspec

from ironbell.api.kind import Collection
from ironbell.app.admission.handlers import Handler
from ironbell.app.admission.reference_rules import Holds, Write, reviewed
from ironbell.contract.crossing import Access

REFERENCES_PATH: Final = "/validate-references"
REVIEWS: Final = Collection("authorization.k8s.io", "v1", "subjectaccessreviews", namespaced=False)
_FORBIDDEN: Final = 403

Object = dict[str, Any]


class Reviews(Protocol):
    """The part of an `Api` that is needed."""

    async def create(self, where: Collection, namespace: str, body: bytes) -> bytes: ...


class _Resource(msgspec.Struct, frozen=True):
    group: str = ""
    resource: str = ""


class _User(msgspec.Struct, frozen=True):
    username: str = ""
    uid: str = ""
    groups: list[str] = []
    extra: dict[str, list[str]] = {}


class _Request(msgspec.Struct, frozen=True, rename="camel"):
    uid: str
    resource: _Resource = _Resource()
    name: str = ""
    namespace: str = ""
    object: Object | None = None
    old_object: Object | None = None
    user_info: _User = _User()


class _AdmissionReview(msgspec.Struct, frozen=True):
    request: _Request


class _Status(msgspec.Struct, frozen=True):
    allowed: bool = False


class _AccessReview(msgspec.Struct, frozen=True):
    status: _Status = _Status()


def reference_handler(reviews: Reviews) -> Handler:
    """Answers AdmissionReviews. A failed query fails the request, and with it the write."""

    async def handle(body: bytes) -> bytes:
        request = msgspec.json.decode(body, type=_AdmissionReview).request
        response: Object = {"uid": request.uid, "allowed": True}
        if request.object is not None:
            response |= await _response(request, request.object, reviews)
        review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
        return msgspec.json.encode(review)

    return handle


async def _response(request: _Request, new: Object, reviews: Reviews) -> Object:
    group, plural = request.resource.group, request.resource.resource
    placed = {**new, "metadata": {**(new.get("metadata") or {}), "namespace": request.namespace}}
    write = Write(group, plural, request.namespace, request.user_info.username, placed, request.old_object)
    verdict = await reviewed(write, _holds(request.user_info, reviews))
    if not verdict.forbidden:
        return {"warnings": list(verdict.warnings)} if verdict.warnings else {}
    status = {
        "status": "Failure",
        "code": _FORBIDDEN,
        "reason": "Forbidden",
        "message": f'{plural}.{group} "{request.name}" is forbidden: {verdict.forbidden}',
        "details": {"name": request.name, "group": group, "kind": plural},
    }
    return {"allowed": False, "status": status}


def _holds(user: _User, reviews: Reviews) -> Holds:
    async def holds(right: Access) -> bool:
        attributes = {
            "verb": right.verb,
            "group": right.group,
            "resource": right.resource,
            "namespace": right.namespace,
            "name": right.name,
        }
        spec = {"user": user.username, "uid": user.uid, "groups": user.groups, "extra": user.extra}
        review = {
            "apiVersion": REVIEWS.api_version,
            "kind": "SubjectAccessReview",
            "spec": {**spec, "resourceAttributes": attributes},
        }
        answer = await reviews.create(REVIEWS, "", msgspec.json.encode(review))
        return msgspec.json.decode(answer, type=_AccessReview).status.allowed

    return holds
