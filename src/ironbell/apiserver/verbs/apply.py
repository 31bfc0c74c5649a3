"""Server-side apply: a manager sends the fields that it desires, and owns them.

Source: kubernetes/apiserver: pkg/endpoints/handlers/patch.go (applyPatcher); kubernetes/apimachinery:
pkg/util/managedfields/internal (conflict.go, lastappliedmanager.go, lastappliedupdater.go; messages).
"""

from __future__ import annotations

from itertools import groupby
from typing import Any

import msgspec

from ironbell.api.client import BadRequest, Conflict
from ironbell.apiserver import status
from ironbell.apiserver.context import Context, Request
from ironbell.apiserver.fielderrors import required
from ironbell.apiserver.managedfields.applying import Applied, Contest, apply_configuration, last_applied_fields
from ironbell.apiserver.managedfields.compare import applied_fields, compare
from ironbell.apiserver.managedfields.fieldset import contains, show
from ironbell.apiserver.managedfields.managers import APPLY, UPDATE, Manager, read_managers, write_managers
from ironbell.apiserver.managedfields.ownership import BEFORE_FIRST_APPLY, owned
from ironbell.apiserver.managedfields.schemas import MissingKey
from ironbell.apiserver.managedfields.typed import as_message, typed_faults
from ironbell.apiserver.schema.objectmeta import with_metadata
from ironbell.apiserver.verbs.bodies import check_address, name_of
from ironbell.apiserver.verbs.create import create_value
from ironbell.apiserver.verbs.update import Object, update
from ironbell.apiserver.warnings import warn
from ironbell.base.clock import rfc3339

_IDENTITY = ("name", "namespace", "uid", "resourceVersion")
_KUBECTL = "kubectl"
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


async def apply(context: Context, request: Request, config: Object) -> bytes:
    """Apply a configuration; creates a missing object.

    Raises:
        Invalid: the field manager has no name.
        BadRequest: the configuration is of another kind, version or name, or has `managedFields`.
        Conflict: the configuration would change fields of other managers, and is not forced; or the object with its uid
            was deleted.
    """
    if not request.options.field_manager:
        raise status.invalid_options("PatchOptions", [required("fieldManager", "is required for apply patch")])
    _check_type(request, config)
    is_named = bool(name_of(config))
    _check_values(request, config)
    check_address(request, config)
    _report_duplicates(request)
    config = _subresource_part(request, config)
    encoded = msgspec.json.encode(config)
    time = rfc3339(context.clock.now())

    def change(old: Object, scratch: Object) -> Object:
        return _applied(request, scratch, msgspec.json.decode(encoded), time=time)

    if context.store.latest(request.info.store_key, request.key) is None:
        if request.subresource:
            raise status.not_found(request.info, request.name)
        if not is_named:
            raise status.unnamed(request.name)
        return await create_value(context, request, _new_object(request, config, time=time), applied=True)
    return await update(context, request, change, tracked=True)


def _check_type(request: Request, config: Object) -> None:
    info = request.info
    api_version, kind = config.get("apiVersion") or "", config.get("kind") or ""
    if (api_version, kind) != (info.api_version, info.kind):
        shown = api_version if "/" in str(api_version) else f"/{api_version}"
        raise BadRequest(f"invalid object type: {shown}, Kind={kind}")


def _subresource_part(request: Request, config: Object) -> Object:
    """Return the part of a configuration that the subresource applies and owns."""
    if request.subresource == "status":
        kept = request.info.kept_by_status
        meta = {
            name: value
            for name, value in config["metadata"].items()
            if name in _IDENTITY or (kept is not None and name not in kept)
        }
        part: Object = {name: config[name] for name in ("apiVersion", "kind", "status") if name in config}
        return {**part, "metadata": meta}
    if request.info.has_status:
        config.pop("status", None)
    return config


def _report_duplicates(request: Request) -> None:
    options = request.options
    if not options.set_twice:
        return
    if options.field_validation == "Strict":
        lines = "\n".join(f"  {line}" for line in options.set_twice)
        detail = f"error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:\n{lines}"
        raise BadRequest(detail)
    if options.field_validation == "Warn":
        for line in options.set_twice:
            warn(line)


def _check_values(request: Request, config: Object) -> None:
    """Check the types of all values; a null that is not allowed is removed, as if it were missing."""
    meta = config.get("metadata")
    if isinstance(meta, dict) and meta.get("managedFields") is not None:
        raise BadRequest("metadata.managedFields must be nil")
    faults = typed_faults(config, with_metadata(request.info.schema))
    if faults:
        raise _untyped(request, config, as_message(faults))
    request.info.compiled.prune(config)


