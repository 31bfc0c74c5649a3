"""The commands of `ironbell`, for tests of what all of them have in common."""

from __future__ import annotations

from collections.abc import Iterator

import click

from ironbell.cli.main import COMMANDS, cli


def all_commands() -> dict[str, click.Command]:
    """Every command that is no group, by its full name."""
    context = click.Context(cli, info_name="ironbell")
    return dict(pair for name in COMMANDS for pair in _below(context, name, cli.get_command(context, name)))


def _below(context: click.Context, path: str, command: click.Command | None) -> Iterator[tuple[str, click.Command]]:
    assert command is not None
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            yield from _below(context, f"{path} {name}", command.get_command(context, name))
    else:
        yield path, command
