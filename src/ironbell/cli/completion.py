"""`ironbell completion`: scripts that complete commands and options in a shell."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

PROGRAM = "ironbell"
VARIABLE = "_IRONBELL_COMPLETE"
"""The environment variable by which the script asks the program for completions; click forms it from the name."""


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print a script that completes commands and options in SHELL.

    \b
    bash: source <(ironbell completion bash)
    zsh:  source <(ironbell completion zsh)
    fish: ironbell completion fish | source

    Put the line into the shell's start-up file to have it in every session.
    """
    kind = get_completion_class(shell)
    assert kind is not None  # noqa: S101 - the choices are those that click has
    click.echo(kind(context.find_root().command, {}, PROGRAM, VARIABLE).source())
