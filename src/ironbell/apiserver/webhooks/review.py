"""The questions to admission webhooks, and what makes an answer good.

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
    """The `Status` in an answer."""

    code: int = 0
    message: str = ""
    reason: str = ""
    details: dict[str, Any] | None = None


class Answer(msgspec.Struct, frozen=True, rename="camel"):
    """A webhook's answer."""

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
    """A request as one webhook or policy gets to see it."""

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
    """The question.

    Raises:
        CallError: the webhook takes none that we can ask.
    """
    version = next((one for one in versions if one in _VERSIONS), "")
    if not version:
        raise CallError("could not create admission objects: webhook does not accept known AdmissionReview versions")
    asked = request_data(request, shown)
    return {"kind": KIND, "apiVersion": f"admission.k8s.io/{version}", "request": {"uid": uid, **asked}}


def request_data(request: AdmissionRequest, shown: Shown) -> dict[str, Any]:
    """`AdmissionRequest` without its uid: what webhooks are sent, and what match conditions see as `request`."""
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
    """A Namespace is said to be in itself."""
    own = (request.info.group, request.info.plural) == ("", "namespaces")
    return request.name if own else request.namespace


def _shown_options(kind: str, *, dry_run: bool) -> dict[str, Any]:
    return {"kind": kind, "apiVersion": "meta.k8s.io/v1"} | ({"dryRun": ["All"]} if dry_run else {})


def _kind(info: ResourceInfo) -> dict[str, str]:
    return {"group": info.group, "version": info.version, "kind": info.kind}


def _resource(info: ResourceInfo) -> dict[str, str]:
    return {"group": info.group, "version": info.version, "resource": info.plural}


def read_answer(answered: Any, asked: dict[str, Any], *, mutating: bool) -> Answer:
    """The answer, if it is one.

    Raises:
        CallError: it is not.
    """
    invalid = "received invalid webhook response: "
    try:
        review = msgspec.convert(answered, _Review)
    except msgspec.ValidationError as error:
        raise CallError(f"{invalid}{error}") from error
    answer, uid = review.response, asked["request"]["uid"]
    if answer is None:
        raise CallError(f"{invalid}webhook response was absent")
    if asked["apiVersion"] == API_VERSION:
        if answer.uid != uid:
            raise CallError(f'{invalid}expected response.uid="{uid}", got "{answer.uid}"')
        if (review.api_version, review.kind) != (API_VERSION, KIND):
            group, _, version = review.api_version.rpartition("/")
            found = f"{group}/{version}, Kind={review.kind}"
            raise CallError(f"{invalid}expected webhook response of {API_VERSION}, Kind={KIND}, got {found}")
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
    found = result or Result()
    denied = f'admission webhook "{name}" denied the request'
    why = f": {found.message or found.reason}" if found.message or found.reason else " without explanation"
    code = max(found.code, 400)
    return ApiError(denied + why, code=code, reason=found.reason, details=found.details)
