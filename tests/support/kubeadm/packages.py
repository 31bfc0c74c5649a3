"""A release of Kubernetes as others hand it out: a folder, an apt repository, a registry; of programs built here."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import tarfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Protocol

from ironbell.image.kubernetes import golang, oci
from ironbell.image.kubernetes.release import PROGRAMS, ContainerImage, Release, etcd_version, parse_images
from ironbell.image.kubernetes.source import GoModules

_COREDNS, _ETCD = "github.com/coredns/coredns", "go.etcd.io/etcd/server/v3"
_PAUSE = Path(golang.__file__).parent / "files/pause"


@dataclass(frozen=True)
class Programs:
    """Programs of a release out of the user's cache, built first if they are not there."""

    release: Release
    cache: Path

    def of_node(self) -> Mapping[str, Path]:
        """kubeadm, kubelet and kubectl."""
        return GoModules(self.cache).programs(self.release, Path("/"), lambda _text: None)

    def images(self, registry: str = "") -> list[ContainerImage]:
        """What kubeadm asks for."""
        command = [self.of_node()["kubeadm"], "config", "images", "list", f"--kubernetes-version={self.release}"]
        command += [f"--image-repository={registry}"] if registry else []
        return list(parse_images(subprocess.run(command, capture_output=True, text=True, check=True).stdout))

    def contents(self, image: ContainerImage) -> oci.Contents:
        """One program alone, as an image."""
        if image.name == "pause":
            program = golang.build_own("pause", _PAUSE, self.cache)
        elif image.name == "etcd":
            program = golang.build(golang.Program("etcd", _ETCD, _ETCD, etcd_version(image.tag)), self.cache)
        elif image.name == "coredns":
            program = golang.build(golang.Program("coredns", _COREDNS, _COREDNS, image.tag), self.cache)
        else:
            program = golang.build(golang.kubernetes_program(image.name, self.release), self.cache)
        return oci.Contents(image.reference, (oci.Entry(image.name, program),), entrypoint=(f"/{image.name}",))


def fill_folder(folder: Path, programs: Programs) -> None:
    """The programs, and each image in an archive of its own."""
    for name, path in programs.of_node().items():
        shutil.copy(path, folder / name)
    for image in programs.images():
        oci.write([programs.contents(image)], folder / f"{image.name}.tar")


def fill_repository(folder: Path, programs: Programs, *, plugin: bytes) -> None:
    """Packages as upstream's: the kubelet's brings CNI plugins with it. A newer kubectl is there as well."""
    version = f"{str(programs.release).removeprefix('v')}-1.1"
    depends = {"kubelet": "kubernetes-cni", "kubeadm": "kubelet"}
    for name, path in programs.of_node().items():
        _package(folder, name, version, {f"usr/bin/{name}": path.read_bytes()}, depends.get(name, ""))
    _package(folder, "kubernetes-cni", "1.8.0-1.1", {"opt/cni/bin/bridge": plugin})
    _package(folder, "kubectl", "9.0.0-1.1", {"usr/bin/kubectl": b"newer"})
    listed = subprocess.run(["dpkg-scanpackages", "-m", "."], cwd=folder, capture_output=True, check=True).stdout
    (folder / "Packages").write_bytes(listed)


def _package(folder: Path, name: str, version: str, files: Mapping[str, bytes], depends: str = "") -> None:
    root = folder / f".{name}"
    shutil.rmtree(root, ignore_errors=True)
    control = [f"Package: {name}", f"Version: {version}", "Architecture: amd64", "Maintainer: nobody <nobody@invalid>"]
    control += [f"Depends: {depends}"] if depends else []
    (root / "DEBIAN").mkdir(parents=True)
    (root / "DEBIAN/control").write_text("\n".join([*control, f"Description: {name}", ""]))
    for path, data in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(data)
        (root / path).chmod(0o755)
    target = folder / f"{name}_{version}_amd64.deb"
    command = ["dpkg-deb", "--root-owner-group", "-Zgzip", "-z1", "--build", str(root), str(target)]
    subprocess.run(command, check=True, capture_output=True)
    shutil.rmtree(root)


class _Handler(Protocol):
    def __call__(self, *arguments: Any) -> BaseHTTPRequestHandler: ...


@contextmanager
def _serving(handler: _Handler) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)  # type: ignore[arg-type]
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Files(SimpleHTTPRequestHandler):
    def log_message(self, *_arguments: Any) -> None:
        return None


@contextmanager
def repository(folder: Path) -> Iterator[str]:
    """Serve a folder; gives its entry for sources.list."""
    with _serving(partial(_Files, directory=str(folder))) as authority:
        yield f"deb [trusted=yes] http://{authority}/ ./"


@dataclass
class Registry:
    """Images by name and tag, and everything by digest."""

    authority: str = ""
    manifests: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Descriptor by `name:tag`."""
    blobs: dict[str, bytes] = field(default_factory=dict)
    pulled: list[str] = field(default_factory=list)

    def add(self, images: Sequence[oci.Contents], scratch: Path) -> None:
        """Push, so to speak."""
        oci.write(images, scratch)
        with tarfile.open(scratch) as archive:

            def read(name: str) -> bytes:
                found = archive.extractfile(name)
                assert found is not None
                return found.read()

            for described in json.loads(read("index.json"))["manifests"]:
                reference = described["annotations"]["io.containerd.image.name"]
                self.manifests[reference.partition("/")[2]] = described
            for name in archive.getnames():
                if name.startswith("blobs/sha256/"):
                    self.blobs[f"sha256:{name.rpartition('/')[2]}"] = read(name)

    def answer(self, path: str) -> tuple[str, bytes] | None:
        """Type and content of a manifest or blob."""
        words = path.partition("?")[0].removeprefix("/v2/").split("/")
        name, kind, which = "/".join(words[:-2]), words[-2] if len(words) > 2 else "", words[-1]
        if kind == "manifests" and f"{name}:{which}" in self.manifests:
            described = self.manifests[f"{name}:{which}"]
            self.pulled.append(f"{name}:{which}")
            return described["mediaType"], self.blobs[described["digest"]]
        if kind == "manifests" and which in self.blobs:
            return "application/vnd.oci.image.manifest.v1+json", self.blobs[which]
        if kind == "blobs" and which in self.blobs:
            return "application/octet-stream", self.blobs[which]
        return ("application/json", b"{}") if path == "/v2/" else None


@contextmanager
def registry() -> Iterator[Registry]:
    """A registry on this machine, without TLS."""
    found = Registry()

    class Answers(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            answer = found.answer(self.path)
            kind, body = answer if answer is not None else ("application/json", b"{}")
            self.send_response(200 if answer is not None else 404)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            if kind.endswith("manifest.v1+json"):
                self.send_header("Docker-Content-Digest", f"sha256:{hashlib.sha256(body).hexdigest()}")
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        def do_HEAD(self) -> None:
            self.do_GET()

        def log_message(self, *_arguments: Any) -> None:
            return None

    with _serving(Answers) as authority:
        found.authority = authority
        yield found


__all__ = ["PROGRAMS", "Programs", "Registry", "fill_folder", "fill_repository", "registry", "repository"]
