"""Content negotiation: media types and representations of objects.

Source: RFC 9110 section 12.5.1; kubernetes/apiserver: pkg/endpoints/handlers/negotiation/negotiate.go.
"""

from __future__ import annotations

from enum import Enum
from functools import lru_cache

import msgspec

from ironbell.api.client import ApiError
from ironbell.apiserver.tables.table import META_API_VERSION

JSON = "application/json"
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"

_META_VERSIONS = ("v1", "v1beta1")
_DISCOVERY_VERSIONS = ("v2", "v2beta1")
_ALL = (JSON, YAML, PROTOBUF)


class NotAcceptable(ApiError):  # noqa: N818 - as the API's reason
    code, reason = 406, "NotAcceptable"


class View(Enum):
    """Representation of an object."""

    OBJECT = "Object"
    TABLE = "Table"
    METADATA = "PartialObjectMetadata"


class Format(msgspec.Struct, frozen=True):
    """The representation that was agreed on."""

    media_type: str = JSON
    view: View = View.OBJECT
    meta_api_version: str = META_API_VERSION


class Range(msgspec.Struct, frozen=True):
    """One element of an Accept header."""

    media_type: str
    parameters: tuple[tuple[str, str], ...] = ()

    def get(self, name: str) -> str:
        return dict(self.parameters).get(name, "")


@lru_cache(maxsize=256)
def ranges(accept: str) -> tuple[Range, ...]:
    """An Accept header's elements, best first; an empty header accepts everything."""
    weighed: list[tuple[float, Range]] = []
    for element in accept.split(","):
        media_type, *parts = (part.strip() for part in element.split(";"))
        if not media_type:
            continue
        pairs = [(key.strip().lower(), value.strip().strip('"')) for key, _, value in (p.partition("=") for p in parts)]
        weighed.append((_weight(dict(pairs).get("q", "1")), Range(media_type.lower(), tuple(pairs))))
    if not weighed:
        return (Range("*/*"),)
    return tuple(accepted for weight, accepted in sorted(weighed, key=lambda pair: -pair[0]) if weight > 0)


def _weight(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


@lru_cache(maxsize=256)
def object_format(accept: str, *, watching: bool = False, custom: bool = False) -> Format:
    """The representation of objects for an Accept header; of `custom` ones, protocol buffers have metadata only.

    Raises:
        NotAcceptable: the client accepts nothing that is offered, such as a Table in protocol buffers only.
    """
    for accepted in ranges(accept):
        media_type = _offered(accepted.media_type, watching=watching)
        if media_type is None:
            continue
        requested = accepted.get("as")
        if not requested:
            if media_type == PROTOBUF and custom:
                continue
            return Format(media_type)
        view = _VIEWS.get(requested)
        version = accepted.get("v")
        if view is View.TABLE and media_type == PROTOBUF:
            continue
        if view is not None and accepted.get("g") == "meta.k8s.io" and version in _META_VERSIONS:
            return Format(media_type, view, f"meta.k8s.io/{version}")
    raise _not_acceptable(tuple(f"{offered};stream=watch" for offered in (JSON, PROTOBUF)) if watching else _ALL)


@lru_cache(maxsize=256)
def plain_media_type(accept: str) -> str:
    """The media type of a document that has no other representations, such as an error.

    Raises:
        NotAcceptable: the client accepts none that is offered.
    """
    for accepted in ranges(accept):
        media_type = _offered(accepted.media_type, watching=False)
        if media_type is not None and not accepted.get("as"):
            return media_type
    raise _not_acceptable(_ALL)


_VIEWS = {
    "Table": View.TABLE,
    "PartialObjectMetadata": View.METADATA,
    "PartialObjectMetadataList": View.METADATA,
}


@lru_cache(maxsize=256)
def discovery_format(accept: str) -> tuple[str, str]:
    """The media type of discovery, with `v2` or `v2beta1` for its aggregated form, which is empty for the old one.

    Raises:
        NotAcceptable: the client accepts nothing that is offered.
    """
    for accepted in ranges(accept):
        media_type = _offered(accepted.media_type, watching=False)
        if media_type is None:
            continue
        requested = accepted.get("as")
        if not requested:
            return media_type, ""
        group, version = accepted.get("g"), accepted.get("v")
        is_discovery = requested == "APIGroupDiscoveryList" and group == "apidiscovery.k8s.io"
        if is_discovery and version in _DISCOVERY_VERSIONS:
            return media_type, version
    raise _not_acceptable(_ALL)


def require_json(accept: str, *more: str) -> None:
    """Reject a client that accepts neither JSON nor one of `more`."""
    if not any(accepted.media_type in {JSON, "*/*", "application/*", *more} for accepted in ranges(accept)):
        raise _not_acceptable((JSON,))


def content_type(header: str) -> str:
    """A Content-Type header without its parameters; JSON if there is none."""
    return header.partition(";")[0].strip().lower() or JSON


def _offered(media_type: str, *, watching: bool) -> str | None:
    if media_type in {JSON, "*/*", "application/*"}:
        return JSON
    if media_type in {YAML, "application/x-yaml", "text/yaml"} and not watching:
        return YAML
    return PROTOBUF if media_type == PROTOBUF else None


def require_view(chosen: Format, accept: str, *, of_list: bool, kind: str) -> None:
    """Reject a request for an object's metadata on a list, and for a list's on an object.

    Raises:
        NotAcceptable: the client accepts only the other form.
    """
    if chosen.view is not View.METADATA:
        return
    accepts_list = any(accepted.get("as") == "PartialObjectMetadataList" for accepted in ranges(accept))
    accepts_object = any(accepted.get("as") == "PartialObjectMetadata" for accepted in ranges(accept))
    if of_list and not accepts_list:
        raise NotAcceptable(f"you requested PartialObjectMetadata, but the requested object is a list ({kind}List)")
    if not of_list and not accepts_object:
        raise NotAcceptable(f"you requested PartialObjectMetadataList, but the requested object is not a list ({kind})")


def _not_acceptable(offered: tuple[str, ...]) -> NotAcceptable:
    return NotAcceptable(f"only the following media types are accepted: {', '.join(offered)}")
