"""Servers that another cluster keeps: the Tinkerbell provider works on that one's Hardware.

Source: tinkerbell/cluster-api-provider-tinkerbell: main.go, docs (external Tinkerbell cluster).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import structlog

from ironbell.api.bmc import JOB, MACHINE
from ironbell.api.client import Api
from ironbell.api.kind import Collection
from ironbell.api.tinkerbell import HARDWARE, TEMPLATE, WORKFLOW
from ironbell.contract.servers.boot_token import Identity, metadata_base
from ironbell.contract.servers.node_images import image_source_at
from ironbell.contract.system import Settings
from ironbell.kube.split import SplitApi
from ironbell.kube.transport.connection import from_kubeconfig
from ironbell.kube.transport.http import HttpApi
from ironbell.provisioner.settings import InstallSettings

THEIRS: Final[frozenset[Collection]] = frozenset(
    kind.collection for kind in (HARDWARE, TEMPLATE, WORKFLOW, JOB, MACHINE)
)
"""Collections that are on the other cluster."""
_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class ServersElsewhere:
    """How another cluster that keeps the servers is reached."""

    kubeconfig: Path | None = None
    """If the file is missing or empty, this cluster keeps them."""


def read_settings(options: Mapping[str, Any]) -> tuple[object, ...]:
    """Read the system's options of `ironbell run`."""
    installs = InstallSettings(
        metadata_url=metadata_base(options["metadata_url"].rstrip("/"), Identity(options["identity"])),
        per_rack=options["installs_per_rack"],
        images=image_source_at(options["node_images_url"].rstrip("/")),
    )
    return installs, ServersElsewhere(options["external_kubeconfig"])


@asynccontextmanager
async def api_with_servers(here: Api, settings: Settings) -> AsyncIterator[Api]:
    """The API as the provider sees it: with the other cluster's servers, where there is such a cluster.

    Raises:
        ConnectionConfigError: the kubeconfig cannot be used.
        OSError: it cannot be read.
    """
    kubeconfig = settings.of(ServersElsewhere).kubeconfig
    if kubeconfig is None:
        yield here
        return
    try:
        exists = bool((await asyncio.to_thread(kubeconfig.read_bytes)).strip())
    except (FileNotFoundError, NotADirectoryError):
        exists = False
    _log.info("servers are kept", tinkerbellClientMode="external" if exists else "local")
    if not exists:
        yield here
        return
    async with HttpApi(from_kubeconfig(kubeconfig)) as there:
        yield SplitApi(here, there, THEIRS)
