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


def version_line() -> str:
    """One line: the versions of Ironbell and Python, and the machine."""
    return f"ironbell {ironbell_version()} (Python {platform.python_version()}, {platform.machine()})"


@click.command()
@click.option("--output", "-o", type=click.Choice(["text", "json"]), default="text", help="Form of the answer.")
def version(output: str) -> None:
    """Print the version."""
    if output == "json":
        facts = {"version": ironbell_version(), "python": platform.python_version(), "machine": platform.machine()}
        click.echo(msgspec.json.encode(facts).decode())
    else:
        click.echo(version_line())
