"""What is done to a site that was restored, before any controller or server works: see `contract.servers.restored`.

The restore leaves a note beside the database, and the first start carries it out; the note goes when all of it is
done, so a start that is killed is followed by one that does it again.
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

NOTE = "restored.json"
_ENDED = {WorkflowState.SUCCESS, WorkflowState.FAILED, WorkflowState.TIMEOUT}
_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Marked:
    """How much was held back."""

    hardware: int = 0
    jobs: int = 0
    workflows: int = 0
    pools: int = 0


def write_note(folder: Path, backup: str, clock: Clock) -> None:
    """Say that the database which is about to be put there is of that time; blocks.

    Raises:
        OSError: it cannot be written.
    """
    partial = folder / f".{NOTE}.partial"
    partial.unlink(missing_ok=True)
    with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(msgspec.json.encode(Restored(backup, rfc3339(clock.now()))))
        file.flush()
        os.fsync(file.fileno())
    partial.rename(folder / NOTE)


async def hold_what_was_restored(folder: Path, api: Api) -> None:
    """Carry out the note, if there is one.

    Raises:
        ApiError: the API does not take it; the note stays.
        OSError, msgspec.ValidationError: the note cannot be read.
    """
    note = folder / NOTE
    try:
        text = await asyncio.to_thread(note.read_bytes)
    except FileNotFoundError:
        return
    found = msgspec.json.decode(text, type=Restored)
    marked = await hold_all(api, found)
    await asyncio.to_thread(note.unlink)
    _log.warning(
        "restored from a backup: servers are held until their records are confirmed",
        backup=found.backup,
        hardware=marked.hardware,
        jobs_dropped=marked.jobs,
        workflows_disabled=marked.workflows,
        pools_held=marked.pools,
        remedy="see docs/guide/backup.md",
    )


async def hold_all(api: Api, found: Restored, namespace: str = "") -> Marked:
    """Hold every server and pool of addresses, drop what BMCs were still to do, and disable Workflows that name no
    server. May be repeated.

    Raises:
        ApiError: the API does not take it.
    """
    client = Client(api)
    # first what acts by itself: nobody knows any more whether it was done
    tasks = [task for task in await _all(client, TASK, namespace) if not _has_ended(task.status.conditions)]
    jobs = [job for job in await _all(client, JOB, namespace) if not _has_ended(job.status.conditions)]
    for task in tasks:
        await _dropped(client, TASK, task)
    for job in jobs:
        await _dropped(client, JOB, job)
    servers = await _all(client, HARDWARE, namespace)
    for hardware in servers:
        body = {"metadata": {"annotations": mark(hardware, found)}}
        await client.merge_patch(HARDWARE, *hardware.key, body=body)
    pools = [(kind, pool) for kind in inclusteripam.KINDS for pool in await _all(client, kind, namespace)]
    for kind, pool in pools:
        await client.merge_patch(kind, *pool.key, body={"metadata": {"annotations": mark_pool(pool, found)}})
    adrift = [
        workflow
        for workflow in await _all(client, WORKFLOW, namespace)
        if not workflow.spec.hardware_ref
        and workflow.status.state not in _ENDED
        and ANNOTATION_DISABLED not in workflow.metadata.annotations
    ]
    for workflow in adrift:
        why = f"restored from a backup of {found.backup}; take this annotation off if it is still wanted"
        body = {"metadata": {"annotations": {ANNOTATION_DISABLED: why}}}
        await client.merge_patch(WORKFLOW, *workflow.key, body=body)
    return Marked(len(servers), len(jobs), len(adrift), len(pools))


async def _all(client: Client, kind: Kind[Any], namespace: str) -> Sequence[Any]:
    try:
        return (await client.list(kind, namespace)).items
    except NotFound:  # an API without these kinds
        return ()


async def _dropped(client: Client, kind: Kind[Any], one: Any) -> None:
    try:
        await client.delete(kind, *one.key)
    except NotFound:
        return
    _log.warning("dropped after a restore", kind=kind.kind, name="/".join(one.key))


def _has_ended(conditions: Sequence[Any]) -> bool:
    return any(one.type in ("Completed", "Failed") and one.status == "True" for one in conditions)
