"""A TLS server for webhooks: those of Tinkerbell's kinds, which warn, and those of Cluster API's kinds.

Every replica serves; none needs the Lease. Where webhooks only warn, their absence (failurePolicy Ignore) loses a hint
and nothing else.

Source: admission.k8s.io/v1 AdmissionReview; kubernetes-sigs/controller-runtime: pkg/webhook (metrics).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
import structlog
from aiohttp import web
from prometheus_client import Counter, Histogram

from ironbell.app.admission.handlers import Handler
from ironbell.app.admission.reviews import Review
from ironbell.app.admission.tls import WebhookTls
from ironbell.app.processes.health import AddressError, read_address

_log = structlog.get_logger()
_requests = Counter("controller_runtime_webhook_requests", "Admission requests answered.", ["webhook", "code"])
_latency = Histogram("controller_runtime_webhook_latency_seconds", "Time of an admission request.", ["webhook"])

MAX_BODY = 32 << 20
"""Enough for a list of objects to convert; an admission request has only the old and the new object."""
SHUTDOWN_S = 1.0
_WARNING = 250
"""Longer warnings are cut by the API server."""


class _Request(msgspec.Struct, rename="camel"):
    uid: str
    object: dict[str, Any] | None = None
    old_object: dict[str, Any] | None = None


class _AdmissionReview(msgspec.Struct):
    request: _Request


@dataclass
class Webhooks:
    """The server. `run` returns after `stop`."""

    address: str
    tls: WebhookTls
    reviews: Mapping[str, Review]
    """Reviews by path: they return warnings about an object, and never reject it."""
    handlers: Mapping[str, Handler] = field(default_factory=dict)
    """Handlers by path: they return the whole response. A defect fails the request."""
    name: str = "webhooks"
    _stopping: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> None:
        """Serve until stopped or cancelled.

        Raises:
            AddressError: the address cannot be bound.
        """
        application = web.Application(client_max_size=MAX_BODY)
        application.add_routes([web.post(path, self._reviewing(path, review)) for path, review in self.reviews.items()])
        application.add_routes(
            [web.post(path, self._handling(path, handler)) for path, handler in self.handlers.items()]
        )
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=SHUTDOWN_S)
        await runner.setup()
        maintenance = asyncio.create_task(self.tls.run(), name="webhook certificates")
        host, port = read_address(self.address)
        try:
            await web.TCPSite(runner, host, port, ssl_context=self.tls.context).start()
            stopping = asyncio.create_task(self._stopping.wait())
            await asyncio.wait([stopping, maintenance], return_when=asyncio.FIRST_COMPLETED)
            stopping.cancel()
            if maintenance.done():
                maintenance.result()
        except OSError as error:
            raise AddressError(f"--webhook-address {self.address}: {error.strerror}") from error
        finally:
            maintenance.cancel()
            await asyncio.gather(maintenance, return_exceptions=True)
            await runner.cleanup()

    def stop(self) -> None:
        """Stop serving."""
        self._stopping.set()

    async def check(self) -> str:
        """Ready once it has a certificate."""
        return "" if self.tls.is_loaded else "no certificate yet"

    def _reviewing(self, path: str, review: Review) -> Any:
        async def handle(request: web.Request) -> web.Response:
            with _latency.labels(path).time():
                response = await _answer(request, review)
            _requests.labels(path, str(response.status)).inc()
            return response

        return handle

    def _handling(self, path: str, handler: Handler) -> Any:
        async def handle(request: web.Request) -> web.Response:
            with _latency.labels(path).time():
                response = await _handled(request, handler)
            _requests.labels(path, str(response.status)).inc()
            return response

        return handle


async def _handled(request: web.Request, handler: Handler) -> web.Response:
    try:
        return web.Response(body=await handler(await request.read()), content_type="application/json")
    except msgspec.MsgspecError as error:
        return web.Response(status=400, text=f"not a valid review: {error}")
    except Exception:  # noqa: BLE001 - logged with its traceback
        _log.exception("webhook failed", path=request.path)
        return web.Response(status=500, text="the webhook failed; see the log of ironbell")


async def _answer(request: web.Request, review: Review) -> web.Response:
    try:
        review_request = msgspec.json.decode(await request.read(), type=_AdmissionReview).request
    except msgspec.MsgspecError as error:
        return web.Response(status=400, text=f"not a valid AdmissionReview: {error}")
    try:
        document = review_request.object if review_request.object is not None else review_request.old_object
        warnings = await review(document) if document is not None else []
    except Exception:  # noqa: BLE001 - logged with its traceback
        # A defect in a review must not prevent anybody from applying an object.
        _log.exception("admission review failed", path=request.path)
        warnings = []
    response: dict[str, Any] = {"uid": review_request.uid, "allowed": True}
    if warnings:
        response["warnings"] = [_short(warning) for warning in warnings]
    body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
    return web.Response(body=msgspec.json.encode(body), content_type="application/json")


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _WARNING else f"{line[: _WARNING - 1]}…"
