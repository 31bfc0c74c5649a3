"""Files in an OCI registry: the parsing of references, the registry's token, the manifest, the blob.

Only what pulling one file needs. Manifests and blobs are compared with their digests; a registry that requires a token
gets one from the address that it names, with user and password if they are set. Of an index the manifest of this
machine's architecture is used.

Source: opencontainers/distribution-spec: spec.md; opencontainers/image-spec: manifest.md, image-index.md;
distribution/distribution: docs/content/spec/auth/token.md; distribution/reference: normalize.go.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode, urlsplit

import msgspec
import urllib3
from urllib3.exceptions import HTTPError
from urllib3.response import BaseHTTPResponse

from ironbell.agent.actions.context import ActionError
from ironbell.agent.actions.streams.download import pool_for

MANIFESTS: Final = (
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
INDEXES: Final = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
)
_MAX_MANIFEST: Final = 4 << 20
_TIMEOUT_S: Final = 30.0
_ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64"}
_REFERENCE: Final = re.compile(
    r"(?P<repository>[a-z0-9]+(?:[._/-]+[a-z0-9]+)*)(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}))?"
    r"(?:@(?P<digest>sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128}))?"
)
_RETRY: Final = urllib3.Retry(
    total=6, backoff_factor=0.5, status_forcelist=(408, 429, 500, 502, 503, 504), raise_on_status=False
)
_CHALLENGE: Final = re.compile(r'(\w+)\s*=\s*(?:"([^"]*)"|([^\s,"]+))')


@dataclass(frozen=True, slots=True)
class Reference:
    """The parsed name of an image: `registry/repository:tag` or `...@digest`."""

    registry: str
    repository: str
    tag: str = "latest"
    digest: str = ""

    @property
    def version(self) -> str:
        """The version to request; a digest takes precedence over a tag."""
        return self.digest or self.tag

    def __str__(self) -> str:
        return f"{self.registry}/{self.repository}{'@' if self.digest else ':'}{self.version}"


def parse(text: str) -> Reference:
    """A reference as people write it; names without a host are Docker Hub's.

    Raises:
        ActionError: the text is not a reference.
    """
    name = text.strip().removeprefix("oci://")
    host, slash, rest = name.partition("/")
    if not slash or not ("." in host or ":" in host or host == "localhost"):
        host, rest = "docker.io", name if slash else f"library/{name}"
    match = _REFERENCE.fullmatch(rest)
    if match is None:
        raise ActionError(f"{text!r} is not an image in a registry; write registry/repository:tag", exit_status=10)
    registry = "registry-1.docker.io" if host in {"docker.io", "index.docker.io"} else host
    return Reference(registry, match["repository"], match["tag"] or "latest", match["digest"] or "")


class Platform(msgspec.Struct, frozen=True):
    """Machines that a manifest is for."""

    architecture: str = ""
    os: str = ""


class Descriptor(msgspec.Struct, frozen=True, rename="camel"):
    """A piece of content by its digest."""

    digest: str
    size: int
    media_type: str = ""
    annotations: dict[str, str] = {}
    platform: Platform | None = None


class _Document(msgspec.Struct, frozen=True, rename="camel"):
    media_type: str = ""
    layers: list[Descriptor] = []
    manifests: list[Descriptor] = []


class Registry:
    """One repository of a registry. Tokens are kept for as long as the registry accepts them."""

    def __init__(
        self,
        reference: Reference,
        *,
        user: str = "",
        password: str = "",
        plain_http: bool = False,
        skip_verify: bool = False,
    ) -> None:
        self._reference = reference
        scheme = "http" if plain_http else "https"
        self._base = f"{scheme}://{reference.registry}/v2/{reference.repository}"
        self._pool = pool_for(self._base, skip_verify=skip_verify)
        self._login = urllib3.make_headers(basic_auth=f"{user}:{password}") if user else {}
        self._skip_verify = skip_verify
        self._authorization: Mapping[str, str] = {}

    def layer(self) -> Descriptor:
        """The one file that the reference names.

        Raises:
            ActionError: the registry does not serve it, or there is not exactly one.
        """
        document = self._manifest(self._reference.version, self._reference.digest)
        if document.manifests:
            chosen = _for_this_machine(document.manifests, str(self._reference))
            document = self._manifest(chosen.digest, chosen.digest)
        if len(document.layers) != 1:
            raise ActionError(f"{self._reference} has {len(document.layers)} layers; a disk image has one")
        return document.layers[0]

    def blob(self, descriptor: Descriptor) -> str:
        """The address of a piece of content."""
        return f"{self._base}/blobs/{descriptor.digest}"

    def authorization(self) -> Mapping[str, str]:
        """Headers for a request; requests a token, or a new one, where the registry requires it."""
        self._get(f"{self._base}/manifests/{self._reference.version}", method="HEAD").close()
        return self._authorization

    def _manifest(self, version: str, digest: str) -> _Document:
        response = self._get(f"{self._base}/manifests/{version}")
        try:
            body = response.read(_MAX_MANIFEST + 1, decode_content=True)
        except (HTTPError, OSError) as error:
            raise ActionError(f"{self._reference}: the registry's response was cut off") from error
        finally:
            response.close()
        if len(body) > _MAX_MANIFEST:
            raise ActionError(f"{self._reference}: the manifest is larger than {_MAX_MANIFEST >> 20} MiB")
        if digest and digest != _digest(body, digest):
            raise ActionError(f"{self._reference}: the manifest does not match its digest {digest}")
        try:
            document = msgspec.json.decode(body, type=_Document)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise ActionError(f"{self._reference}: the registry did not return a manifest: {error}") from error
        return document

    def _get(self, url: str, *, method: str = "GET") -> BaseHTTPResponse:
        response = self._request(url, self._authorization, method)
        if response.status == 401:
            challenge = response.headers.get("www-authenticate", "")
            response.close()
            self._authorization = self._authorize(challenge)
            response = self._request(url, self._authorization, method)
        if response.status != 200:
            response.close()
            raise ActionError(f"{self._reference}: the registry answered {response.status}{_hint(response.status)}")
        return response

    def _request(self, url: str, headers: Mapping[str, str], method: str = "GET") -> BaseHTTPResponse:
        headers = {"accept": ", ".join((*MANIFESTS, *INDEXES)), "user-agent": "ironbell-agent", **headers}
        try:
            return self._pool.request(
                method, url, headers=headers, preload_content=False, timeout=_TIMEOUT_S, retries=_RETRY
            )
        except (HTTPError, OSError) as error:
            host = urlsplit(url).netloc
            raise ActionError(f"{self._reference}: {host} cannot be reached over {urlsplit(url).scheme}") from error

    def _authorize(self, challenge: str) -> Mapping[str, str]:
        """The response to a challenge: a token from the address that it names, or user and password."""
        scheme, _, rest = challenge.partition(" ")
        if scheme.lower() != "bearer":
            if not self._login:
                raise ActionError(f"{self._reference}: the registry requires REGISTRY_USERNAME and REGISTRY_PASSWORD")
            return self._login
        fields = {name.lower(): quoted or bare for name, quoted, bare in _CHALLENGE.findall(rest)}
        realm = fields.get("realm", "")
        if urlsplit(realm).scheme not in {"http", "https"}:
            raise ActionError(f"{self._reference}: the registry does not name the address of its tokens")
        scope = fields.get("scope") or f"repository:{self._reference.repository}:pull"
        query = urlencode({"service": fields.get("service", ""), "scope": scope})
        pool = pool_for(realm, skip_verify=self._skip_verify)
        url = f"{realm}{'&' if urlsplit(realm).query else '?'}{query}"
        try:
            response = pool.request("GET", url, headers=self._login, timeout=_TIMEOUT_S, retries=_RETRY)
        except (HTTPError, OSError) as error:
            raise ActionError(f"{self._reference}: no token from {urlsplit(realm).netloc}") from error
        if response.status != 200:
            raise ActionError(
                f"{self._reference}: {urlsplit(realm).netloc} answered {response.status} instead of a token"
                f"{_hint(response.status)}"
            )
        return {"authorization": f"Bearer {_token(response.data, str(self._reference))}"}


class _Token(msgspec.Struct, frozen=True):
    token: str = ""
    access_token: str = ""


def _token(body: bytes, name: str) -> str:
    try:
        response = msgspec.json.decode(body, type=_Token)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ActionError(f"{name}: the registry's token cannot be read") from error
    token = response.token or response.access_token
    if not token or not token.isprintable():
        raise ActionError(f"{name}: the registry did not return a token")
    return token


def _for_this_machine(manifests: list[Descriptor], name: str) -> Descriptor:
    machine = os.uname().machine
    architecture = _ARCHITECTURES.get(machine, machine)
    matching = [
        manifest for manifest in manifests if manifest.platform and manifest.platform.architecture == architecture
    ]
    usable = matching or (manifests if len(manifests) == 1 else [])
    if not usable:
        present = ", ".join(sorted({item.platform.architecture for item in manifests if item.platform})) or "none"
        raise ActionError(f"{name} has no image for {architecture}; it has those for {present}")
    return usable[0]


def _digest(body: bytes, like: str) -> str:
    algorithm = like.partition(":")[0]
    return f"{algorithm}:{hashlib.new(algorithm, body, usedforsecurity=False).hexdigest()}"


def _hint(status: int) -> str:
    if status in {401, 403}:
        return ": check REGISTRY_USERNAME and REGISTRY_PASSWORD"
    return ": check IMG_URL" if status == 404 else ""
