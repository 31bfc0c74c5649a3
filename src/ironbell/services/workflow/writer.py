"""Reads and writes of Workflows through the API, each write on the condition of the version that was just read.

Other clients write as well (controllers, another replica, a user). On a conflict the object is read again, and the
decision is repeated.
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
from ironbell.services.workflow.index import Key, WorkflowTable

FIELD_MANAGER = "ironbell-workflow-service"

_CALL_S = 10.0
_TRIES = 10
_OPTIONS = WriteOptions(field_manager=FIELD_MANAGER)

D = TypeVar("D")


@dataclass(frozen=True)
class WorkflowWriter:
    """Reads and changes Workflows and Hardware."""

    api: Api
    index: WorkflowTable

    async def read(self, namespace: str, name: str) -> tuple[Workflow, dict[str, Any]] | None:
        """Return the stored Workflow, decoded and raw, or None if it does not exist.

        Raises:
            ApiError: the Workflow cannot be read.
        """
        try:
            async with asyncio.timeout(_CALL_S):
                body = await self.api.get(WORKFLOW.collection, namespace, name)
        except NotFound:
            self.index.remove(namespace, name)
            return None
        except TimeoutError as error:
            raise Unavailable("the API server did not respond in time") from error
        return self._indexed(body), msgspec.json.decode(body)

    async def decide(
        self,
        namespace: str,
        name: str,
        *,
        decide: Callable[[Workflow | None], D],
        change: Callable[[D], Change | None],
    ) -> D:
        """Decide by the stored Workflow, store the decision's change, annotations first, and return the decision.

        After a conflict the Workflow is read and decided again, so that the returned decision is the stored one.

        Raises:
            ApiError: the API cannot be used, or every write conflicted with another client's (a Conflict).
        """
        for _ in range(_TRIES):
            workflow, raw = await self.read(namespace, name) or (None, {})
            decision = decide(workflow)
            desired = change(decision)
            if desired is None or workflow is None:
                return decision
            try:
                await self._store(workflow, raw, desired)
            except Conflict:
                continue
            return decision
        raise Conflict(f"Workflow {namespace}/{name} was changed by other clients during each of {_TRIES} attempts")

    async def _store(self, workflow: Workflow, raw: dict[str, Any], change: Change) -> None:
        if (patch := annotations_patch(raw, change)) is not None:
            raw = msgspec.json.decode(await self._patch(workflow.key, patch))
        if (patch := status_patch(raw, change)) is not None:
            await self._patch(workflow.key, patch, subresource="status")

    async def annotate(self, namespace: str, name: str, annotations: dict[str, str | None]) -> None:
        """Set annotations of a Workflow, whatever its version is.

        Raises:
            ApiError: the annotations could not be written.
        """
        await self._patch((namespace, name), msgspec.json.encode({"metadata": {"annotations": annotations}}))

    async def _patch(self, key: Key, patch: bytes, *, subresource: str = "") -> bytes:
        try:
            async with asyncio.timeout(_CALL_S):
                body = await self.api.patch(
                    WORKFLOW.collection,
                    *key,
                    patch,
                    patch_type=PatchType.MERGE,
                    subresource=subresource,
                    options=_OPTIONS,
                )
        except TimeoutError as error:
            raise Unavailable("the API server did not respond in time") from error
        self._indexed(body)
        return body

    def _indexed(self, body: bytes) -> Workflow:
        try:
            workflow = WORKFLOW.decode(body)
        except msgspec.ValidationError as error:
            raise ApiError(f"the stored Workflow cannot be read: {error}") from error
        self.index.upsert(workflow)
        return workflow

    async def hardware(self, namespace: str, name: str) -> Hardware | None:
        """Return the stored Hardware, or None if it does not exist.

        Raises:
            ApiError: the Hardware cannot be read.
        """
        try:
            async with asyncio.timeout(_CALL_S):
                return HARDWARE.decode(await self.api.get(HARDWARE.collection, namespace, name))
        except NotFound:
            return None
        except TimeoutError as error:
            raise Unavailable("the API server did not respond in time") from error
        except msgspec.ValidationError as error:
            raise ApiError(f"the stored Hardware cannot be read: {error}") from error

    async def annotate_hardware(self, namespace: str, name: str, annotations: dict[str, str]) -> None:
        """Set annotations of a Hardware.

        Raises:
            ApiError: the annotations could not be written.
        """
        patch = msgspec.json.encode({"metadata": {"annotations": annotations}})
        try:
            async with asyncio.timeout(_CALL_S):
                await self.api.patch(
                    HARDWARE.collection, namespace, name, patch, patch_type=PatchType.MERGE, options=_OPTIONS
                )
        except TimeoutError as error:
            raise Unavailable("the API server did not respond in time") from error
