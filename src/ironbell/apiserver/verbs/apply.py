"""Server-side apply: a manager says what it wants, and owns that.

Source: kubernetes-sigs/structured-merge-diff: merge/update.go, merge/conflict.go;
kubernetes/apimachinery: pkg/util/managedfields/internal (messages).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec

from ironbell.api.client import BadRequest, Conflict
from ironbell.apiserver import status
from ironbell.apiserver.context import Context, Request
from ironbell.apiserver.managedfields.fieldset import Path, Paths, leaves, show
from ironbell.apiserver.managedfields.managers import APPLY, UPDATE, Manager, read_managers, write_managers
from ironbell.apiserver.managedfields.ownership import BEFORE_FIRST_APPLY
from ironbell.apiserver.patches.apply import merge_applied, remove_paths
from ironbell.apiserver.schema.objectmeta import with_metadata
from ironbell.apiserver.verbs.bodies import check_address
from ironbell.apiserver.verbs.create import create_value
from ironbell.apiserver.verbs.update import Object, update
from ironbell.base.clock import rfc3339

_MISSING = object()
_IDENTITY = ("name", "namespace", "uid", "resourceVersion")


async def apply(context: Context, request: Request, config: Object) -> bytes:
    """Apply a configuration; makes the object if there is none."""
    if not request.options.field_manager:
        raise BadRequest(
            "PatchOptions.meta.k8s.io is invalid: fieldManager: Required value: is required for apply patch"
        )
    check_address(request, config)
    if config["metadata"].get("managedFields"):
        raise BadRequest("metadata.managedFields must be nil")
    _check_declared(request, config)
    config = _part(request, config)
    encoded = msgspec.json.encode(config)
    time = rfc3339(context.clock.now())

    def change(old: Object, scratch: Object) -> Object:
        try:
            return _applied(request, old, scratch, config=msgspec.json.decode(encoded), time=time)
        except KeyError as error:
            raise BadRequest(f"an item of a list lacks its key {error}: every item needs it") from error

    if context.store.latest(request.info.store_key, request.key) is None:
        if request.subresource:
            raise status.not_found(request.info, request.name)
        return await create_value(context, request, _first(request, config, time=time))
    return await update(context, request, change)


def _part(request: Request, config: Object) -> Object:
    """What the subresource takes of a configuration: only that is applied and owned."""
    if request.subresource == "status":
        meta = {name: value for name, value in config["metadata"].items() if name in _IDENTITY}
        part: Object = {name: config[name] for name in ("apiVersion", "kind", "status") if name in config}
        return {**part, "metadata": meta}
    if request.info.has_status:
        config.pop("status", None)
    return config


def _check_declared(request: Request, config: Object) -> None:
    unknown = request.info.compiled.prune(config)
    if unknown:
        listed = ", ".join(f".{path}: field not declared in schema" for path in unknown)
        info = request.info
        raise BadRequest(
            f"failed to create typed patch object ({request.namespace}/{request.name}; {info.api_version}, "
            f"Kind={info.kind}): {listed}"
        )


def _mine(request: Request, config: Object, *, time: str) -> tuple[Manager, dict[Path, Any]]:
    wanted = leaves(config, with_metadata(request.info.schema))
    name, info = request.options.field_manager, request.info
    paths = frozenset(wanted)
    return Manager(name, APPLY, paths, info.api_version, request.subresource, time), wanted


def _first(request: Request, config: Object, *, time: str) -> Object:
    try:
        manager, _ = _mine(request, config, time=time)
    except KeyError as error:
        raise BadRequest(f"an item of a list lacks its key {error}: every item needs it") from error
    value = {**config, "metadata": dict(config["metadata"])}
    write_managers(value["metadata"], [manager])
    return value


def _applied(request: Request, old: Object, scratch: Object, *, config: Object, time: str) -> Object:
    schema = with_metadata(request.info.schema)
    mine, wanted = _mine(request, config, time=time)
    was = leaves(old, schema)
    managers = read_managers(old["metadata"])
    if not managers:
        managers = [Manager(BEFORE_FIRST_APPLY, UPDATE, frozenset(was), request.info.api_version, "", time)]
    previous = next((manager for manager in managers if manager.identity == mine.identity), None)
    others = [manager for manager in managers if manager.identity != mine.identity]
    changed = frozenset(path for path, value in wanted.items() if was.get(path, _MISSING) != value)
    others = _yield_fields(request, others, changed)
    given_up = (previous.paths if previous is not None else frozenset()) - mine.paths
    orphaned = frozenset(path for path in given_up if not any(path in other.paths for other in others))
    merged: Object = merge_applied(remove_paths(scratch, orphaned, schema), config, schema)
    merged["metadata"] = dict(merged["metadata"])
    if previous is not None and previous.paths == mine.paths and not changed and not orphaned:
        mine = replace(mine, time=previous.time)
    write_managers(merged["metadata"], [*others, mine])
    return merged


def _yield_fields(request: Request, others: list[Manager], changed: Paths) -> list[Manager]:
    """Take changed fields from their owners, who must agree or be forced.

    Raises:
        Conflict: somebody else owns what would change.
    """
    taken = [(manager, manager.paths & changed) for manager in others]
    conflicts = [(manager, paths) for manager, paths in taken if paths]
    if conflicts and not request.options.force:
        raise _conflict(conflicts)
    return [replace(manager, paths=manager.paths - paths) for manager, paths in taken]


def _conflict(conflicts: list[tuple[Manager, Paths]]) -> Conflict:
    causes = []
    for manager, paths in conflicts:
        by = f'"{manager.name}"'
        if manager.subresource:
            by += f' with subresource "{manager.subresource}"'
        by += f" using {manager.api_version}"
        if manager.operation == UPDATE and manager.time:
            by += f" at {manager.time}"
        causes += [
            {"reason": "FieldManagerConflict", "message": f"conflict with {by}", "field": show(path)}
            for path in sorted(paths)
        ]
    count = f"{len(causes)} conflict{'' if len(causes) == 1 else 's'}"
    listed = "\n".join(f"- {cause['message']}: {cause['field']}" for cause in causes)
    single = f": {causes[0]['message']}: {causes[0]['field']}"
    text = f"Apply failed with {count}" + (single if len(causes) == 1 else f":\n{listed}")
    return Conflict(text, details={"causes": causes})
