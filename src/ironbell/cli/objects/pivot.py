"""The command `ironbell pivot`."""

from __future__ import annotations

import asyncio
import logging
import uuid
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ironbell.base.printable import printable
from ironbell.base.wording import counted
from ironbell.cli.options import api_options
from ironbell.cli.output import json_text, print_progress
from ironbell.cli.session import SECONDS, kubeconfig_paths

if TYPE_CHECKING:
    from ironbell.operations.pivot.alone import Action
    from ironbell.operations.pivot.graph import Plan, Selection
    from ironbell.operations.pivot.moving import Outcome, Settings

_FILE = click.Path(path_type=Path, dir_okay=False, exists=True)


@click.command()
@click.option("--to", required=True, type=_FILE, help="Kubeconfig of the management cluster to move to.")
@click.option("--to-context", default="", help="Context of that kubeconfig.  [default: its current one]")
@click.option("--from", "source", type=_FILE, help="The same as --kubeconfig: the management cluster to move from.")
@click.option("--namespace", "-n", default="default", show_default=True, help="Move the clusters of this namespace.")
@click.option("--all-namespaces", "-A", is_flag=True, help="Move the clusters of all namespaces.")
@click.option("--cluster", "clusters", multiple=True, metavar="NAME", help="Move only this Cluster and its dependents.")
@click.option("--dry-run", is_flag=True, help="Print what would be moved, and write nothing.")
@click.option("--abort", is_flag=True, help="Undo a pivot whose copies are not in effect yet.")
@click.option(
    "--without-source",
    is_flag=True,
    help="Complete a pivot whose copies are in effect already, after the source was lost.",
)
@click.option("--adopt", is_flag=True, help="Continue a `clusterctl move` that was interrupted.")
@click.option(
    "--wait-for-pause/--no-wait-for-pause",
    default=True,
    show_default=True,
    help="Wait until the source's controllers report the pause; use --no-wait-for-pause only if none runs.",
)
@click.option("--timeout", type=SECONDS, default="5m", show_default=True, help="Time limit of that wait.")
@click.option("--output", "-o", type=click.Choice(["text", "json"]), default="text", help="Output format.")
@api_options
def pivot(
    to: Path,
    to_context: str,
    source: Path | None,
    namespace: str,
    all_namespaces: bool,
    clusters: tuple[str, ...],
    dry_run: bool,
    abort: bool,
    without_source: bool,
    adopt: bool,
    wait_for_pause: bool,
    timeout: float,
    output: str,
    kubeconfig: Path | None,
    context: str,
) -> None:
    """Move clusters with all their dependents to another management cluster, without another installation.

    If it is interrupted at any moment, the same command continues.
    """
    from ironbell.operations.pivot.alone import Action
    from ironbell.operations.pivot.graph import Selection
    from ironbell.operations.pivot.moving import Settings

    if source is not None and kubeconfig is not None:
        raise click.UsageError("--from and --kubeconfig mean the same; set only one")
    if sum((dry_run, abort, without_source)) > 1:
        raise click.UsageError("--dry-run, --abort and --without-source exclude each other")
    chosen = ((dry_run, Action.PREVIEW), (abort, Action.ABORT), (without_source, Action.FINISH), (True, Action.MOVE))
    action = next(action for is_chosen, action in chosen if is_chosen)
    selection = Selection(frozenset() if all_namespaces else frozenset([namespace]), frozenset(clusters))
    settings = Settings(timeout_s=timeout, acknowledged=wait_for_pause, adopts=adopt)
    places = (to, to_context, to, to_context) if without_source else (source or kubeconfig, context, to, to_context)
    result = asyncio.run(_performed(places, settings, action, selection))
    click.echo(_json(result) if output == "json" else "\n".join(_lines(result, selection)))


async def _performed(
    places: tuple[Path | None, str, Path, str], settings: Settings, action: Action, selection: Selection
) -> Plan | Outcome:
    import structlog

    from ironbell.base.clock import SystemClock
    from ironbell.kube.transport.connection import from_kubeconfig
    from ironbell.kube.transport.http import HttpApi
    from ironbell.operations.pivot.alone import perform
    from ironbell.operations.pivot.moving import Pivot
    from ironbell.operations.pivot.site import Site

    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    kubeconfig, context, to, to_context = places
    first = from_kubeconfig(kubeconfig_paths(kubeconfig), context=context)
    second = from_kubeconfig([to], context=to_context)
    async with HttpApi(first) as source, HttpApi(second) as target:
        sites = Site(source, "source", first.server), Site(target, "target", second.server)
        pivot = Pivot(*sites, SystemClock(), lambda: str(uuid.uuid4()), print_progress, settings)
        return await perform(pivot, action, selection)


def _json(result: Plan | Outcome) -> str:
    from ironbell.operations.pivot.graph import Plan

    if isinstance(result, Plan):
        plain: object = {
            "objects": [_entry(item.key) for item in result.items],
            "kept": [_entry(item.key) for item in result.items if item.uid in result.kept],
        }
    else:
        entries = {
            name: [_entry(key) for key in getattr(result, name)]
            for name in ("clusters", "kept", "paused", "left_paused")
        }
        plain = {**asdict(result), **entries}
    return json_text(plain)


def _entry(key: tuple[str, str, str]) -> dict[str, str]:
    return {"kind": key[0], "namespace": key[1], "name": key[2]}


def _lines(result: Plan | Outcome, selection: Selection) -> list[str]:
    from ironbell.operations.pivot.graph import Plan
    from ironbell.operations.pivot.items import title_of

    if isinstance(result, Plan):
        lines = [f"{item.title}{' (stays as well)' * (item.uid in result.kept)}" for item in result.items]
        return [printable(line) for line in lines] or [_nothing(selection)]
    left_paused = [
        f"still paused on the target: {title_of(key)}; if clusterctl has paused it, set its spec.paused to false"
        for key in result.left_paused
    ]
    if result.course == "nothing":
        return [printable(line) for line in (_nothing(selection), *left_paused)]
    if result.course == "abort":
        return [f"undone: removed {counted(result.objects, 'copy', 'copies')}; the sources are active again"]
    names = ", ".join(f"{namespace}/{name}" for _, namespace, name in result.clusters)
    clusters = f"{'Cluster' if len(result.clusters) == 1 else 'Clusters'} {names or 'none'}"
    moved = f": {counted(result.objects, 'object')}, {clusters}" if result.objects else ""
    lines = [f"moved{moved}"]
    lines += [f"on both sides: {title_of(key)}" for key in result.kept]
    lines += [f"paused as before: {title_of(key)}" for key in result.paused]
    return [printable(line) for line in (*lines, *left_paused)]


def _nothing(selection: Selection) -> str:
    where = ", ".join(sorted(selection.namespaces)) or "all namespaces"
    named = f" of {', '.join(sorted(selection.clusters))}" if selection.clusters else ""
    return f"nothing to move{named} in {where}"
