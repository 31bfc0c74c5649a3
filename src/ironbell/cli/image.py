"""`ironbell image`: build a disk image of an operating system."""

from __future__ import annotations

import re
from pathlib import Path

import click
import msgspec

DEFAULT_FILE = "~/.cache/ironbell/images/debian.raw.zst"
_SIZE = re.compile(r"(\d+)([MG])?(?:i?B)?")


class _Mebibytes(click.ParamType[int]):
    """A size such as `2G` or `1500M`, in MiB."""

    name = "size"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        match = _SIZE.fullmatch(str(value))
        if match is None:
            self.fail(f"{value!r} is no size; write it like 2G or 1500M", param, ctx)
        return int(match[1]) * (1024 if match[2] == "G" else 1)


@click.group()
def image() -> None:
    """Disk images of operating systems."""


@image.command()
@click.option("--output", default=DEFAULT_FILE, show_default=True, help="File to write; manifest and checksum beside.")
@click.option("--size", type=_Mebibytes(), default="0M", help="Size of the disk. Default: as small as it can be.")
@click.option("--compress", type=click.Choice(["zst", "gz", "none"]), default="zst", show_default=True)
@click.option(
    "--kernel",
    type=click.Choice(["cloud", "server"]),
    default="cloud",
    show_default=True,
    help="cloud: virtual machines; server: drivers for hardware.",
)
@click.option("--extra-package", multiple=True, help="Debian package to add, such as openssh-server.")
@click.option("--suite", default="", help="Debian release; needs --sources. Default: the host's.")
@click.option("--sources", type=click.Path(path_type=Path), help="apt sources to build from. Default: the host's.")
@click.option("--if-changed", is_flag=True, help="Do nothing when the earlier build has the same inputs.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="How to print the result.")
def build(
    output: str,
    *,
    size: int,
    compress: str,
    kernel: str,
    extra_package: tuple[str, ...],
    suite: str,
    sources: Path | None,
    if_changed: bool,
    form: str,
) -> None:
    """Build a bootable Debian disk with cloud-init, for BIOS and UEFI; needs root."""
    from ironbell.image.build import Options
    from ironbell.image.build import build as build_image
    from ironbell.image.debian import chosen_sources

    options = Options(
        output=Path(output).expanduser().absolute(),
        size_mib=size,
        compression=compress,
        kernel=kernel,
        extra_packages=extra_package,
        only_if_changed=if_changed,
    )
    origin = chosen_sources(sources, suite)
    made, was_built = build_image(options, origin, progress=lambda text: click.echo(text, err=True))
    if form == "json":
        click.echo(msgspec.json.encode(made))
        return
    artefact = made.artefacts[0]
    click.echo(f"{'built' if was_built else 'current'}: kernel {made.kernel}, disk {made.unpacked_bytes / 1e6:.0f} MB")
    click.echo(f"{options.output}  {artefact.size_bytes / 1e6:.1f} MB  sha256:{artefact.sha256}")
