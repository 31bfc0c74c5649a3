"""`ironbell image`, `osie` and `ipxe`: build what machines boot and what is written to their disks."""

from __future__ import annotations

import re
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ironbell.cli.options import format_option
from ironbell.cli.output import print_json

if TYPE_CHECKING:
    from ironbell.image.kubernetes.node import Node
    from ironbell.image.manifest import Manifest

F = TypeVar("F", bound=Callable[..., Any])

OSIE_FOLDER = "~/.cache/ironbell/osie"
DEFAULT_FILE = "~/.cache/ironbell/images/debian.raw.zst"
ARCHIVE_FILE = "~/.cache/ironbell/images/debian-root.tar.zst"
NODE_FILE = "~/.cache/ironbell/images/debian-kubernetes-{release}.raw.zst"
_IF_CHANGED = click.option("--if-changed", is_flag=True, help="Do nothing if the previous build had the same inputs.")
_KERNELS = click.Choice(["cloud", "server"])
_SIZE = re.compile(r"(\d+)([MG])?(?:i?B)?")


class _Mebibytes(click.ParamType[int]):
    """A size such as `2G` or `1500M`, in MiB."""

    name = "size"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        match = _SIZE.fullmatch(str(value))
        if match is None:
            self.fail(f"{value!r} is not a valid size; write it as 2G or 1500M", param, ctx)
        return int(match[1]) * (1024 if match[2] == "G" else 1)


@contextmanager
def terminable() -> Iterator[None]:
    """Have SIGTERM end the block as Ctrl-C does: by default it would end the process at once, and leave partial builds
    of gigabytes behind."""
    if threading.current_thread() is not threading.main_thread():
        yield  # no other thread may set a handler, or gets the exception
        return
    previous = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


def _disk_options(command: F) -> F:
    """Options for the content of a disk."""
    command = click.option("--extra-package", multiple=True, help="Debian package to add, such as openssh-server.")(
        command
    )
    help_line = "cloud: for virtual machines; server: with drivers for hardware."
    command = click.option("--kernel", type=_KERNELS, default="cloud", show_default=True, help=help_line)(command)
    forms = click.Choice(["zst", "gz", "none"])
    return click.option("--compress", type=forms, default="zst", show_default=True)(command)


def _debian_options(command: F) -> F:
    """Options for the origin of packages."""
    origin = click.Path(path_type=Path)
    command = click.option("--sources", type=origin, help="apt sources to build from. Default: the host's.")(command)
    return click.option("--suite", default="", help="Debian release; needs --sources. Default: the host's.")(command)


def _show(text: str) -> None:
    click.echo(text, err=True)


def _print_build(
    build: Callable[..., tuple[Manifest, bool]],
    options: object,
    origin: tuple[Path | None, str],
    folder: Path,
    *,
    form: str,
    size: str = "{:.0f} MB unpacked",
) -> None:
    """Build from the Debian packages of these sources and suite, and print the resulting files."""
    from ironbell.image.debian import chosen_sources

    sources = chosen_sources(*origin)
    with terminable():
        built, is_new = build(options, sources, progress=_show)
    if form == "json":
        print_json(built)
        return
    click.echo(f"{'built' if is_new else 'current'}: kernel {built.kernel}, {size.format(built.unpacked_bytes / 1e6)}")
    for artefact in built.artefacts:
        click.echo(f"{folder / artefact.name}  {artefact.size_bytes / 1e6:.1f} MB  sha256:{artefact.sha256}")


@click.group()
def image() -> None:
    """Disk images of operating systems."""


