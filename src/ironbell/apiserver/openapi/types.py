"""OpenAPI schemas of the types that every resource uses: metadata, lists, status, delete options.

References are written as `REF` plus the type's name; the document that takes them in replaces the mark with its own
place for schemas. List and map types carry Kubernetes' extensions, because kubectl computes patches from them.

Source: kubernetes/apimachinery: pkg/apis/meta/v1/types.go.
"""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]

REF = "$ref"
META = "io.k8s.apimachinery.pkg.apis.meta.v1"
OBJECT_META = f"{META}.ObjectMeta"
LIST_META = f"{META}.ListMeta"
STATUS = f"{META}.Status"
DELETE_OPTIONS = f"{META}.DeleteOptions"
PATCH = f"{META}.Patch"
WATCH_EVENT = f"{META}.WatchEvent"
TIME = f"{META}.Time"

API_VERSION_TEXT = "APIVersion defines the schema version that this object is written in, with its API group."
KIND_TEXT = "Type of this object, in CamelCase; it cannot be changed."


def ref(name: str, description: str = "") -> Schema:
    """A use of a shared type."""
    return {REF: name} | ({"description": description} if description else {})


def _string(description: str, **more: Any) -> Schema:
    return {"type": "string", "description": description, **more}


def _integer(description: str) -> Schema:
    return {"type": "integer", "format": "int64", "description": description}


def _boolean(description: str) -> Schema:
    return {"type": "boolean", "description": description}


def _strings(description: str) -> Schema:
    return {"type": "object", "additionalProperties": {"type": "string"}, "description": description}


def _list(items: Schema, description: str, **more: Any) -> Schema:
    return {"type": "array", "items": items, "description": description, **more}


def _object(description: str, properties: dict[str, Schema], **more: Any) -> Schema:
    return {"type": "object", "description": description, "properties": properties, **more}


def type_meta() -> dict[str, Schema]:
    """`apiVersion` and `kind`."""
    return {"apiVersion": _string(API_VERSION_TEXT), "kind": _string(KIND_TEXT)}


