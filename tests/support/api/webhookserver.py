"""A webhook over TLS on this machine: answers what a test tells it to, and keeps what it was asked."""

from __future__ import annotations

import base64
import ipaddress
import json
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

Answer = Callable[[dict[str, Any]], Any]
"""Gives the body to answer a decoded request with; bytes are sent as they are."""


@dataclass
class WebhookServer:
    """One server; `answers` by path."""

    port: int
    ca_bundle: str
    """The certificate, in base64 of its PEM form."""
    answers: dict[str, Answer] = field(default_factory=dict)
    asked: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """What was sent to each path."""

    def client_config(self, path: str) -> dict[str, Any]:
        """`clientConfig` for a path here."""
        return {"url": f"https://127.0.0.1:{self.port}{path}", "caBundle": self.ca_bundle}

    def on(self, path: str, answer: Answer) -> dict[str, Any]:
        """Answer a path in this way; gives its `clientConfig`."""
        self.answers[path] = answer
        return self.client_config(path)


def allow(request: dict[str, Any], **more: Any) -> dict[str, Any]:
    """The review that lets a request pass."""
    return _reviewed(request, {"allowed": True, **more})


def deny(request: dict[str, Any], **status: Any) -> dict[str, Any]:
    """The review that refuses a request."""
    return _reviewed(request, {"allowed": False} | ({"status": status} if status else {}))


def patch(request: dict[str, Any], *operations: dict[str, Any]) -> dict[str, Any]:
    """The review that changes the object."""
    encoded = base64.b64encode(json.dumps(operations).encode()).decode()
    return allow(request, patch=encoded, patchType="JSONPatch")


def _reviewed(request: dict[str, Any], response: dict[str, Any]) -> dict[str, Any]:
    response = {"uid": request["request"]["uid"], **response}
    return {"apiVersion": request["apiVersion"], "kind": request["kind"], "response": response}


@contextmanager
def webhook_server(folder: Path, names: Sequence[str] = ()) -> Iterator[WebhookServer]:
    """A server with a certificate of its own, good for 127.0.0.1 and `names`."""
    certificate = _certificate(folder, names)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(folder / "webhook.crt", folder / "webhook.key")

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            path = self.path.partition("?")[0]
            request = json.loads(body)
            served.asked.setdefault(path, []).append(request)
            answer = served.answers.get(path)
            found = answer(request) if answer else b""
            content = found if isinstance(found, bytes) else json.dumps(found).encode()
            self.send_response(200 if answer else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as the base class names it
            return

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def get_request(self) -> tuple[Any, Any]:
            connection, address = super().get_request()
            return context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False), address

        def handle_error(self, request: Any, client_address: Any) -> None:
            return  # a client that does not trust us, or that has left

    server = Server(("127.0.0.1", 0), Handler)
    served = WebhookServer(server.server_address[1], base64.b64encode(certificate).decode())
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield served
    finally:
        server.shutdown()
        server.server_close()


def slowly(seconds: float) -> Answer:
    """An answer that takes longer than anybody waits."""

    def answer(request: dict[str, Any]) -> Any:
        time.sleep(seconds)
        return allow(request)

    return answer


def _certificate(folder: Path, names: Sequence[str]) -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "webhook")])
    now = datetime.now(UTC)
    addresses = [x509.IPAddress(ipaddress.ip_address("127.0.0.1")), *(x509.DNSName(one) for one in names)]
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName(addresses), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = made.public_bytes(serialization.Encoding.PEM)
    (folder / "webhook.crt").write_bytes(pem)
    encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    (folder / "webhook.key").write_bytes(key.private_bytes(encoding, form, serialization.NoEncryption()))
    return pem
