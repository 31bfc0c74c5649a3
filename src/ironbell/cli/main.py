"""The `ironbell` command: its subcommands, loaded only when they are called.

Every failure is printed as one line, without a traceback; see `problems`.
"""

from __future__ import annotations

import difflib
import importlib
import sys
from typing import Any

import click
from click.shell_completion import CompletionItem

from ironbell.base.terminal import guard_terminals
from ironbell.cli.options import api_options
from ironbell.cli.output import requests_json
from ironbell.cli.problems import report

# name -> (module, attribute, one line of help): listing the commands imports none of them
COMMANDS = {
    "up": ("ironbell.cli.up", "up", "Start the Kubernetes API, the controllers and the services for machines."),
    "run": ("ironbell.cli.run", "run", "Run components against any Kubernetes API."),
    "install": ("ironbell.cli.install", "install", "Install Ironbell on a cluster."),
    "uninstall": ("ironbell.cli.install", "uninstall", "Remove Ironbell from a cluster."),
    "demo": ("ironbell.cli.demo", "demo", "Create a cluster on powered-off virtual servers, and show each stage."),
    "get": ("ironbell.cli.objects.get", "get", "Show objects as a table."),
    "logs": ("ironbell.cli.objects.logs", "logs", "Show the output of a workflow's actions."),
    "why": ("ironbell.cli.objects.why", "why", "Explain why an object waits or failed."),
    "cluster": ("ironbell.cli.objects.cluster", "cluster", "Create and change Kubernetes clusters on machines."),
    "pivot": ("ironbell.cli.objects.pivot", "pivot", "Move clusters to another management cluster."),
    "template": ("ironbell.cli.template", "template", "Render workflow templates."),
    "crds": ("ironbell.cli.version", "crds", "Print CustomResourceDefinitions."),
    "lab": ("ironbell.cli.lab", "lab", "Control virtual bare metal."),
    "osie": ("ironbell.cli.builds", "osie", "Build the in-memory OS."),
    "image": ("ironbell.cli.builds", "image", "Build disk images of operating systems."),
    "ipxe": ("ironbell.cli.builds", "ipxe", "Build iPXE binaries with an embedded script."),
    "backup": ("ironbell.cli.backup", "backup", "Write all objects of a site to a file."),
    "restore": ("ironbell.cli.backup", "restore", "Restore a site from a backup."),
    "hardware": ("ironbell.cli.objects.restored", "hardware", "Confirm the records of servers after a restore."),
    "pool": ("ironbell.cli.objects.restored", "pool", "Confirm address pools after a restore."),
    "storage": ("ironbell.cli.backup", "storage", "Check the database of a site, and change its key."),
    "completion": ("ironbell.cli.version", "completion", "Print a script that completes commands in a shell."),
    "version": ("ironbell.cli.version", "version", "Print the version."),
}


class LazyGroup(click.Group):
    """A group whose commands are imported when they are used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, attribute, _ = COMMANDS[cmd_name]
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)  # noqa: S101
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        word = args[0]
        if word not in COMMANDS and not word.startswith("-") and not ctx.resilient_parsing:
            near = difflib.get_close_matches(word, COMMANDS, n=1)
            meant = f" Did you mean {near[0]!r}?" if near else ""
            raise click.UsageError(f"No such command {word!r}.{meant}", ctx)
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None:
            _check_options(ctx, command)
        return name, command, rest

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete as click does, without an import of every command."""
        commands = [CompletionItem(name, help=line) for name, (_, _, line) in COMMANDS.items()]
        options = click.Command.shell_complete(self, ctx, incomplete)
        return [item for item in commands if str(item.value).startswith(incomplete)] + options

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, help_line) for name, (_, _, help_line) in COMMANDS.items()])


def _check_options(context: click.Context, command: click.Command) -> None:
    """Check that the command honours the options that were given before it.

    Raises:
        click.UsageError: the command does not use an API.
    """
    for parameter in command.params:
        if parameter.name == "kubeconfig":
            return
    for name in ("kubeconfig", "context"):
        if context.params.get(name):
            raise click.UsageError(
                f"`ironbell {command.name}` does not use an API, so --{name} has no effect.", context
            )


def _print_version(context: click.Context, _parameter: click.Parameter, value: bool) -> None:
    if value and not context.resilient_parsing:
        from ironbell.cli.version import version_line

        click.echo(version_line())
        context.exit()


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version, help="Print the version."
)
@api_options
def cli(**_where: Any) -> None:
    """Ironbell: bare metal to Kubernetes."""


def main() -> None:
    """Entry point of the console script."""
    guard_terminals()
    try:
        cli.main(prog_name="ironbell", standalone_mode=False)
        if sys.stdout is not None:  # it is, where it was closed before the start
            sys.stdout.flush()
    except click.exceptions.Exit as leave:
        sys.exit(leave.exit_code)
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the outermost place: reported, and the status set
        sys.exit(report(error, as_json=requests_json(sys.argv[1:])))


if __name__ == "__main__":
    main()
