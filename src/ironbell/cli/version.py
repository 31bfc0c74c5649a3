"""`ironbell version`, `crds` and `completion`: what the program prints about itself."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as package_version

import click
import msgspec
from click.shell_completion import get_completion_class

PROGRAM = "ironbell"
VARIABLE = "_IRONBELL_COMPLETE"
"""The environment variable by which the script requests completions; click derives it from the name."""


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
@click.option("--output", "-o", type=click.Choice(["text", "json"]), default="text", help="Output format.")
def version(output: str) -> None:
    """Print the version."""
    if output == "json":
        facts = {"version": ironbell_version(), "python": platform.python_version(), "machine": platform.machine()}
        click.echo(msgspec.json.encode(facts).decode())
    else:
        click.echo(version_line())


@click.command()
@click.argument("groups", nargs=-1, metavar="[GROUP]...")
def crds(groups: tuple[str, ...]) -> None:
    """Print CustomResourceDefinitions as YAML: those of the named API groups, or all."""
    from ironbell.api.crd.document import crd_yaml
    from ironbell.app.registry import kinds_of

    click.echo(crd_yaml(kinds_of(groups)), nl=False)


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print a script that completes commands and options in SHELL.

    \b
    bash: source <(ironbell completion bash)
    zsh:  source <(ironbell completion zsh)
    fish: ironbell completion fish | source

    Add the line to the shell's start-up file to have it in every session.
    """
    kind = get_completion_class(shell)
    assert kind is not None  # noqa: S101 - the choices are those that click has
    click.echo(kind(context.find_root().command, {}, PROGRAM, VARIABLE).source())