_METADATA = {
    "annotations": _strings("Unstructured values that tools keep with the object; they cannot be selected by."),
    "creationTimestamp": ref(TIME, "CreationTimestamp is a timestamp of when the server stored the object first."),
    "deletionGracePeriodSeconds": _integer("Seconds that were granted for a graceful end."),
    "deletionTimestamp": ref(TIME, "Time of the deletion request; the object is removed when it has no finalizers."),
    "finalizers": _list(
        {"type": "string"},
        "Identifiers that must be removed before the object is removed.",
        **{"x-kubernetes-list-type": "set", "x-kubernetes-patch-strategy": "merge"},
    ),
    "generateName": _string("Beginning of a name that the server completes when name is empty."),
    "generation": _integer("Counts the changes of the desired state."),
    "labels": _strings("Values to organise and select objects by."),
    "managedFields": _list(
        ref(f"{META}.ManagedFieldsEntry"),
        "Fields of the object by the manager that owns them.",
        **{"x-kubernetes-list-type": "atomic"},
    ),
    "name": _string("Name of the object, unique among its kind in its namespace; it cannot be changed."),
    "namespace": _string("Namespace that the object is in; it cannot be changed."),
    "ownerReferences": _list(
        ref(f"{META}.OwnerReference"),
        "Objects that this one depends on; it is deleted when none of them exists.",
        **{
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["uid"],
            "x-kubernetes-patch-merge-key": "uid",
            "x-kubernetes-patch-strategy": "merge",
        },
    ),
    "resourceVersion": _string("Opaque version of the object; a write that carries it fails if it is not current."),
    "selfLink": _string("Not used any more."),
    "uid": _string("Unique in space and time; set by the server."),
}
_OWNER_REFERENCE = {
    "apiVersion": _string("API version of the owner."),
    "blockOwnerDeletion": _boolean("Whether foreground deletion of the owner waits for this object."),
    "controller": _boolean("Whether the owner is the one that manages this object."),
    "kind": _string("Kind of the owner."),
    "name": _string("Name of the owner."),
    "uid": _string("UID of the owner."),
}
_MANAGED_FIELDS = {
    "apiVersion": _string("Version in which the fields are named."),
    "fieldsType": _string("Format of the fields; FieldsV1."),
    "fieldsV1": ref(f"{META}.FieldsV1", "The fields."),
    "manager": _string("Manager that made the change."),
    "operation": _string("Apply or Update."),
    "subresource": _string("Subresource that the change went through, if any."),
    "time": ref(TIME, "When the fields last changed hands."),
}
_LIST_META = {
    "continue": _string("Token to ask for the next page with; empty on the last one."),
    "remainingItemCount": _integer("How many objects the following pages hold."),
    "resourceVersion": _string("Version of the list, from which a watch can start."),
    "selfLink": _string("Not used any more."),
}
_DELETE_OPTIONS = {
    **type_meta(),
    "dryRun": _list({"type": "string"}, "All: do everything except storing.", **{"x-kubernetes-list-type": "atomic"}),
    "gracePeriodSeconds": _integer("Seconds to grant for a graceful end."),
    "orphanDependents": _boolean("Replaced by propagationPolicy."),
    "preconditions": ref(f"{META}.Preconditions", "Conditions that must hold for the deletion to be carried out."),
    "propagationPolicy": _string("Handling of dependents: Orphan, Background or Foreground."),
}
_CAUSE = {
    "field": _string("Path of the field at fault."),
    "message": _string("The fault in words."),
    "reason": _string("The fault in one word."),
}
_DETAILS = {
    "causes": _list(ref(f"{META}.StatusCause"), "Each single fault.", **{"x-kubernetes-list-type": "atomic"}),
    "group": _string("API group of the resource."),
    "kind": _string("Resource that the answer is about."),
    "name": _string("Name of the object that the answer is about."),
    "retryAfterSeconds": {"type": "integer", "format": "int32", "description": "Seconds to wait before trying again."},
    "uid": _string("UID of the object that the answer is about."),
}
_STATUS = {
    **type_meta(),
    "code": {"type": "integer", "format": "int32", "description": "HTTP status code."},
    "details": ref(f"{META}.StatusDetails", "Details of the reason."),
    "message": _string("The outcome in words."),
    "metadata": ref(LIST_META, "Metadata of the answer."),
    "reason": _string("The outcome in one word."),
    "status": _string("Success or Failure."),
}


def _gvk(kind: str) -> dict[str, Any]:
    return {"x-kubernetes-group-version-kind": [{"group": "", "kind": kind, "version": "v1"}]}


def shared_types() -> dict[str, Schema]:
    """All shared types by name, with marked references."""
    owner_required = ["apiVersion", "kind", "name", "uid"]
    return {
        OBJECT_META: _object("Metadata that every stored object has.", _METADATA),
        LIST_META: _object("Metadata of lists and other objects that are not stored.", _LIST_META),
        TIME: {"type": "string", "format": "date-time", "description": "A time in RFC 3339, whole seconds."},
        f"{META}.OwnerReference": _object("Points to an owner.", _OWNER_REFERENCE, required=owner_required),
        f"{META}.ManagedFieldsEntry": _object("The fields of one manager.", _MANAGED_FIELDS),
        f"{META}.FieldsV1": {"type": "object", "description": "A set of fields as a tree."},
        f"{META}.Preconditions": _object(
            "Conditions on the current object.",
            {"resourceVersion": _string("Its version."), "uid": _string("Its UID.")},
        ),
        DELETE_OPTIONS: _object("Options of a deletion.", _DELETE_OPTIONS, **_gvk("DeleteOptions")),
        f"{META}.StatusCause": _object("One fault.", _CAUSE),
        f"{META}.StatusDetails": _object("Object and causes that a Status is about.", _DETAILS),
        STATUS: _object("A response that is not an object.", _STATUS, **_gvk("Status")),
        PATCH: {"type": "object", "description": "A patch in the format that the content type says."},
        WATCH_EVENT: _object(
            "One change in a watch.",
            {
                "object": {"type": "object", "description": "The object, a bookmark or a Status."},
                "type": _string("ADDED, MODIFIED, DELETED, BOOKMARK or ERROR."),
            },
            required=["type", "object"],
            **_gvk("WatchEvent"),
        ),
    }
