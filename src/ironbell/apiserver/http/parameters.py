"""Query parameters as values, parsed and checked as Kubernetes does.

Source: kubernetes/apimachinery: pkg/runtime/conversion.go, pkg/apis/meta/v1/validation/validation.go,
pkg/apis/meta/internalversion/validation/validation.go.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from ironbell.api.client import BadRequest, ListOptions, Match, Selector, WriteOptions
from ironbell.apiserver import status
from ironbell.apiserver.fielderrors import FieldError, forbidden, invalid, not_supported, required, too_long
from ironbell.codec.durations import DurationError, parse_duration

_FALSE = {"0", "false"}
_VALIDATIONS = ("Ignore", "Strict", "Warn")
_MATCH = "resourceVersionMatch"
_INITIAL = "sendInitialEvents"
_MANAGER_BYTES = 128
_INTEGER = re.compile(r"[+-]?[0-9]+")
_LEAST, _MOST = -(1 << 63), (1 << 63) - 1

Query = Mapping[str, str]


class WatchParameters(msgspec.Struct, frozen=True):
    """Parameters of a watch."""

    resource_version: str
    selector: Selector
    bookmarks: bool
    timeout_s: int
    """Zero when the client leaves it to the server."""
    initial_events: bool | None
    """Whether present objects come first; None leaves it to the resource version."""


def flag(query: Query, name: str) -> bool:
    """A boolean parameter: any value but `0` and `false` is true, even an empty one."""
    value = query.get(name)
    return value is not None and value.lower() not in _FALSE


def number(query: Query, name: str) -> int:
    """An integer parameter; zero if it is missing or negative.

    Raises:
        BadRequest: the value is not a number.
    """
    value = query.get(name, "") or "0"
    if not _INTEGER.fullmatch(value):
        raise BadRequest(f'strconv.ParseInt: parsing "{value}": invalid syntax')
    if len(value) > 20 or not _LEAST <= int(value) <= _MOST:
        raise BadRequest(f'strconv.ParseInt: parsing "{value}": value out of range')
    return max(0, int(value))


def require_timeout(query: Query) -> None:
    """Reject a `timeout` that Go could not read; the value is ignored, since no response takes that long. A watch has
    `timeoutSeconds` instead.

    Raises:
        BadRequest: the value is malformed.
    """
    value = query.get("timeout", "")
    if not value or flag(query, "watch"):
        return
    try:
        parse_duration(value)
    except DurationError as error:
        raise BadRequest(f"invalid timeout specified in the request URL - {error}") from error


def selector(query: Query) -> Selector:
    """Label and field selectors."""
    return Selector(labels=query.get("labelSelector", ""), fields=query.get("fieldSelector", ""))


def list_options(query: Query) -> ListOptions:
    """Options of a list.

    Raises:
        Invalid: parameters exclude each other.
        BadRequest: a parameter is malformed.
    """
    number(query, "timeoutSeconds")
    limit, version, token = number(query, "limit"), query.get("resourceVersion", ""), query.get("continue", "")
    match = query.get(_MATCH, "")
    errors: list[FieldError] = []
    if match:
        errors += _check_match(match, version, token)
    if _INITIAL in query:
        errors.append(forbidden(_INITIAL, "sendInitialEvents is forbidden for list"))
    if errors:
        raise status.invalid_options("ListOptions", errors)
    _require_version(version, "invalid resource version: ")
    return ListOptions(selector(query), limit, token, version, Match(match) if match else None)


def _check_match(match: str, version: str, token: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if not version:
        errors.append(forbidden(_MATCH, "resourceVersionMatch is forbidden unless resourceVersion is provided"))
    if token:
        errors.append(forbidden(_MATCH, "resourceVersionMatch is forbidden when continue is provided"))
    if match not in {known.value for known in Match}:
        errors.append(not_supported(_MATCH, match, [*(known.value for known in Match), ""]))
    if match == Match.EXACT.value and version == "0":
        errors.append(forbidden(_MATCH, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'))
    return errors


def watch_parameters(query: Query) -> WatchParameters:
    """Parameters of a watch.

    Raises:
        Invalid: parameters exclude each other.
        BadRequest: a parameter is malformed.
    """
    number(query, "limit")
    timeout_s = number(query, "timeoutSeconds")
    initial = flag(query, _INITIAL) if _INITIAL in query else None
    match, errors = query.get(_MATCH, ""), []
    if initial is None and match:
        detail = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        errors.append(forbidden(_MATCH, detail))
    if initial is not None:
        errors += _check_initial(match)
    if errors:
        raise status.invalid_options("ListOptions", errors)
    version = query.get("resourceVersion", "")
    _require_version(version)
    return WatchParameters(version, selector(query), flag(query, "allowWatchBookmarks"), timeout_s, initial)


def _check_initial(match: str) -> list[FieldError]:
    if match == Match.NOT_OLDER_THAN.value:
        return []
    errors = [forbidden(_MATCH, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan")]
    if match:
        errors.append(not_supported(_MATCH, match, [Match.NOT_OLDER_THAN.value]))
    return errors


def _require_version(version: str, prefix: str = "") -> None:
    if version and not (version.isascii() and version.isdecimal() and int(version[:20]) < 1 << 64):
        fault = invalid("resourceVersion", version, f'strconv.ParseUint: parsing "{version}": invalid syntax')
        raise BadRequest(f"{prefix}{fault}")


def named(chosen: Selector, name: str) -> Selector:
    """A selector narrowed to one object."""
    fields = f"metadata.name={name}"
    return Selector(labels=chosen.labels, fields=f"{chosen.fields},{fields}" if chosen.fields else fields)


def write_options(query: Query, user_agent: str, *, kind: str, applies: bool = False) -> WriteOptions:
    """Options of the kind `kind` for create, update and patch; except for an apply, the field manager defaults to the
    client program's name.

    Raises:
        Invalid: an option is unknown, or not for this kind of write.
    """
    validation, manager = query.get("fieldValidation", ""), query.get("fieldManager", "")
    errors: list[FieldError] = []
    if kind == "PatchOptions" and not applies and flag(query, "force"):
        errors.append(forbidden("force", "may not be specified for non-apply patch"))
    if applies and not manager:
        errors.append(required("fieldManager", "is required for apply patch"))
    errors += manager_faults(manager) + dry_run_faults(all_values(query, "dryRun"))
    if validation and validation not in _VALIDATIONS:
        errors.append(not_supported("fieldValidation", validation, ["", *_VALIDATIONS]))
    if errors:
        raise status.invalid_options(kind, errors)
    return WriteOptions(
        field_manager=manager or default_manager(user_agent),
        dry_run="dryRun" in query and "All" in all_values(query, "dryRun"),
        force=flag(query, "force"),
        field_validation=validation or "Warn",
    )


def all_values(query: Query, name: str) -> list[str]:
    """All values of a parameter."""
    several: Any = getattr(query, "getall", None)
    return list(several(name, ())) if several is not None else [query[name]] if name in query else []


def default_manager(user_agent: str) -> str:
    """The default field manager of a client: its program's name, without the version."""
    name = "".join(character for character in user_agent.partition("/")[0] if character.isprintable())
    return name.encode()[:_MANAGER_BYTES].decode(errors="ignore")


def manager_faults(manager: str) -> list[FieldError]:
    """Problems of the name of a field manager."""
    errors = [too_long("fieldManager", _MANAGER_BYTES)] if len(manager.encode()) > _MANAGER_BYTES else []
    for position, character in enumerate(manager):
        if not character.isprintable():
            at = len(manager[:position].encode())
            detail = f"invalid character U+{ord(character):04X} (at position {at})"
            errors.append(invalid("fieldManager", manager, detail))
            break
    return errors


def dry_run_faults(values: list[str]) -> list[FieldError]:
    """Problems of the values of `dryRun`."""
    return [] if all(value == "All" for value in values) else [not_supported("dryRun", values, ["All"])]
