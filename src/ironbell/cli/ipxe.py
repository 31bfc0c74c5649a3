"""`ironbell ipxe`: build iPXE binaries with our script inside."""

from __future__ import annotations

from pathlib import Path

import click

from ironbell.cli.output import format_option, print_json
from ironbell.cli.signals import terminable


@click.group()
def ipxe() -> None:
    """iPXE binaries with our script inside."""


@ipxe.command()
@click.option(
    "--output",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("ipxe"),
    show_default=True,
    help="Folder to put the binaries in; give it to `ironbell up --ipxe-dir`.",
)
@click.option(
    "--source",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="An unpacked iPXE source tree; without it, the distribution's source package is fetched by apt.",
)
@format_option
def build(folder: Path, source: Path | None, form: str) -> None:
    """Build undionly.kpxe, ipxe.efi and snp-x86_64.efi."""
    from ironbell.ipxe.build import BuildRequest
    from ironbell.ipxe.build import build as build_binaries

    with terminable():
        built = build_binaries(BuildRequest(folder, source), lambda message: click.echo(message, err=True))
    if form == "json":
        print_json([{"path": str(path), "bytes": path.stat().st_size} for path in built])
        return
    for path in built:
        click.echo(f"{path}  {path.stat().st_size / 1e6:.1f} MB")
