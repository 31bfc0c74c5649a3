"""`ironbell get`: objects as the server's own tables, or as JSON or YAML."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import msgspec

from ironbell.cli.session import api_options, connected, kind_named, namespace_options, run

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"


@click.command()
@click.argument("kind")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--selector", "-l", default="", help="Label selector.")
@click.option(
    "--output", "-o", type=click.Choice(["table", "wide", "json", "yaml", "name"]), default="table", help="Form."
)
@namespace_options
@api_options
def get(kind: str, names: tuple[str, ...], selector: str, output: str, **where: Any) -> None:
    """Show objects of a KIND: hardware, workflows, templates, machines, jobs, tasks, events, ...

    KIND may also be KIND/NAME, or several kinds with commas.
    """
    kinds, _, name = kind.partition("/")
    texts = [
        run(_get(one, (name, *names) if name else names, selector=selector, output=output, **where))
        for one in kinds.split(",")
    ]
    click.echo("\n".join(texts), nl=False)


async def _get(
    word: str,
    names: tuple[str, ...],
    *,
    selector: str,
    output: str,
    namespace: str,
    all_namespaces: bool,
    kubeconfig: Path | None,
    context: str,
) -> str:
    kind = kind_named(word)
    space = "" if all_namespaces or not kind.namespaced else namespace
    paths = [kind.collection.path(space, name) for name in names] or [kind.collection.path(space)]
    query = {"labelSelector": selector} if selector else {}
    accept = TABLE if output in {"table", "wide"} else "application/json"
    async with connected(kubeconfig, context) as api:
        answers = [msgspec.json.decode(await api.raw("GET", path, query=dict(query), accept=accept)) for path in paths]
    if output in {"table", "wide"}:
        return table_text(answers, wide=output == "wide", with_namespace=all_namespaces and kind.namespaced)
    items = [item for answer in answers for item in answer.get("items", [answer])]
    if output == "name":
        return "".join(f"{kind.plural}.{kind.group}/{item['metadata']['name']}\n" for item in items)
    whole: Any = items[0] if len(names) == 1 else {"apiVersion": "v1", "kind": "List", "items": items}
    if output == "json":
        return msgspec.json.format(msgspec.json.encode(whole), indent=2).decode() + "\n"
    from ironbell.codec import goyaml

    return goyaml.dump(whole)


def table_text(tables: list[dict[str, Any]], *, wide: bool, with_namespace: bool) -> str:
    """Server-side tables of one kind as aligned text."""
    columns = tables[0].get("columnDefinitions", [])
    shown = [place for place, column in enumerate(columns) if wide or not column.get("priority")]
    heads = [str(columns[place]["name"]).upper() for place in shown]
    rows = [
        ([row["object"]["metadata"].get("namespace", "")] if with_namespace else [])
        + ["" if row["cells"][place] is None else str(row["cells"][place]) for place in shown]
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
