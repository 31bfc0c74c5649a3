"""`ironbell lab`: virtual bare metal beside a running `ironbell up --lab FILE`."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from pathlib import Path

import click

from ironbell.base.errors import IronbellError
from ironbell.cli.options import JSON, output_option
from ironbell.cli.output import print_json, result_document

EXAMPLE = """\
# Virtual machines for `ironbell up --lab FILE`. Everything but the names has a default.
name: lab
network:
  subnet: 192.168.77.0/24
machines:
- name: node-1
  kind: qemu          # or namespace: without emulation, for hosts without KVM
  firmware: uefi      # or bios
  memory: 1536        # MiB
  cpus: 2
  disks:
  - size: 4GiB
"""
DATA_DIR = click.option(
    "--data-dir", type=click.Path(path_type=Path, file_okay=False), required=True, help="Data folder of `ironbell up`."
)


@click.group()
def lab() -> None:
    """Virtual bare metal: QEMU machines with virtual BMCs on a separate network."""


@lab.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@output_option()
def init(file: Path, output: str) -> None:
    """Write an example lab FILE."""
    if file.exists():
        raise IronbellError(f"{file} already exists and is not overwritten")
    file.write_text(EXAMPLE)
    if output == JSON:
        print_json(result_document("written", file=str(file)))
        return
    click.echo(f"wrote {file}; next: ironbell up --data-dir DIR --lab {file}")


@lab.command(name="list")
@DATA_DIR
@click.option("--output", "-o", type=click.Choice(["table", "json"]), default="table", help="Output format.")
def list_machines(data_dir: Path, output: str) -> None:
    """Show the machines."""
    from ironbell.cli.objects.tables import aligned
    from ironbell.lab.files import read_state

    state = read_state(data_dir)
    if output == "json":
        print_json(state)
        return
    rows = [["NAME", "KIND", "FIRMWARE", "POWER", "MAC", "ADDRESS", "BMC"]]
    rows += [[m.name, m.kind, m.firmware, m.power, m.mac, m.address, m.bmc_url] for m in state.machines]
    click.echo(aligned(rows), nl=False)


@lab.command()
@DATA_DIR
@click.option("--namespace", "-n", default="default", show_default=True, help="Namespace of the objects.")
def manifests(data_dir: Path, namespace: str) -> None:
    """Print the machines as Secret, bmc Machine and Hardware, for `kubectl apply -f -`."""
    from ironbell.codec import goyaml
    from ironbell.lab.files import read_state
    from ironbell.lab.manifests import manifests as documents

    state = read_state(data_dir)
    passwords = {machine.name: Path(machine.password_file).read_text() for machine in state.machines}
    click.echo(
        "---\n".join(goyaml.dump(document) for document in documents(state, passwords, namespace=namespace)), nl=False
    )


@lab.command()
@DATA_DIR
@click.argument("name")
@click.argument("action", type=click.Choice(["on", "off", "cycle", "shutdown"]))
@output_option()
def power(data_dir: Path, name: str, action: str, output: str) -> None:
    """Press a machine's power button."""
    answer = _command(data_dir, {"machine": name, "power": action})
    state = str(answer["power"]).lower()
    if output == JSON:
        print_json(result_document(action, machine=name, power=state))
        return
    click.echo(f"{name}: power {state}")


@lab.command()
@DATA_DIR
@click.argument("name")
@click.argument("kind", type=click.Choice(["none", "unreachable", "wrong-password", "slow", "busy", "broken"]))
@output_option()
def fault(data_dir: Path, name: str, kind: str, output: str) -> None:
    """Set a fault of a machine's BMC; `none` removes it."""
    _command(data_dir, {"machine": name, "fault": kind})
    if output == JSON:
        print_json(result_document("set", machine=name, fault=kind))
        return
    click.echo(f"{name}: BMC fault {kind}")


@lab.command()
@DATA_DIR
@click.argument("name")
@click.option("--follow", "-f", is_flag=True, help="Continue until Ctrl-C.")
@click.option("--attach", "-a", is_flag=True, help="Also type into the console; Ctrl-] detaches.")
def console(data_dir: Path, name: str, *, follow: bool, attach: bool) -> None:
    """Show a machine's serial console."""
    from ironbell.lab.files import read_state

    path = Path(read_state(data_dir).machine(name).console)
    if attach:
        from ironbell.lab.attach import attach as attach_to

        asyncio.run(attach_to(path.with_name("serial.sock")))
        return
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_console(path, follow=follow))


async def _console(path: Path, *, follow: bool) -> None:
    with path.open("rb") as file:
        while True:
            chunk = file.read(1 << 16)
            if chunk:
                sys.stdout.buffer.write(chunk)
                sys.stdout.flush()
            elif not follow:
                return
            else:
                await asyncio.sleep(0.1)


def _command(data_dir: Path, request: dict[str, str]) -> dict[str, object]:
    from ironbell.lab.control import send
    from ironbell.lab.files import LabFolder, read_state

    state = read_state(data_dir)
    root = Path(state.authority).parent
    return asyncio.run(send(LabFolder(root).control, request))
