"""Query parameters and delete options as values, checked.

Source: kubernetes/apimachinery: pkg/apis/meta/v1/validation/validation.go, pkg/apis/meta/internalversion/validation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from ironbell.api.client import BadRequest, Invalid, ListOptions, Preconditions, Propagation, Selector, WriteOptions

_TRUE = {"1", "true", "t", "True", "TRUE", "T", ""}
_FALSE = {"0", "false", "f", "False", "FALSE", "F"}
_VALIDATIONS = {"", "Ignore", "Warn", "Strict"}
_MATCHES = {"", "Exact", "NotOlderThan"}
_MANAGER_LENGTH = 128

Query = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class WatchParameters:
    """How to watch."""

    resource_version: str
    selector: Selector
    bookmarks: bool
    timeout_s: int
    """Zero when the client leaves it to the server."""
    initial_events: bool | None
    """Whether present objects come first; None leaves it to the resource version."""


@dataclass(frozen=True, slots=True)
class DeleteParameters:
    """How to delete."""

    preconditions: Preconditions
    propagation: Propagation
    dry_run: bool


def flag(query: Query, name: str) -> bool:
    """A boolean parameter; given without a value it is true."""
    value = query.get(name)
    if value is None or value in _FALSE:
        return False
    if value in _TRUE:
        return True
    raise BadRequest(f"query parameter {name}={value!r} is neither true nor false")


def number(query: Query, name: str) -> int:
    """A parameter that counts something; zero if it is not given."""
    value = query.get(name, "") or "0"
    if not value.isdecimal() or len(value) > 18:
        raise BadRequest(f"query parameter {name}={value!r} is no number")
    return int(value)


def selector(query: Query) -> Selector:
    """Label and field selectors."""
    return Selector(labels=query.get("labelSelector", ""), fields=query.get("fieldSelector", ""))


def _version(query: Query) -> str:
    version = query.get("resourceVersion", "")
    if version and not version.isdecimal():
        raise BadRequest(f'resourceVersion: Invalid value: "{version}": must be a number')
    return version


def list_options(query: Query) -> ListOptions:
    """How to list."""
    version, token = _version(query), query.get("continue", "")
    match = query.get("resourceVersionMatch", "")
    if match not in _MATCHES:
        raise BadRequest(f"resourceVersionMatch={match!r} is unknown: use Exact or NotOlderThan")
    if match and not version:
        raise BadRequest("resourceVersionMatch is forbidden unless resourceVersion is provided")
    if match and token:
        raise BadRequest("resourceVersionMatch is forbidden when continue is provided")
    if match == "Exact" and version == "0":
        raise BadRequest('resourceVersionMatch "Exact" is forbidden for resourceVersion "0"')
    return ListOptions(selector(query), number(query, "limit"), token, version)


def watch_parameters(query: Query) -> WatchParameters:
    """How to watch."""
    initial = flag(query, "sendInitialEvents") if "sendInitialEvents" in query else None
    match = query.get("resourceVersionMatch", "")
    if initial is None and match:
        raise BadRequest("resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided")
    if initial is not None and match != "NotOlderThan":
        raise BadRequest("sendInitialEvents requires resourceVersionMatch=NotOlderThan")
    return WatchParameters(
        resource_version=_version(query),
        selector=selector(query),
        bookmarks=flag(query, "allowWatchBookmarks"),
        timeout_s=number(query, "timeoutSeconds"),
        initial_events=initial,
    )


def named(chosen: Selector, name: str) -> Selector:
    """A selector narrowed to one object."""
    fields = f"metadata.name={name}"
    return Selector(labels=chosen.labels, fields=f"{chosen.fields},{fields}" if chosen.fields else fields)


def write_options(query: Query, user_agent: str) -> WriteOptions:
    """Options of create, update and patch; without a field manager the client program's name stands for it."""
    validation = query.get("fieldValidation", "")
    if validation not in _VALIDATIONS:
        raise BadRequest(f"fieldValidation={validation!r} is unknown: use Ignore, Warn or Strict")
    manager = query.get("fieldManager", "")
    if len(manager) > _MANAGER_LENGTH or not manager.isprintable():
        raise Invalid(f"fieldManager: must be printable and no longer than {_MANAGER_LENGTH} characters")
    return WriteOptions(
        field_manager=manager or user_agent.partition("/")[0][:_MANAGER_LENGTH],
        dry_run=_is_dry_run(query.get("dryRun", "")),
        force=flag(query, "force"),
        field_validation=validation,
    )


class _Preconditions(msgspec.Struct, rename="camel"):
    uid: str | None = None
    resource_version: str | None = None


class _DeleteOptions(msgspec.Struct, rename="camel"):
    preconditions: _Preconditions | None = None
    propagation_policy: str | None = None
    orphan_dependents: bool | None = None
    dry_run: list[str] | None = None


def delete_parameters(query: Query, body: bytes) -> DeleteParameters:
    """How to delete: by the body's DeleteOptions, else by the query."""
    try:
        given = msgspec.json.decode(body, type=_DeleteOptions) if body.strip() else _from_query(query)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadRequest(f"the body is no DeleteOptions object: {error}") from error
    required = given.preconditions or _Preconditions()
    return DeleteParameters(
        preconditions=Preconditions(uid=required.uid or "", resource_version=required.resource_version or ""),
        propagation=_propagation(given),
        dry_run=_is_dry_run(*given.dry_run or ()),
    )


def _from_query(query: Query) -> _DeleteOptions:
    return _DeleteOptions(
        propagation_policy=query.get("propagationPolicy"),
        orphan_dependents=flag(query, "orphanDependents") if "orphanDependents" in query else None,
        dry_run=[query["dryRun"]] if "dryRun" in query else None,
    )


def _propagation(given: _DeleteOptions) -> Propagation:
    if given.orphan_dependents is not None and given.propagation_policy:
        raise Invalid("orphanDependents and propagationPolicy cannot be set both")
    if given.orphan_dependents is not None:
        return Propagation.ORPHAN if given.orphan_dependents else Propagation.BACKGROUND
    try:
        return Propagation(given.propagation_policy or Propagation.BACKGROUND.value)
    except ValueError as error:
        policy = given.propagation_policy
        raise Invalid(
            f'propagationPolicy: Unsupported value: "{policy}": use Background, Foreground or Orphan'
        ) from error


def _is_dry_run(*values: str) -> bool:
    unknown = [value for value in values if value not in {"", "All"}]
    if unknown:
        raise Invalid(f'dryRun: Unsupported value: "{unknown[0]}": supported values: "All"')
    return "All" in values
