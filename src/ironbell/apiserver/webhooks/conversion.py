"""Conversion between the versions of foreign kinds, by the webhook that their definition names.

Lists are converted in few calls, and what was converted is kept by object, version and wanted version, so that a list
that is read again costs nothing.

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
            ApiError: the webhook fails, or gives something else.
        """
        if value.get("apiVersion") == api_version:
            return value
        return (await self._ask([value], api_version))[0]

    async def bodies(self, entries: Sequence[Entry], api_version: str) -> list[bytes]:
        """Stored objects, encoded in another version.

        Raises:
            ApiError: the webhook fails, or gives something else.
        """
        found: dict[int, bytes] = {}
        missing: list[tuple[int, Entry]] = []
        for place, entry in enumerate(entries):
            body = self._bodies.get((entry.uid, entry.version, api_version))
            if body is None:
                missing.append((place, entry))
            else:
                found[place] = body
        while missing:
            count, size = 0, 0
            for _, entry in missing[:BATCH_OBJECTS]:
                count, size = count + 1, size + len(entry.body)
                if size > BATCH_BYTES:
                    break
            batch, missing = missing[:count], missing[count:]
            converted = await self._ask([entry.decode() for _, entry in batch], api_version)
            for (place, entry), value in zip(batch, converted, strict=True):
                found[place] = body = msgspec.json.encode(value)
                self._keep((entry.uid, entry.version, api_version), body)
        return [found[place] for place in range(len(entries))]

    def _keep(self, key: tuple[str, int, str], body: bytes) -> None:
        self._bodies[key] = body
        self._size += len(body)
        while self._size > CACHE_BYTES:
            _, dropped = self._bodies.popitem(last=False)
            self._size -= len(dropped)

    async def _ask(self, values: list[Object], api_version: str) -> list[Object]:
        wanted = [value for value in values if value.get("apiVersion") != api_version]
        if not wanted:
            return values
        subject = f"{wanted[0].get('apiVersion')}, Kind={wanted[0].get('kind')}"
        uid = uuid4(self._randomness)
        version = next((one for one in self._config.conversion_review_versions if one in _VERSIONS), "")
        if not version:
            raise _failed("no supported conversion review versions")
        review_version = f"apiextensions.k8s.io/{version}"
        request = {"uid": uid, "desiredAPIVersion": api_version, "objects": wanted}
        asked = {"kind": "ConversionReview", "apiVersion": review_version, "request": request}
        try:
            answered = await self._client.call(self._config.client_config, asked, seconds=SECONDS)
            objects = _objects(answered, uid=uid, review_version=review_version)
        except (CallError, UnreachableError) as error:
            raise _failed(f"conversion webhook for {subject} failed: {error.message}") from error
        if len(objects) != len(wanted):
            raise _failed(f"conversion webhook for {subject} returned {len(objects)} objects, expected {len(wanted)}")
        converted = iter(
            _checked(before, after, api_version, what=f"conversion webhook for {subject} returned invalid ")
            for before, after in zip(wanted, objects, strict=True)
        )
        return [value if value.get("apiVersion") == api_version else next(converted) for value in values]


def converter_for(
    definition: Mapping[str, Any], client: WebhookClient, randomness: Randomness
) -> WebhookConverter | None:
    """What converts the objects of a definition; None if it names no webhook.

    Raises:
        msgspec.ValidationError: it names one in another shape than definitions have.
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


def _checked(before: Object, after: Object, api_version: str, *, what: str) -> Object:
    """What the webhook gave, if it is the same object; its metadata but for labels and annotations is put back."""
    if after.get("apiVersion") != api_version:
        expected, received = api_version, after.get("apiVersion", "")
        raise _failed(f"{what}object: invalid groupVersion (expected {expected}, received {received})")
    if after.get("kind") != before.get("kind"):
        raise _failed(f"{what}object: invalid kind (expected {before.get('kind')}, received {after.get('kind')})")
    meta, old = after.get("metadata"), before["metadata"]
    if not isinstance(meta, dict):
        raise _failed(f"{what}metadata: missing metadata in converted object")
    for name, shown in (("name", "name"), ("namespace", "namespace"), ("uid", "UID")):
        if (meta.get(name) or "") != (old.get(name) or ""):
            raise _failed(f"{what}object: must have the same {shown}: {old.get(name, '')} != {meta.get(name, '')}")
    kept = {name: value for name, value in old.items() if name not in _KEPT_METADATA}
    given = {name: meta[name] for name in _KEPT_METADATA if _is_text_map(meta.get(name))}
    return {**after, "metadata": {**kept, **given}}


def _is_text_map(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(text, str) for text in value.values())


def _failed(message: str) -> ApiError:
    return ApiError(message, reason="")
