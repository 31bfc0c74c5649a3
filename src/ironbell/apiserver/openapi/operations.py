"""The operations of one resource and their parameters, before they are written in either OpenAPI version.

kubectl checks here whether the server validates unknown fields (`fieldValidation`) and supports `dryRun`.

Source: kubernetes/apiserver: pkg/endpoints/installer.go (paths, actions, operation ids); kubernetes/apimachinery:
pkg/apis/meta/v1/types.go (ListOptions, CreateOptions, PatchOptions, DeleteOptions).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ironbell.apiserver.discovery import Entry, Subresource, prefix


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter."""

    name: str
    type: str
    description: str
    place: str = "query"


PRETTY = Parameter("pretty", "string", "Whether the answer is indented.")
NAME = Parameter("name", "string", "Name of the object.", "path")
NAMESPACE = Parameter("namespace", "string", "Namespace of the objects.", "path")

_DRY_RUN = Parameter("dryRun", "string", "All: do everything except storing.")
_FIELD_MANAGER = Parameter("fieldManager", "string", "Name under which the changed fields are owned.")
_FIELD_VALIDATION = Parameter(
    "fieldValidation", "string", "Handling of unknown and duplicate fields: Ignore, Warn or Strict."
)
_FORCE = Parameter("force", "boolean", "Take over fields that other managers own; for apply only.")

LIST = (
    Parameter("allowWatchBookmarks", "boolean", "Whether a watch may send bookmarks."),
    Parameter("continue", "string", "Token of the next page."),
    Parameter("fieldSelector", "string", "Restricts the objects by their fields."),
    Parameter("labelSelector", "string", "Restricts the objects by their labels."),
    Parameter("limit", "integer", "Most objects in one page."),
    Parameter("resourceVersion", "string", "Version to list or to watch from."),
    Parameter("resourceVersionMatch", "string", "How that version is meant."),
    Parameter("sendInitialEvents", "boolean", "Whether a watch begins with all present objects."),
    Parameter("timeoutSeconds", "integer", "When the call ends at the latest."),
    Parameter("watch", "boolean", "Send changes instead of a list."),
)
WRITE = (_DRY_RUN, _FIELD_MANAGER, _FIELD_VALIDATION)
PATCH = (*WRITE, _FORCE)
DELETE = (
    _DRY_RUN,
    Parameter("gracePeriodSeconds", "integer", "Seconds to grant for a graceful end."),
    Parameter("orphanDependents", "boolean", "Replaced by propagationPolicy."),
    Parameter("propagationPolicy", "string", "Handling of dependents: Orphan, Background or Foreground."),
)


JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"


@dataclass(frozen=True, slots=True)
class Operation:
    """One method on one path. `takes` and `gives` name the kind of schema, see `openapi_document`."""

    method: str
    action: str
    identifier: str
    takes: str = ""
    gives: str = "kind"
    consumes: tuple[str, ...] = ("application/json", "application/yaml")
    parameters: tuple[Parameter, ...] = ()


@dataclass(frozen=True, slots=True)
class PathItem:
    """One path with its parameters and operations."""

    path: str
    entry: Entry
    subresource: Subresource | None = None
    parameters: tuple[Parameter, ...] = ()
    operations: tuple[Operation, ...] = field(default=())


def path_items(entry: Entry) -> Iterator[PathItem]:
    """All paths of one entry."""
    base = f"/{prefix(entry.group, entry.version)}"
    scope: tuple[Parameter, ...] = ()
    collection = f"{base}/{entry.plural}"
    if entry.namespaced:
        yield PathItem(collection, entry, parameters=(PRETTY,), operations=tuple(_across(entry)))
        scope, collection = (NAMESPACE,), f"{base}/namespaces/{{namespace}}/{entry.plural}"
    yield PathItem(collection, entry, parameters=(*scope, PRETTY), operations=tuple(_collection(entry)))
    if "get" not in entry.verbs:
        return
    item = f"{collection}/{{name}}"
    parameters = (NAME, *scope, PRETTY)
    yield PathItem(item, entry, parameters=parameters, operations=tuple(_item(entry, entry.verbs, "")))
    for sub in entry.subresources:
        operations = tuple(_item(entry, sub.verbs, sub.name))
        yield PathItem(f"{item}/{sub.name}", entry, sub, parameters=parameters, operations=operations)


def _across(entry: Entry) -> Iterator[Operation]:
    if "list" in entry.verbs:
        identifier = _identifier("list", entry, entry.kind, suffix="ForAllNamespaces")
        yield Operation("get", "list", identifier, gives="list", parameters=LIST)


def _collection(entry: Entry) -> Iterator[Operation]:
    if "list" in entry.verbs:
        yield Operation("get", "list", _scoped("list", entry), gives="list", parameters=LIST)
    if "create" in entry.verbs:
        yield Operation("post", "post", _scoped("create", entry), takes="kind", parameters=WRITE)
    if "deletecollection" in entry.verbs:
        identifier = _scoped("deleteCollection", entry)
        parameters = (*LIST[1:7], *DELETE)
        yield Operation("delete", "deletecollection", identifier, takes="delete", gives="status", parameters=parameters)


def _item(entry: Entry, verbs: tuple[str, ...], sub: str) -> Iterator[Operation]:
    suffix = sub.capitalize()
    if "get" in verbs:
        yield Operation("get", "get", _scoped("read", entry, suffix))
    if "update" in verbs:
        yield Operation("put", "put", _scoped("replace", entry, suffix), takes="kind", parameters=WRITE)
    if "patch" in verbs:
        patches = (JSON_PATCH, MERGE_PATCH, *(() if entry.custom else (STRATEGIC_PATCH,)), APPLY_PATCH)
        identifier = _scoped("patch", entry, suffix)
        yield Operation("patch", "patch", identifier, takes="patch", consumes=patches, parameters=PATCH)
    if "delete" in verbs:
        identifier = _scoped("delete", entry, suffix)
        yield Operation("delete", "delete", identifier, takes="delete", gives="status", parameters=DELETE)


def _scoped(verb: str, entry: Entry, suffix: str = "") -> str:
    return _identifier(verb, entry, f"Namespaced{entry.kind}" if entry.namespaced else entry.kind, suffix=suffix)


def _identifier(verb: str, entry: Entry, noun: str, *, suffix: str) -> str:
    group = "".join(part.capitalize() for part in entry.group.split(".")) or "Core"
    return f"{verb}{group}{entry.version.capitalize()}{noun}{suffix}"