@image.command("build")
@click.option(
    "--output",
    default="",
    help=f"File or folder to write to, with manifest and checksum. Default: {DEFAULT_FILE}, of a node {NODE_FILE}.",
)
@click.option("--kubernetes", default="", metavar="VERSION", help="Build a Kubernetes node of this release.")
@click.option(
    "--source",
    default="gomodules",
    show_default=True,
    metavar="gomodules|apt|DIR",
    help="Origin of Kubernetes: a build of its Go modules; an apt repository and a registry; a folder.",
)
@click.option("--apt-repository", default="", metavar="ENTRY", help="Line for sources.list, with --source apt.")
@click.option("--registry", default="", help="Prefix of the container images' names. Default: kubeadm's.")
@click.option(
    "--container-image",
    multiple=True,
    metavar="REFERENCE",
    help="Further container image beside kubeadm's, such as the kube-proxy that nodes run before an upgrade.",
)
@click.option("--size", type=_Mebibytes(), default="0M", help="Size of the disk. Default: the smallest possible.")
@_disk_options
@_debian_options
@_IF_CHANGED
@format_option
def build_image(
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
    from ironbell.image.build import Options, build

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
    _print_build(build, options, (sources, suite), options.output.parent, form=form, size="disk {:.0f} MB")


def _file(output: str, default: str) -> Path:
    """The file to write; in a folder, it has the default name."""
    path = Path(output or default).expanduser().absolute()
    return path / Path(default).name if output.endswith("/") or path.is_dir() else path


def _node(
    kubernetes: str, *, source: str, apt_repository: str, registry: str, container_images: tuple[str, ...] = ()
) -> Node | None:
    """The node that the options request; None without `--kubernetes`."""
    from ironbell.image.debian import BuildError
    from ironbell.image.kubernetes.node import Node
    from ironbell.image.kubernetes.release import parse_release
    from ironbell.image.kubernetes.source import Folder, GoModules, Packages, Source

    if not kubernetes:
        if apt_repository or registry or container_images:
            raise BuildError(
                "--apt-repository, --registry and --container-image are for node images: set --kubernetes too"
            )
        return None
    if (source == "apt") != bool(apt_repository):
        raise BuildError("--source apt and --apt-repository must be set together")
    origin: Source
    if source == "gomodules":
        origin = GoModules(Path("~/.cache/ironbell/kubernetes").expanduser())
    elif source == "apt":
        origin = Packages(apt_repository)
    else:
        origin = Folder(Path(source).expanduser().absolute())
        if not origin.path.is_dir():
            raise BuildError(f"--source {source} is neither gomodules nor apt nor an existing folder")
    return Node(parse_release(kubernetes), origin, registry, container_images)


@image.command()
@click.option("--output", default=ARCHIVE_FILE, show_default=True, help="File to write, with manifest and checksum.")
@_disk_options
@_debian_options
@_IF_CHANGED
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
    from ironbell.image.archive import Options, build

    options = Options(Path(output).expanduser().absolute(), compress, kernel, extra_package, if_changed)
    _print_build(build, options, (sources, suite), options.output.parent, form=form)


@click.group()
def osie() -> None:
    """The in-memory OS that machines boot over the network."""


@osie.command("build")
@click.option("--output", default=OSIE_FOLDER, show_default=True, help="Folder for kernel, initramfs and manifest.")
@click.option("--arch", default="amd64", show_default=True, help="Debian's name for the architecture.")
@click.option("--proxy", default="", help="HTTP proxy for the agent if the boot script names none.")
@click.option(
    "--ca", multiple=True, type=click.Path(path_type=Path), help="PEM file of a certificate authority to trust."
)
@click.option("--extra-package", multiple=True, help="Debian package to add completely, such as firmware-bnx2x.")
@_debian_options
@click.option("--smallest", is_flag=True, help="Compress for another minute, to save 10 %.")
@_IF_CHANGED
@format_option
def build_osie(
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
    from ironbell.osie.build import Options, build

    options = Options(
        output=Path(output).expanduser(),
        architecture=arch,
        proxy=proxy,
        authorities=ca,
        extra_packages=extra_package,
        is_smallest=smallest,
        only_if_changed=if_changed,
    )
    _print_build(build, options, (sources, suite), options.output, form=form)


@click.group()
def ipxe() -> None:
    """iPXE binaries with our script inside."""


@ipxe.command("build")
@click.option(
    "--output",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("ipxe"),
    show_default=True,
    help="Folder for the binaries, to pass to `ironbell up --ipxe-dir`.",
)
@click.option(
    "--source",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="Unpacked iPXE source tree.  [default: the distribution's source package, fetched by apt]",
)
@format_option
def build_ipxe(folder: Path, source: Path | None, form: str) -> None:
    """Build undionly.kpxe, ipxe.efi and snp-x86_64.efi."""
    from ironbell.ipxe.build import BuildRequest, build

    with terminable():
        built = build(BuildRequest(folder, source), _show)
    if form == "json":
        print_json([{"path": str(path), "bytes": path.stat().st_size} for path in built])
        return
    for path in built:
        click.echo(f"{path}  {path.stat().st_size / 1e6:.1f} MB")
