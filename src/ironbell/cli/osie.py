"""`ironbell osie`: build the in-memory OS."""

from __future__ import annotations

from pathlib import Path

import click

from ironbell.cli.output import format_option, print_json
from ironbell.cli.signals import terminable

DEFAULT_FOLDER = "~/.cache/ironbell/osie"


@click.group()
def osie() -> None:
    """The in-memory OS that machines boot over the network."""


@osie.command()
@click.option("--output", default=DEFAULT_FOLDER, show_default=True, help="Folder for kernel, initramfs and manifest.")
@click.option("--arch", default="amd64", show_default=True, help="Debian's name of the architecture.")
@click.option("--proxy", default="", help="HTTP proxy for the agent, where the boot script names none.")
@click.option("--ca", multiple=True, type=click.Path(path_type=Path), help="PEM file of an authority to trust.")
@click.option("--extra-package", multiple=True, help="Debian package to add whole, such as firmware-bnx2x.")
@click.option("--suite", default="", help="Debian release; needs --sources. Default: the host's.")
@click.option("--sources", type=click.Path(path_type=Path), help="apt sources to build from. Default: the host's.")
@click.option("--smallest", is_flag=True, help="Compress for a minute longer and save 10 %.")
@click.option("--if-changed", is_flag=True, help="Do nothing when the earlier build has the same inputs.")
@format_option
def build(
    output: str,
    *,
    arch: str,
    proxy: str,
    ca: tuple[Path, ...],
    extra_package: tuple[str, ...],
    suite: str,
    sources: Path | None,
    smallest: bool,
    if_changed: bool,
    form: str,
) -> None:
    """Build kernel and initramfs from Debian packages; needs root."""
    from ironbell.image.debian import chosen_sources
    from ironbell.osie.build import Options
    from ironbell.osie.build import build as build_osie

    options = Options(
        output=Path(output).expanduser(),
        architecture=arch,
        proxy=proxy,
        authorities=ca,
        extra_packages=extra_package,
        is_smallest=smallest,
        only_if_changed=if_changed,
    )
    origin = chosen_sources(sources, suite)
    with terminable():
        made, was_built = build_osie(options, origin, progress=lambda text: click.echo(text, err=True))
    if form == "json":
        print_json(made)
        return
    click.echo(
        f"{'built' if was_built else 'current'}: kernel {made.kernel}, {made.unpacked_bytes / 1e6:.0f} MB unpacked"
    )
    for artefact in made.artefacts:
        click.echo(f"{options.output / artefact.name}  {artefact.size_bytes / 1e6:.1f} MB  sha256:{artefact.sha256}")
