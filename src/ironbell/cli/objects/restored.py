"""`ironbell hardware` and `ironbell pool`: what only a user can confirm about a site after a restore."""

from __future__ import annotations

from typing import Any

import click

from ironbell.api.inclusteripam import GLOBAL_IN_CLUSTER_IP_POOL, IN_CLUSTER_IP_POOL
from ironbell.api.tinkerbell import HARDWARE
from ironbell.app.site.restored import Marked
from ironbell.base.clock import parse_rfc3339, rfc3339
from ironbell.base.wording import counted
from ironbell.cli.options import JSON, api_options, namespace_options, output_option
from ironbell.cli.output import print_json, reference, result_document
from ironbell.cli.session import with_api
from ironbell.kube.decision import AnyKind, Key
from ironbell.kube.transport.http import HttpApi
from ironbell.operations import restored
from ironbell.operations.namespaces import no_objects_message
from ironbell.operations.restored import Confirmation, Installation, confirm_hardware, confirm_pools

_RESULTS = {Confirmation.CONFIRMED: "confirmed", Confirmation.NOT_HELD: "nothing to confirm"}


@click.group()
@api_options
def hardware(**_where: Any) -> None:
    """Confirm servers after a restore."""


@click.group()
@api_options
def pool(**_where: Any) -> None:
    """Confirm address pools after a restore."""


def _print_results(kind: str, results: dict[Key, Confirmation], *, output: str) -> None:
    if output == JSON:
        objects = [reference(kind, *key, result=result) for key, result in results.items()]
        print_json(result_document("confirmed", objects=objects))
        return
    for key, result in results.items():
        click.echo(f"{'/'.join(filter(None, key))}: {_RESULTS[result]}")


@hardware.command("confirm")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--free", "all_free", is_flag=True, help="Confirm all servers that are unclaimed in the backup.")
@click.option(
    "--installed", "outcome", flag_value="installed", help="The server runs what was being installed: install nothing."
)
@click.option("--go-on", "outcome", flag_value="go-on", help="Continue the installation or wipe that was under way.")
@namespace_options
@output_option()
@api_options
def confirm(
    names: tuple[str, ...],
    *,
    all_free: bool,
    outcome: str | None,
    output: str,
    namespace: str,
    all_namespaces: bool,
    **where: Any,
) -> None:
    """Release servers from the hold after a restore: their records are right.

    The backup determines who claims a server and whether it is unclaimed. Check the machine first: a server that is
    unclaimed by its record and runs a node is wiped when it is claimed.
    """
    if bool(names) == all_free:
        raise click.UsageError("name servers, or use --free for all unclaimed servers")
    space, chosen = "" if all_namespaces and not names else namespace, Installation(outcome) if outcome else None

    async def work(api: HttpApi) -> dict[Key, Confirmation]:
        results = await confirm_hardware(api, names, namespace=space, outcome=chosen)
        if not results:
            click.echo(await no_objects_message(api, HARDWARE.collection, space, "unclaimed Hardware"), err=True)
        return results

    _print_results(HARDWARE.kind, with_api(work, **where), output=output)


@hardware.command()
@click.option(
    "--restored-from", required=True, metavar="TIME", help="Time of the backup, such as 2026-11-22T09:00:00Z."
)
@namespace_options
@output_option()
@api_options
def hold(restored_from: str, output: str, *, namespace: str, all_namespaces: bool, **where: Any) -> None:
    """Hold all servers and pools, as `ironbell restore` does, after an API server was restored by other means.

    Run it before the controllers are started again. Pending operations of BMCs are dropped.
    """
    try:
        backup = parse_rfc3339(restored_from)
    except ValueError as error:
        raise click.BadParameter(f"{restored_from!r} is not a time such as 2026-11-22T09:00:00Z") from error
    space = "" if all_namespaces else namespace

    async def work(api: HttpApi) -> Marked:
        marked = await restored.hold(api, backup, namespace=space)
        if not marked.hardware:
            click.echo(await no_objects_message(api, HARDWARE.collection, space, HARDWARE.kind), err=True)
        return marked

    marked = with_api(work, **where)
    if output == JSON:
        counts = {name: getattr(marked, name) for name in ("hardware", "pools", "jobs", "workflows")}
        print_json(result_document("held", restoredFrom=rfc3339(backup), **counts))
        return
    held = f"{counted(marked.hardware, 'server')} held, {counted(marked.pools, 'pool')} held"
    click.echo(f"{held}, {counted(marked.jobs, 'job')} dropped, {counted(marked.workflows, 'workflow')} disabled")


@pool.command("confirm")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--all", "everything", is_flag=True, help="Confirm all pools of the kind and namespace.")
@click.option("--global", "is_global", is_flag=True, help="Confirm GlobalInClusterIPPools instead of InClusterIPPools.")
@namespace_options
@output_option()
@api_options
def confirm_pool(
    names: tuple[str, ...],
    *,
    everything: bool,
    is_global: bool,
    output: str,
    namespace: str,
    all_namespaces: bool,
    **where: Any,
) -> None:
    """Let pools allocate addresses again after a restore: none of their free addresses is in use.

    Addresses that were allocated since the backup are free by the record: add those in use to spec.excludedAddresses
    first.
    """
    if bool(names) == everything:
        raise click.UsageError("name pools, or use --all")
    kind: AnyKind = GLOBAL_IN_CLUSTER_IP_POOL if is_global else IN_CLUSTER_IP_POOL
    space = "" if is_global or (all_namespaces and not names) else namespace

    async def work(api: HttpApi) -> dict[Key, Confirmation]:
        results = await confirm_pools(api, kind, names, namespace=space)
        if not results:
            click.echo(await no_objects_message(api, kind.collection, space, kind.kind), err=True)
        return results

    _print_results(kind.kind, with_api(work, **where), output=output)
