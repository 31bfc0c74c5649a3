"""A connection to a cluster's API: the transport that `Workloads` needs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol, TypeAlias, runtime_checkable

from ironbell.api.client import Api
from ironbell.kube.decision import Key


class Tunnel(Protocol):
    """A stream of bytes to and from a port of a Pod."""

    async def receive(self) -> bytes:
        """Return the next bytes; empty when the other side has closed the stream."""
        ...

    async def send(self, data: bytes) -> None: ...


@runtime_checkable
class Forwards(Protocol):
    """A link that can forward ports of Pods."""

    def forward(self, namespace: str, pod: str, port: int) -> AbstractAsyncContextManager[Tunnel]:
        """Forward a port for the duration of the block. Entering the block raises an `ApiError` if this fails."""
        ...


class Link(Protocol):
    """An open connection to a cluster, with the identity of a kubeconfig."""

    @property
    def api(self) -> Api: ...

    async def probe(self) -> None:
        """GET `/`.

        Raises:
            ApiError: the API does not respond; `Unauthorized` or `Forbidden` if it no longer accepts the credentials.
        """
        ...

    async def close(self) -> None: ...


Connect: TypeAlias = Callable[[Key, bytes], Link]
"""Creates a link from a kubeconfig (the content of its Secret); nothing is sent yet. Raises `ConnectionConfigError` for
a kubeconfig that is not valid."""

ReadKubeconfig: TypeAlias = Callable[[Key], Awaitable[bytes]]
"""Reads the content of a cluster's kubeconfig Secret. Raises an `ApiError`, or `ConnectionConfigError` if the Secret
has no kubeconfig."""
