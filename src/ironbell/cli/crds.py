"""`ironbell crds`: the definitions of our kinds, generated from the types."""

from __future__ import annotations

import click


@click.command()
@click.argument("groups", nargs=-1, metavar="[GROUP]...")
def crds(groups: tuple[str, ...]) -> None:
    """Print CustomResourceDefinitions as YAML: of the named API groups, or of all."""
    from ironbell.api.crd.document import crd_yaml
    from ironbell.app.registry import kinds_of

    click.echo(crd_yaml(kinds_of(groups)), nl=False)
