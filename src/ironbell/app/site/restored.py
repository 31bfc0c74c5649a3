"""Hold a restored site before any controller or server is active: see `contract.servers.restored`.

The restore leaves a marker file beside the database, and the first start acts on it; the marker is removed when all of
it is done, so a start that is killed is followed by one that repeats it.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import structlog

from ironbell.api import inclusteripam
from ironbell.api.bmc import JOB, TASK
from ironbell.api.client import Api, NotFound
from ironbell.api.kind import Kind
from ironbell.api.tinkerbell import HARDWARE, WORKFLOW
from ironbell.api.tinkerbell.names import ANNOTATION_DISABLED
from ironbell.api.tinkerbell.workflow import WorkflowState
from ironbell.base.clock import Clock, rfc3339
from ironbell.contract.servers.restored import Restored, mark, mark_pool
from ironbell.kube.client import Client

MARKER = "restored.json"
_COMPLETED = {WorkflowState.SUCCESS, WorkflowState.FAILED, WorkflowState.TIMEOUT}
_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Marked:
    """Numbers of objects that were held back."""

    hardware: int = 0
    jobs: int = 0
    workflows: int = 0
    pools: int = 0


def write_marker(folder: Path, backup: str, clock: Clock) -> None:
    """Record that the database which will be put there is of that time; blocks.

    Raises:
        OSError: the marker cannot be written.
    """
    partial = folder / f".{MARKER}.partial"
    partial.unlink(missing_ok=True)
    with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(msgspec.json.encode(Restored(backup, rfc3339(clock.now()))))
        file.flush()
        os.fsync(file.fileno())
    partial.rename(folder / MARKER)


async def hold_after_restore(folder: Path, api: Api) -> None:
    """Act on the marker, if it exists.

    Raises:
        ApiError: the API rejects a write; the marker stays.
        OSError, msgspec.ValidationError: the marker cannot be read.
    """
    marker = folder / MARKER
    try:
        text = await asyncio.to_thread(marker.read_bytes)
    except FileNotFoundError:
        return
    restored = msgspec.json.decode(text, type=Restored)
    marked = await hold_all(api, restored)
    await asyncio.to_thread(marker.unlink)
    _log.warning(
        "restored from a backup: servers are held until their records are confirmed",
        backup=restored.backup,
        hardware=marked.hardware,
        jobs_dropped=marked.jobs,
        workflows_disabled=marked.workflows,
        pools_held=marked.pools,
        remedy="see docs/guide/backup.md",
    )


async def hold_all(api: Api, restored: Restored, namespace: str = "") -> Marked:
    """Hold every server and address pool, drop the pending operations of BMCs, and disable Workflows that name no
    server. May be repeated.

    Raises:
        ApiError: the API rejects a write.
    """
    client = Client(api)
    # first the objects that act by themselves: it is unknown whether they were completed
    tasks = [task for task in await _all(client, TASK, namespace) if not _is_completed(task.status.conditions)]
    jobs = [job for job in await _all(client, JOB, namespace) if not _is_completed(job.status.conditions)]
    for task in tasks:
        await _dropped(client, TASK, task)
    for job in jobs:
        await _dropped(client, JOB, job)
    servers = await _all(client, HARDWARE, namespace)
    for hardware in servers:
        body = {"metadata": {"annotations": mark(hardware, restored)}}
        await client.merge_patch(HARDWARE, *hardware.key, body=body)
    pools = [(kind, pool) for kind in inclusteripam.KINDS for pool in await _all(client, kind, namespace)]
    for kind, pool in pools:
        await client.merge_patch(kind, *pool.key, body={"metadata": {"annotations": mark_pool(pool, restored)}})
    adrift = [
        workflow
        for workflow in await _all(client, WORKFLOW, namespace)
        if not workflow.spec.hardware_ref
        and workflow.status.state not in _COMPLETED
        and ANNOTATION_DISABLED not in workflow.metadata.annotations
    ]
    for workflow in adrift:
        reason = f"restored from a backup of {restored.backup}; remove this annotation if the Workflow is still needed"
        body = {"metadata": {"annotations": {ANNOTATION_DISABLED: reason}}}
        await client.merge_patch(WORKFLOW, *workflow.key, body=body)
    return Marked(len(servers), len(jobs), len(adrift), len(pools))


async def _all(client: Client, kind: Kind[Any], namespace: str) -> Sequence[Any]:
    try:
        return (await client.list(kind, namespace)).items
    except NotFound:  # an API without these kinds
        return ()


async def _dropped(client: Client, kind: Kind[Any], obj: Any) -> None:
    try:
        await client.delete(kind, *obj.key)
    except NotFound:
        return
    _log.warning("dropped after a restore", kind=kind.kind, name="/".join(obj.key))


def _is_completed(conditions: Sequence[Any]) -> bool:
    return any(condition.type in ("Completed", "Failed") and condition.status == "True" for condition in conditions)
