"""How a command line names the API that a command talks to. Light, as every start of the program imports it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def api_options(command: F) -> F:
    """Options of every command that talks to an API, and of the groups around it: they may be given on either side."""
    command = click.option(
        "--context", default="", callback=_or_of_group, help="Context of the kubeconfig.  [default: its current one]"
    )(command)
    return click.option(
        "--kubeconfig",
        type=click.Path(path_type=Path, dir_okay=False),
        callback=_or_of_group,
        help="How to reach the API.  [default: $KUBECONFIG, else ~/.kube/config]",
    )(command)


def _or_of_group(context: click.Context, parameter: click.Parameter, value: Any) -> Any:
    """What was given to the command, else what was given to the nearest group around it."""
    around = context.parent
    while not value and around is not None:
        value = around.params.get(parameter.name or "") or value
        around = around.parent
    return value
