"""One way to reach one cluster's API: what `Workloads` needs of a transport."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol, TypeAlias, runtime_checkable

from ironbell.api.client import Api
from ironbell.kube.decision import Key


class Tunnel(Protocol):
    """Bytes to and from a port of a pod."""

    async def receive(self) -> bytes:
        """The next bytes; empty when the other side has ended."""
        ...

    async def send(self, data: bytes) -> None: ...


@runtime_checkable
class Forwards(Protocol):
    """A link through which ports of pods can be reached."""

    def forward(self, namespace: str, pod: str, port: int) -> AbstractAsyncContextManager[Tunnel]:
        """The way to a port, for as long as the block runs. Entering it raises an `ApiError` where there is none."""
        ...


class Link(Protocol):
    """An open way to a cluster, as the identity of one kubeconfig."""

    @property
    def api(self) -> Api: ...

    async def probe(self) -> None:
        """GET `/`.

        Raises:
            ApiError: the API does not answer; `Unauthorized` or `Forbidden` if it does not know us any more.
        """
        ...

    async def close(self) -> None: ...


Connect: TypeAlias = Callable[[Key, bytes], Link]
"""The way to a cluster that a kubeconfig (the content of its Secret) describes; nothing is sent yet. Raises
`ConnectionConfigError` for a kubeconfig that cannot be used."""

ReadKubeconfig: TypeAlias = Callable[[Key], Awaitable[bytes]]
"""The content of a cluster's kubeconfig Secret, read when it is used. Raises an `ApiError`, or `ConnectionConfigError`
if the Secret holds none."""
