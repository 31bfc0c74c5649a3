"""`ironbell logs`: what a workflow's actions print, live or afterwards."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

import click

from ironbell.api.client import ApiError
from ironbell.api.tinkerbell import WORKFLOW
from ironbell.base.errors import IronbellError
from ironbell.cli.session import UnknownKindError, api_options, connected, object_named, run


@click.command()
@click.argument("target", metavar="workflow/NAME")
@click.option("--follow", "-f", is_flag=True, help="Go on until the workflow ends.")
@click.option("--action", default="", help="Only this action.")
@click.option("--tail", type=click.IntRange(min=0), help="Only so many of the lines that are there already.")
@click.option("--timestamps", is_flag=True, help="Begin each line with its time.")
@click.option("--output", "-o", type=click.Choice(["text", "json"]), default="text", help="Form of the lines.")
@click.option("--namespace", "-n", default="default", show_default=True, help="Namespace.")
@api_options
def logs(
    target: str,
    *,
    follow: bool,
    action: str,
    tail: int | None,
    timestamps: bool,
    output: str,
    namespace: str,
    kubeconfig: Path | None,
    context: str,
) -> None:
    """Show what the actions of workflow/NAME print."""
    kind, name = object_named(target if "/" in target else f"workflow/{target}")
    if kind is not WORKFLOW:
        raise UnknownKindError(f"only workflows have logs, not {kind.plural}")
    query = {"follow": "true"} if follow else {}
    query |= {"action": action} if action else {}
    query |= {"format": "json"} if output == "json" else {}
    query |= {"tail": str(tail)} if tail is not None else {}
    query |= {"timestamps": "true"} if timestamps else {}
    with contextlib.suppress(KeyboardInterrupt):
        run(_logs(name, namespace, query=query, kubeconfig=kubeconfig, context=context))


async def _logs(name: str, namespace: str, *, query: dict[str, str], kubeconfig: Path | None, context: str) -> None:
    path = WORKFLOW.collection.path(namespace, name, "log")
    async with connected(kubeconfig, context) as api:
        try:
            async for chunk in api.stream(path, query=query):
                sys.stdout.buffer.write(chunk)
                sys.stdout.flush()
        except ApiError as error:
            raise IronbellError(f"no logs of workflow {namespace}/{name}: {error}") from error
