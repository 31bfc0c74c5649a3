"""The webhooks' certificates where they are needed: in a Secret that all replicas share, in the webhook
configurations and definitions so that the API server trusts them, and in this process's TLS context.

Whichever replica first finds that something must be renewed does it; the Secret's resourceVersion decides between
several. The API server is told of a new authority before anything signed by it is served.

Failure modes: what the API server refuses or does not answer is logged and tried again; until then the last good
certificate is served, which is good for weeks.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import ssl
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import structlog

from ironbell.api.client import AlreadyExists, Api, ApiError, Conflict, NotFound
from ironbell.api.core import SECRET
from ironbell.app.admission.places import Place, client_configs
from ironbell.base.clock import Clock
from ironbell.kube.serving_certificates import AUTHORITY, CERTIFICATE, KEY, renewed

_log = structlog.get_logger()

LOOK_S = 300.0
AGAIN_S = 5.0


@dataclass
class WebhookTls:
    """One replica's view. `context` is what the server uses; it serves once `run` has loaded a certificate."""

    api: Api
    namespace: str
    names: Sequence[str]
    clock: Clock
    secret: str
    places: Sequence[Place]
    context: ssl.SSLContext = field(default_factory=lambda: ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))
    is_loaded: bool = False
    _serving: bytes = b""

    async def run(self) -> None:
        """Keep everything in order until cancelled."""
        while True:
            try:
                await self.sync()
                pause_s = LOOK_S
            except (ApiError, ssl.SSLError) as error:
                _log.warning("webhook certificates not looked after", why=str(error))
                pause_s = AGAIN_S
            await asyncio.sleep(pause_s)

    async def sync(self) -> None:
        """Bring Secret, webhook configuration and context up to date, in this order.

        Raises:
            ApiError: the API server refuses or cannot be reached.
        """
        data = await self._secret()
        await self._announce(data[AUTHORITY])
        if data[CERTIFICATE] != self._serving:
            await asyncio.to_thread(_load, self.context, data)
            self._serving, self.is_loaded = data[CERTIFICATE], True
            _log.info("webhook certificate loaded")

    async def _secret(self) -> Mapping[str, bytes]:
        """What the Secret holds, renewed if need be."""
        while True:
            found = await self._read()
            held = _decoded(found)
            data = await asyncio.to_thread(renewed, held, self.names, self.clock.now())
            if data is None:
                return held
            try:
                await self._write(found, data)
            except (Conflict, AlreadyExists):
                continue  # another replica was first
            _log.info("webhook certificates renewed", secret=self.secret)
            return data

    async def _read(self) -> dict[str, Any] | None:
        try:
            found: dict[str, Any] = msgspec.json.decode(
                await self.api.get(SECRET.collection, self.namespace, self.secret)
            )
        except NotFound:
            return None
        return found

    async def _write(self, found: dict[str, Any] | None, data: Mapping[str, bytes]) -> None:
        encoded = {name: base64.b64encode(value).decode() for name, value in data.items()}
        if found is not None:
            body = msgspec.json.encode({**found, "data": encoded})
            await self.api.replace(SECRET.collection, self.namespace, self.secret, body)
            return
        metadata = {
            "name": self.secret,
            "namespace": self.namespace,
            "labels": {"app.kubernetes.io/name": "ironbell", "app.kubernetes.io/part-of": "ironbell"},
        }
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "kubernetes.io/tls"}
        await self.api.create(SECRET.collection, self.namespace, msgspec.json.encode({**secret, "data": encoded}))

    async def _announce(self, authority: bytes) -> None:
        """Have the API server trust the authority, wherever it reads that."""
        bundle = base64.b64encode(authority).decode()
        for place in self.places:
            await self._announce_at(place, bundle)

    async def _announce_at(self, place: Place, bundle: str) -> None:
        while True:
            found = msgspec.json.decode(await self.api.get(place.where, "", place.name))
            configs = client_configs(found)
            if all(config.get("caBundle") == bundle for config in configs):
                return
            for config in configs:
                config["caBundle"] = bundle
            try:
                await self.api.replace(place.where, "", place.name, msgspec.json.encode(found))
            except Conflict:
                continue
            return


def _decoded(found: Mapping[str, Any] | None) -> dict[str, bytes]:
    data: Mapping[str, str] = (found or {}).get("data") or {}
    try:
        return {name: base64.b64decode(value, validate=True) for name, value in data.items()}
    except binascii.Error:
        return {}


def _load(context: ssl.SSLContext, data: Mapping[str, bytes]) -> None:
    """For the handshakes from now on. Python's ssl takes certificates from files only."""
    with tempfile.NamedTemporaryFile() as pair:
        pair.write(data[CERTIFICATE] + b"\n" + data[KEY])
        pair.flush()
        context.load_cert_chain(pair.name)
