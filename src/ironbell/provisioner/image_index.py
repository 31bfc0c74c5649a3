"""The index of the images of nodes that a site serves, as controllers read it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

import aiohttp
import msgspec

from ironbell.base.errors import IronbellError, os_problem
from ironbell.contract.servers.node_images import ImageSource, NodeImages
from ironbell.kube.reconciler import Resolvers
from ironbell.provisioner.node_images import NodeImageIndex

_TIMEOUT_S: Final = 10.0


class NodeImagesError(IronbellError):
    """The index of images cannot be read."""

    reason = "NodeImagesUnknown"


def image_resolvers(source: ImageSource) -> Resolvers:
    """Return what reads the index: from a folder of this machine, or over HTTP."""

    async def answer(_asked: NodeImageIndex) -> NodeImages:
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

    return {NodeImageIndex: answer}


async def _fetch(url: str) -> bytes:
    timeout = aiohttp.ClientTimeout(total=_TIMEOUT_S)
    async with aiohttp.ClientSession(timeout=timeout) as session, session.get(url, raise_for_status=True) as answer:
        return await answer.read()


def _problem(error: Exception) -> str:
    """What went wrong, without the library's own words around it."""
    if isinstance(error, aiohttp.ClientResponseError):
        return f"the answer was {error.status} {error.message}"
    if isinstance(error, aiohttp.ClientConnectorError):
        return os_problem(error.os_error)
    if isinstance(error, TimeoutError):
        return f"no answer within {_TIMEOUT_S:g} s"
    return os_problem(error) if isinstance(error, OSError) else str(error) or type(error).__name__
