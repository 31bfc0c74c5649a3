"""The provisioner's access to systems outside of decisions: the index of node images, and the contents of Secrets.

Bootstrap data is copied from its Secret to the Hardware, which the metadata service serves.

Source: tinkerbell/cluster-api-provider-tinkerbell: controller/machine/{scope,hardware}.go.
"""

from __future__ import annotations

import asyncio
import binascii
from base64 import b64decode
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import aiohttp
import msgspec

from ironbell.api.client import Api, NotFound
from ironbell.api.core.secret import SECRET_METADATA
from ironbell.api.tinkerbell import HARDWARE
from ironbell.base.errors import IronbellError, Retry, os_problem
from ironbell.contract.servers.claim import USER_DATA_OF
from ironbell.contract.servers.node_images import ImageSource, NodeImages
from ironbell.kube.decision import Action, MergePatch
from ironbell.kube.reconciler import Performers, Resolvers
from ironbell.provisioner.lifecycle.installing import GIVE_USER_DATA, GiveUserData
from ironbell.provisioner.lifecycle.names import PLACEHOLDER
from ironbell.provisioner.node_images import NodeImageIndex

_TIMEOUT_S: Final = 10.0
_KEY: Final = "value"
"""Key of the bootstrap data in its Secret."""


class NodeImagesError(IronbellError):
    """The index of images cannot be read."""

    reason = "NodeImagesUnknown"


def image_resolvers(source: ImageSource) -> Resolvers:
    """Return the resolver of the index, which reads it from a folder of this machine, or over HTTP."""

    async def resolve(_query: NodeImageIndex) -> NodeImages:
        try:
            if source.index.startswith(("http://", "https://")):
                body = await _fetch(source.index)
            else:
                body = await asyncio.to_thread(Path(source.index).read_bytes)
            return msgspec.json.decode(body, type=NodeImages)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise NodeImagesError(f"{source.index}: {_problem(error)}") from error
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise NodeImagesError(f"{source.index} is not an index of images: {error}") from error

    return {NodeImageIndex: resolve}


async def _fetch(url: str) -> bytes:
    timeout = aiohttp.ClientTimeout(total=_TIMEOUT_S)
    async with aiohttp.ClientSession(timeout=timeout) as session, session.get(url, raise_for_status=True) as response:
        return await response.read()


def _problem(error: Exception) -> str:
    """The message of an error, without the library's own text around it."""
    if isinstance(error, aiohttp.ClientResponseError):
        return f"the response was {error.status} {error.message}"
    if isinstance(error, aiohttp.ClientConnectorError):
        return os_problem(error.os_error)
    if isinstance(error, TimeoutError):
        return f"no response within {_TIMEOUT_S:g} s"
    return os_problem(error) if isinstance(error, OSError) else str(error) or type(error).__name__


class BootstrapDataError(IronbellError):
    """A Secret has no bootstrap data."""

    reason = "NoBootstrapData"
    retry = Retry.BACKOFF


class _Contents(msgspec.Struct, gc=False):
    data: dict[str, str] = {}


_decoder = msgspec.json.Decoder(_Contents)


def performers(api: Api) -> Performers:
    """Return the performers of effects by name; `api` is that of an identity that may read Secrets."""

    async def give(arguments: GiveUserData) -> Sequence[Action]:
        text = await read_bootstrap_data(api, *arguments.secret)
        body = {
            "metadata": {"annotations": {USER_DATA_OF: arguments.marked_as}},
            "spec": {"userData": text.replace(PLACEHOLDER, arguments.provider_id)},
        }
        return [MergePatch(HARDWARE, *arguments.hardware, body, resource_version=arguments.resource_version)]

    return {GIVE_USER_DATA: give}


async def read_bootstrap_data(api: Api, namespace: str, name: str) -> str:
    """Return the bootstrap data of a Secret.

    Raises:
        BootstrapDataError: the Secret does not exist, or has no valid data.
        ApiError: the API does not respond.
    """
    where = f"Secret {namespace}/{name}"
    try:
        body = await api.get(SECRET_METADATA.collection, namespace, name)
    except NotFound as error:
        raise BootstrapDataError(f"{where} does not exist") from error
    try:
        text = b64decode(_decoder.decode(body).data.get(_KEY, ""), validate=True).decode()
    except (msgspec.MsgspecError, binascii.Error, UnicodeDecodeError) as error:
        raise BootstrapDataError(f"{where}: the value of key {_KEY} is not valid base64") from error
    if not text:
        raise BootstrapDataError(f"{where}: key {_KEY} is missing or empty")
    return text
