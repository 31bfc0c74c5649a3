"""`ironbell template`: workflow templates, without a cluster.

Exit statuses of `render`: 0 the text is a valid workflow, 1 nothing was rendered (the template, the manifests, or a
value that is missing), 2 a text was rendered and printed that is no valid workflow.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import click
import msgspec

from ironbell.base.errors import IronbellError, Retry
from ironbell.cli.inputs import read_text

_VERSION = "tinkerbell.org/v1alpha1"
Objects = dict[str, list[dict[str, Any]]]
"""File names to what is in them."""


class ManifestError(IronbellError):
    """A file does not hold the one object that is looked for."""

    reason = "InvalidManifest"
    retry = Retry.NEVER


@click.group()
def template() -> None:
    """Render workflow templates."""


def _variables(context: click.Context, parameter: click.Parameter, pairs: tuple[str, ...]) -> dict[str, str]:
    result = {}
    for pair in pairs:
        name, separator, value = pair.partition("=")
        if not separator or not name:
            raise click.BadParameter(f"{pair!r} is not NAME=VALUE", ctx=context, param=parameter)
        result[name] = value
    return result


@template.command()
@click.argument("template_file", metavar="TEMPLATE", type=click.Path(allow_dash=True))
@click.option(
    "--hardware", "hardware_file", metavar="FILE", type=click.Path(allow_dash=True), help="Manifest of the Hardware."
)
@click.option("--map", "variables", metavar="NAME=VALUE", multiple=True, callback=_variables, help="Hardware map.")
def render(template_file: str, hardware_file: str | None, variables: dict[str, str]) -> None:
    """Print what TEMPLATE, a manifest, renders to for a Hardware.

    A text that is no valid workflow is printed all the same, with the reasons on standard error.
    """
    from ironbell.codec import gotemplate
    from ironbell.contract.template_data import template_data
    from ironbell.contract.workflow_document import DocumentError, parse_document

    # read once, so that both may be on standard input
    objects = {path: list(_objects(path)) for path in {template_file, hardware_file} if path is not None}
    source = _only(objects, template_file, "Template")
    hardware = _hardware(objects, hardware_file) if hardware_file is not None else None
    spec = source.get("spec")
    data = spec.get("data") if isinstance(spec, dict) else None
    if not isinstance(data, str):
        raise ManifestError(f"{template_file}: spec.data of the Template must be a text")
    try:
        text = gotemplate.render(data, template_data(hardware, hardware_map=variables))
    except gotemplate.TemplateError as error:
        click.echo(f"ironbell: {template_file}: {error}", err=True)
        if error.excerpt:
            click.echo(f"    {error.excerpt}", err=True)
        sys.exit(1)
    click.echo(text.encode("utf-8", "surrogateescape"), nl=False)
    try:
        parse_document(text)
    except DocumentError as error:
        for problem in error.problems:
            click.echo(f"ironbell: {template_file}: not a valid workflow: {problem}", err=True)
        sys.exit(2)


def _hardware(objects: Objects, path: str) -> dict[str, Any]:
    """The one Hardware of a file.

    Raises:
        ManifestError: there is not just one, or a field of it has a type that the API would refuse.
    """
    from ironbell.api.tinkerbell import HARDWARE

    found = _only(objects, path, "Hardware")
    try:
        HARDWARE.decode(msgspec.json.encode(found))
    except (msgspec.MsgspecError, ValueError, OverflowError) as error:
        raise ManifestError(f"{path}: Hardware {_name(found)}: {error}") from None
    return found


def _only(objects: Objects, path: str, kind: str) -> dict[str, Any]:
    """The one object of a kind in a file.

    Raises:
        ManifestError: the file holds none or several.
    """
    found = [item for item in objects[path] if item.get("kind") == kind]
    if len(found) == 1:
        return found[0]
    if not found:
        raise ManifestError(f"{path}: holds no {kind} of {_VERSION}")
    names = ", ".join(_name(item) for item in found)
    raise ManifestError(f"{path}: holds {len(found)} objects of kind {kind} ({names}); give a file with one")


def _objects(path: str) -> Iterator[dict[str, Any]]:
    """The objects of our version in a file: its documents, the items of lists among them.

    Raises:
        TextFileError: the file cannot be read.
        ManifestError: it is no YAML.
    """
    from ironbell.codec.goyaml import YamlError, load_all

    try:
        pending = list(load_all(read_text(path, purpose="a manifest").encode()))
    except YamlError as error:
        raise ManifestError(f"{path}: {error}") from None
    while pending:
        item = pending.pop(0)
        if isinstance(item, list):
            pending = item + pending
        elif isinstance(item, dict) and isinstance(item.get("items"), list) and str(item.get("kind")).endswith("List"):
            pending = item["items"] + pending
        elif isinstance(item, dict) and item.get("apiVersion") == _VERSION:
            yield item


def _name(item: dict[str, Any]) -> str:
    metadata = item.get("metadata")
    return str(metadata.get("name", "?")) if isinstance(metadata, dict) else "?"
