"""Servers that another cluster keeps: the Tinkerbell provider then works on the Hardware of that cluster.

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
from ironbell.provisioner.node_images import InstallSettings

EXTERNAL_COLLECTIONS: Final[frozenset[Collection]] = frozenset(
    kind.collection for kind in (HARDWARE, TEMPLATE, WORKFLOW, JOB, MACHINE)
)
"""Collections that the other cluster keeps."""
_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class ServersElsewhere:
    """Access to another cluster that keeps the servers."""

    kubeconfig: Path | None = None
    """Path of its kubeconfig. If the file is missing or empty, this cluster keeps the servers."""


def read_settings(options: Mapping[str, Any]) -> tuple[object, ...]:
    """Read the system's options of `ironbell run`."""
    installs = InstallSettings(
        metadata_url=metadata_base(options["metadata_url"].rstrip("/"), Identity(options["identity"])),
        per_rack=options["installs_per_rack"],
        images=image_source_at(options["node_images_url"].rstrip("/")),
    )
    return installs, ServersElsewhere(options["external_kubeconfig"])


@asynccontextmanager
async def api_with_servers(local: Api, settings: Settings) -> AsyncIterator[Api]:
    """Open the API that the provider uses: with the servers of the other cluster, if there is one.

    Raises:
        ConnectionConfigError: the kubeconfig is not valid.
        OSError: the kubeconfig cannot be read.
    """
    kubeconfig = settings.of(ServersElsewhere).kubeconfig
    if kubeconfig is None:
        yield local
        return
    try:
        exists = bool((await asyncio.to_thread(kubeconfig.read_bytes)).strip())
    except (FileNotFoundError, NotADirectoryError):
        exists = False
    _log.info("cluster of the servers chosen", tinkerbellClientMode="external" if exists else "local")
    if not exists:
        yield local
        return
    async with HttpApi(from_kubeconfig(kubeconfig)) as external:
        yield SplitApi(local, external, EXTERNAL_COLLECTIONS)
