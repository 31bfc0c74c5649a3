"""Keeps the schemas and levels that every server begins with, and sets the condition `Dangling` on schemas.

A missing object is created again. A mandatory one is reset when it is changed; a suggested one only while its
annotation `apf.kubernetes.io/autoupdate-spec` is not "false". An unknown one with the annotation "true" is of an
earlier release, and is deleted.

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

_CREATE_OPTIONS = WriteOptions(field_manager="api-priority-and-fairness-config-producer-v1")
_STATUS_OPTIONS = WriteOptions(field_manager="api-priority-and-fairness-config-consumer-v1", force=True)
_EXPECTED = {LEVELS: suggested.LEVELS, SCHEMAS: suggested.SCHEMAS}
_TRUE, _FALSE = ("1", "t", "T", "true", "TRUE", "True"), ("0", "f", "F", "false", "FALSE", "False")


class Keeper:
    """Maintains the schemas and levels of one server."""

    def __init__(self, context: Context, flow_control: FlowControl) -> None:
        self._context, self._flow_control = context, flow_control
        self.work: Worklist[Item] = Worklist("flow control", self._handle, width=4)

    async def create(self) -> None:
        """Create the missing objects; all writes of a kind go together. A write that fails is tried again later."""
        for resource in (LEVELS, SCHEMAS):
            names = {entry.name for entry in self._context.store.objects(resource).entries()}
            items = [(resource, name) for name in sorted(names | _EXPECTED[resource].keys())]
            await asyncio.gather(*(self._try(item, self._keep(*item)) for item in items))
        updates = ((schema.metadata.name, self._report_level(schema)) for schema in self._flow_control.schemas)
        await asyncio.gather(*(self._try((SCHEMAS, name), update) for name, update in updates))

    async def _try(self, item: Item, work: Awaitable[None]) -> None:
        try:
            await work
        except (ApiError, StorageError):
            self.work.add(item)

    def start(self) -> None:
        """Follow changes."""
        self._context.store.listen(self._follow)

    def _follow(self, change: Change) -> None:
        resource, name = change.entry.resource, change.entry.name
        if resource not in _EXPECTED:
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
            await self._report_level(schema)

    async def _keep(self, resource: str, name: str) -> None:
        """Create, reset or delete an object, if it is one of those that are kept."""
        info = self._context.resources.stored(resource)
        entry, expected = self._context.store.latest(resource, ("", name)), _EXPECTED[resource].get(name)
        if info is None:
            return
        request = Request(SYSTEM, info, "", name, "", _CREATE_OPTIONS)
        # another writer may write it at this moment; the change is followed
        with contextlib.suppress(AlreadyExists, NotFound, Conflict):
            if expected is None:
                if entry is not None and not entry.deleting and _autoupdate(entry.decode()) is True:
                    await self._drop(request, entry)
            elif entry is None:
                await create_value(self._context, request, {**expected, "metadata": _copied(expected["metadata"])})
            elif revised(entry.decode(), expected) is not None:
                await update(self._context, request, lambda old, scratch: revised(scratch, expected) or scratch)

    async def _drop(self, request: Request, entry: Entry) -> None:
        only_this = Preconditions(uid=entry.uid, resource_version=str(entry.version))
        await delete(self._context, request, preconditions=only_this, propagation=Propagation.BACKGROUND)

    async def _report_level(self, schema: FlowSchema) -> None:
        """Write the condition that reports whether a schema's level exists, unless it is set already."""
        info = self._context.resources.stored(SCHEMAS)
        condition = _condition(schema.level, exists=self._flow_control.level(schema.level) is not None)
        previous = next((known for known in schema.status.conditions or () if known.type == DANGLING), None)
        if info is None or (
            previous is not None and all(getattr(previous, key) == text for key, text in condition.items())
        ):
            return
        condition = {**condition, "lastTransitionTime": rfc3339(self._context.clock.now())}
        name = schema.metadata.name
        config = {
            "apiVersion": f"{GROUP}/v1", "kind": "FlowSchema", "metadata": {"name": name},
            "status": {"conditions": [condition]},
        }  # fmt: skip
        with contextlib.suppress(NotFound, Conflict):
            await apply(self._context, Request(SYSTEM, info, "", name, "status", _STATUS_OPTIONS), config)


def revised(existing: Object, expected: Object) -> Object | None:
    """The object to write in place of `existing`; None if nothing has to change."""
    meta = existing["metadata"]
    autoupdate, name = _autoupdate(existing), meta["name"]
    updates = suggested.is_mandatory(name) or (autoupdate if autoupdate is not None else meta.get("generation") == 1)
    spec = _expected_spec(existing, expected)
    changes = updates and existing.get("spec") != spec
    if autoupdate is updates and not changes:
        return None
    annotations = {**(meta.get("annotations") or {}), **({} if autoupdate is updates else {AUTOUPDATE: _word(updates)})}
    return {
        **existing, "metadata": {**meta, "annotations": annotations}, "spec": spec if changes else existing.get("spec"),
    }  # fmt: skip


def _expected_spec(existing: Object, expected: Object) -> Object:
    """The expected spec; the seats that the exempt level takes and lends are the administrator's choice."""
    spec: Object = expected["spec"]
    given = (existing.get("spec") or {}).get("exempt")
    if (
        expected["kind"] == "PriorityLevelConfiguration"
        and expected["metadata"]["name"] == EXEMPT
        and given is not None
    ):
        return {**spec, "exempt": given}
    return spec


def _condition(level: str, *, exists: bool) -> dict[str, str]:
    reference = f'This FlowSchema references the PriorityLevelConfiguration object named "{level}"'
    if exists:
        return {"type": DANGLING, "status": "False", "reason": "Found", "message": f"{reference} and it exists"}
    detail = f"{reference} but there is no such object"
    return {"type": DANGLING, "status": "True", "reason": "NotFound", "message": detail}


def _autoupdate(value: Object) -> bool | None:
    """The value of the annotation; None without one, or if it is not a boolean."""
    annotation = (value["metadata"].get("annotations") or {}).get(AUTOUPDATE)
    return True if annotation in _TRUE else False if annotation in _FALSE else None


def _word(value: bool) -> str:
    return "true" if value else "false"


def _copied(meta: Object) -> Object:
    return {**meta, "annotations": dict(meta["annotations"])}
