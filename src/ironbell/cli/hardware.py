"""`ironbell hardware`: what only a person can say about servers after a restore."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ironbell.api.capt import TINKERBELL_MACHINE
from ironbell.api.capt.names import ANNOTATION_PROVISIONED
from ironbell.api.client import NotFound
from ironbell.api.tinkerbell import HARDWARE, WORKFLOW
from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.api.tinkerbell.workflow import Workflow, WorkflowState
from ironbell.base.clock import SystemClock, parse_rfc3339, rfc3339
from ironbell.base.errors import IronbellError, Retry
from ironbell.base.wording import counted
from ironbell.cli.api_options import api_options
from ironbell.cli.namespaces import named, report_none
from ironbell.cli.output import JSON, ended, output_option, print_json, reference
from ironbell.cli.session import connected, namespace_options, run
from ironbell.contract.hardware_claim import claim_of
from ironbell.contract.restored import Restored, confirmation, restored
from ironbell.kube.client import Client
from ironbell.kube.decision import Key
from ironbell.kube.http import HttpApi

if TYPE_CHECKING:
    from ironbell.app.restored import Marked

CONFIRMED, NOT_HELD = "confirmed", "notHeld"
RESULTS = {CONFIRMED: "confirmed", NOT_HELD: "nothing to confirm"}
_ENDED = {WorkflowState.SUCCESS, WorkflowState.FAILED, WorkflowState.TIMEOUT}


class NotConfirmedError(IronbellError):
    """A record cannot be confirmed without being asked more."""

    reason = "NotConfirmed"
    retry = Retry.NEVER


@click.group()
@api_options
def hardware(**_where: Any) -> None:
    """Servers after a restore."""


@hardware.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--free", "all_free", is_flag=True, help="All servers that nobody has, as the backup says.")
@click.option(
    "--installed", "outcome", flag_value="installed", help="It runs what was being installed: install nothing."
)
@click.option("--go-on", "outcome", flag_value="go-on", help="Go on with the installation or wipe that was under way.")
@namespace_options
@output_option()
@api_options
def confirm(names: tuple[str, ...], *, all_free: bool, outcome: str | None, output: str, **where: Any) -> None:
    """Let go of servers that were held after a restore: what is recorded of them is right.

    Who has a server, and whether one is free, is what the backup says. Look at the machine first: a server that is
    free by its record and runs a node is wiped when it is taken.
    """
    if bool(names) == all_free:
        raise click.UsageError("name servers, or give --free for all that nobody has")
    results = run(_confirm(names, outcome=outcome, **where))
    if output == JSON:
        objects = [reference(HARDWARE.kind, *key, result=result) for key, result in results.items()]
        print_json(ended("confirmed", objects=objects))
        return
    for key, result in results.items():
        click.echo(f"{'/'.join(key)}: {RESULTS[result]}")


@hardware.command()
@click.option(
    "--restored-from", required=True, metavar="TIME", help="When the backup was made, such as 2026-11-22T09:00:00Z."
)
@namespace_options
@output_option()
@api_options
def hold(restored_from: str, output: str, **where: Any) -> None:
    """Hold all servers and pools, as `ironbell restore` does, after an API server was restored by other means.

    Run it before the controllers are started again. What BMCs were still to do is dropped.
    """
    try:
        moment = parse_rfc3339(restored_from)
    except ValueError as error:
        raise click.BadParameter(f"{restored_from!r} is no time such as 2026-11-22T09:00:00Z") from error
    marked = run(_hold(moment, **where))
    if output == JSON:
        counts = {name: getattr(marked, name) for name in ("hardware", "pools", "jobs", "workflows")}
        print_json(ended("held", restoredFrom=rfc3339(moment), **counts))
        return
    held = f"{counted(marked.hardware, 'server')} held, {counted(marked.pools, 'pool')} held"
    click.echo(f"{held}, {counted(marked.jobs, 'job')} dropped, {counted(marked.workflows, 'workflow')} disabled")


@dataclass(frozen=True)
class Record:
    """A server and what its record would have done."""

    hardware: Hardware
    unfinished: Sequence[Workflow] = ()
    owner_goes: bool = False
    """Its machine is being deleted, or is not there."""

    def objection(self, outcome: str | None) -> str | None:
        """What has to be said before it can be let go; None if nothing."""
        name = self.hardware.metadata.name
        if self.owner_goes and outcome != "go-on":
            return f"{name}: its machine is being deleted, so its disks would be wiped: give --go-on if they may be"
        if self.unfinished and outcome is None:
            workflows = ", ".join(workflow.metadata.name for workflow in self.unfinished)
            return (
                f"{name}: workflow {workflows} was under way: give --installed if the machine runs what it installs, "
                "or --go-on to let it install"
            )
        return None


async def _confirm(
    names: Sequence[str],
    *,
    outcome: str | None,
    namespace: str,
    all_namespaces: bool,
    kubeconfig: Path | None,
    context: str,
) -> dict[Key, str]:
    async with connected(kubeconfig, context) as api:
        client = Client(api)
        if names:
            found = [await named(api, HARDWARE, namespace, name) for name in names]
        else:
            listed = (await client.list(HARDWARE, "" if all_namespaces else namespace)).items
            found = [one for one in listed if claim_of(one) is None]
        if not found:
            await report_none(api, HARDWARE.collection, "" if all_namespaces else namespace, "unclaimed Hardware")
        records = [await _record(api, one) for one in found if restored(one) is not None]
        objections = [why for record in records if (why := record.objection(outcome)) is not None]
        if objections:
            raise NotConfirmedError("\n".join(objections))
        for record in records:
            await _let_go(client, record, outcome)
        done = {record.hardware.key for record in records}
    return {one.key: CONFIRMED if one.key in done else NOT_HELD for one in found}


async def _record(api: HttpApi, found: Hardware) -> Record:
    client, claim = Client(api), claim_of(found)
    workflows = (await client.list(WORKFLOW, found.metadata.namespace)).items
    unfinished = [
        one
        for one in workflows
        if one.spec.hardware_ref == found.metadata.name
        and one.status.state not in _ENDED
        and one.metadata.deletion_timestamp is None
    ]
    if claim is None or claim.kind not in ("", TINKERBELL_MACHINE.kind):
        return Record(found, unfinished)
    try:
        owner = await client.find(TINKERBELL_MACHINE, claim.namespace, claim.name)
    except NotFound:
        return Record(found, unfinished)
    return Record(found, unfinished, owner is None or owner.metadata.deletion_timestamp is not None)


async def _let_go(client: Client, record: Record, outcome: str | None) -> None:
    metadata: dict[str, Any] = {"annotations": confirmation(record.hardware)}
    if outcome == "installed" and record.unfinished:
        # while the server is held: nothing of them can begin any more
        for workflow in record.unfinished:
            await client.delete(WORKFLOW, *workflow.key)
        metadata["annotations"][ANNOTATION_PROVISIONED] = "true"
    else:
        # (a Workflow that goes takes its permission to netboot back meanwhile, which makes another version)
        metadata["resourceVersion"] = record.hardware.metadata.resource_version
    body = {"metadata": metadata}
    await client.merge_patch(HARDWARE, *record.hardware.key, body=body)


async def _hold(
    moment: datetime, *, namespace: str, all_namespaces: bool, kubeconfig: Path | None, context: str
) -> Marked:
    from ironbell.app.restored import hold_all

    async with connected(kubeconfig, context) as api:
        found = Restored(rfc3339(moment), rfc3339(SystemClock().now()))
        marked = await hold_all(api, found, "" if all_namespaces else namespace)
        if not marked.hardware:
            await report_none(api, HARDWARE.collection, "" if all_namespaces else namespace, HARDWARE.kind)
        return marked
