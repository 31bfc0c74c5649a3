"""Targets of requests: what a URL path under `/api` or `/apis` names.

Source: kubernetes/apiserver: pkg/endpoints/request/requestinfo.go.
"""

from __future__ import annotations

from urllib.parse import unquote

import msgspec

_NAMESPACE_SUBRESOURCES = {"status", "finalize"}


class Target(msgspec.Struct, frozen=True):
    """A collection, an object or a subresource; or, with an empty `plural`, a group or a version itself."""

    group: str
    version: str = ""
    namespace: str = ""
    plural: str = ""
    name: str = ""
    subresource: str = ""


def parse(path: str) -> Target | None:
    """The target of a raw (still percent-encoded) path; None if the path is not the API's or names nothing."""
    parts = [unquote(part) for part in path.strip("/").split("/")]
    if "" in parts:
        return None
    if parts[0] == "api":
        group, rest = "", parts[1:]
    elif parts[0] == "apis" and len(parts) > 1:
        group, rest = parts[1], parts[2:]
    else:
        return None
    if not rest:
        return Target(group)
    return _within(group, rest[0], rest[1:])


def _within(group: str, version: str, rest: list[str]) -> Target | None:
    namespace = ""
    if len(rest) > 2 and rest[0] == "namespaces" and rest[2] not in _NAMESPACE_SUBRESOURCES:
        namespace, rest = rest[1], rest[2:]
    if len(rest) > 3:
        return None
    plural, name, subresource = (*rest, "", "", "")[:3]
    return Target(group, version, namespace, plural, name, subresource)
