"""Builds the in-memory OS: one kernel and one initramfs from Debian packages.

The initramfs is two archives one after the other, as the kernel takes them. The base is everything from outside:
packages are unpacked (their scripts do not run, so another architecture builds as well as the host's own), the needed
part is laid out as a small tree and packed. The upper part is ours: the first process, the boot stage, the agent. The
base is kept beside the artefacts, so that a change of ours gives a new OS in a second and without root. The kernel is
Debian's signed one, unchanged, so that Secure Boot accepts it.

Debian's main section has no firmware that is not free. Cards that need it (bnx2, bnx2x, qed, some Mellanox and
Chelsio functions) get it by `--extra-package firmware-bnx2x` and the like where the host's sources have them.

Failure modes: `BuildError`; an unfinished build leaves an earlier one untouched.
"""

from __future__ import annotations

import contextlib
import platform
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec
from backports import zstd

from ironbell.base.clock import Clock, SystemClock
from ironbell.image import manifest as manifests
from ironbell.image.debian import BuildError, Sources, bootstrap, require_root, require_tools
from ironbell.image.debian import Tree as PackageTree
from ironbell.osie import agent, contents, cpio
from ironbell.osie.tree import TreeBuilder, certificates, index_modules

MANIFEST_NAME = "osie.json"
_BASE_MANIFEST_NAME = "osie-base.json"
_FILES = Path(__file__).parent / "files"
# Level 19 saves another 10 % and takes twelve times as long.
_ZSTD_LEVEL, _ZSTD_SMALLEST_LEVEL = 12, 19
# 64 MiB; the kernel's decompressor takes up to 128.
_ZSTD_WINDOW_LOG = 26

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Options:
    """Options of a build. `proxy` and `authorities` become part of the OS."""

    output: Path
    architecture: str = "amd64"
    proxy: str = ""
    authorities: tuple[Path, ...] = ()
    extra_packages: tuple[str, ...] = ()
    is_smallest: bool = False
    only_if_changed: bool = False


def artefact_names(architecture: str) -> tuple[str, str]:
    """File names of kernel and initramfs, as the boot script requests them."""
    machine = contents.MACHINE_NAME[architecture]
    return f"vmlinuz-{machine}", f"initramfs-{machine}"


def base_name(architecture: str) -> str:
    """File name of the base archive."""
    return f"base-{contents.MACHINE_NAME[architecture]}.cpio.zst"


def base_inputs(options: Options, sources: Sources) -> str:
    """Digest of the base's inputs: our choice, options, package sources, versions of the agent's libraries."""
    own = Path(__file__).parent
    choice = [own / f"{name}.py" for name in ("contents", "modules", "tree", "agent")]
    return manifests.digest_inputs(
        [
            options.architecture, str(options.is_smallest), sources.suite, sources.text, *options.extra_packages,
            *(f"{name}={version}" for name, version in agent.versions().items()),
            *(manifests.digest_file(path) for path in (*choice, *options.authorities) if path.is_file()),
        ],
        folders=[],
    )  # fmt: skip


def build(
    options: Options, sources: Sources, *, progress: Progress, clock: Clock | None = None
) -> tuple[manifests.Manifest, bool]:
    """Build the artefacts and return their manifest, and whether anything was built. Only the base needs root.

    Raises:
        BuildError: the message names what this host lacks, or the wrong option.
    """
    if options.architecture not in contents.KERNEL_PACKAGE:
        raise BuildError(f"--arch {options.architecture}: must be one of {', '.join(contents.KERNEL_PACKAGE)}")
    manifests.check_folder(options.output)
    for path in options.authorities:
        certificates(path)
    base_digest = base_inputs(options, sources)
    digest = manifests.digest_inputs([base_digest, options.proxy], folders=[_FILES, *agent.own_folders()])
    if options.only_if_changed and (earlier := _current(options, MANIFEST_NAME, digest)):
        return earlier, False
    base = _current(options, _BASE_MANIFEST_NAME, base_digest) if options.only_if_changed else None
    with tempfile.TemporaryDirectory(prefix="ironbell-osie-") as scratch:
        if base is None:
            base = _build_base(options, sources, scratch=Path(scratch), digest=base_digest, progress=progress)
        progress("adding the agent")
        return _build_upper(options, base, scratch=Path(scratch), digest=digest, clock=clock or SystemClock()), True


def _current(options: Options, name: str, digest: str) -> manifests.Manifest | None:
    earlier = manifests.load(options.output / name)
    return earlier if manifests.is_current(earlier, inputs=digest, folder=options.output) else None


