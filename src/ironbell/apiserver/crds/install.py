"""Serving the stored definitions, and storing the definitions that a program brings."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
import structlog

from ironbell.api.client import WriteOptions
from ironbell.apiserver.access.identity import SYSTEM
from ironbell.apiserver.context import Context, Request
from ironbell.apiserver.crds.served import is_established, served_resources
from ironbell.apiserver.resources import ResourceInfo
from ironbell.apiserver.store.entry import Change, Entry
from ironbell.apiserver.verbs.create import create_value
from ironbell.apiserver.verbs.update import Object, update
from ironbell.base.errors import IronbellError

CRDS = "customresourcedefinitions.apiextensions.k8s.io"
_OPTIONS = WriteOptions(field_manager="ironbell")


class Definitions:
    """Keeps the table of resources in step with the stored definitions."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def start(self) -> None:
        """Serve the stored definitions, and follow changes."""
        for entry in self._context.store.objects(CRDS).entries():
            self._serve(entry)
        self._context.store.listen(self._follow)

    def _follow(self, change: Change) -> None:
        if change.entry.resource != CRDS:
            return
        if change.deleted:
            self._context.resources.drop(change.entry.name)
            self._context.store.history(change.entry.name).close()
            self._context.store.forget_resource(change.entry.name)
        elif change.previous is None or not _is_same_spec(change.previous, change.entry):
            self._serve(change.entry)

    def _serve(self, entry: Entry) -> None:
        crd = entry.decode()
        if not is_established(crd):
            return
        convert = self._context.conversions.get(entry.name)
        try:
            converter = None if convert is not None else self._context.create_converter(crd)
            infos = served_resources(
                crd,
                compile_rule=self._context.compile_rule,
                convert=convert,
                converter=converter,
                changed_at=entry.version,
            )
        except (IronbellError, LookupError, TypeError, ValueError, StopIteration) as error:
            # Only a definition stored by another release can come here: writes are checked.
            structlog.get_logger().error("definition cannot be served", object=entry.name, cause=str(error))
            return
        self._context.resources.set(infos)


def _is_same_spec(previous: Entry, entry: Entry) -> bool:
    old_definition, new_definition = previous.decode(), entry.decode()
    return old_definition.get("spec") == new_definition.get("spec") and is_established(
        old_definition
    ) == is_established(new_definition)


async def install(context: Context, definitions: Iterable[Mapping[str, Any]]) -> None:
    """Create or update definitions, so that they are as given; other tasks run between two of them.

    Raises:
        Invalid: a definition is not valid.
    """
    info = context.resources.stored(CRDS)
    if info is None:
        return
    for definition in definitions:
        await _install_one(context, info, definition)
        await asyncio.sleep(0)


async def _install_one(context: Context, info: ResourceInfo, definition: Mapping[str, Any]) -> None:
    value: Object = msgspec.json.decode(msgspec.json.encode(definition))
    request = Request(SYSTEM, info, "", value["metadata"]["name"], "", _OPTIONS)
    entry = context.store.latest(CRDS, request.key)
    if entry is None:
        await create_value(context, request, value)
        return
    if _has_all(entry.decode(), value):
        return

    def change(old: Object, scratch: Object) -> Object:
        scratch["spec"] = msgspec.json.decode(msgspec.json.encode(value["spec"]))
        labels = value["metadata"].get("labels")
        if labels:
            scratch["metadata"]["labels"] = {**scratch["metadata"].get("labels", {}), **labels}
        return scratch

    await update(context, request, change)


def _has_all(stored: Mapping[str, Any], desired: Mapping[str, Any]) -> bool:
    """Return whether a stored definition has everything that is desired; the server has added the rest."""
    labels = (stored["metadata"].get("labels") or {}).items()
    if not labels >= (desired["metadata"].get("labels") or {}).items():
        return False
    spec = {"conversion": {"strategy": "None"}, **desired["spec"]}
    return bool(stored.get("spec") == spec)
