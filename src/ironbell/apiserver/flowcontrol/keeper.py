"""Keeps the schemas and levels that every server begins with, and tells of each schema whether its level exists.

What is missing is made again. A mandatory one is put back as it was; a suggested one as long as its annotation
`apf.kubernetes.io/autoupdate-spec` does not say "false". One that says "true" and is not known here was an earlier
release's, and is deleted.

Source: kubernetes/kubernetes: pkg/registry/flowcontrol/ensurer/strategy.go;
kubernetes/apiserver: pkg/util/flowcontrol/apf_controller.go (presyncFlowSchemaStatus).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable
from typing import Any

from ironbell.api.client import AlreadyExists, ApiError, Conflict, NotFound, Preconditions, Propagation, WriteOptions
from ironbell.apiserver.access.identity import SYSTEM
from ironbell.apiserver.context import Context, Request
from ironbell.apiserver.flowcontrol import suggested
from ironbell.apiserver.flowcontrol.plan import FlowControl
from ironbell.apiserver.flowcontrol.spec import AUTOUPDATE, DANGLING, EXEMPT, GROUP, LEVELS, SCHEMAS, FlowSchema
from ironbell.apiserver.lifecycle.worklist import Worklist
from ironbell.apiserver.store.entry import Change, Entry
from ironbell.apiserver.store.log import StorageError
from ironbell.apiserver.verbs.apply import apply
from ironbell.apiserver.verbs.create import create_value
from ironbell.apiserver.verbs.delete import delete
from ironbell.apiserver.verbs.update import update
from ironbell.base.clock import rfc3339

Object = dict[str, Any]
Item = tuple[str, str]
"""A resource, and the name of an object."""

_MAKES = WriteOptions(field_manager="api-priority-and-fairness-config-producer-v1")
_TELLS = WriteOptions(field_manager="api-priority-and-fairness-config-consumer-v1", force=True)
_WANTED = {LEVELS: suggested.LEVELS, SCHEMAS: suggested.SCHEMAS}
_TRUE, _FALSE = ("1", "t", "T", "true", "TRUE", "True"), ("0", "f", "F", "false", "FALSE", "False")


class Keeper:
    """Looks after the schemas and levels of one server."""

    def __init__(self, context: Context, flow_control: FlowControl) -> None:
        self._context, self._flow_control = context, flow_control
        self.work: Worklist[Item] = Worklist("flow control", self._handle, width=4)

    async def make(self) -> None:
        """Make what is missing; all writes of a sort go together. What cannot be written now is tried again later."""
        for resource in (LEVELS, SCHEMAS):
            names = {entry.name for entry in self._context.store.objects(resource).entries()}
            items = [(resource, name) for name in sorted(names | _WANTED[resource].keys())]
            await asyncio.gather(*(self._try(item, self._keep(*item)) for item in items))
        told = ((schema.metadata.name, self._tell(schema)) for schema in self._flow_control.schemas)
        await asyncio.gather(*(self._try((SCHEMAS, name), telling) for name, telling in told))

    async def _try(self, item: Item, work: Awaitable[None]) -> None:
        try:
            await work
        except (ApiError, StorageError):
            self.work.add(item)

    def start(self) -> None:
        """Follow changes."""
        self._context.store.listen(self._note)

    def _note(self, change: Change) -> None:
        resource, name = change.entry.resource, change.entry.name
        if resource not in _WANTED:
            return
        self.work.add((resource, name))
        if resource == LEVELS and (change.deleted or change.previous is None):
            for schema in self._flow_control.schemas:
                if schema.level == name:
                    self.work.add((SCHEMAS, schema.metadata.name))

    async def _handle(self, item: Item) -> None:
        resource, name = item
        await self._keep(resource, name)
        schema = self._flow_control.schema(name) if resource == SCHEMAS else None
        if schema is not None:
            await self._tell(schema)

    async def _keep(self, resource: str, name: str) -> None:
        """Make an object, put it back, or delete it, if it is one of those that are kept."""
        info = self._context.resources.stored(resource)
        entry, wanted = self._context.store.latest(resource, ("", name)), _WANTED[resource].get(name)
        if info is None:
            return
        request = Request(SYSTEM, info, "", name, "", _MAKES)
        # somebody else may write it at this moment, and is followed
        with contextlib.suppress(AlreadyExists, NotFound, Conflict):
            if wanted is None:
                if entry is not None and not entry.deleting and _autoupdate(entry.decode()) is True:
                    await self._drop(request, entry)
            elif entry is None:
                await create_value(self._context, request, {**wanted, "metadata": _copied(wanted["metadata"])})
            elif revised(entry.decode(), wanted) is not None:
                await update(self._context, request, lambda old, scratch: revised(scratch, wanted) or scratch)

    async def _drop(self, request: Request, entry: Entry) -> None:
        only_this = Preconditions(uid=entry.uid, resource_version=str(entry.version))
        await delete(self._context, request, preconditions=only_this, propagation=Propagation.BACKGROUND)

    async def _tell(self, schema: FlowSchema) -> None:
        """Write the condition that says whether a schema's level exists, unless it is there."""
        info = self._context.resources.stored(SCHEMAS)
        wanted = _condition(schema.level, found=self._flow_control.level(schema.level) is not None)
        told = next((one for one in schema.status.conditions or () if one.type == DANGLING), None)
        if info is None or (told is not None and all(getattr(told, key) == text for key, text in wanted.items())):
            return
        condition = {**wanted, "lastTransitionTime": rfc3339(self._context.clock.now())}
        name = schema.metadata.name
        config = {
            "apiVersion": f"{GROUP}/v1", "kind": "FlowSchema", "metadata": {"name": name},
            "status": {"conditions": [condition]},
        }  # fmt: skip
        with contextlib.suppress(NotFound, Conflict):
            await apply(self._context, Request(SYSTEM, info, "", name, "status", _TELLS), config)


