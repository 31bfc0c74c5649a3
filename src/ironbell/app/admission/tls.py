"""The webhooks' certificates where they are needed: in a Secret that all replicas share, in the webhook
configurations and definitions so that the API server trusts them, and in this process's TLS context.

The first replica that finds that something must be renewed renews it; the Secret's resourceVersion decides between
several. The API server gets a new authority before anything signed by it is served.

Failure modes: an error of the API server is logged and the operation is tried again; until then the last valid
certificate is served, which is valid for weeks.
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

CHECK_INTERVAL_S = 300.0
RETRY_INTERVAL_S = 5.0


@dataclass
class WebhookTls:
    """The certificates of one replica. The server uses `context`, which serves once `run` has loaded a certificate."""

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
        """Keep certificates up to date until cancelled."""
        while True:
            try:
                await self.sync()
                pause_s = CHECK_INTERVAL_S
            except (ApiError, ssl.SSLError) as error:
                _log.warning("webhook certificates not maintained", why=str(error))
                pause_s = RETRY_INTERVAL_S
            await asyncio.sleep(pause_s)

    async def sync(self) -> None:
        """Bring the Secret, the webhook configurations and the context up to date, in this order.

        Raises:
            ApiError: the API server rejects a request or cannot be reached.
        """
        data = await self._secret()
        await self._announce(data[AUTHORITY])
        if data[CERTIFICATE] != self._serving:
            await asyncio.to_thread(_load, self.context, data)
            self._serving, self.is_loaded = data[CERTIFICATE], True
            _log.info("webhook certificate loaded")

    async def _secret(self) -> Mapping[str, bytes]:
        """The content of the Secret, renewed if necessary."""
        while True:
            secret = await self._read()
            held = _decoded(secret)
            data = await asyncio.to_thread(renewed, held, self.names, self.clock.now())
            if data is None:
                return held
            try:
                await self._write(secret, data)
            except (Conflict, AlreadyExists):
                continue  # another replica was first
            _log.info("webhook certificates renewed", secret=self.secret)
            return data

    async def _read(self) -> dict[str, Any] | None:
        try:
            secret: dict[str, Any] = msgspec.json.decode(
                await self.api.get(SECRET.collection, self.namespace, self.secret)
            )
        except NotFound:
            return None
        return secret

    async def _write(self, old: dict[str, Any] | None, data: Mapping[str, bytes]) -> None:
        encoded = {name: base64.b64encode(value).decode() for name, value in data.items()}
        if old is not None:
            body = msgspec.json.encode({**old, "data": encoded})
            await self.api.replace(SECRET.collection, self.namespace, self.secret, body)
            return
        metadata = {
            "name": self.secret,
            "namespace": self.namespace,
            "labels": {"app.kubernetes.io/name": "ironbell", "app.kubernetes.io/part-of": "ironbell"},
        }
        new = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "kubernetes.io/tls"}
        await self.api.create(SECRET.collection, self.namespace, msgspec.json.encode({**new, "data": encoded}))

    async def _announce(self, authority: bytes) -> None:
        """Have the API server trust the authority, in all objects where it reads it."""
        bundle = base64.b64encode(authority).decode()
        for place in self.places:
            await self._announce_at(place, bundle)

    async def _announce_at(self, place: Place, bundle: str) -> None:
        while True:
            configuration = msgspec.json.decode(await self.api.get(place.where, "", place.name))
            configs = client_configs(configuration)
            if all(config.get("caBundle") == bundle for config in configs):
                return
            for config in configs:
                config["caBundle"] = bundle
            try:
                await self.api.replace(place.where, "", place.name, msgspec.json.encode(configuration))
            except Conflict:
                continue
            return


def _decoded(secret: Mapping[str, Any] | None) -> dict[str, bytes]:
    data: Mapping[str, str] = (secret or {}).get("data") or {}
    try:
        return {name: base64.b64decode(value, validate=True) for name, value in data.items()}
    except binascii.Error:
        return {}


def _load(context: ssl.SSLContext, data: Mapping[str, bytes]) -> None:
    """Use the certificate for new handshakes. Python's ssl takes certificates only from files."""
    with tempfile.NamedTemporaryFile() as pair:
        pair.write(data[CERTIFICATE] + b"\n" + data[KEY])
        pair.flush()
        context.load_cert_chain(pair.name)
