"""Documents about the server: version, health, discovery, OpenAPI, metrics.

Source: kubernetes/apiserver: pkg/server/routes, pkg/server/healthz, pkg/endpoints/discovery/aggregated/etag.go.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Callable
from functools import cached_property
from importlib import metadata
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import prometheus_client

from ironbell.api.client import ApiError, NotFound
from ironbell.apiserver import discovery
from ironbell.apiserver.builtin.facts import release
from ironbell.apiserver.core import ApiServer
from ironbell.apiserver.discovery import Entry, entries, prefix
from ironbell.apiserver.http.content.answers import answer, answer_value, text
from ironbell.apiserver.http.content.media import (
    JSON,
    NotAcceptable,
    discovery_format,
    plain_media_type,
    ranges,
    require_json,
)
from ironbell.apiserver.http.exchange import NO_RESOURCE
from ironbell.apiserver.http.server.message import Request, Response
from ironbell.apiserver.http.target import Target
from ironbell.apiserver.identities.accounts import AccountTokens
from ironbell.apiserver.threads import in_thread

if TYPE_CHECKING:
    from ironbell.apiserver.openapi.documents import OpenApi

T = TypeVar("T")

COMPATIBLE_MAJOR, COMPATIBLE_MINOR, COMPATIBLE_PATCH = release().split(".")
"""The Kubernetes version whose kinds are served."""

IDENTITY_PATHS = ("/.well-known/openid-configuration", "/openid/v1/jwks")

_REQUESTED_PROTOBUF = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
_GIVEN_PROTOBUF = _REQUESTED_PROTOBUF.replace("@", ".")
"""Media type of the response; the type that clients request is not a valid one."""

_JSON = {JSON, "*/*", "application/*", "application/com.github.proto-openapi.spec.v2.v1.0+json"}
_PROTOBUF = {_REQUESTED_PROTOBUF, _GIVEN_PROTOBUF}
_EXPOSITION = "text/plain; version=0.0.4; charset=utf-8"
_YEAR_S = 365 * 24 * 3600


def git_version() -> str:
    """The compatible Kubernetes version, with ours as build metadata."""
    return f"v{COMPATIBLE_MAJOR}.{COMPATIBLE_MINOR}.{COMPATIBLE_PATCH}+ironbell.{metadata.version('ironbell')}"


def version_info() -> dict[str, str]:
    """The response to `/version`."""
    return {
        "major": COMPATIBLE_MAJOR,
        "minor": COMPATIBLE_MINOR,
        "gitVersion": git_version(),
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "",
        "goVersion": "",
        "compiler": f"{platform.python_implementation()} {platform.python_version()}",
        "platform": f"linux/{_architecture()}",
    }


def _architecture() -> str:
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())


class Documents:
    """Documents about one server."""

    def __init__(self, server: ApiServer, accounts: AccountTokens) -> None:
        self._server, self._accounts = server, accounts
        self.address = ""
        """Host and port where clients find the server, once that is known."""

    @cached_property
    def _openapi(self) -> OpenApi:
        from ironbell.apiserver.openapi.documents import OpenApi  # no start needs it

        return OpenApi(self._server.resources, git_version())

    async def _from_openapi(self, read: Callable[[OpenApi], T]) -> T:
        """Return a result of the OpenAPI documents, computed in a thread, which also loads the modules for it."""
        return await in_thread(lambda: read(self._openapi))

    async def discovery(self, request: Request, path: str, target: Target | None) -> Response:
        """`/api`, `/apis`, and the resources of one group or version."""
        accept = request.headers.get("Accept", "")
        if target is None or (target.group == "" and not target.version):
            return await self._root(request, accept, core=path.startswith("/api/") or path == "/api")
        media_type = plain_media_type(accept)
        entries = self._entries()
        if target.group and all(entry.group != target.group for entry in entries):
            return no_page()
        document = (
            discovery.resource_list(entries, target.group, target.version)
            if target.version
            else discovery.group(entries, target.group)
        )
        if document is None:
            raise NotFound(NO_RESOURCE)
        return await answer_value(request, document, media_type=media_type)

    async def openapi(self, request: Request, path: str) -> Response:
        """`/openapi/v2`, `/openapi/v3` and the documents below it."""
        if path == "/openapi/v2":
            return await self._openapi_v2(request)
        if path == "/openapi/v3":  # for any Accept header
            return await answer(request, await self._from_openapi(lambda openapi: openapi.index()))
        require_json(request.headers.get("Accept", ""))
        document = await self._from_openapi(lambda openapi: openapi.v3(path.removeprefix("/openapi/v3/")))
        if document is None:
            raise NotFound(NO_RESOURCE)
        body, digest = document
        if _matches(request, digest):
            return Response(status=304, headers={"ETag": f'"{digest}"'})
        requested_hash = request.query.get("hash", "")
        # A client that names the hash may cache the document without limit: a changed document has another address.
        lasting = {"Cache-Control": f"public, max-age={_YEAR_S}"} if requested_hash == digest else {}
        return await answer(request, body, headers={"ETag": f'"{digest}"', **lasting})

    def index(self) -> dict[str, list[str]]:
        """The response to `/`."""
        served = self._entries()
        paths = dict.fromkeys(f"/{prefix(entry.group, entry.version)}" for entry in served)
        paths |= dict.fromkeys(f"/apis/{entry.group}" for entry in served if entry.group)
        fixed = [
            *IDENTITY_PATHS,
            "/api",
            "/apis",
            "/healthz",
            "/livez",
            "/metrics",
            "/openapi/v2",
            "/openapi/v3",
            "/readyz",
            "/version",
        ]
        return {"paths": sorted([*paths, *fixed])}

    async def identity(self, request: Request, path: str) -> Response:
        """Documents for the verification of ServiceAccount tokens (OpenID Connect Discovery 1.0)."""
        if path == "/openid/v1/jwks":
            body, media_type = {"keys": [self._accounts.key.jwk()]}, "application/jwk-set+json"
        else:
            body, media_type = self._openid_configuration(), JSON
        headers = {"Cache-Control": "public, max-age=3600"}
        encoded = msgspec.json.encode(body)
        return await answer(request, encoded, media_type=media_type, headers=headers, pretty=False)

    def _openid_configuration(self) -> dict[str, Any]:
        return {
            "issuer": self._accounts.issuer,
            "jwks_uri": f"https://{self.address}/openid/v1/jwks",
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["ES256"],
        }

    async def metrics(self) -> Response:
        """Prometheus' text exposition of the process."""
        exposed = await in_thread(prometheus_client.generate_latest)
        return Response(body=exposed, headers={"Content-Type": _EXPOSITION})

    async def _openapi_v2(self, request: Request) -> Response:
        """Protocol buffers if the client names them first, else JSON."""
        accepted = [accepted_range.media_type for accepted_range in ranges(request.headers.get("Accept", ""))]
        chosen = next((offered for offered in accepted if offered in _PROTOBUF | _JSON), "")
        if not chosen:
            raise NotAcceptable(f"only the following media types are accepted: {JSON}, {_REQUESTED_PROTOBUF}")
        media_type = _GIVEN_PROTOBUF if chosen in _PROTOBUF else JSON
        body = await self._from_openapi(lambda openapi: openapi.v2(protobuf=chosen in _PROTOBUF))
        return await answer(request, body, media_type=media_type, pretty=False)

    async def _root(self, request: Request, accept: str, *, core: bool) -> Response:
        media_type, version = discovery_format(accept)
        entries = self._entries()
        if not version:
            document = discovery.api_versions(self.address) if core else discovery.group_list(entries)
            return await answer_value(request, document, media_type=media_type)
        body = msgspec.json.encode(discovery.aggregated(entries, core=core, version=version))
        digest = hashlib.sha512(body).hexdigest().upper()
        headers = {"ETag": f'"{digest}"', "Vary": "Accept"}
        if _matches(request, digest):
            return Response(status=304, headers=headers)
        headers["Content-Type"] = f"{media_type};g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
        return await answer(request, body, media_type=media_type, headers=headers)

    def _entries(self) -> list[Entry]:
        return entries(self._server.resources.all(), self._server.connects, self._server.context.actions)


