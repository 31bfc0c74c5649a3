"""`ironbell version`."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as package_version

import click
import msgspec


def ironbell_version() -> str:
    """The installed package's version, or 0.0.0 where it runs from a folder."""
    try:
        return package_version("ironbell")
    except PackageNotFoundError:
        return "0.0.0"


@click.command()
@click.option("--output", "-o", type=click.Choice(["text", "json"]), default="text", help="Form of the answer.")
def version(output: str) -> None:
    """Print the version."""
    facts = {"version": ironbell_version(), "python": platform.python_version(), "machine": platform.machine()}
    if output == "json":
        click.echo(msgspec.json.encode(facts).decode())
    else:
        click.echo(f"ironbell {facts['version']} (Python {facts['python']}, {facts['machine']})")
