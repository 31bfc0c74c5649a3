"""`ironbell get`: objects as the server's own tables, or as JSON or YAML."""

from __future__ import annotations

import contextlib
from typing import Any

import click

from ironbell.api.kind import Kind
from ironbell.base.printable import printable
from ironbell.cli.objects.tables import Rows, table_text
from ironbell.cli.options import api_options, namespace_options
from ironbell.cli.output import json_text
from ironbell.cli.session import with_api
from ironbell.kube.transport.http import HttpApi
from ironbell.operations.kinds import kinds_named, others_meant, qualified
from ironbell.operations.namespaces import elsewhere
from ironbell.operations.objects import DISCONNECTED, Answer, read_objects, watch_table

TABLES = ("table", "wide")


@click.command()
@click.argument("kind")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--selector", "-l", default="", help="Label selector.")
@click.option(
    "--output",
    "-o",
    type=click.Choice(["table", "wide", "json", "yaml", "name"]),
    default="table",
    help="Output format.",
)
@click.option("--watch", "-w", is_flag=True, help="Continue, and print each row again when it changes, until Ctrl-C.")
@namespace_options
@api_options
def get(
    kind: str,
    names: tuple[str, ...],
    selector: str,
    output: str,
    *,
    watch: bool,
    namespace: str,
    all_namespaces: bool,
    **where: Any,
) -> None:
    """Show objects of a KIND: hardware, workflows, templates, machines, jobs, tasks, events, ...

    KIND may also be KIND/NAME, or several kinds with commas.
    """
    words, _, name = kind.partition("/")
    kinds = [kinds_named(word)[0] for word in words.split(",")]
    names = (name, *names) if name else names
    space = "" if all_namespaces else namespace
    if watch:
        if len(kinds) > 1 or len(names) > 1 or output not in TABLES:
            raise click.UsageError("--watch shows a table of one kind, of all objects or of one")
        rows = Rows(wide=output == "wide", with_namespace=all_namespaces and kinds[0].namespaced)
        with contextlib.suppress(KeyboardInterrupt):
            with_api(lambda api: _print_changes(api, kinds[0], "".join(names), rows, space, selector), **where)
        return

    async def work(api: HttpApi) -> tuple[list[list[Answer]], str]:
        answers = await read_objects(api, kinds, names, namespace=space, selector=selector, as_tables=output in TABLES)
        has_objects = any(
            answer.get("rows") or answer.get("items") for kind_answers in answers for answer in kind_answers
        )
        is_hinted = output in TABLES and not names and not has_objects and len(kinds) == 1
        return answers, await elsewhere(api, kinds[0].collection, space) if is_hinted else ""

    results, hint = with_api(work, **where)
    if output in TABLES:
        tables = [
            table_text(answers, wide=output == "wide", with_namespace=all_namespaces and listed_kind.namespaced)
            for listed_kind, answers in zip(kinds, results, strict=True)
        ]
        click.echo("\n".join(tables), nl=False)
        for line in filter(None, [hint, *map(others_meant, words.split(","))]):
            click.echo(line, err=True)
    else:
        click.echo(objects_text(list(zip(kinds, results, strict=True)), output=output), nl=False)


async def _print_changes(api: HttpApi, kind: Kind[Any], name: str, rows: Rows, namespace: str, selector: str) -> None:
    async for event in watch_table(api, kind, name, namespace=namespace, selector=selector):
        if event.type == DISCONNECTED:
            click.echo(printable(f"{event.message}; trying again"), err=True)
        for line in rows.lines(event):
            click.echo(line)


def objects_text(results: list[tuple[Kind[Any], list[Answer]]], *, output: str) -> str:
    """Names, or one JSON or YAML document: a list, unless it is one object that was named."""
    items = [
        (kind, {"apiVersion": kind.api_version, "kind": kind.kind, **_readable(item)})
        for kind, answers in results
        for answer in answers
        for item in answer.get("items", [answer])
    ]
    if output == "name":
        return "".join(f"{qualified(kind)}/{item['metadata']['name']}\n" for kind, item in items)
    named = [answer for _, answers in results for answer in answers if "items" not in answer]
    whole: Any = {"apiVersion": "v1", "kind": "List", "items": [item for _, item in items]}
    if len(items) == len(named) == 1:
        whole = items[0][1]
    if output == "json":
        return json_text(whole) + "\n"
    from ironbell.codec import goyaml

    return goyaml.dump(whole)


def _readable(item: Answer) -> Answer:
    """An object without managedFields, which are longer than everything else and not meant for people."""
    meta = {name: value for name, value in item.get("metadata", {}).items() if name != "managedFields"}
    return {**item, "metadata": meta}
