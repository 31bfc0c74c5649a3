"""Builds a small bootable Debian disk image with cloud-init, for machines with BIOS or UEFI.

Steps: mmdebstrap installs the packages; our few files, a boot menu and an initramfs are added and everything that must
differ between machines is removed; the tree becomes a disk (`disk`); the disk is compressed. No container engine and
no loop device is needed, only root.

The template of an installation still has to write `/etc/cloud/cloud.cfg.d/10_tinkerbell.cfg` on partition 3 with the
metadata service's address. The root file system grows to its disk at the first boot.

Failure modes: `BuildError`; an unfinished build leaves an earlier one untouched.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from ironbell.image import compress, contents, disk
from ironbell.image import manifest as manifests
from ironbell.image.debian import BuildError, Sources, Tree, bootstrap, require_root, require_tools, run
from ironbell.image.kubernetes import node as nodes
from ironbell.image.system import build_loaders, configure

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Options:
    """Options of a build. `size_mib` 0 means as small as the content allows; `kernel` is `cloud` or `server`."""

    output: Path
    size_mib: int = 0
    compression: str = "zst"
    kernel: str = "cloud"
    extra_packages: tuple[str, ...] = ()
    only_if_changed: bool = False
    node: nodes.Node | None = None
    """Kubernetes node that the image becomes; None for a plain system."""


def manifest_path(output: Path) -> Path:
    """Path of an image's manifest."""
    return output.with_name(output.name + ".json")


def inputs(options: Options, sources: Sources) -> str:
    """Digest of all inputs of ours that shape the build."""
    own = Path(__file__).parent
    words = [
        str(options.size_mib), options.compression, options.kernel, *options.extra_packages, sources.suite,
        sources.text, *(manifests.digest_file(own / f"{name}.py") for name in ("contents", "disk", "system")),
    ]  # fmt: skip
    folders = [own / "files"]
    if options.node is not None:
        words += options.node.words()
        folders.append(own / "kubernetes")
    return manifests.digest_inputs(words, folders=folders)


def build(options: Options, sources: Sources, *, progress: Progress) -> tuple[manifests.Manifest, bool]:
    """Build the image and return its manifest, and whether anything was built.

    Raises:
        BuildError: the message names what this host lacks, or the wrong option.
    """
    if options.kernel not in contents.KERNEL_PACKAGES:
        raise BuildError(f"--kernel {options.kernel}: must be one of {', '.join(contents.KERNEL_PACKAGES)}")
    manifests.check_file(options.output, manifest_path(options.output))
    digest = inputs(options, sources)
    earlier = manifests.load(manifest_path(options.output))
    if (
        options.only_if_changed
        and earlier is not None
        and manifests.is_current(earlier, inputs=digest, folder=options.output.parent)
    ):
        return earlier, False
    require_root()
    require_tools(
        ["mmdebstrap", "mke2fs", "sfdisk", "mkfs.vfat", "mcopy"],
        packages="mmdebstrap e2fsprogs fdisk dosfstools mtools",
    )
    options.output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="ironbell-image-") as scratch:
        return _build(options, sources, scratch=Path(scratch), digest=digest, progress=progress), True


def _build(options: Options, sources: Sources, *, scratch: Path, digest: str, progress: Progress) -> manifests.Manifest:
    tree, image = scratch / "tree", scratch / "disk.raw"
    progress(f"installing packages of {sources.suite}")
    node = options.node
    node_packages = node.packages() if node is not None else ()
    request = Tree(
        target=tree,
        architecture="amd64",
        packages=(
            contents.KERNEL_PACKAGES[options.kernel],
            *contents.PACKAGES,
            *node_packages,
            *options.extra_packages,
        ),
        variant="apt",
        options=_dpkg_options(),
    )
    if node is not None:
        sources = replace(sources, text="\n".join((sources.text, *node.source.apt_lines())))
    packages = bootstrap(request, sources)
    images = nodes.install(node, tree, scratch=scratch, progress=progress) if node is not None else ()
    progress("configuring the system")
    kernel = configure(tree, is_virtual=options.kernel == "cloud", root_id=disk.layout(1, seed=digest).root_id)
    loaders = build_loaders(tree, scratch=scratch, root_id=disk.layout(1, seed=digest).root_id)
    used_mib = _used_mib(tree)
    shape = disk.layout(_root_mib(used_mib, options), seed=digest)
    progress(f"writing a disk of {shape.size / 1e6:.0f} MB with {used_mib} MiB in use")
    disk.partition(image, shape)
    disk.write_root(image, shape, tree)
    disk.write_esp(image, shape, loaders.efi)
    disk.write_bios_loader(image, shape, boot=loaders.boot, core=loaders.core)
    progress(f"compressing ({options.compression})")
    temporary = options.output.with_name(f".{options.output.name}.new")
    compress.write(image, temporary, options.compression)
    temporary.replace(options.output)
    artefact = manifests.describe(options.output)
    # A new file rather than new content in the old one: other files may be hard links to it.
    temporary.write_text(f"{artefact.sha256}  {artefact.name}\n")
    temporary.replace(options.output.with_name(options.output.name + ".sha256"))
    manifest = manifests.Manifest(
        kind="image",
        architecture="amd64",
        suite=sources.suite,
        inputs=digest,
        kernel=kernel,
        unpacked_bytes=shape.size,
        artefacts=[artefact],
        packages=manifests.package_entries(packages),
        kubernetes=str(node.release) if node is not None else "",
        container_images=list(images),
    )
    manifests.store(manifest, manifest_path(options.output))
    return manifest


def _dpkg_options() -> tuple[str, ...]:
    left_out = tuple(f"--dpkgopt=path-exclude={path}" for path in contents.EXCLUDED_PATHS)
    return left_out + tuple(f"--dpkgopt=path-include={path}" for path in contents.INCLUDED_PATHS)


def _used_mib(tree: Path) -> int:
    kibibytes = int(run(["du", "-sk", str(tree)]).split()[0])
    return math.ceil(kibibytes / 1024)


def _root_mib(used_mib: int, options: Options) -> int:
    """The root file system's size: the requested one, or the content with room for inodes, journal and a first boot.

    Raises:
        BuildError: the requested size is too small.
    """
    least = math.ceil(used_mib * 1.06) + 64
    if options.size_mib == 0:
        return least
    overhead = math.ceil((disk.layout(0, seed="").size) / disk.MIB)
    if options.size_mib - overhead < least:
        raise BuildError(f"--size {options.size_mib}M is too small: the content needs {least + overhead} MiB")
    return options.size_mib - overhead
