"""`ironbell template`: workflow templates, without a cluster.

Exit statuses of `render`: 0 the text is a valid workflow, 1 nothing was rendered (the template, the manifests, or a
missing value is wrong), 2 the text was rendered and printed but is not a valid workflow.
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
@click.option(
    "--map", "variables", metavar="NAME=VALUE", multiple=True, callback=values, help="Value of the Hardware map."
)
def render(template_file: str, hardware_file: str | None, variables: dict[str, str]) -> None:
    """Print the text that TEMPLATE, a manifest, renders to for a Hardware.

    A text that is not a valid workflow is printed as well, with the reasons on standard error.
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
