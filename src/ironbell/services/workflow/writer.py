"""Read and write Workflows through the API: always from a fresh copy, with its version as the condition.

Somebody else may write at the same time (the controllers, another replica, a person): then the write is refused, the
object is read again, and the decision is made anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from ironbell.api.client import Api, ApiError, Conflict, NotFound, PatchType, Unavailable, WriteOptions
from ironbell.api.tinkerbell.hardware import HARDWARE, Hardware
from ironbell.api.tinkerbell.workflow import WORKFLOW, Workflow
from ironbell.services.workflow.changes import Change, annotations_patch, status_patch
from ironbell.services.workflow.index import WorkflowTable

FIELD_MANAGER = "ironbell-workflow-service"

_CALL_S = 10.0
_TRIES = 10
_OPTIONS = WriteOptions(field_manager=FIELD_MANAGER)

D = TypeVar("D")


@dataclass(frozen=True)
class WorkflowWriter:
    """Changes to Workflows and Hardware."""

    api: Api
    index: WorkflowTable

    async def read(self, namespace: str, name: str) -> tuple[Workflow, dict[str, Any]] | None:
        """The Workflow as stored now, decoded and raw; None when it is gone.

        Raises:
            ApiError: the API cannot be asked.
        """
        try:
            async with asyncio.timeout(_CALL_S):
                body = await self.api.get(WORKFLOW.collection, namespace, name)
        except NotFound:
            self.index.remove(namespace, name)
            return None
        except TimeoutError as error:
            raise Unavailable("the API server did not answer in time") from error
        return self._known(body), msgspec.json.decode(body)

    async def decide(
        self,
        namespace: str,
        name: str,
        *,
        decision: Callable[[Workflow | None], D],
        change: Callable[[D], Change | None],
    ) -> D:
        """Decide over the stored Workflow and store what the decision changes, annotations first.

        A decision is made again whenever the object turns out to have another version than the one decided on, so
        that what is returned is what was stored.

        Raises:
            ApiError: the API cannot be asked, or somebody else was faster every time (a Conflict).
        """
        for _ in range(_TRIES):
            found = await self.read(namespace, name)
            workflow, raw = found or (None, {})
            decided = decision(workflow)
            wanted = change(decided)
            if wanted is None or workflow is None:
                return decided
            try:
                await self._store(workflow, raw, wanted)
            except Conflict:
                continue
            return decided
        raise Conflict(f"Workflow {namespace}/{name} is being changed by others all the time")

    async def _store(self, workflow: Workflow, raw: dict[str, Any], change: Change) -> None:
        where = workflow.key
        if (patch := annotations_patch(raw, change)) is not None:
            raw = msgspec.json.decode(await self._patch(where, patch))
        if (patch := status_patch(raw, change)) is not None:
            await self._patch(where, patch, subresource="status")

    async def annotate(self, namespace: str, name: str, annotations: dict[str, str | None]) -> None:
        """Set annotations whatever the version is.

        Raises:
            ApiError: it could not be done.
        """
        await self._patch((namespace, name), msgspec.json.encode({"metadata": {"annotations": annotations}}))

    async def _patch(self, where: tuple[str, str], patch: bytes, *, subresource: str = "") -> bytes:
        try:
            async with asyncio.timeout(_CALL_S):
                body = await self.api.patch(
                    WORKFLOW.collection,
                    *where,
                    patch,
                    patch_type=PatchType.MERGE,
                    subresource=subresource,
                    options=_OPTIONS,
                )
        except TimeoutError as error:
            raise Unavailable("the API server did not answer in time") from error
        self._known(body)
        return body

    def _known(self, body: bytes) -> Workflow:
        try:
            workflow = WORKFLOW.decode(body)
        except msgspec.ValidationError as error:
            raise ApiError(f"the stored Workflow cannot be read: {error}") from error
        self.index.upsert(workflow)
        return workflow

    async def hardware(self, namespace: str, name: str) -> Hardware | None:
        """The Hardware of a Workflow; None when there is none of that name.

        Raises:
            ApiError: the API cannot be asked.
        """
        try:
            async with asyncio.timeout(_CALL_S):
                return HARDWARE.decode(await self.api.get(HARDWARE.collection, namespace, name))
        except NotFound:
            return None
        except TimeoutError as error:
            raise Unavailable("the API server did not answer in time") from error
        except msgspec.ValidationError as error:
            raise ApiError(f"the stored Hardware cannot be read: {error}") from error

    async def annotate_hardware(self, namespace: str, name: str, annotations: dict[str, str]) -> None:
        """Set annotations of a Hardware.

        Raises:
            ApiError: it could not be done.
        """
        patch = msgspec.json.encode({"metadata": {"annotations": annotations}})
        try:
            async with asyncio.timeout(_CALL_S):
                await self.api.patch(
                    HARDWARE.collection, namespace, name, patch, patch_type=PatchType.MERGE, options=_OPTIONS
                )
        except TimeoutError as error:
            raise Unavailable("the API server did not answer in time") from error
