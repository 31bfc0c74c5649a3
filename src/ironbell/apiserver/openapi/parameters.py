"""Query and path parameters of the API's operations, once for both OpenAPI versions.

kubectl looks here whether the server checks unknown fields (`fieldValidation`) and knows `dryRun`.

Source: kubernetes/apimachinery: pkg/apis/meta/v1/types.go (ListOptions, CreateOptions, PatchOptions, DeleteOptions).
"""

from __future__ import annotations

from dataclasses import dataclass


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
