"""Turns a Debian tree into a Kubernetes node: programs, units, settings, images in containerd's store.

What kubeadm does on the machine is left to kubeadm; nothing here belongs to a cluster. Add-ons find the CNI plugins
at the path that they expect (/opt/cni/bin), and may put their own beside them.

Failure modes: `BuildError` of the source, or an image that is required and that the source did not bring.

Source: kubernetes/release: cmd/krel/templates/latest/kubeadm (the kubelet's drop-in and its variables); containerd:
docs/cri/config.md.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from ironbell.image.debian import BuildError, run
from ironbell.image.kubernetes import store
from ironbell.image.kubernetes.release import ContainerImage, Release, parse_images, pause, with_further
from ironbell.image.kubernetes.source import Progress, Source

PACKAGES = (
    "conntrack", "containerd", "containernetworking-plugins", "ethtool", "ipset", "iptables", "jq", "keepalived",
    "mount", "nftables", "openssl", "runc", "socat",
)  # fmt: skip

_FILES = Path(__file__).parent / "files"
_CTR, _BROUGHT = "usr/local/bin/ctr", "usr/share/ironbell/container-images"
_PLUGINS, _PLUGINS_EXPECTED = "usr/lib/cni", "opt/cni/bin"
# Enabled by its package; started by the component that gives it an address to hold.
_LEFT_OFF = ("keepalived.service", "cni-dhcp.service", "cni-dhcp.socket", "nftables.service")


@dataclass(frozen=True)
class Node:
    """Settings of a node."""

    release: Release
    source: Source
    registry: str = ""
    """Prefix of the images' names instead of kubeadm's own."""
    further_images: tuple[str, ...] = ()
    """References of images to include beside those that kubeadm requires."""

    def words(self) -> list[str]:
        """The settings that shape the result, for the digest of inputs."""
        return [str(self.release), self.registry, *self.further_images, *self.source.words()]

    def packages(self) -> tuple[str, ...]:
        """Debian packages beside those of every image."""
        return (*PACKAGES, *self.source.packages(self.release))


def install(node: Node, tree: Path, *, scratch: Path, progress: Progress) -> tuple[str, ...]:
    """Turn the tree into a node; return the references of the images in it.

    Raises:
        BuildError: the source failed, or did not bring an image that is required.
    """
    for name, program in node.source.programs(node.release, tree, progress).items():
        shutil.copyfile(program, tree / "usr/bin" / name)
        (tree / "usr/bin" / name).chmod(0o755)
    shutil.copytree(_FILES / "overlay", tree, dirs_exist_ok=True)
    (tree / _CTR).chmod(0o755)
    required = required_images(node, tree)
    further = (*node.further_images, *node.source.default_images(node.further_images))
    images = with_further(required, further)
    (tree / "etc/containerd").mkdir(parents=True, exist_ok=True)
    settings = (_FILES / "containerd.toml").read_text().replace("{pause}", pause(images).reference)
    (tree / "etc/containerd/config.toml").write_text(settings)
    link_plugins(tree)
    run(["systemctl", f"--root={tree}", "--quiet", "enable", "containerd.service", "kubelet.service"])
    run(["systemctl", f"--root={tree}", "--quiet", "disable", *_LEFT_OFF])
    present = node.source.store_images(images, node.release, tree, scratch, progress)
    missing = [image.reference for image in images if image.reference not in present]
    if missing:
        raise BuildError(f"the source did not bring required images: {', '.join(missing)}")
    kubeadms = {image.reference for image in required}
    if others := [reference for reference in present if reference not in kubeadms]:
        store.share_with_commands(tree, others)
    (tree / _BROUGHT).parent.mkdir(parents=True, exist_ok=True)
    (tree / _BROUGHT).write_text("".join(f"{reference}\n" for reference in present))
    return present


def required_images(node: Node, tree: Path) -> tuple[ContainerImage, ...]:
    """The images that this release's kubeadm requires.

    Raises:
        BuildError: kubeadm does not run, or is of another release.
    """
    command = ["chroot", str(tree), "kubeadm"]
    version = run([*command, "version", "-o", "short"]).strip()
    if version != str(node.release):
        raise BuildError(f"kubeadm in the image is {version}, not {node.release}")
    repository = [f"--image-repository={node.registry}"] if node.registry else []
    return parse_images(run([*command, "config", "images", "list", f"--kubernetes-version={version}", *repository]))


def link_plugins(tree: Path) -> None:
    """Link Debian's CNI plugins at the path that add-ons expect; plugins of another package stay."""
    folder = tree / _PLUGINS_EXPECTED
    folder.mkdir(parents=True, exist_ok=True)
    for plugin in sorted((tree / _PLUGINS).iterdir()):
        place = folder / plugin.name
        if not place.exists() and not place.is_symlink():
            place.symlink_to(f"/{_PLUGINS}/{plugin.name}")
