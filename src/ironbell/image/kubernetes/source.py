"""Where a node's programs and container images come from: one interface, three sources.

- `gomodules`: built here from their Go modules, static, one program an image; nothing but Go's module proxy is needed.
- a folder: programs and image archives that somebody has put there.
- `apt`: an apt repository and a registry that the user names.

Failure modes: `BuildError` that names what the source lacks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ironbell.base.wording import counted
from ironbell.image import manifest as manifests
from ironbell.image.debian import BuildError, run
from ironbell.image.kubernetes import golang, kubevip, oci, programs, store
from ironbell.image.kubernetes.release import PROGRAMS, ContainerImage, Release, etcd_version, parse_release

Progress = Callable[[str], None]

_PAUSE = Path(__file__).parent / "files/pause"
_COREDNS = "github.com/coredns/coredns"
_ETCD = "go.etcd.io/etcd/server/v3"
_CONTROL_PLANE = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy")
# What kube-proxy calls; it writes rules by nothing else.
_PROXY_TOOLS = (
    "iptables", "iptables-save", "iptables-restore", "ip6tables", "ip6tables-save", "ip6tables-restore", "nft",
    "conntrack",
)  # fmt: skip


class Source(Protocol):
    """A place that programs and images come from. The tree is the Debian system that is being made."""

    def words(self) -> Sequence[str]:
        """What of it shapes the result, for the digest of inputs."""
        ...

    def apt_lines(self) -> Sequence[str]:
        """Entries to add to the package sources."""
        ...

    def packages(self, release: Release) -> Sequence[str]:
        """Packages to install from there."""
        ...

    def programs(self, release: Release, tree: Path, progress: Progress) -> Mapping[str, Path]:
        """kubeadm, kubelet and kubectl, to be copied to /usr/bin; none where packages brought them."""
        ...

    def brings_unasked(self, further: Sequence[str]) -> Sequence[str]:
        """References of images that it brings although neither kubeadm nor the user, with `further`, asks for them."""
        ...

    def store_images(
        self, images: Sequence[ContainerImage], release: Release, tree: Path, scratch: Path, progress: Progress
    ) -> tuple[str, ...]:
        """Bring images into containerd's store of the tree; gives the references that it has then."""
        ...


@dataclass(frozen=True)
class GoModules:
    """Everything from Go modules. `cache` keeps what was built."""

    cache: Path

    def words(self) -> Sequence[str]:
        return ["gomodules", *(manifests.digest_file(path) for path in sorted(_PAUSE.iterdir()))]

    def apt_lines(self) -> Sequence[str]:
        return ()

    def packages(self, release: Release) -> Sequence[str]:
        return ()

    def programs(self, release: Release, tree: Path, progress: Progress) -> Mapping[str, Path]:
        return {name: self._kubernetes(name, release, progress) for name in PROGRAMS}

    def brings_unasked(self, further: Sequence[str]) -> Sequence[str]:
        return kubevip.unless_named(further)

    def store_images(
        self, images: Sequence[ContainerImage], release: Release, tree: Path, scratch: Path, progress: Progress
    ) -> tuple[str, ...]:
        made = [self._contents(image, tree, progress) for image in images]
        progress(f"packing {counted(len(made), 'container image')}")
        archive = scratch / "images.tar"
        oci.write(made, archive)
        return store.import_archives(tree, [archive])

    def _contents(self, image: ContainerImage, tree: Path, progress: Progress) -> oci.Contents:
        """The image's one program, at the place where upstream's image has it.

        Raises:
            BuildError: the image is none that is known here.
        """
        if image.name in _CONTROL_PLANE:
            program = self._kubernetes(image.name, parse_release(image.tag), progress)
            entries = [oci.Entry(f"usr/local/bin/{image.name}", program)]
            if image.name == "kube-proxy":
                entries += programs.with_libraries(tree, _PROXY_TOOLS)
            return oci.Contents(image.reference, tuple(entries))
        if image.name == "etcd":
            program = self._built(golang.Program("etcd", _ETCD, _ETCD, etcd_version(image.tag)), progress)
            return oci.Contents(image.reference, (oci.Entry("usr/local/bin/etcd", program),))
        if image.name == "coredns":
            program = self._built(golang.Program("coredns", _COREDNS, _COREDNS, image.tag), progress)
            return oci.Contents(image.reference, (oci.Entry("coredns", program),), entrypoint=("/coredns",))
        if image.name == kubevip.NAME:
            program = self._built(kubevip.program(image.tag), progress)
            return oci.Contents(image.reference, (oci.Entry("kube-vip", program),), entrypoint=("/kube-vip",))
        if image.name == "pause":
            program = golang.build_own("pause", _PAUSE, self.cache)
            return oci.Contents(image.reference, (oci.Entry("pause", program),), entrypoint=("/pause",))
        raise BuildError(
            f"--source gomodules cannot make the image {image.reference}: have it in a folder, or in a registry"
        )

    def _kubernetes(self, name: str, release: Release, progress: Progress) -> Path:
        return self._built(golang.kubernetes_program(name, release), progress)

    def _built(self, program: golang.Program, progress: Progress) -> Path:
        progress(f"{program.name} {program.version} from its Go module")
        return golang.build(program, self.cache)


