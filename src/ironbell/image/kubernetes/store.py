"""Puts container images into containerd's store inside a file tree, by the containerd of that tree.

containerd runs for a moment, without its CRI plugin, in mount and process namespaces of its own: nothing of it reaches
the host, and the namespaces take it away with them. The images are unpacked at once, so that a node's first pod does
not wait for that.

Failure modes: `BuildError` with the end of containerd's output.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from ironbell.image.debian import run

NAMESPACE = "k8s.io"
"""Namespace of the images that the kubelet uses."""
COMMANDS_NAMESPACE = "default"
"""Namespace that `ctr` uses by default."""
_SCRATCH = "var/tmp/ironbell-store"
_SCRIPT = """\
set -e
mount -t proc proc /proc
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /tmp
cat >/run/config.toml <<EOF
version = 2
disabled_plugins = ["io.containerd.grpc.v1.cri"]
[grpc]
  address = "/run/containerd.sock"
EOF
containerd --config /run/config.toml >/run/log 2>&1 &
daemon=$!
tries=0
until /usr/bin/ctr -a /run/containerd.sock version >/dev/null 2>&1; do
    tries=$((tries + 1))
    if [ "$tries" -gt 300 ] || ! kill -0 "$daemon" 2>/dev/null; then
        tail -n 10 /run/log >&2
        exit 1
    fi
    sleep 0.1
done
"""
_FINISH = """
kill "$daemon"
wait "$daemon" || true
"""


def import_archives(tree: Path, archives: Sequence[Path]) -> tuple[str, ...]:
    """Import OCI or docker archives; return the references that the store has afterwards.

    Raises:
        BuildError: an archive is not valid, or containerd does not run here.
    """
    scratch = tree / _SCRATCH
    scratch.mkdir(parents=True)
    try:
        names = [f"{number}.tar" for number in range(len(archives))]
        for name, archive in zip(names, archives, strict=True):
            shutil.copyfile(archive, scratch / name)
        return _inside(tree, *(_ctr(f"images import /{_SCRATCH}/{name}") for name in names))
    finally:
        shutil.rmtree(scratch)


def pull(tree: Path, references: Sequence[str]) -> tuple[str, ...]:
    """Pull images from their registries; return the references that the store has afterwards.

    Raises:
        BuildError: a registry does not answer, or has no such image.
    """
    resolver = tree / "etc/resolv.conf"
    resolver.unlink(missing_ok=True)
    shutil.copyfile("/etc/resolv.conf", resolver)
    try:
        return _inside(tree, *(_ctr(f"images pull --platform linux/amd64 {reference}") for reference in references))
    finally:
        resolver.unlink()


def share_with_commands(tree: Path, references: Sequence[str]) -> None:
    """Make images of the kubelet available to `ctr` too. Their content is stored once, and unpacked when it is run.

    Raises:
        BuildError: containerd does not run here, or has no such image.
    """
    own = _ctr("images import --no-unpack -", namespace=COMMANDS_NAMESPACE)
    _inside(tree, *(f"{_ctr(f'images export - {reference}')} | {own}" for reference in references))


def _inside(tree: Path, *commands: str) -> tuple[str, ...]:
    script = "\n".join((_SCRIPT, *(f"{command} >/dev/null" for command in commands), _ctr("images list -q"), _FINISH))
    namespaces = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation", "private"]
    listed = run([*namespaces, "chroot", str(tree), "/bin/sh", "-c", script])
    return tuple(
        line for line in listed.splitlines() if ":" in line and "@" not in line and not line.startswith("sha256")
    )


def _ctr(words: str, *, namespace: str = NAMESPACE) -> str:
    return f"/usr/bin/ctr -a /run/containerd.sock -n {namespace} {words}"
