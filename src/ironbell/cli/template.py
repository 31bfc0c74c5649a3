"""`ironbell template`: workflow templates, without a cluster.

Exit statuses of `render`: 0 the text is a valid workflow, 1 nothing was rendered (the template, the manifests, or a
value that is missing), 2 a text was rendered and printed that is no valid workflow.
"""

from __future__ import annotations

import sys

import click

from ironbell.cli.options import read_text, values


@click.group()
def template() -> None:
    """Render workflow templates."""


@template.command()
@click.argument("template_file", metavar="TEMPLATE", type=click.Path(allow_dash=True))
@click.option(
    "--hardware", "hardware_file", metavar="FILE", type=click.Path(allow_dash=True), help="Manifest of the Hardware."
)
@click.option("--map", "variables", metavar="NAME=VALUE", multiple=True, callback=values, help="Hardware map.")
def render(template_file: str, hardware_file: str | None, variables: dict[str, str]) -> None:
    """Print what TEMPLATE, a manifest, renders to for a Hardware.

    A text that is no valid workflow is printed all the same, with the reasons on standard error.
    """
    from ironbell.codec.gotemplate import TemplateError
    from ironbell.operations.template import Manifest
    from ironbell.operations.template import render as render_template

    # read once, so that both may be on standard input
    manifests = {
        path: Manifest.parse(read_text(path, purpose="a manifest"), source=path)
        for path in {template_file, hardware_file}
        if path is not None
    }
    hardware = manifests[hardware_file] if hardware_file is not None else None
    try:
        rendered = render_template(manifests[template_file], hardware, variables)
    except TemplateError as error:
        click.echo(f"ironbell: {template_file}: {error}", err=True)
        if error.excerpt:
            click.echo(f"    {error.excerpt}", err=True)
        sys.exit(1)
    click.echo(rendered.text.encode("utf-8", "surrogateescape"), nl=False)
    for problem in rendered.problems:
        click.echo(f"ironbell: {template_file}: not a valid workflow: {problem}", err=True)
    if rendered.problems:
        sys.exit(2)
