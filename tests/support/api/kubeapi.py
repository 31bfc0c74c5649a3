"""The Kubernetes API as bytes on the wire: requests, answers and watches, with nothing in between that could hide a
difference between two servers."""

from __future__ import annotations

import base64
import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlencode

import urllib3
import yaml

T = TypeVar("T")
TIMEOUT_S = 30.0
JSON = "application/json"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: urllib3.HTTPHeaderDict
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def reason(self) -> str:
        """The reason in a `Status`."""
        return str(self.json.get("reason", ""))

    @property
    def message(self) -> str:
        """The message in a `Status`."""
        return str(self.json.get("message", ""))

    @property
    def causes(self) -> list[dict[str, Any]]:
        """The causes in a `Status`."""
        found: list[dict[str, Any]] = (self.json.get("details") or {}).get("causes") or []
        return found

    @property
    def warnings(self) -> list[str]:
        """The texts of all `Warning` headers."""
        texts = self.headers.getlist("Warning")
        return [text.split(" ", 2)[2][1:-1].replace('\\"', '"') for text in texts]


class Watch:
    """A watch that is open: one event after the other."""

    def __init__(self, response: urllib3.BaseHTTPResponse) -> None:
        self._response = response
        self._chunks = response.stream(65536)
        self._buffer = b""

    def next(self) -> dict[str, Any]:
        """The next event.

        Raises:
            StopIteration: the server ended the watch.
        """
        while b"\n" not in self._buffer:
            self._buffer += next(self._chunks)
        line, _, self._buffer = self._buffer.partition(b"\n")
        event: dict[str, Any] = json.loads(line)
        return event

    def take(self, count: int) -> list[dict[str, Any]]:
        """The next so many events."""
        return [self.next() for _ in range(count)]

    def until(self, accept: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The next event that `accept` takes; those before it are dropped."""
        while not accept(event := self.next()):
            pass
        return event


@dataclass(frozen=True)
class KubeApi:
    """One server, asked as one identity."""

    name: str
    """`embedded` or `real`."""
    server: str
    pool: urllib3.PoolManager
    kubeconfig: Path
    headers: tuple[tuple[str, str], ...] = ()

    @property
    def is_real(self) -> bool:
        return self.name == "real"

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = JSON,
        headers: dict[str, str] | None = None,
        timeout: float = TIMEOUT_S,
        **params: str | int | bool,
    ) -> Answer:
        """One request. `body` is sent as it is if it is bytes, else as JSON."""
        content = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        sent = dict(self.headers) | ({"Content-Type": content_type} if content is not None else {}) | (headers or {})
        fields = {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in params.items()}
        query = urlencode(fields) if fields else ""
        url = f"{self.server}{path}" + (f"{'&' if '?' in path else '?'}{query}" if query else "")
        response = self.pool.request(method, url, body=content, headers=sent, timeout=timeout, retries=False)
        return Answer(response.status, response.headers, response.data)

    def get(self, path: str, **more: Any) -> Answer:
        return self.call("GET", path, **more)

    def post(self, path: str, body: Any, **more: Any) -> Answer:
        return self.call("POST", path, body, **more)

    def put(self, path: str, body: Any, **more: Any) -> Answer:
        return self.call("PUT", path, body, **more)

    def delete(self, path: str, body: Any = None, **more: Any) -> Answer:
        return self.call("DELETE", path, body, **more)

    def patch(self, path: str, body: Any, content_type: str = MERGE, **more: Any) -> Answer:
        return self.call("PATCH", path, body, content_type=content_type, **more)

    def apply(self, path: str, body: Any, *, manager: str, force: bool = False, **more: Any) -> Answer:
        """Server-side apply."""
        forced: dict[str, Any] = {"force": True} if force else {}
        return self.call("PATCH", path, body, content_type=APPLY, fieldManager=manager, **forced, **more)

    def made(self, path: str, body: Any, **more: Any) -> dict[str, Any]:
        """Create, expect success, and give the object."""
        answer = self.post(path, body, **more)
        assert answer.status in {200, 201, 202}, answer.body
        result: dict[str, Any] = answer.json
        return result

    @contextmanager
    def watch(self, path: str, *, timeout: float = TIMEOUT_S, **params: str | int | bool) -> Iterator[Watch]:
        """Watch a collection; reading the next event fails after `timeout` seconds without one."""
        fields = {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in params.items()}
        query = urlencode({"watch": "true"} | fields)
        response = self.pool.request(
            "GET",
            f"{self.server}{path}?{query}",
            headers=dict(self.headers),
            timeout=timeout,
            retries=False,
            preload_content=False,
        )
        try:
            if response.status != 200:
                raise AssertionError(f"{response.status}: {response.data!r}")
            yield Watch(response)
        finally:
            response.close()
            response.release_conn()

    def with_headers(self, **headers: str) -> KubeApi:
        """The same with further headers; `_` in a name stands for `-`."""
        more = tuple((name.replace("_", "-"), value) for name, value in headers.items())
        return replace(self, headers=(*self.headers, *more))

    def with_token(self, token: str) -> KubeApi:
        """The same server asked by who holds this token, without a client certificate."""
        pool = urllib3.PoolManager(ca_certs=self.pool.connection_pool_kw["ca_certs"], maxsize=4)
        return replace(self, pool=pool, headers=(("Authorization", f"Bearer {token}"),) if token else ())


def connect(name: str, kubeconfig: Path, *, connections: int = 8) -> KubeApi:
    """The API that a kubeconfig names, as the user with the client certificate or token in it."""
    config = yaml.safe_load(kubeconfig.read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    files = Path(tempfile.mkdtemp(prefix="kubeapi-"))
    known: dict[str, Any] = {}
    for field, source, key in (
        ("ca_certs", cluster, "certificate-authority-data"),
        ("cert_file", user, "client-certificate-data"),
        ("key_file", user, "client-key-data"),
    ):
        if source.get(key):
            path = files / field
            path.touch(mode=0o600)
            path.write_bytes(base64.b64decode(source[key]))
            known[field] = str(path)
    headers = (("Authorization", f"Bearer {user['token']}"),) if user.get("token") else ()
    return KubeApi(name, cluster["server"], urllib3.PoolManager(maxsize=connections, **known), kubeconfig, headers)
