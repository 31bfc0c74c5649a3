"""Confirmation of servers and address pools by the user after a restore.

All of them are held until their records are confirmed; see `contract.servers.restored`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from ironbell.api.capt import TINKERBELL_MACHINE
from ironbell.api.capt.names import ANNOTATION_PROVISIONED
from ironbell.api.client import Api, NotFound
from ironbell.api.tinkerbell import HARDWARE, WORKFLOW
from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.api.tinkerbell.workflow import Workflow, WorkflowState
from ironbell.app.site.restored import Marked, hold_all
from ironbell.base.clock import SystemClock, rfc3339
from ironbell.base.errors import IronbellError, Retry
from ironbell.contract.servers.claim import claim_of
from ironbell.contract.servers.restored import RESTORED, Restored, confirmation, restored
from ironbell.kube.client import Client
from ironbell.kube.decision import AnyKind, Key
from ironbell.operations.namespaces import get_or_hint

_COMPLETED = {WorkflowState.SUCCESS, WorkflowState.FAILED, WorkflowState.TIMEOUT}


class Confirmation(StrEnum):
    """The result of one object's confirmation."""

    CONFIRMED = "confirmed"
    NOT_HELD = "notHeld"


class Installation(StrEnum):
    """The user's decision about an installation or wipe that was under way."""

    DONE = "installed"
    """The server runs what was being installed."""
    CONTINUE = "go-on"


class NotConfirmedError(IronbellError):
    """Records cannot be confirmed without another decision; `objections` has a sentence for each."""

    reason, retry = "NotConfirmed", Retry.NEVER

    def __init__(self, objections: Sequence[str]) -> None:
        super().__init__("\n".join(objections))
        self.objections = tuple(objections)


@dataclass(frozen=True)
class Record:
    """A server, and what follows from its record."""

    hardware: Hardware
    unfinished: Sequence[Workflow] = ()
    owner_is_deleted: bool = False
    """Whether its machine is being deleted, or does not exist."""

    def objection(self, outcome: Installation | None) -> str | None:
        """The decision that is needed before the server is released from its hold; None if none is."""
        name = self.hardware.metadata.name
        if self.owner_is_deleted and outcome is not Installation.CONTINUE:
            return f"{name}: its machine is being deleted, so its disks would be wiped: use --go-on to allow that"
        if self.unfinished and outcome is None:
            workflows = ", ".join(workflow.metadata.name for workflow in self.unfinished)
            return (
                f"{name}: workflow {workflows} was under way: use --installed if the machine runs what it installs, or "
                "--go-on to let it install"
            )
        return None


async def confirm_hardware(
    api: Api, names: Sequence[str] = (), *, namespace: str = "", outcome: Installation | None = None
) -> dict[Key, Confirmation]:
    """Confirm the records of named servers, or of all unclaimed ones; an empty namespace means all.

    Raises:
        NotFound: a server does not exist; the message names the namespaces that have one.
        NotConfirmedError: records need another decision; nothing was confirmed.
    """
    client = Client(api)
    if names:
        servers = [await get_or_hint(api, HARDWARE, namespace, name) for name in names]
    else:
        servers = [server for server in (await client.list(HARDWARE, namespace)).items if claim_of(server) is None]
    records = [await _record(api, server) for server in servers if restored(server) is not None]
    objections = [objection for record in records if (objection := record.objection(outcome)) is not None]
    if objections:
        raise NotConfirmedError(objections)
    for record in records:
        await _release(client, record, outcome)
    held = {record.hardware.key for record in records}
    return {server.key: Confirmation.CONFIRMED if server.key in held else Confirmation.NOT_HELD for server in servers}


async def _record(api: Api, server: Hardware) -> Record:
    client, claim = Client(api), claim_of(server)
    workflows = (await client.list(WORKFLOW, server.metadata.namespace)).items
    unfinished = [
        workflow
        for workflow in workflows
        if workflow.spec.hardware_ref == server.metadata.name
        and workflow.status.state not in _COMPLETED
        and workflow.metadata.deletion_timestamp is None
    ]
    if claim is None or claim.kind not in ("", TINKERBELL_MACHINE.kind):
        return Record(server, unfinished)
    try:
        owner = await client.find(TINKERBELL_MACHINE, claim.namespace, claim.name)
    except NotFound:
        return Record(server, unfinished)
    return Record(server, unfinished, owner is None or owner.metadata.deletion_timestamp is not None)


async def _release(client: Client, record: Record, outcome: Installation | None) -> None:
    metadata: dict[str, Any] = {"annotations": confirmation(record.hardware)}
    if outcome is Installation.DONE and record.unfinished:
        # while the server is held, none of them can begin
        for workflow in record.unfinished:
            await client.delete(WORKFLOW, *workflow.key)
        metadata["annotations"][ANNOTATION_PROVISIONED] = "true"
    else:
        # (a Workflow that is deleted withdraws its permission to netboot meanwhile, which creates another version)
        metadata["resourceVersion"] = record.hardware.metadata.resource_version
    body = {"metadata": metadata}
    await client.merge_patch(HARDWARE, *record.hardware.key, body=body)


async def confirm_pools(
    api: Api, kind: AnyKind, names: Sequence[str] = (), *, namespace: str = ""
) -> dict[Key, Confirmation]:
    """Confirm the records of named pools, or of all; an empty namespace means all.

    Raises:
        NotFound: a pool does not exist; the message names the namespaces that have one.
    """
    client, results = Client(api), {}
    if names:
        pools: Sequence[Any] = [await get_or_hint(api, kind, namespace, name) for name in names]
    else:
        pools = (await client.list(kind, namespace)).items
    for pool in pools:
        if restored(pool) is None:
            results[pool.key] = Confirmation.NOT_HELD
            continue
        await client.merge_patch(kind, *pool.key, body={"metadata": {"annotations": {RESTORED: None}}})
        results[pool.key] = Confirmation.CONFIRMED
    return results


async def hold(api: Api, backup: datetime, *, namespace: str = "") -> Marked:
    """Hold all servers and pools after an API server was restored by other means, from a backup of that time."""
    return await hold_all(api, Restored(rfc3339(backup), rfc3339(SystemClock().now())), namespace)
