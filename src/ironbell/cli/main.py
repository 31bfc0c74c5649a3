"""The `ironbell` command: its subcommands, loaded only when they are called.

Whatever fails is printed as one line, without a traceback; see `problems`.
"""

from __future__ import annotations

import importlib
import sys

import click

from ironbell.cli.problems import report

# name -> (module, attribute, one line of help): listing the commands imports none of them
COMMANDS = {
    "up": ("ironbell.cli.up", "up", "Start the Kubernetes API, the controllers and the servers toward machines."),
    "run": ("ironbell.cli.run", "run", "Run components against any Kubernetes API."),
    "install": ("ironbell.cli.install", "install", "Install Ironbell on a cluster."),
    "uninstall": ("ironbell.cli.install", "uninstall", "Remove Ironbell from a cluster."),
    "demo": ("ironbell.cli.demo", "demo", "Make a cluster of powered-off virtual servers, and show each stage."),
    "get": ("ironbell.cli.get", "get", "Show objects as a table."),
    "logs": ("ironbell.cli.logs", "logs", "Show what a workflow's actions print."),
    "why": ("ironbell.cli.why", "why", "Tell why an object waits or failed."),
    "cluster": ("ironbell.cli.cluster.commands", "cluster", "Kubernetes clusters on machines."),
    "pivot": ("ironbell.cli.pivot.command", "pivot", "Move clusters to another management cluster."),
    "template": ("ironbell.cli.template", "template", "Render workflow templates."),
    "crds": ("ironbell.cli.crds", "crds", "Print CustomResourceDefinitions."),
    "lab": ("ironbell.cli.lab", "lab", "Virtual bare metal."),
    "osie": ("ironbell.cli.osie", "osie", "The in-memory OS."),
    "image": ("ironbell.cli.image", "image", "Disk images of operating systems."),
    "ipxe": ("ironbell.cli.ipxe", "ipxe", "iPXE binaries with our script inside."),
    "backup": ("ironbell.cli.backup", "backup", "Write all objects of a site to a file."),
    "restore": ("ironbell.cli.backup", "restore", "Bring a site back from a backup."),
    "hardware": ("ironbell.cli.hardware", "hardware", "Confirm what a restore says of servers."),
    "pool": ("ironbell.cli.pool", "pool", "Confirm what a restore says of pools of addresses."),
    "storage": ("ironbell.cli.storage", "storage", "The database of a site."),
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

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, help_line) for name, (_, _, help_line) in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
def cli() -> None:
    """Ironbell: bare metal to Kubernetes."""


def main() -> None:
    """Entry point of the console script."""
    try:
        cli.main(prog_name="ironbell", standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.Exit as leave:
        sys.exit(leave.exit_code)
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the outermost place: reported, and the status set
        sys.exit(report(error))


if __name__ == "__main__":
    main()
