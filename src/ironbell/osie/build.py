"""Builds the in-memory OS: one kernel and one initramfs from Debian packages.

Steps: packages are unpacked (their scripts do not run, so another architecture builds as well as the host's own);
the wanted part is laid out as a small tree with the agent in it; the tree becomes a cpio archive under zstd. The
kernel is Debian's signed one as it is, so that Secure Boot holds.

Debian's main section has no firmware that is not free. Cards that need it (bnx2, bnx2x, qed, some Mellanox and
Chelsio functions) get it by `--extra-package firmware-bnx2x` and the like where the host's sources have them.

Failure modes: `BuildError`; an unfinished build leaves an earlier one untouched.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from backports import zstd

from ironbell.base.clock import Clock, SystemClock
from ironbell.image import manifest as manifests
from ironbell.image.debian import BuildError, Sources, bootstrap, require_root, require_tools
from ironbell.image.debian import Tree as PackageTree
from ironbell.osie import agent, contents, cpio
from ironbell.osie.tree import TreeBuilder, index_modules

MANIFEST_NAME = "osie.json"
_FILES = Path(__file__).parent / "files"
# Level 19 saves another 10 % and takes twelve times as long.
_ZSTD_LEVEL, _ZSTD_SMALLEST_LEVEL = 12, 19
# 64 MiB; the kernel's decompressor takes up to 128.
_ZSTD_WINDOW_LOG = 26

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Options:
    """What to build. `proxy` and `authorities` become part of the OS."""

    output: Path
    architecture: str = "amd64"
    proxy: str = ""
    authorities: tuple[Path, ...] = ()
    extra_packages: tuple[str, ...] = ()
    is_smallest: bool = False
    only_if_changed: bool = False


def artefact_names(architecture: str) -> tuple[str, str]:
    """File names of kernel and initramfs, as the boot script asks for them."""
    machine = contents.MACHINE_NAME[architecture]
    return f"vmlinuz-{machine}", f"initramfs-{machine}"


def inputs(options: Options, sources: Sources) -> str:
    """Digest of all of ours that shapes the build."""
    words = [
        options.architecture, options.proxy, str(options.is_smallest), sources.suite, sources.text,
        *contents.PACKAGES, *options.extra_packages,
        *(manifests.digest_file(path) for path in options.authorities if path.is_file()),
    ]  # fmt: skip
    return manifests.digest_inputs(words, folders=[Path(__file__).parent, *agent.own_folders()])


def build(
    options: Options, sources: Sources, *, progress: Progress, clock: Clock | None = None
) -> tuple[manifests.Manifest, bool]:
    """Make the artefacts; the second value says whether anything was built.

    Raises:
        BuildError: names what is missing or wrong here.
    """
    if options.architecture not in contents.KERNEL_PACKAGE:
        raise BuildError(f"--arch {options.architecture}: must be one of {', '.join(contents.KERNEL_PACKAGE)}")
    digest = inputs(options, sources)
    earlier = manifests.load(options.output / MANIFEST_NAME)
    if (
        options.only_if_changed
        and earlier is not None
        and manifests.is_current(earlier, inputs=digest, folder=options.output)
    ):
        return earlier, False
    require_root()
    require_tools(["mmdebstrap", "dpkg-deb"], packages="mmdebstrap dpkg")
    with tempfile.TemporaryDirectory(prefix="ironbell-osie-") as scratch:
        made = _build(options, sources, scratch=Path(scratch), digest=digest, progress=progress, clock=clock)
    return made, True


def _build(
    options: Options, sources: Sources, *, scratch: Path, digest: str, progress: Progress, clock: Clock | None
) -> manifests.Manifest:
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
    builder = TreeBuilder(packages=packages_folder, target=target)
    kernel, python, distributions = _lay_out(builder, options, clock or SystemClock())
    unpacked = sum(path.lstat().st_size for path in target.rglob("*") if path.is_file() and not path.is_symlink())
    progress(f"packing {unpacked / 1e6:.0f} MB")
    names = artefact_names(options.architecture)
    shutil.copyfile(next((packages_folder / "boot").glob("vmlinu?-*")), scratch / names[0])
    pack(target, scratch / names[1], is_smallest=options.is_smallest)
    options.output.mkdir(parents=True, exist_ok=True)
    for name in names:
        shutil.move(scratch / name, options.output / f".{name}")
        (options.output / f".{name}").replace(options.output / name)
    made = manifests.Manifest(
        kind="osie",
        architecture=options.architecture,
        suite=sources.suite,
        inputs=digest,
        kernel=kernel,
        unpacked_bytes=unpacked,
        artefacts=[manifests.describe(options.output / name) for name in names],
        packages=manifests.package_entries(packages),
        python=python,
        distributions=distributions,
    )
    manifests.store(made, options.output / MANIFEST_NAME)
    return made


def _lay_out(builder: TreeBuilder, options: Options, clock: Clock) -> tuple[str, str, dict[str, str]]:
    builder.lay_out()
    builder.add_programs()
    builder.add_udev()
    builder.add_configuration()
    builder.add_certificates(options.authorities)
    builder.add_extra_files()
    kernel = builder.add_modules()
    python = builder.add_python()
    distributions = agent.add_agent(builder.target, python=python, architecture=options.architecture)
    _add_own_files(builder.target, options, clock)
    builder.add_libraries()
    index_modules(builder.target, kernel)
    agent.compile_all(builder.target, python=python)
    return kernel, python, distributions


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


def pack(tree: Path, output: Path, *, is_smallest: bool) -> None:
    """Write a tree as an initramfs: a cpio archive under zstd."""
    parameters: dict[int, int] = {
        zstd.CompressionParameter.compression_level: _ZSTD_SMALLEST_LEVEL if is_smallest else _ZSTD_LEVEL,
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