def revised(existing: Object, wanted: Object) -> Object | None:
    """The object to write in place of `existing`; None if that will do."""
    meta = existing["metadata"]
    said, name = _autoupdate(existing), meta["name"]
    updates = suggested.is_mandatory(name) or (said if said is not None else meta.get("generation") == 1)
    spec = _expected_spec(existing, wanted)
    changes = updates and existing.get("spec") != spec
    if said is updates and not changes:
        return None
    annotations = {**(meta.get("annotations") or {}), **({} if said is updates else {AUTOUPDATE: _word(updates)})}
    return {
        **existing, "metadata": {**meta, "annotations": annotations}, "spec": spec if changes else existing.get("spec"),
    }  # fmt: skip


def _expected_spec(existing: Object, wanted: Object) -> Object:
    """Of the exempt level, what it takes and lends is the administrator's."""
    spec: Object = wanted["spec"]
    given = (existing.get("spec") or {}).get("exempt")
    if wanted["kind"] == "PriorityLevelConfiguration" and wanted["metadata"]["name"] == EXEMPT and given is not None:
        return {**spec, "exempt": given}
    return spec


def _condition(level: str, *, found: bool) -> dict[str, str]:
    what = f'This FlowSchema references the PriorityLevelConfiguration object named "{level}"'
    if found:
        return {"type": DANGLING, "status": "False", "reason": "Found", "message": f"{what} and it exists"}
    why = f"{what} but there is no such object"
    return {"type": DANGLING, "status": "True", "reason": "NotFound", "message": why}


def _autoupdate(value: Object) -> bool | None:
    """What the annotation says; None without one, or if it is no boolean."""
    said = (value["metadata"].get("annotations") or {}).get(AUTOUPDATE)
    return True if said in _TRUE else False if said in _FALSE else None


def _word(value: bool) -> str:
    return "true" if value else "false"


def _copied(meta: Object) -> Object:
    return {**meta, "annotations": dict(meta["annotations"])}