def _untyped(request: Request, config: Object, detail: str) -> BadRequest:
    info, meta = request.info, config.get("metadata")
    version = info.api_version if info.group else f"/{info.api_version}"
    named = meta if isinstance(meta, dict) else {}
    place = f"{named.get('namespace') or ''}/{named.get('name') or ''}"
    return BadRequest(f"failed to create typed patch object ({place}; {version}, Kind={info.kind}): {detail}")


def _new_manager(request: Request, config: Object, *, time: str) -> Manager:
    info = request.info
    fields = owned(request, applied_fields(config, with_metadata(info.schema)))
    return Manager(request.options.field_manager, APPLY, fields, info.api_version, request.subresource, time)


def _new_object(request: Request, config: Object, *, time: str) -> Object:
    uid = config["metadata"].get("uid")
    if uid:
        detail = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
        raise status.conflict(request.info, request.name, detail=detail)
    version = config["metadata"].get("resourceVersion")
    if version and not str(version).isdecimal():
        raise BadRequest(f'strconv.ParseUint: parsing "{version}": invalid syntax')
    manager = _new_manager(request, config, time=time)
    meta = {name: value for name, value in config["metadata"].items() if name != "resourceVersion"}
    value = {**config, "metadata": meta}
    write_managers(meta, [manager] if manager.fields else [])
    return value


def _applied(request: Request, live: Object, config: Object, *, time: str) -> Object:
    schema, options = with_metadata(request.info.schema), request.options
    managers = read_managers(live["metadata"].pop("managedFields", None), checked=True)
    try:
        if not managers:
            managers = _initial_managers(request, live, time=time)
        done = apply_configuration(live, config, managers, _new_manager(request, config, time=time), schema=schema)
        contests = [] if options.force else _remaining_conflicts(request, live, done)
    except MissingKey as error:
        detail = f'the present object has an item of a list without its key "{error}": write the whole object'
        raise _untyped(request, config, detail) from error
    if contests:
        raise _conflict(contests)
    merged = {**done.value, "metadata": dict(done.value["metadata"])}
    if options.field_manager == _KUBECTL:
        _keep_last_applied(merged["metadata"], config)
    write_managers(merged["metadata"], done.managers)
    return merged


def _initial_managers(request: Request, live: Object, *, time: str) -> list[Manager]:
    """One owner of all fields of an object without `managedFields`."""
    info = request.info
    comparison = compare({"metadata": {}}, live, with_metadata(info.schema))
    fields = owned(request, comparison.changed)
    return [Manager(BEFORE_FIRST_APPLY, UPDATE, fields, info.api_version, request.subresource, time)] if fields else []


def _remaining_conflicts(request: Request, live: Object, done: Applied) -> list[Contest]:
    """Conflicts that prevent an apply; not those of kubectl about fields of its last client-side apply."""
    if not done.contests or request.options.field_manager != _KUBECTL:
        return done.contests
    try:
        last = msgspec.json.decode(live["metadata"].get("annotations", {}).get(_LAST_APPLIED, ""), type=dict[str, Any])
    except msgspec.MsgspecError:
        return done.contests
    if last.get("apiVersion") != request.info.api_version:
        return done.contests
    allowed = last_applied_fields(last, live, with_metadata(request.info.schema))
    return [contest for contest in done.contests if not contains(allowed, contest.path)]


def _keep_last_applied(meta: Object, config: Object) -> None:
    """Keep the annotation of client-side apply up to date, so that kubectl can return to it."""
    annotations = meta.get("annotations") or {}
    if not annotations.get(_LAST_APPLIED):
        return
    applied_meta = {**config["metadata"]}
    applied_meta["annotations"] = {
        k: v for k, v in (applied_meta.get("annotations") or {}).items() if k != _LAST_APPLIED
    }
    if not applied_meta["annotations"]:
        del applied_meta["annotations"]
    text = msgspec.json.encode({**config, "metadata": applied_meta}, order="sorted").decode() + "\n"
    meta["annotations"] = {**annotations, _LAST_APPLIED: text}


def _conflict(contests: list[Contest]) -> Conflict:
    causes = [
        {
            "reason": "FieldManagerConflict",
            "message": f"conflict with {_named(contest.owner)}",
            "field": show(contest.path),
        }
        for contest in contests
    ]
    if len(contests) == 1:
        listed = f"1 conflict: {causes[0]['message']}: {causes[0]['field']}"
    else:
        lines: list[str] = []
        for owner, group in groupby(contests, key=lambda contest: contest.owner):
            lines += [f"conflicts with {_named(owner)}:", *(f"- {show(contest.path)}" for contest in group)]
        listed = f"{len(contests)} conflicts: " + "\n".join(lines)
    return Conflict(f"Apply failed with {listed}", details={"causes": causes})


def _named(owner: Manager) -> str:
    name = f'"{owner.name}"'
    if owner.subresource:
        name += f' with subresource "{owner.subresource}"'
    return f"{name} using {owner.api_version}" if owner.operation == UPDATE else name
