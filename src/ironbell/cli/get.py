"""`ironbell get`: objects as the server's own tables, or as JSON or YAML."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import click
import msgspec

from ironbell.api.client import NotFound
from ironbell.api.kind import Kind
from ironbell.base.printable import one_line
from ironbell.cli.api_options import api_options
from ironbell.cli.namespaces import elsewhere
from ironbell.cli.output import json_text
from ironbell.cli.session import connected, kind_named, namespace_options, others_meant, qualified, run
from ironbell.cli.watching import TABLE, Rows, follow

Answer = dict[str, Any]
TABLES = ("table", "wide")


@click.command()
@click.argument("kind")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--selector", "-l", default="", help="Label selector.")
@click.option(
    "--output", "-o", type=click.Choice(["table", "wide", "json", "yaml", "name"]), default="table", help="Form."
)
@click.option("--watch", "-w", is_flag=True, help="Go on, and print each row again when it changes; Ctrl-C ends it.")
@namespace_options
@api_options
def get(kind: str, names: tuple[str, ...], selector: str, output: str, *, watch: bool, **where: Any) -> None:
    """Show objects of a KIND: hardware, workflows, templates, machines, jobs, tasks, events, ...

    KIND may also be KIND/NAME, or several kinds with commas.
    """
    words, _, name = kind.partition("/")
    kinds = [kind_named(word) for word in words.split(",")]
    names = (name, *names) if name else names
    if watch:
        if len(kinds) > 1 or len(names) > 1 or output not in TABLES:
            raise click.UsageError("--watch shows a table of one kind, of all objects or of one")
        with contextlib.suppress(KeyboardInterrupt):
            run(_watched(kinds[0], "".join(names), selector=selector, wide=output == "wide", **where))
        return
    found, hint = run(_answers(kinds, names, selector=selector, output=output, **where))
    with_namespace = where["all_namespaces"]
    if output in TABLES:
        tables = [
            table_text(answers, wide=output == "wide", with_namespace=with_namespace and one.namespaced)
            for one, answers in zip(kinds, found, strict=True)
        ]
        click.echo("\n".join(tables), nl=False)
        for line in filter(None, [hint, *map(others_meant, words.split(","))]):
            click.echo(line, err=True)
    else:
        click.echo(objects_text(list(zip(kinds, found, strict=True)), output=output), nl=False)


async def _answers(
    kinds: list[Kind[Any]],
    names: tuple[str, ...],
    *,
    selector: str,
    output: str,
    namespace: str,
    all_namespaces: bool,
    kubeconfig: Path | None,
    context: str,
) -> tuple[list[list[Answer]], str]:
    """For each kind the answers for all names, or the one of the list; and where else objects are if there are none.

    Raises:
        NotFound: there is no object of a name; the message says which namespaces have one.
    """
    query = {"labelSelector": selector} if selector else {}
    accept = TABLE if output in TABLES else "application/json"
    found = []
    async with connected(kubeconfig, context) as api:
        for kind in kinds:
            space = "" if all_namespaces or not kind.namespaced else namespace
            paths = [kind.collection.path(space, name) for name in names] or [kind.collection.path(space)]
            try:
                bodies = [await api.raw("GET", path, query=dict(query), accept=accept) for path in paths]
            except NotFound as error:
                if not names:
                    raise
                hints = [await elsewhere(api, kind.collection, space, name) for name in names]
                raise NotFound(" ".join([error.message, *dict.fromkeys(filter(None, hints))])) from None
            found.append([msgspec.json.decode(body) for body in bodies])
        is_empty = output in TABLES and not names and not any(map(_has_objects, found))
        hint = await elsewhere(api, kinds[0].collection, space) if is_empty and len(kinds) == 1 else ""
    return found, hint


def _has_objects(answers: list[Answer]) -> bool:
    return any(answer.get("rows") or answer.get("items") for answer in answers)


async def _watched(
    kind: Kind[Any],
    name: str,
    *,
    selector: str,
    wide: bool,
    namespace: str,
    all_namespaces: bool,
    kubeconfig: Path | None,
    context: str,
) -> None:
    """Print rows as they change, until interrupted."""
    query = {"labelSelector": selector} if selector else {}
    query |= {"fieldSelector": f"metadata.name={name}"} if name else {}
    path = kind.collection.path("" if all_namespaces or not kind.namespaced else namespace)
    rows = Rows(wide=wide, with_namespace=all_namespaces and kind.namespaced)
    async with connected(kubeconfig, context) as api:
        await follow(api, path, query, rows, click.echo)


def objects_text(found: list[tuple[Kind[Any], list[Answer]]], *, output: str) -> str:
    """Names, or one JSON or YAML document: a list, unless it is one object that was named."""
    items = [
        (kind, {"apiVersion": kind.api_version, "kind": kind.kind, **_readable(item)})
        for kind, answers in found
        for answer in answers
        for item in answer.get("items", [answer])
    ]
    if output == "name":
        return "".join(f"{qualified(kind)}/{item['metadata']['name']}\n" for kind, item in items)
    named = [answer for _, answers in found for answer in answers if "items" not in answer]
    whole: Any = {"apiVersion": "v1", "kind": "List", "items": [item for _, item in items]}
    if len(items) == len(named) == 1:
        whole = items[0][1]
    if output == "json":
        return json_text(whole) + "\n"
    from ironbell.codec import goyaml

    return goyaml.dump(whole)


def _readable(item: Answer) -> Answer:
    """An object without the record of who owns its fields, which is longer than all else and not for people."""
    meta = {name: value for name, value in item.get("metadata", {}).items() if name != "managedFields"}
    return {**item, "metadata": meta}


def table_text(tables: list[dict[str, Any]], *, wide: bool, with_namespace: bool) -> str:
    """Server-side tables of one kind as aligned text."""
    columns = tables[0].get("columnDefinitions", [])
    shown = [place for place, column in enumerate(columns) if wide or not column.get("priority")]
    heads = [str(columns[place]["name"]).upper() for place in shown]
    rows = [
        ([row["object"]["metadata"].get("namespace", "")] if with_namespace else [])
        + ["" if row["cells"][place] is None else one_line(str(row["cells"][place])) for place in shown]
        for table in tables
        for row in table.get("rows") or []
    ]
    if not rows:
        return "No objects found.\n"
    return aligned([(["NAMESPACE"] if with_namespace else []) + heads, *rows])


def aligned(rows: list[list[str]]) -> str:
    """Rows with their columns aligned, three spaces apart."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    lines = ("   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)
    return "".join(f"{line}\n" for line in lines)
