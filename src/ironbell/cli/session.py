"""Access to the API for commands: find the kubeconfig, connect, and do the work."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import click

from ironbell.base.errors import IronbellError, Retry
from ironbell.codec.durations import DurationError, parse_seconds
from ironbell.kube.transport.http import HttpApi


class _Seconds(click.ParamType[float]):
    """A duration such as 15s or 500ms."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        text = str(value)
        try:
            return parse_seconds(f"{text}s" if text.replace(".", "", 1).isdecimal() else text)
        except DurationError:
            self.fail(f"{value!r} is not a duration: write it as 15s, 500ms or 1h30m", param, ctx)


SECONDS = _Seconds()

T = TypeVar("T")


class NoApiError(IronbellError):
    """There is no kubeconfig from which to find the API."""

    reason, retry = "NoKubeconfig", Retry.NEVER


def kubeconfig_paths(given: Path | None) -> list[Path]:
    """The kubeconfigs to use: the given one, else the existing ones of $KUBECONFIG, else the home folder's.

    Raises:
        NoApiError: there is no kubeconfig in any of these places.
    """
    if given is not None:
        return [given]
    named = [Path(text) for text in os.environ.get("KUBECONFIG", "").split(os.pathsep) if text]
    with contextlib.suppress(RuntimeError):  # an account may have no home folder
        named = named or [Path.home() / ".kube" / "config"]
    existing = [path for path in named if path.is_file()]
    if existing:
        return existing
    raise NoApiError("No kubeconfig was found. Set --kubeconfig DIR/kubeconfig, the path that `ironbell up` prints.")


@asynccontextmanager
async def connected(kubeconfig: Path | None, context: str = "") -> AsyncIterator[HttpApi]:
    """The API of a kubeconfig while the block runs; inside a pod without one, that pod's cluster."""
    from ironbell.kube.transport.connection import from_kubeconfig, in_cluster

    try:
        connection = from_kubeconfig(kubeconfig_paths(kubeconfig), context=context)
    except NoApiError:
        if context or "KUBERNETES_SERVICE_HOST" not in os.environ:
            raise
        connection = in_cluster()
    async with HttpApi(connection) as api:
        yield api


def with_api(work: Callable[[HttpApi], Awaitable[T]], *, kubeconfig: Path | None, context: str) -> T:
    """Run a command's work with the API of a kubeconfig."""

    async def connected_work() -> T:
        async with connected(kubeconfig, context) as api:
            return await work(api)

    return asyncio.run(connected_work())
