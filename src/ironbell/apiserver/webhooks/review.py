"""Requests to admission webhooks, and the checks of their responses.

Source: kubernetes/apiserver: pkg/admission/plugin/webhook/request/admissionreview.go, errors/statuserror.go.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ironbell.api.client import ApiError
from ironbell.apiserver.access.identity import user_info
from ironbell.apiserver.admission import AdmissionRequest
from ironbell.apiserver.resources import ResourceInfo
from ironbell.apiserver.verbs.bodies import converted
from ironbell.apiserver.webhooks.client import CallError

API_VERSION, KIND = "admission.k8s.io/v1", "AdmissionReview"
_VERSIONS = ("v1", "v1beta1")
_OPTIONS = {"CREATE": "CreateOptions", "UPDATE": "UpdateOptions", "DELETE": "DeleteOptions"}


class Result(msgspec.Struct, frozen=True):
    """The `Status` in a response."""

    code: int = 0
    message: str = ""
    reason: str = ""
    details: dict[str, Any] | None = None


class Answer(msgspec.Struct, frozen=True, rename="camel"):
    """A webhook's response."""

    uid: str = ""
    allowed: bool = False
    status: Result | None = None
    patch: str | None = None
    patch_type: str | None = None
    audit_annotations: dict[str, str] | None = None
    warnings: list[str] | None = None


class _Review(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str = ""
    kind: str = ""
    response: Answer | None = None


class Shown(msgspec.Struct, frozen=True):
    """A request as one webhook or policy sees it."""

    info: ResourceInfo
    new: dict[str, Any] | None
    old: dict[str, Any] | None


async def shown_as(info: ResourceInfo, request: AdmissionRequest) -> Shown:
    """The request in a version of its resource."""
    if info is request.info:
        return Shown(info, request.new, request.old)

    async def bring(value: dict[str, Any] | None) -> dict[str, Any] | None:
        if value is None:
            return None
        return await converted(info, msgspec.json.decode(msgspec.json.encode(value)), info.api_version)

    return Shown(info, await bring(request.new), await bring(request.old))


def admission_review(request: AdmissionRequest, shown: Shown, *, uid: str, versions: tuple[str, ...]) -> dict[str, Any]:
    """The AdmissionReview that a webhook is sent.

    Raises:
        CallError: the webhook accepts no version that this server sends.
    """
    version = next((candidate for candidate in versions if candidate in _VERSIONS), "")
    if not version:
        raise CallError("could not create admission objects: webhook does not accept known AdmissionReview versions")
    review_request = request_data(request, shown)
    return {"kind": KIND, "apiVersion": f"admission.k8s.io/{version}", "request": {"uid": uid, **review_request}}


def request_data(request: AdmissionRequest, shown: Shown) -> dict[str, Any]:
    """`AdmissionRequest` without its uid: what webhooks are sent, and the value of `request` in match conditions."""
    options = _OPTIONS.get(request.operation.value)
    data: dict[str, Any] = {
        "kind": _kind(shown.info),
        "resource": _resource(shown.info),
        "requestKind": _kind(request.info),
        "requestResource": _resource(request.info),
        "name": request.name,
        "namespace": _namespace(request),
        "operation": request.operation.value,
        "userInfo": user_info(request.identity),
        "object": shown.new,
        "oldObject": shown.old,
        "dryRun": request.dry_run,
        "options": _shown_options(options, dry_run=request.dry_run) if options else None,
    }
    if request.subresource:
        data |= {"subResource": request.subresource, "requestSubResource": request.subresource}
    return {name: value for name, value in data.items() if value != "" or name not in ("name", "namespace")}


def _namespace(request: AdmissionRequest) -> str:
    """The namespace of a request; a Namespace is in itself."""
    own = (request.info.group, request.info.plural) == ("", "namespaces")
    return request.name if own else request.namespace


def _shown_options(kind: str, *, dry_run: bool) -> dict[str, Any]:
    return {"kind": kind, "apiVersion": "meta.k8s.io/v1"} | ({"dryRun": ["All"]} if dry_run else {})


def _kind(info: ResourceInfo) -> dict[str, str]:
    return {"group": info.group, "version": info.version, "kind": info.kind}


def _resource(info: ResourceInfo) -> dict[str, str]:
    return {"group": info.group, "version": info.version, "resource": info.plural}


def read_answer(answered: Any, sent: dict[str, Any], *, mutating: bool) -> Answer:
    """The checked response.

    Raises:
        CallError: the response is not valid.
    """
    invalid = "received invalid webhook response: "
    try:
        review = msgspec.convert(answered, _Review)
    except msgspec.ValidationError as error:
        raise CallError(f"{invalid}{error}") from error
    answer, uid = review.response, sent["request"]["uid"]
    if answer is None:
        raise CallError(f"{invalid}webhook response was absent")
    if sent["apiVersion"] == API_VERSION:
        if answer.uid != uid:
            raise CallError(f'{invalid}expected response.uid="{uid}", got "{answer.uid}"')
        if (review.api_version, review.kind) != (API_VERSION, KIND):
            group, _, version = review.api_version.rpartition("/")
            actual = f"{group}/{version}, Kind={review.kind}"
            raise CallError(f"{invalid}expected webhook response of {API_VERSION}, Kind={KIND}, got {actual}")
        _check_patch(answer, invalid, mutating=mutating)
    return answer


def _check_patch(answer: Answer, invalid: str, *, mutating: bool) -> None:
    if not mutating:
        if answer.patch:
            raise CallError(f"{invalid}validating webhook may not return response.patch")
        if answer.patch_type is not None:
            raise CallError(f"{invalid}validating webhook may not return response.patchType")
    elif answer.patch and answer.patch_type is None:
        raise CallError(f"{invalid}webhook returned response.patch but not response.patchType")
    elif not answer.patch and answer.patch_type is not None:
        raise CallError(f"{invalid}webhook returned response.patchType but not response.patch")


def denial(name: str, result: Result | None) -> ApiError:
    """The error for a request that a webhook does not allow."""
    outcome = result or Result()
    denied = f'admission webhook "{name}" denied the request'
    detail = f": {outcome.message or outcome.reason}" if outcome.message or outcome.reason else " without explanation"
    code = max(outcome.code, 400)
    return ApiError(denied + detail, code=code, reason=outcome.reason, details=outcome.details)
