"""oci2disk against a registry: tokens, passwords, indexes, redirects, and content that is not what its digest says."""

from __future__ import annotations

import gzip
import hashlib
import http.server
import json
import threading
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from ironbell.agent.actions import oci2disk
from ironbell.agent.actions.context import ActionError
from ironbell.agent.actions.streams.registry import parse

IMAGE = bytes(range(256)) * 4096
MIB = 1 << 20
OCI = "application/vnd.oci.image"


def digest(body: bytes) -> str:
    return f"sha256:{hashlib.sha256(body).hexdigest()}"


@dataclass
class Shelf:
    """A registry's contents, and how it behaves."""

    blobs: dict[str, bytes] = field(default_factory=dict)
    manifests: dict[str, bytes] = field(default_factory=dict)
    login: str = ""
    """What Authorization a token is given for; empty is everybody."""
    wants: str = ""
    """`bearer` or `basic`; empty wants nothing."""
    answers_before_token_ends: int = 1000
    cut_after: int = 0
    redirects_blobs: bool = False
    host: str = ""
    asked: list[str] = field(default_factory=list)
    tokens: int = 0

    def add(self, layer: bytes, *, tag: str = "v1", platform: str = "") -> str:
        self.blobs[digest(layer)] = layer
        media = f"{OCI}.layer.v1.tar"
        title = {"org.opencontainers.image.title": "debian.raw.gz"}
        piece = {"mediaType": media, "digest": digest(layer), "size": len(layer), "annotations": title}
        manifest = json.dumps({"schemaVersion": 2, "layers": [piece], "platform": platform}).encode()
        self.manifests[tag] = self.manifests[digest(manifest)] = manifest
        return digest(manifest)


@pytest.fixture
def shelf() -> Iterator[Shelf]:
    found = Shelf()

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

        def answer(self, status: int, body: bytes = b"", **headers: str) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name.replace("_", "-"), value)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        def do_HEAD(self) -> None:
            self.do_GET()

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            found.asked.append(f"{self.command} {parts.path}")
            said = self.headers.get("authorization", "")
            if parts.path == "/token":
                query = parse_qs(parts.query)
                assert query["scope"] == ["repository:site/debian:pull"]
                if found.login and said != found.login:
                    return self.answer(401)
                found.tokens += 1
                return self.answer(200, json.dumps({"token": f"t{found.tokens}"}).encode())
            if parts.path.startswith("/elsewhere/"):
                assert not said, "the token stays with the registry"
                return self.blob(parts.path.rpartition("/")[2])
            if not self.may(said):
                realm = f'Bearer realm="http://{found.host}/token",service="here",scope="repository:site/debian:pull"'
                return self.answer(401, www_authenticate=realm if found.wants == "bearer" else 'Basic realm="x"')
            _, kind, name = parts.path.removeprefix("/v2/").rsplit("/", 2)
            if kind == "manifests":
                body = found.manifests.get(name)
                return self.answer(200, body) if body is not None else self.answer(404)
            if found.redirects_blobs:
                elsewhere = found.host.replace("127.0.0.1", "localhost")
                return self.answer(307, location=f"http://{elsewhere}/elsewhere/{name}")
            return self.blob(name)

        def may(self, said: str) -> bool:
            if found.wants == "basic":
                return said == found.login
            if found.wants == "bearer":
                found.answers_before_token_ends -= 1
                return said == f"Bearer t{found.tokens}" and found.answers_before_token_ends != 0
            return True

        def blob(self, name: str) -> None:
            body = found.blobs[name]
            start = int((self.headers.get("range") or "bytes=0-")[6:-1])
            self.send_response(206 if start else 200)
            if start:
                self.send_header("content-range", f"bytes {start}-{len(body) - 1}/{len(body)}")
            self.send_header("etag", f'"{name}"')
            self.send_header("content-length", str(len(body) - start))
            self.end_headers()
            end = start + found.cut_after if found.cut_after and not start else len(body)
            self.wfile.write(body[start:end])
            self.close_connection = True

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    found.host = f"127.0.0.1:{server.server_address[1]}"
    try:
        yield found
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def write(shelf: Shelf, run_here: Any, disk: Path, version: str = ":v1", **environment: str) -> Any:
    url = f"{shelf.host}/site/debian{version}"
    return run_here(oci2disk.run, IMG_URL=url, DEST_DISK=str(disk), PLAIN_HTTP="true", **environment)


def test_compressed_layer_by_tag_and_by_digest(shelf, run_here, file_disk) -> None:
    found = shelf.add(gzip.compress(IMAGE))
    for version in (":v1", f"@{found}", f":v1@{found}"):
        disk = file_disk(4 * MIB)
        result = write(shelf, run_here, disk, version, COMPRESSED="true")
        assert result.status == 0, result.said
        assert disk.read_bytes()[: len(IMAGE)] == IMAGE
        assert "debian.raw.gz" in result.said[0]


