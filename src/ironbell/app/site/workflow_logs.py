"""`GET .../workflows/NAME/log`: the API passes on the logs that the workflow service keeps, over a local socket.

The API authorises the caller (`get` on `workflows/log`) before the workflow service is queried.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from ironbell.api.client import BadRequest, NotFound, Unavailable
from ironbell.apiserver.subresources import ConnectRequest, ConnectResponse, Connects

if TYPE_CHECKING:
    import aiohttp
    from yarl import URL

CONNECT_TIMEOUT_S = 5.0
_FOLDERS = {"", ".", ".."}
"""Path elements that are not names of objects."""
PARAMETERS = ("follow", "action", "tail", "timestamps", "format")


@dataclass(frozen=True)
class WorkflowLogs:
    """The handler. The workflow service answers at `socket`."""

    socket: Path

    def register(self, connects: Connects) -> None:
        connects.register("tinkerbell.org", "workflows", subresource="log", handler=self.answer)

    async def answer(self, request: ConnectRequest) -> ConnectResponse:
        """Open the stream.

        Raises:
            NotFound: there are no logs of that workflow.
            BadRequest: a parameter or a name is not a valid one.
            Unavailable: the workflow service does not run, or does not answer.
        """
        import aiohttp  # loaded with the BMC drivers, after the API has begun to answer

        if {request.namespace, request.name} & _FOLDERS:
            raise NotFound(f"no logs of workflow {request.namespace}/{request.name}")
        query = {name: request.query[name][-1] for name in PARAMETERS if request.query.get(name)}
        session = aiohttp.ClientSession(
            connector=aiohttp.UnixConnector(path=str(self.socket)),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT_S),
        )
        try:
            answer = await session.get(_address(request.namespace, request.name, query))
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            await session.close()
            raise Unavailable(f"the workflow service does not answer: {error}; does its process run?") from error
        except BaseException:
            await session.close()
            raise
        if answer.status != 200:
            text = (await answer.text())[:300].strip()
            await session.close()
            if answer.status == 404:
                raise NotFound(text or f"no logs of workflow {request.namespace}/{request.name}")
            if answer.status == 400:
                raise BadRequest(text)
            raise Unavailable(text or f"the workflow service answered {answer.status}")
        return ConnectResponse(_chunks(session, answer), content_type=answer.content_type)


def _address(namespace: str, name: str, query: Mapping[str, str]) -> URL:
    """The URL of a log. Names are quoted: the caller was authorised for this namespace and no other."""
    from yarl import URL  # as aiohttp

    path = "/".join(quote(part, safe="") for part in ("logs", namespace, name))
    return URL(f"http://wire/{path}?{urlencode(query)}", encoded=True)


async def _chunks(session: aiohttp.ClientSession, answer: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    import aiohttp

    try:
        async for chunk in answer.content.iter_any():
            yield chunk
    except aiohttp.ClientError:
        return
    finally:
        answer.close()
        await session.close()
