"""`ironbell image`: build a disk image of an operating system, or a root archive."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ironbell.cli.output import format_option, print_json
from ironbell.cli.signals import terminable

if TYPE_CHECKING:
    from ironbell.image.kubernetes.node import Node

DEFAULT_FILE = "~/.cache/ironbell/images/debian.raw.zst"
ARCHIVE_FILE = "~/.cache/ironbell/images/debian-root.tar.zst"
NODE_FILE = "~/.cache/ironbell/images/debian-kubernetes-{release}.raw.zst"
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
@click.option(
    "--output",
    default="",
    help=f"File or folder to write to; manifest and checksum beside. Default: {DEFAULT_FILE}, of a node {NODE_FILE}.",
)
@click.option("--kubernetes", default="", metavar="VERSION", help="Make it a Kubernetes node of this release.")
@click.option(
    "--source",
    default="gomodules",
    show_default=True,
    metavar="gomodules|apt|DIR",
    help="Where Kubernetes comes from: built from its Go modules; an apt repository and a registry; a folder.",
)
@click.option("--apt-repository", default="", metavar="ENTRY", help="With --source apt: the line for sources.list.")
@click.option("--registry", default="", help="Prefix of the container images' names. Default: as kubeadm has it.")
@click.option(
    "--container-image",
    multiple=True,
    metavar="REFERENCE",
    help="Container image to have beside kubeadm's, such as the kube-proxy that nodes run before an upgrade.",
)
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
@format_option
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
    kubernetes: str,
    source: str,
    apt_repository: str,
    registry: str,
    container_image: tuple[str, ...],
) -> None:
    """Build a bootable Debian disk with cloud-init, for BIOS and UEFI; needs root."""
    from ironbell.image.build import Options
    from ironbell.image.build import build as build_image
    from ironbell.image.debian import chosen_sources

    node = _node(
        kubernetes, source=source, apt_repository=apt_repository, registry=registry, container_images=container_image
    )
    default = DEFAULT_FILE if node is None else NODE_FILE.format(release=node.release)
    options = Options(
        output=_file(output, default),
        size_mib=size,
        compression=compress,
        kernel=kernel,
        extra_packages=extra_package,
        only_if_changed=if_changed,
        node=node,
    )
    origin = chosen_sources(sources, suite)
    with terminable():
        made, was_built = build_image(options, origin, progress=lambda text: click.echo(text, err=True))
    if form == "json":
        print_json(made)
        return
    artefact = made.artefacts[0]
    click.echo(f"{'built' if was_built else 'current'}: kernel {made.kernel}, disk {made.unpacked_bytes / 1e6:.0f} MB")
    click.echo(f"{options.output}  {artefact.size_bytes / 1e6:.1f} MB  sha256:{artefact.sha256}")


def _file(output: str, default: str) -> Path:
    """The file to write: in a folder, it is called as it is by default."""
    path = Path(output or default).expanduser().absolute()
    return path / Path(default).name if output.endswith("/") or path.is_dir() else path


def _node(
    kubernetes: str, *, source: str, apt_repository: str, registry: str, container_images: tuple[str, ...] = ()
) -> Node | None:
    """What the options ask for; None without `--kubernetes`."""
    from ironbell.image.debian import BuildError
    from ironbell.image.kubernetes.node import Node
    from ironbell.image.kubernetes.release import parse_release
    from ironbell.image.kubernetes.source import Folder, GoModules, Packages, Source

    if not kubernetes:
        if apt_repository or registry or container_images:
            raise BuildError(
                "--apt-repository, --registry and --container-image are for node images: give --kubernetes too"
            )
        return None
    if (source == "apt") != bool(apt_repository):
        raise BuildError("--source apt and --apt-repository belong together")
    origin: Source
    if source == "gomodules":
        origin = GoModules(Path("~/.cache/ironbell/kubernetes").expanduser())
    elif source == "apt":
        origin = Packages(apt_repository)
    else:
        origin = Folder(Path(source).expanduser().absolute())
        if not origin.path.is_dir():
            raise BuildError(f"--source {source}: neither gomodules nor apt nor a folder")
    return Node(parse_release(kubernetes), origin, registry, container_images)


@image.command()
@click.option("--output", default=ARCHIVE_FILE, show_default=True, help="File to write; manifest and checksum beside.")
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
@format_option
def archive(
    output: str,
    *,
    compress: str,
    kernel: str,
    extra_package: tuple[str, ...],
    suite: str,
    sources: Path | None,
    if_changed: bool,
    form: str,
) -> None:
    """Build a plain Debian as a tar archive, for templates that partition disks themselves; needs root."""
    from ironbell.image.archive import Options
    from ironbell.image.archive import build as build_archive
    from ironbell.image.debian import chosen_sources

    options = Options(Path(output).expanduser().absolute(), compress, kernel, extra_package, if_changed)
    origin = chosen_sources(sources, suite)
    with terminable():
        made, was_built = build_archive(options, origin, progress=lambda text: click.echo(text, err=True))
    if form == "json":
        print_json(made)
        return
    artefact = made.artefacts[0]
    click.echo(
        f"{'built' if was_built else 'current'}: kernel {made.kernel}, {made.unpacked_bytes / 1e6:.0f} MB unpacked"
    )
    click.echo(f"{options.output}  {artefact.size_bytes / 1e6:.1f} MB  sha256:{artefact.sha256}")
