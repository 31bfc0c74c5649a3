"""Options and inputs that commands share. Light, as every start of the program imports it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from ironbell.base.textfile import read_text_file, text_of

JSON = "json"
STANDARD_INPUT = "-"
F = TypeVar("F", bound=Callable[..., Any])


def api_options(command: F) -> F:
    """Options of every command that uses an API, and of the groups around it: they may be set on either side."""
    command = click.option(
        "--context", default="", callback=_or_of_group, help="Context of the kubeconfig.  [default: its current one]"
    )(command)
    return click.option(
        "--kubeconfig",
        type=click.Path(path_type=Path, dir_okay=False),
        callback=_or_of_group,
        help="Kubeconfig of the API.  [default: $KUBECONFIG, else ~/.kube/config]",
    )(command)


def _or_of_group(context: click.Context, parameter: click.Parameter, value: Any) -> Any:
    """The value set on the command, or else on the nearest group around it."""
    around = context.parent
    while not value and around is not None:
        value = around.params.get(parameter.name or "") or value
        around = around.parent
    return value


def namespace_options(command: F) -> F:
    """`-n` and `-A`."""
    command = click.option("--namespace", "-n", default="default", show_default=True, help="Namespace.")(command)
    return click.option("--all-namespaces", "-A", is_flag=True, help="All namespaces.")(command)


def output_option(*, text: str = "text") -> Callable[[F], F]:
    """`-o`, with `json` beside the text format."""
    return _form_option("--output", "-o", text=text)


def format_option(command: F) -> F:
    """The same as `-o`, for commands whose `--output` names a file or folder."""
    return _form_option("-o", "--format", "form", text="text")(command)


def _form_option(*names: str, text: str) -> Callable[[F], F]:
    forms = click.Choice([text, JSON])
    return click.option(*names, type=forms, default=text, show_default=True, help="Output format.")


def values(context: click.Context, parameter: click.Parameter, pairs: tuple[str, ...]) -> dict[str, str]:
    """Callback of an option that takes `NAME=VALUE` several times; the last value of a name takes precedence."""
    result: dict[str, str] = {}
    for pair in pairs:
        name, sign, value = pair.partition("=")
        if not sign or not name:
            raise click.BadParameter(f"{pair!r} is not NAME=VALUE", ctx=context, param=parameter)
        result[name] = value
    return result


def named_folder(text: str) -> tuple[str, str]:
    """A folder of artefacts with its name, as `NAME=FOLDER`."""
    name, equals, folder = text.partition("=")
    if not equals or not name or not folder:
        raise click.BadParameter(f"{text!r} is not NAME=FOLDER", param_hint="--artefacts")
    return name, folder


def read_text(path: str, *, purpose: str) -> str:
    """The text of a file, or of standard input for `-`. `purpose` names what is expected, such as "a cluster template".

    Raises:
        TextFileError: it does not exist, is a folder, cannot be read, or is not text.
    """
    if path == STANDARD_INPUT:
        return text_of(sys.stdin.buffer.read(), name="standard input", purpose=purpose)
    return read_text_file(Path(path), purpose=purpose, also=", or - for standard input")
