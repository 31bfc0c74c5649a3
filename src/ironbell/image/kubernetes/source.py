"""Sources of a node's programs and container images: one interface, three implementations.

- `gomodules`: built here from their Go modules, static, one program an image; nothing but Go's module proxy is needed.
- a folder: programs and image archives that the user has put there.
- `apt`: an apt repository and a registry that the user names.

Failure modes: `BuildError` that names what the source lacks.

Source: tinkerbell/cluster-api-provider-tinkerbell: templates/cluster-template.yaml; kube-vip/kube-vip: Makefile (the
variable of the version), pkg/kubevip/config_generator.go (the manifest names the image by that version).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ironbell.base.wording import counted
from ironbell.image import manifest as manifests
from ironbell.image.debian import BuildError, run
from ironbell.image.kubernetes import golang, oci, programs, store
from ironbell.image.kubernetes.release import PROGRAMS, ContainerImage, Release, etcd_version, parse_release

Progress = Callable[[str], None]

_PAUSE = Path(__file__).parent / "files/pause"
_COREDNS = "github.com/coredns/coredns"
_ETCD = "go.etcd.io/etcd/server/v3"
_KUBE_VIP = "kube-vip"
_KUBE_VIP_MODULE = "github.com/kube-vip/kube-vip"
# From upstream's Git tag, since not every checksum database knows each version of a module.
_KUBE_VIP_SUMS = {
    "v0.9.2": (
        f"{_KUBE_VIP_MODULE} v0.9.2 h1:LAvGmK34svcNhTxXNyDoV7s1bHYEgXrM3ff2FxfH6Us=",
        f"{_KUBE_VIP_MODULE} v0.9.2/go.mod h1:xt5AR9SOxcQhClhr5F++zwFT4K6OyFQ1n8azAm9V1CU=",
    )
}
# The image that the cluster template of Cluster API Provider Tinkerbell pulls with `ctr` before kubeadm runs, for the
# address of the control plane. A node has it in the namespaces of `ctr` and the kubelet, a `ctr images pull` that uses
# it (`files/overlay/usr/local/bin/ctr`), jq, and `files/overlay/usr/lib/ironbell/kube-vip-kubeconfig` for kubeadm's
# order on the first machine, so that the template works unchanged and without a registry.
KUBE_VIP_IN_TEMPLATE = "ghcr.io/kube-vip/kube-vip:v0.9.2"
_CONTROL_PLANE = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy")
# What kube-proxy calls; it writes rules by nothing else.
_PROXY_TOOLS = (
    "iptables", "iptables-save", "iptables-restore", "ip6tables", "ip6tables-save", "ip6tables-restore", "nft",
    "conntrack",
)  # fmt: skip


def kube_vip_program(tag: str) -> golang.Program:
    """kube-vip's one program, whose manifests name the image by the program's own version. Pure."""
    sums = _KUBE_VIP_SUMS.get(tag, ())
    return golang.Program(
        _KUBE_VIP, _KUBE_VIP_MODULE, _KUBE_VIP_MODULE, tag, version_variable="main.Version", sums=sums
    )


class Source(Protocol):
    """A source of programs and images. The tree is the Debian system that is being built."""

    def words(self) -> Sequence[str]:
        """The settings that shape the result, for the digest of inputs."""
        ...

    def apt_lines(self) -> Sequence[str]:
        """Entries to add to the package sources."""
        ...

    def packages(self, release: Release) -> Sequence[str]:
        """Packages to install from those entries."""
        ...

    def programs(self, release: Release, tree: Path, progress: Progress) -> Mapping[str, Path]:
        """kubeadm, kubelet and kubectl, to be copied to /usr/bin; empty where packages brought them."""
        ...

    def default_images(self, further: Sequence[str]) -> Sequence[str]:
        """References of images that it adds although neither kubeadm nor the user, with `further`, names them."""
        ...

    def store_images(
        self, images: Sequence[ContainerImage], release: Release, tree: Path, scratch: Path, progress: Progress
    ) -> tuple[str, ...]:
        """Import images into containerd's store of the tree; return the references that it has then."""
        ...


@dataclass(frozen=True)
class GoModules:
    """Everything from Go modules. `cache` keeps the built programs."""

    cache: Path

    def words(self) -> Sequence[str]:
        return ["gomodules", *(manifests.digest_file(path) for path in sorted(_PAUSE.iterdir()))]

    def apt_lines(self) -> Sequence[str]:
        return ()

    def packages(self, release: Release) -> Sequence[str]:
        return ()

    def programs(self, release: Release, tree: Path, progress: Progress) -> Mapping[str, Path]:
        return {name: self._kubernetes(name, release, progress) for name in PROGRAMS}

    def default_images(self, further: Sequence[str]) -> Sequence[str]:
        has_kube_vip = any(ContainerImage(reference).name == _KUBE_VIP for reference in further)
        return () if has_kube_vip else (KUBE_VIP_IN_TEMPLATE,)

    def store_images(
        self, images: Sequence[ContainerImage], release: Release, tree: Path, scratch: Path, progress: Progress
    ) -> tuple[str, ...]:
        contents = [self._contents(image, tree, progress) for image in images]
        progress(f"packing {counted(len(contents), 'container image')}")
        archive = scratch / "images.tar"
        oci.write(contents, archive)
        return store.import_archives(tree, [archive])

    def _contents(self, image: ContainerImage, tree: Path, progress: Progress) -> oci.Contents:
        """The image's one program, at the place where upstream's image has it.

        Raises:
            BuildError: the image is not known here.
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
        if image.name == _KUBE_VIP:
            program = self._built(kube_vip_program(image.tag), progress)
            return oci.Contents(image.reference, (oci.Entry("kube-vip", program),), entrypoint=("/kube-vip",))
        if image.name == "pause":
            program = golang.build_own("pause", _PAUSE, self.cache)
            return oci.Contents(image.reference, (oci.Entry("pause", program),), entrypoint=("/pause",))
        raise BuildError(
            f"--source gomodules cannot build the image {image.reference}: take it from a folder or a registry"
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
            raise BuildError(f"--source {self.path}: the folder lacks {', '.join(missing)}")
        version = run([str(self.path / "kubeadm"), "version", "-o", "short"]).strip()
        if version != str(release):
            raise BuildError(f"--source {self.path}: its kubeadm is {version}, not {release}")
        return {name: self.path / name for name in PROGRAMS}

    def default_images(self, further: Sequence[str]) -> Sequence[str]:
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

    def default_images(self, further: Sequence[str]) -> Sequence[str]:
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