def _build_base(
    options: Options, sources: Sources, *, scratch: Path, digest: str, progress: Progress
) -> manifests.Manifest:
    require_root()
    require_tools(["mmdebstrap", "dpkg-deb"], packages="mmdebstrap dpkg")
    if contents.MACHINE_NAME[options.architecture] != platform.machine():
        # the packages' own depmod does not run here
        require_tools(["depmod"], packages="kmod")
    packages_folder, target = scratch / "packages", scratch / "tree"
    target.mkdir()
    progress(f"unpacking packages of {sources.suite} for {options.architecture}")
    request = PackageTree(
        target=packages_folder,
        architecture=options.architecture,
        packages=(contents.KERNEL_PACKAGE[options.architecture], *contents.PACKAGES),
        variant="extract",
        extra_packages=options.extra_packages,
    )
    packages = bootstrap(request, sources)
    progress("laying out the tree")
    kernel, python = _lay_out(TreeBuilder(packages=packages_folder, target=target), options)
    unpacked = _size(target)
    progress(f"packing {unpacked / 1e6:.0f} MB")
    kernel_name, _ = artefact_names(options.architecture)
    names = (kernel_name, base_name(options.architecture))
    shutil.copyfile(next((packages_folder / "boot").glob("vmlinu?-*")), scratch / kernel_name)
    pack(target, scratch / names[1], level=_ZSTD_SMALLEST_LEVEL if options.is_smallest else _ZSTD_LEVEL)
    _publish([scratch / name for name in names], options.output)
    manifest = manifests.Manifest(
        kind="osie-base",
        architecture=options.architecture,
        suite=sources.suite,
        inputs=digest,
        kernel=kernel,
        unpacked_bytes=unpacked,
        artefacts=[manifests.describe(options.output / name) for name in names],
        packages=manifests.package_entries(packages),
        python=python,
        distributions=agent.versions(),
    )
    manifests.store(manifest, options.output / _BASE_MANIFEST_NAME)
    return manifest


def _build_upper(
    options: Options, base: manifests.Manifest, *, scratch: Path, digest: str, clock: Clock
) -> manifests.Manifest:
    upper = scratch / "upper"
    upper.mkdir()
    agent.add_own(upper, python=base.python)
    _add_own_files(upper, options, clock)
    pack(upper, scratch / "upper.cpio.zst", level=_ZSTD_SMALLEST_LEVEL)
    names = artefact_names(options.architecture)
    with (scratch / names[1]).open("wb") as joined:
        for part in (options.output / base_name(options.architecture), scratch / "upper.cpio.zst"):
            joined.write(part.read_bytes())
    _publish([scratch / names[1]], options.output)
    manifest = msgspec.structs.replace(
        base,
        kind="osie",
        inputs=digest,
        unpacked_bytes=base.unpacked_bytes + _size(upper),
        artefacts=[manifests.describe(options.output / name) for name in names],
    )
    manifests.store(manifest, options.output / MANIFEST_NAME)
    return manifest


def _size(tree: Path) -> int:
    return sum(path.lstat().st_size for path in tree.rglob("*") if path.is_file() and not path.is_symlink())


def _publish(files: list[Path], folder: Path) -> None:
    """Move finished files to their place; a reader sees the old one or the new one, whole."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in files:
        temporary = folder / f".{path.name}.new"
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()
        shutil.move(path, temporary)
        temporary.replace(folder / path.name)


def _lay_out(builder: TreeBuilder, options: Options) -> tuple[str, str]:
    builder.lay_out()
    builder.add_programs()
    builder.add_udev()
    builder.add_configuration()
    builder.add_certificates(options.authorities)
    builder.add_extra_files()
    kernel = builder.add_modules()
    python = builder.add_python()
    agent.add_libraries(builder.target, python=python, architecture=options.architecture)
    builder.add_libraries()
    index_modules(builder.target, kernel)
    agent.compile_libraries(builder.target, python=python)
    return kernel, python


def _add_own_files(target: Path, options: Options, clock: Clock) -> None:
    """The first process, the DHCP script, power commands and the few files below /etc."""
    _install(_FILES / "init", target / "init")
    _install(_FILES / "udhcpc", target / agent.LIBRARY_FOLDER / "udhcpc")
    for name in ("reboot", "poweroff", "halt"):
        _install(_FILES / "power", target / "usr/bin" / name)
    _install(_FILES / "power-button", target / "etc/acpi/PWRF/00000080")
    (target / "etc/ironbell").mkdir(parents=True)
    # Midnight, so that two builds of one day are the same bytes.
    (target / "etc/ironbell/build-time").write_text(f"{int(clock.now().timestamp()) // 86400 * 86400}\n")
    if options.proxy:
        (target / "etc/ironbell/proxy").write_text(options.proxy + "\n")
    for name in ("passwd", "group", "nsswitch.conf", "os-release"):
        shutil.copyfile(_FILES / name, target / "etc" / name)


def _install(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    target.chmod(0o755)


def pack(tree: Path, output: Path, *, level: int) -> None:
    """Write a tree as a part of an initramfs: a cpio archive under zstd."""
    parameters: dict[int, int] = {
        zstd.CompressionParameter.compression_level: level,
        zstd.CompressionParameter.window_log: _ZSTD_WINDOW_LOG,
        zstd.CompressionParameter.enable_long_distance_matching: 1,
        zstd.CompressionParameter.checksum_flag: 1,
        zstd.CompressionParameter.nb_workers: 2,
    }
    compressor = zstd.ZstdCompressor(options=parameters)
    with output.open("wb") as stream:
        for piece in cpio.archive(tree):
            stream.write(compressor.compress(piece))
        stream.write(compressor.flush())
        # Between two archives the kernel looks for the next one at a multiple of four bytes.
        stream.write(b"\0" * (-stream.tell() % 4))
