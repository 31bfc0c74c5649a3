"""Servers that another cluster keeps: the Tinkerbell provider works on that one's Hardware.

Source: tinkerbell/cluster-api-provider-tinkerbell: main.go, docs (external Tinkerbell cluster).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import structlog

from ironbell.api.bmc import JOB, MACHINE
from ironbell.api.client import Api
from ironbell.api.kind import Collection
from ironbell.api.tinkerbell import HARDWARE, TEMPLATE, WORKFLOW
from ironbell.kube.connection import from_kubeconfig
from ironbell.kube.http import HttpApi
from ironbell.kube.split import SplitApi

KUBECONFIG: Final = "/var/run/secrets/external-tinkerbell/kubeconfig"
SECRET: Final = "external-tinkerbell-kubeconfig"  # noqa: S105 - the name of a Secret
THEIRS: Final[frozenset[Collection]] = frozenset(
    kind.collection for kind in (HARDWARE, TEMPLATE, WORKFLOW, JOB, MACHINE)
)
"""What is on the other cluster."""
_log = structlog.get_logger()


@asynccontextmanager
async def external_tinkerbell(kubeconfig: Path) -> AsyncIterator[Api | None]:
    """The cluster with the servers; None where the file is missing or empty, and this one has them.

    Raises:
        ConnectionConfigError: the file cannot be used.
        OSError: it cannot be read.
    """
    try:
        is_there = bool((await asyncio.to_thread(kubeconfig.read_bytes)).strip())
    except (FileNotFoundError, NotADirectoryError):
        is_there = False
    _log.info("servers are kept", tinkerbellClientMode="external" if is_there else "local")
    if not is_there:
        yield None
        return
    async with HttpApi(from_kubeconfig(kubeconfig)) as api:
        yield api


def with_servers_of(here: Api, there: Api | None) -> Api:
    """The API as the provider sees it."""
    return here if there is None else SplitApi(here, there, THEIRS)
