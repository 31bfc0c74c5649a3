"""Builds a root archive: a plain Debian as a compressed tar, for installations that partition disks themselves.

It holds Debian's packages as they install, and nothing of ours: a kernel, systemd with its network and resolver,
cloud-init, and GRUB's files for both firmwares. Templates unpack it (`archive2disk`), add packages, and make it start
(`grub2disk`).

Failure modes: `BuildError`; an unfinished build leaves an earlier one untouched.

Sources: mmdebstrap(1), tar(1).
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ironbell.base.wording import counted
from ironbell.image import compress, contents
from ironbell.image import manifest as manifests
from ironbell.image.build import manifest_path
from ironbell.image.debian import BuildError, Sources, Tree, bootstrap, require_root, require_tools, run

PACKAGES: Final = (
    "ca-certificates", "cloud-init", "dbus", "e2fsprogs", "grub-efi-amd64-bin", "grub-pc-bin", "grub2-common",
    "initramfs-tools", "iproute2", "iputils-ping", "kmod", "libpam-systemd", "netbase", "procps", "sudo", "systemd",
    "systemd-resolved", "systemd-sysv", "systemd-timesyncd", "udev", "zstd",
)  # fmt: skip
_LEFT_OUT: Final = (
    "./dev/*",
    "./proc/*",
    "./sys/*",
    "./run/*",
    "./tmp/*",
    "./var/cache/apt/*",
    "./var/lib/apt/lists/*",
)


@dataclass(frozen=True)
class Options:
    """Options of a build. `kernel` is `cloud` or `server`."""

    output: Path
    compression: str = "zst"
    kernel: str = "cloud"
    extra_packages: tuple[str, ...] = ()
    only_if_changed: bool = False


def build(options: Options, sources: Sources, *, progress: Callable[[str], None]) -> tuple[manifests.Manifest, bool]:
    """Build the archive and return its manifest, and whether anything was built.

    Raises:
        BuildError: the message names what this host lacks, or the wrong option.
    """
    if options.kernel not in contents.KERNEL_PACKAGES:
        raise BuildError(f"--kernel {options.kernel}: must be one of {', '.join(contents.KERNEL_PACKAGES)}")
    manifests.check_file(options.output, manifest_path(options.output))
    words = [options.compression, options.kernel, *options.extra_packages, sources.suite, sources.text]
    digest = manifests.digest_inputs([*words, manifests.digest_file(Path(__file__))], folders=[])
    earlier = manifests.load(manifest_path(options.output))
    folder = options.output.parent
    if options.only_if_changed and earlier is not None and manifests.is_current(earlier, inputs=digest, folder=folder):
        return earlier, False
    require_root()
    require_tools(["mmdebstrap", "tar"], packages="mmdebstrap tar")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="ironbell-archive-") as scratch:
        return _build(options, sources, scratch=Path(scratch), digest=digest, progress=progress), True


def _build(
    options: Options, sources: Sources, *, scratch: Path, digest: str, progress: Callable[[str], None]
) -> manifests.Manifest:
    tree, tar = scratch / "tree", scratch / "root.tar"
    progress(f"installing packages of {sources.suite}")
    names = (contents.KERNEL_PACKAGES[options.kernel], *PACKAGES, *options.extra_packages)
    packages = bootstrap(Tree(target=tree, architecture="amd64", packages=names, variant="apt"), sources)
    _remove_identity(tree)
    progress(f"packing {counted(len(packages), 'package')} ({options.compression})")
    left_out = [f"--exclude={name}" for name in _LEFT_OUT]
    run(["tar", "--numeric-owner", "--xattrs", "--xattrs-include=*", *left_out, "-C", str(tree), "-cf", str(tar), "."])
    temporary = options.output.with_name(f".{options.output.name}.new")
    compress.write(tar, temporary, options.compression)
    temporary.replace(options.output)
    artefact = manifests.describe(options.output)
    temporary.write_text(f"{artefact.sha256}  {artefact.name}\n")
    temporary.replace(options.output.with_name(options.output.name + ".sha256"))
    (kernel,) = sorted((tree / "boot").glob("vmlinuz-*"))
    manifest = manifests.Manifest(
        kind="archive",
        architecture="amd64",
        suite=sources.suite,
        inputs=digest,
        kernel=kernel.name.removeprefix("vmlinuz-"),
        unpacked_bytes=tar.stat().st_size,
        artefacts=[artefact],
        packages=manifests.package_entries(packages),
    )
    manifests.store(manifest, manifest_path(options.output))
    return manifest


def _remove_identity(tree: Path) -> None:
    """Remove what came from this host, and what differs between machines."""
    (tree / "etc/machine-id").write_text("")
    (tree / "etc/hostname").write_text("localhost\n")
    for name in ("etc/resolv.conf", "etc/apt/sources.list", "etc/apt/sources.list.d/0000sources.list"):
        (tree / name).unlink(missing_ok=True)
    for path in tree.glob("etc/apt/apt.conf.d/99mmdebstrap"):
        path.unlink()
    (tree / "etc/resolv.conf").symlink_to("/run/systemd/resolve/stub-resolv.conf")