@dataclass(frozen=True)
class Folder:
    """`kubeadm`, `kubelet` and `kubectl` in a folder, and any number of image archives `*.tar` beside them."""

    path: Path

    def words(self) -> Sequence[str]:
        files = [*(self.path / name for name in PROGRAMS), *self._archives()]
        return ["folder", *(manifests.digest_file(path) for path in files if path.is_file())]

    def apt_lines(self) -> Sequence[str]:
        return ()

    def packages(self, release: Release) -> Sequence[str]:
        return ()

    def programs(self, release: Release, tree: Path, progress: Progress) -> Mapping[str, Path]:
        missing = [name for name in PROGRAMS if not (self.path / name).is_file()]
        if missing:
            raise BuildError(f"--source {self.path}: {', '.join(missing)} not in the folder")
        said = run([str(self.path / "kubeadm"), "version", "-o", "short"]).strip()
        if said != str(release):
            raise BuildError(f"--source {self.path}: its kubeadm is {said}, not {release}")
        return {name: self.path / name for name in PROGRAMS}

    def brings_unasked(self, further: Sequence[str]) -> Sequence[str]:
        return ()

    def store_images(
        self,
        images: Sequence[ContainerImage],
        release: Release,
        tree: Path,
        scratch: Path,
        progress: Progress,
    ) -> tuple[str, ...]:
        archives = self._archives()
        progress(f"importing {counted(len(archives), 'archive')} of container images")
        return store.import_archives(tree, archives)

    def _archives(self) -> list[Path]:
        return sorted(self.path.glob("*.tar"))


@dataclass(frozen=True)
class Packages:
    """An apt repository's entry as apt reads it, and the registry that has the images."""

    repository: str

    def words(self) -> Sequence[str]:
        return ["apt", self.repository]

    def apt_lines(self) -> Sequence[str]:
        return (self.repository,)

    def packages(self, release: Release) -> Sequence[str]:
        return tuple(f"{name}={str(release).removeprefix('v')}-*" for name in PROGRAMS)

    def programs(self, release: Release, tree: Path, progress: Progress) -> Mapping[str, Path]:
        return {}

    def brings_unasked(self, further: Sequence[str]) -> Sequence[str]:
        return ()

    def store_images(
        self,
        images: Sequence[ContainerImage],
        release: Release,
        tree: Path,
        scratch: Path,
        progress: Progress,
    ) -> tuple[str, ...]:
        progress(f"pulling {counted(len(images), 'container image')}")
        return store.pull(tree, [image.reference for image in images])