@pytest.mark.parametrize("wants", ["bearer", "basic"])
def test_password_is_asked_for_and_stays_unsaid(shelf, run_here, file_disk, wants) -> None:
    shelf.add(IMAGE)
    shelf.wants, shelf.login = wants, f"Basic {b64encode(b'robot:s3cret').decode()}"
    disk = file_disk(4 * MIB)
    refused = write(shelf, run_here, disk)
    assert refused.status == 1
    assert "REGISTRY_USERNAME and REGISTRY_PASSWORD" in refused.failure
    result = write(shelf, run_here, disk, REGISTRY_USERNAME="robot", REGISTRY_PASSWORD="s3cret")
    assert result.status == 0, result.said
    assert disk.read_bytes()[: len(IMAGE)] == IMAGE
    assert "s3cret" not in "".join([*refused.said, *result.said, *shelf.asked])


def test_token_that_ends_on_the_way_is_renewed_and_is_not_told_to_others(shelf, run_here, file_disk) -> None:
    shelf.add(IMAGE)
    shelf.wants, shelf.cut_after, shelf.redirects_blobs = "bearer", 300_000, True
    shelf.answers_before_token_ends = 5
    disk = file_disk(4 * MIB)
    result = write(shelf, run_here, disk)
    assert result.status == 0, result.said
    assert disk.read_bytes()[: len(IMAGE)] == IMAGE
    assert shelf.tokens == 2
    assert any("interrupted at byte 300000" in line for line in result.said)


def test_of_an_index_the_machines_own_architecture_is_taken(shelf, run_here, file_disk, monkeypatch) -> None:
    entries = []
    for architecture, content in (("amd64", IMAGE), ("arm64", IMAGE[::-1])):
        found = shelf.add(content, tag=architecture, platform=architecture)
        platform = {"architecture": architecture, "os": "linux"}
        entries.append({"mediaType": f"{OCI}.manifest.v1+json", "digest": found, "size": 1, "platform": platform})
    shelf.manifests["v1"] = json.dumps({"schemaVersion": 2, "manifests": entries}).encode()
    disk = file_disk(4 * MIB)
    assert write(shelf, run_here, disk).status == 0
    assert disk.read_bytes()[: len(IMAGE)] == IMAGE
    shelf.manifests["v1"] = json.dumps({"schemaVersion": 2, "manifests": entries[1:] * 2}).encode()
    assert "no image for amd64; it has those for arm64" in write(shelf, run_here, disk).failure


def test_content_that_is_not_its_digest_does_not_boot(shelf, run_here, file_disk) -> None:
    found = shelf.add(IMAGE)
    shelf.blobs[digest(IMAGE)] = IMAGE[:-1] + b"x"
    disk = file_disk(4 * MIB)
    result = write(shelf, run_here, disk)
    assert result.status == 1
    assert "the manifest specifies sha256:" in result.failure
    assert disk.read_bytes()[:MIB] == bytes(MIB), "the first blocks are written last"
    shelf.manifests[found] += b" "
    before = disk.read_bytes()
    assert "does not match its digest" in write(shelf, run_here, disk, f"@{found}").failure
    assert disk.read_bytes() == before


def test_what_is_no_disk_image_is_refused_before_anything_is_written(shelf, run_here, file_disk) -> None:
    disk = file_disk(4 * MIB)
    before = disk.read_bytes()
    assert "answered 404: check IMG_URL" in write(shelf, run_here, disk).failure
    shelf.add(b"\0" * 257 + b"ustar\0" + b"00" + b"\0" * 5000)
    assert "is a tar archive" in write(shelf, run_here, disk).failure
    shelf.manifests["v1"] = json.dumps({"layers": [{"digest": digest(IMAGE), "size": 1}] * 2}).encode()
    assert "has 2 layers" in write(shelf, run_here, disk).failure
    shelf.manifests["v1"] = b"<html>"
    assert "did not return a manifest" in write(shelf, run_here, disk).failure
    assert disk.read_bytes() == before


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ghcr.io/tinkerbell/capt/ubuntu-2004:v1.35.2.gz", "ghcr.io/tinkerbell/capt/ubuntu-2004:v1.35.2.gz"),
        ("oci://registry:5000/debian", "registry:5000/debian:latest"),
        ("debian:12", "registry-1.docker.io/library/debian:12"),
        ("site/debian:12", "registry-1.docker.io/site/debian:12"),
        ("localhost/a/b__c-d:T_1", "localhost/a/b__c-d:T_1"),
    ],
)
def test_references(text: str, expected: str) -> None:
    assert str(parse(text)) == expected


@pytest.mark.parametrize(
    "text", ["", "host.example/", "host.example/Upper:v1", "host.example/a:v1.30.0+build", "a/b@x"]
)
def test_what_is_no_reference(text: str) -> None:
    with pytest.raises(ActionError, match="registry/repository:tag"):
        parse(text)