_STORE, _READY = "store", "readyz"
_CHECKS = ("ping", _STORE)


def health(request: Request, path: str, *, is_writable: bool = True) -> Response:
    """`/healthz`, `/livez` and `/readyz`: a server that responds has its store open, and is ready while it can write
    there. As for a kube-apiserver whose etcd fails, a restart would not help, so only readiness depends on that.
    """
    kind, _, check = path.strip("/").partition("/")
    if check and check not in _CHECKS:
        return no_page()
    excluded = dict.fromkeys(request.query.getall("exclude", []))
    failed = {_STORE} - set(excluded) if kind == _READY and check in {"", _STORE} and not is_writable else set()
    if "verbose" not in request.query and not failed:
        return text("ok")
    lines = [_check_line(name, failed=name in failed, excluded=name in excluded) for name in _CHECKS]
    unknown = ",".join(f'"{name}"' for name in excluded if name not in _CHECKS)
    if unknown:
        lines.append(f"warn: some health checks cannot be excluded: no matches for {unknown}")
    verdict = "failed" if failed else "passed"
    return text("\n".join([*lines, f"{kind} check {verdict}", ""]), status=500 if failed else 200)


def _check_line(name: str, *, failed: bool, excluded: bool) -> str:
    if failed:
        return f"[-]{name} failed: writes cannot be stored, see the server's log"
    return f"[+]{name} {'excluded: ' if excluded else ''}ok"


def _matches(request: Request, digest: str) -> bool:
    return request.headers.get("If-None-Match", "").strip().strip('"') == digest


def no_page() -> Response:
    """The response for an unknown path."""
    return text("404 page not found\n", status=404)


def unknown_path() -> ApiError:
    return NotFound(NO_RESOURCE)
