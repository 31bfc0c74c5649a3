"""DeleteOptions: from the body of a request, or else from its query.

Source: kubernetes/apiserver: pkg/endpoints/handlers/delete.go; kubernetes/apimachinery:
pkg/apis/meta/v1/validation/validation.go (ValidateDeleteOptions).
"""

from __future__ import annotations

import msgspec

from ironbell.api.client import BadRequest, Preconditions, Propagation
from ironbell.apiserver import status
from ironbell.apiserver.fielderrors import FieldError, invalid, not_supported
from ironbell.apiserver.http.parameters import Query, all_values, dry_run_faults, flag, number

_POLICIES = (Propagation.FOREGROUND, Propagation.BACKGROUND, Propagation.ORPHAN)


class DeleteParameters(msgspec.Struct, frozen=True):
    """Options of a deletion."""

    preconditions: Preconditions
    propagation: Propagation
    dry_run: bool


class _Preconditions(msgspec.Struct, rename="camel"):
    uid: str | None = None
    resource_version: str | None = None


class _DeleteOptions(msgspec.Struct, rename="camel"):
    kind: str = ""
    api_version: str = ""
    preconditions: _Preconditions | None = None
    propagation_policy: str | None = None
    orphan_dependents: bool | None = None
    dry_run: list[str] | None = None
    grace_period_seconds: int | None = None


def delete_parameters(query: Query, body: bytes) -> DeleteParameters:
    """Options of a deletion. A grace period is accepted and has no effect, because nothing that is served here ends
    gracefully.

    Raises:
        BadRequest: the body or a parameter cannot be read.
        Invalid: an option is unknown, or two do not go together.
    """
    try:
        given = msgspec.json.decode(body, type=_DeleteOptions) if body.strip() else _from_query(query)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadRequest(f"couldn't get version/kind; json parse error: {error}") from error
    if given.kind not in {"", "DeleteOptions"}:
        raise BadRequest(f'no kind "{given.kind}" is registered for version "{given.api_version}"')
    errors = _faults(given)
    if errors:
        raise status.invalid_options("DeleteOptions", errors)
    preconditions = given.preconditions or _Preconditions()
    return DeleteParameters(
        preconditions=Preconditions(uid=preconditions.uid or "", resource_version=preconditions.resource_version or ""),
        propagation=_propagation(given),
        dry_run=bool(given.dry_run),
    )


def _from_query(query: Query) -> _DeleteOptions:
    return _DeleteOptions(
        propagation_policy=query.get("propagationPolicy"),
        orphan_dependents=flag(query, "orphanDependents") if "orphanDependents" in query else None,
        dry_run=all_values(query, "dryRun"),
        grace_period_seconds=number(query, "gracePeriodSeconds"),
    )


def _faults(given: _DeleteOptions) -> list[FieldError]:
    errors: list[FieldError] = []
    policy = given.propagation_policy
    if given.orphan_dependents is not None and policy is not None:
        detail = "orphanDependents and deletionPropagation cannot be both set"
        errors.append(invalid("propagationPolicy", policy, detail))
    if policy is not None and policy not in {known.value for known in _POLICIES}:
        errors.append(not_supported("propagationPolicy", policy, [*(known.value for known in _POLICIES), "nil"]))
    return errors + dry_run_faults(given.dry_run or [])


def _propagation(given: _DeleteOptions) -> Propagation:
    if given.orphan_dependents is not None:
        return Propagation.ORPHAN if given.orphan_dependents else Propagation.BACKGROUND
    return Propagation(given.propagation_policy or Propagation.BACKGROUND.value)
