"""Conversion between the versions of custom resources, by the webhook that their definition names.

Lists are converted in few calls, and results are cached by object, version and requested version, so that a second read
of a list needs no call.

Source: kubernetes/apiextensions-apiserver: pkg/apiserver/conversion/webhook_converter.go.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ironbell.api.client import ApiError
from ironbell.apiserver.store.entry import Entry
from ironbell.apiserver.webhooks.client import CallError, WebhookClient
from ironbell.apiserver.webhooks.configuration import ClientConfig
from ironbell.apiserver.webhooks.services import UnreachableError
from ironbell.base.randomness import Randomness, uuid4

SECONDS = 30
BATCH_OBJECTS, BATCH_BYTES = 1000, 8 << 20
CACHE_BYTES = 32 << 20
_VERSIONS = ("v1", "v1beta1")
_KEPT_METADATA = ("labels", "annotations")

Object = dict[str, Any]


class ConversionConfig(msgspec.Struct, frozen=True, rename="camel"):
    """`spec.conversion.webhook` of a definition."""

    client_config: ClientConfig
    conversion_review_versions: tuple[str, ...] = ()


class _Result(msgspec.Struct, frozen=True):
    status: str = ""
    message: str = ""


class _Response(msgspec.Struct, frozen=True, rename="camel"):
    uid: str = ""
    result: _Result = _Result()
    converted_objects: list[Object] | None = None


class _Review(msgspec.Struct, frozen=True, rename="camel"):
    kind: str = ""
    api_version: str = ""
    response: _Response | None = None


class WebhookConverter:
    """`resources.Converter` for one definition."""

    def __init__(self, client: WebhookClient, config: ConversionConfig, randomness: Randomness) -> None:
        self._client, self._config, self._randomness = client, config, randomness
        self._bodies: OrderedDict[tuple[str, int, str], bytes] = OrderedDict()
        self._size = 0

    async def convert(self, value: Object, api_version: str) -> Object:
        """One object in another version.

        Raises:
            ApiError: the webhook fails, or its response is not valid.
        """
        if value.get("apiVersion") == api_version:
            return value
        return (await self._call([value], api_version))[0]

    async def bodies(self, entries: Sequence[Entry], api_version: str) -> list[bytes]:
        """Stored objects, encoded in another version.

        Raises:
            ApiError: the webhook fails, or its response is not valid.
        """
        bodies: dict[int, bytes] = {}
        missing: list[tuple[int, Entry]] = []
        for place, entry in enumerate(entries):
            body = self._bodies.get((entry.uid, entry.version, api_version))
            if body is None:
                missing.append((place, entry))
            else:
                bodies[place] = body
        while missing:
            count, size = 0, 0
            for _, entry in missing[:BATCH_OBJECTS]:
                count, size = count + 1, size + len(entry.body)
                if size > BATCH_BYTES:
                    break
            batch, missing = missing[:count], missing[count:]
            converted = await self._call([entry.decode() for _, entry in batch], api_version)
            for (place, entry), value in zip(batch, converted, strict=True):
                bodies[place] = body = msgspec.json.encode(value)
                self._keep((entry.uid, entry.version, api_version), body)
        return [bodies[place] for place in range(len(entries))]

    def _keep(self, key: tuple[str, int, str], body: bytes) -> None:
        self._bodies[key] = body
        self._size += len(body)
        while self._size > CACHE_BYTES:
            _, dropped = self._bodies.popitem(last=False)
            self._size -= len(dropped)

    async def _call(self, values: list[Object], api_version: str) -> list[Object]:
        pending = [value for value in values if value.get("apiVersion") != api_version]
        if not pending:
            return values
        subject = f"{pending[0].get('apiVersion')}, Kind={pending[0].get('kind')}"
        uid = uuid4(self._randomness)
        version = next(
            (candidate for candidate in self._config.conversion_review_versions if candidate in _VERSIONS), ""
        )
        if not version:
            raise _failed("no supported conversion review versions")
        review_version = f"apiextensions.k8s.io/{version}"
        request = {"uid": uid, "desiredAPIVersion": api_version, "objects": pending}
        review = {"kind": "ConversionReview", "apiVersion": review_version, "request": request}
        try:
            answered = await self._client.call(self._config.client_config, review, seconds=SECONDS)
            objects = _objects(answered, uid=uid, review_version=review_version)
        except (CallError, UnreachableError) as error:
            raise _failed(f"conversion webhook for {subject} failed: {error.message}") from error
        if len(objects) != len(pending):
            raise _failed(f"conversion webhook for {subject} returned {len(objects)} objects, expected {len(pending)}")
        converted = iter(
            _checked(original, result, api_version, error_prefix=f"conversion webhook for {subject} returned invalid ")
            for original, result in zip(pending, objects, strict=True)
        )
        return [value if value.get("apiVersion") == api_version else next(converted) for value in values]


def converter_for(
    definition: Mapping[str, Any], client: WebhookClient, randomness: Randomness
) -> WebhookConverter | None:
    """The converter of a definition; None if it names no webhook.

    Raises:
        msgspec.ValidationError: the definition's webhook is malformed.
    """
    conversion = (definition.get("spec") or {}).get("conversion") or {}
    if conversion.get("strategy") != "Webhook":
        return None
    return WebhookConverter(client, msgspec.convert(conversion.get("webhook") or {}, ConversionConfig), randomness)


def _objects(answered: Any, *, uid: str, review_version: str) -> list[Object]:
    try:
        review = msgspec.convert(answered, _Review)
    except msgspec.ValidationError as error:
        raise CallError(f"malformed answer: {error}") from error
    if (review.kind, review.api_version) != ("ConversionReview", review_version):
        group, _, version = review.api_version.rpartition("/")
        expected = f"{review_version}, Kind=ConversionReview"
        raise CallError(f"expected webhook response of {expected}, got {group}/{version}, Kind={review.kind}")
    response = review.response
    if response is None:
        raise CallError("no response provided")
    if response.uid != uid:
        raise CallError(f'expected response.uid="{uid}", got "{response.uid}"')
    if response.result.status != "Success":
        fallback = f"response.result.status was '{response.result.status}', not 'Success'"
        raise CallError(response.result.message or fallback)
    return response.converted_objects or []


def _checked(original: Object, converted: Object, api_version: str, *, error_prefix: str) -> Object:
    """The converted object, checked to be the same one; its metadata except labels and annotations is restored."""
    if converted.get("apiVersion") != api_version:
        expected, received = api_version, converted.get("apiVersion", "")
        raise _failed(f"{error_prefix}object: invalid groupVersion (expected {expected}, received {received})")
    if converted.get("kind") != original.get("kind"):
        raise _failed(
            f"{error_prefix}object: invalid kind (expected {original.get('kind')}, received {converted.get('kind')})"
        )
    meta, old = converted.get("metadata"), original["metadata"]
    if not isinstance(meta, dict):
        raise _failed(f"{error_prefix}metadata: missing metadata in converted object")
    for name, shown in (("name", "name"), ("namespace", "namespace"), ("uid", "UID")):
        if (meta.get(name) or "") != (old.get(name) or ""):
            raise _failed(
                f"{error_prefix}object: must have the same {shown}: {old.get(name, '')} != {meta.get(name, '')}"
            )
    kept = {name: value for name, value in old.items() if name not in _KEPT_METADATA}
    given = {name: meta[name] for name in _KEPT_METADATA if _is_text_map(meta.get(name))}
    return {**converted, "metadata": {**kept, **given}}


def _is_text_map(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(text, str) for text in value.values())


def _failed(message: str) -> ApiError:
    return ApiError(message, reason="")
