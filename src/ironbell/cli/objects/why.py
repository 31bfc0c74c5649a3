"""`ironbell why`: the object that blocks another one, the cause, and the remedy."""

from __future__ import annotations

from typing import Any

import click

from ironbell.base.clock import SystemClock
from ironbell.base.printable import printable
from ironbell.cli.options import JSON, api_options
from ironbell.cli.output import print_json
from ironbell.cli.session import with_api
from ironbell.operations.kinds import parse_target
from ironbell.operations.why.answers import answers
from ironbell.operations.why.text import lines


@click.command()
@click.argument("target", nargs=-1, required=True, metavar="[KIND] NAME")
@click.option("--namespace", "-n", default="default", show_default=True, help="Namespace.")
@click.option(
    "--output",
    "-o",
    type=click.Choice(["text", "wide", "json"]),
    default="text",
    help="Output format; wide adds every related object, with its conditions and events.",
)
@api_options
def why(target: tuple[str, ...], namespace: str, output: str, **where: Any) -> None:
    """Explain why an object waits or failed: KIND/NAME, KIND NAME, or a NAME alone.

    The first line names the object that blocks, the cause, its age, when it ends, and what you can do. The lines below
    it lead from the object you named to the one that blocks.

    A KIND that several groups have, such as machine, means all of them; machine.cluster.x-k8s.io/NAME is only one.
    """
    kinds, name, bare = parse_target(target)
    wide = output != "text"
    results = with_api(lambda api: answers(api, kinds, namespace, name, bare=bare, wide=wide), **where)
    if output == JSON:
        plain = [
            {**answer.diagnosis.plain(), "related": [part.plain() for part in answer.related]} for answer in results
        ]
        print_json(plain)
        return
    now = SystemClock().now()
    for number, answer in enumerate(results):
        if len(results) > 1:
            click.echo(("\n" if number else "") + f"{answer.diagnosis.object.qualified}:")
        click.echo(printable("\n".join(lines(answer.diagnosis, now))))
        if answer.also:
            click.echo(printable(f"Also named {name}: {', '.join(answer.also)}."))
        if output == "wide":
            click.echo("\n" + "\n".join(part.text() for part in answer.related))
