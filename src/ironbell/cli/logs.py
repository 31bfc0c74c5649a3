"""`ironbell logs`: what a workflow's actions print, live or afterwards."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from pathlib import Path

import click
import msgspec

from ironbell.api.client import ApiError, NotFound
from ironbell.api.tinkerbell import WORKFLOW
from ironbell.api.tinkerbell.workflow import Workflow
from ironbell.base.clock import SystemClock
from ironbell.base.errors import IronbellError
from ironbell.base.printable import LineFilter, coloured_lines, escaped_json, one_line, printable
from ironbell.cli.api_options import api_options
from ironbell.cli.namespaces import elsewhere
from ironbell.cli.session import UnknownKindError, connected, named, run
from ironbell.controllers.tink.names import ANNOTATION_LOG_PREFIX
from ironbell.kube.http import HttpApi
from ironbell.operations.why.reader import read_world
from ironbell.operations.why.rootcause import why
from ironbell.operations.why.text import first_line
from ironbell.operations.why.world import ref_of

_LISTED = "`ironbell get workflows -A`"


@click.command()
@click.argument("target", nargs=-1, required=True, metavar="[workflow] NAME")
@click.option("--follow", "-f", is_flag=True, help="Go on until the workflow ends.")
@click.option("--action", default="", help="Only this action.")
@click.option("--tail", type=click.IntRange(min=0), help="Only so many of the lines that are there already.")
@click.option(
    "--timestamps/--no-timestamps", default=True, show_default=True, help="Begin each line with its time (UTC)."
)
@click.option(
    "--output",
    "-o",
    type=click.Choice(["text", "json", "raw"]),
    default="text",
    help="Form of the lines; raw is text as the machine sent it, even on a terminal.",
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
    kubeconfig: Path | None,
    context: str,
) -> None:
    """Show what the actions of a Workflow print: workflow/NAME, workflow NAME, or NAME alone.

    On a terminal, control characters that machines sent are written out, such as \\x1b, and colours are kept. A pipe or
    file gets the output as it is.
    """
    kinds, name, bare = named(target)
    if not bare and WORKFLOW not in kinds:
        raise UnknownKindError(f"only workflows have logs, not {kinds[0].plural}. {_LISTED} lists them.")
    query = {"follow": "true"} if follow else {}
    query |= {"action": action} if action else {}
    query |= {"format": "json"} if output == "json" else {}
    query |= {"tail": str(tail)} if tail is not None else {}
    query |= {"timestamps": "true"} if timestamps else {}
    with contextlib.suppress(KeyboardInterrupt):
        run(_logs(name, namespace, query=query, write=_writer(output), kubeconfig=kubeconfig, context=context))


def _writer(output: str) -> Callable[[bytes], None]:
    """What prints the log in pieces; an empty piece is the end of it."""
    if output == "raw" or not sys.stdout.isatty():
        return _write
    lines = LineFilter(escaped_json if output == "json" else coloured_lines)
    return lambda piece: _write((lines.feed(piece) if piece else lines.end()).encode())


def _write(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.flush()


async def _logs(
    name: str,
    namespace: str,
    *,
    query: dict[str, str],
    write: Callable[[bytes], None],
    kubeconfig: Path | None,
    context: str,
) -> None:
    path = WORKFLOW.collection.path(namespace, name, "log")
    async with connected(kubeconfig, context) as api:
        printed = False
        try:
            async for chunk in api.stream(path, query=query):
                if chunk:
                    printed = True
                    write(chunk)
            write(b"")
            if not printed:
                click.echo(printable(await _no_logs(api, namespace, name)), err=True)
        except NotFound as error:
            kept = await _kept(api, namespace, name, query)
            if not kept:
                raise await _nothing(api, namespace, name, error) from error
            click.echo(
                "This API serves no logs. The Workflow keeps the end of each action's output, without times:", err=True
            )
            click.echo("\n".join(map(one_line, kept)))
        except ApiError as error:
            message = f"no logs of workflow {namespace}/{name}: {error}"
            raise ApiError(message, code=error.code, reason=error.reason) from error


async def _nothing(api: HttpApi, namespace: str, name: str, error: NotFound) -> IronbellError:
    """That there is no such Workflow, and where there is one; or what the API said of its logs."""
    hint = await elsewhere(api, WORKFLOW.collection, namespace, name)
    try:
        await api.get(WORKFLOW.collection, namespace, name)
    except NotFound:
        hint = hint or f"{_LISTED} lists all."
        return NotFound(f'there is no workflow "{name}" in namespace "{namespace}". {hint}')
    return IronbellError(f"no logs of workflow {namespace}/{name}: {error}. {hint}".strip())


async def _no_logs(api: HttpApi, namespace: str, name: str) -> str:
    """Why nothing was printed: what the Workflow waits for, or that its actions printed nothing."""
    workflow = msgspec.json.decode(await api.get(WORKFLOW.collection, namespace, name))
    root = {"kind": WORKFLOW.kind, "apiVersion": WORKFLOW.api_version, **workflow}
    now = SystemClock().now()
    answer = why(await read_world(api, root), ref_of(root), now)
    if answer.is_good:
        return f"The actions of workflow {namespace}/{name} have printed nothing, or their logs are no longer kept."
    return f"Workflow {namespace}/{name} has no logs yet. {first_line(answer, now)}"


async def _kept(api: HttpApi, namespace: str, name: str, query: dict[str, str]) -> list[str]:
    """What the Workflow itself keeps of its logs; nothing where the form asked for needs more."""
    if query.get("format") or query.get("follow"):
        return []
    try:
        workflow = WORKFLOW.decode(await api.get(WORKFLOW.collection, namespace, name))
    except ApiError:
        return []
    lines = kept_lines(workflow, action=query.get("action", ""))
    return lines[-int(query["tail"]) :] if int(query.get("tail", 0)) else lines


class _Kept(msgspec.Struct):
    lines: list[str] = []


def kept_lines(workflow: Workflow, *, action: str = "") -> list[str]:
    """The last lines of every action that has ended, or of one, as the workflow service leaves them on the Workflow."""
    found = []
    for one in (each for task in workflow.status.tasks for each in task.actions):
        text = workflow.metadata.annotations.get(f"{ANNOTATION_LOG_PREFIX}{one.id}")
        if text is None or action not in {"", one.name, one.id}:
            continue
        with contextlib.suppress(msgspec.MsgspecError):
            found += [f"{one.name} | {line}" for line in msgspec.json.decode(text, type=_Kept).lines]
    return found
