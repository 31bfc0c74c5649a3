"""`ironbell logs`: the output of a workflow's actions, live or afterwards."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from typing import Any

import click

from ironbell.api.tinkerbell import WORKFLOW
from ironbell.base.printable import LineFilter, coloured_lines, escaped_json, one_line, printable
from ironbell.cli.options import api_options
from ironbell.cli.session import with_api
from ironbell.kube.transport.http import HttpApi
from ironbell.operations.kinds import UnknownKindError, parse_target
from ironbell.operations.logs import LIST_COMMAND, LogNotServedError, LogOptions, empty_log_reason, read_log


@click.command()
@click.argument("target", nargs=-1, required=True, metavar="[workflow] NAME")
@click.option("--follow", "-f", is_flag=True, help="Continue until the workflow ends.")
@click.option("--action", default="", help="Show only this action.")
@click.option("--tail", type=click.IntRange(min=0), help="Number of existing lines to show.  [default: all]")
@click.option(
    "--timestamps/--no-timestamps", default=True, show_default=True, help="Begin each line with its time (UTC)."
)
@click.option(
    "--output",
    "-o",
    type=click.Choice(["text", "json", "raw"]),
    default="text",
    help="Output format; raw is text as the machine sent it, even on a terminal.",
)
@click.option("--namespace", "-n", default="default", show_default=True, help="Namespace.")
@api_options
def logs(
    target: tuple[str, ...],
    *,
    follow: bool,
    action: str,
    tail: int | None,
    timestamps: bool,
    output: str,
    namespace: str,
    **where: Any,
) -> None:
    """Show the output of a Workflow's actions: workflow/NAME, workflow NAME, or NAME alone.

    On a terminal, control characters that machines sent are shown as escapes such as \\x1b, and colours are kept. A
    pipe or a file gets the output unchanged.
    """
    kinds, name, bare = parse_target(target)
    if not bare and WORKFLOW not in kinds:
        raise UnknownKindError(f"only workflows have logs, not {kinds[0].plural}. {LIST_COMMAND} lists them.")
    options = LogOptions(follow, action, tail, timestamps, as_json=output == "json")
    write = _writer(output)
    with contextlib.suppress(KeyboardInterrupt):
        with_api(lambda api: _print_log(api, namespace, name, options, write), **where)


async def _print_log(
    api: HttpApi, namespace: str, name: str, options: LogOptions, write: Callable[[bytes], None]
) -> None:
    is_empty = True
    try:
        async for piece in read_log(api, namespace, name, options):
            is_empty = False
            write(piece)
        write(b"")
        if is_empty:
            click.echo(printable(await empty_log_reason(api, namespace, name)), err=True)
    except LogNotServedError as error:
        click.echo(
            "This API serves no logs. The Workflow has the end of each action's output, without times:", err=True
        )
        click.echo("\n".join(map(one_line, error.lines)))


def _writer(output: str) -> Callable[[bytes], None]:
    """Return the function that prints the log in pieces; an empty piece ends it."""
    if output == "raw" or not sys.stdout.isatty():
        return _write
    lines = LineFilter(escaped_json if output == "json" else coloured_lines)
    return lambda piece: _write((lines.feed(piece) if piece else lines.end()).encode())


def _write(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.flush()
