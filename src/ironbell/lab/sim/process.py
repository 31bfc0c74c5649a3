"""The simulation's process: clusters and machines in memory, and the provider's controllers, beside a running API.

Started by `ironbell up --simulate`. It reaches the API over TLS with the administrator's kubeconfig, as a
datacentre and its provider would from elsewhere, and clusters are reached over TLS on ports of this machine. Its
content is lost when it ends, except simulated servers, which continue unchanged.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, closing, suppress
from pathlib import Path

import msgspec
import structlog

from ironbell.api.client import Api, ApiError, PatchType, WriteOptions
from ironbell.api.core.secret import SECRET, Secret
from ironbell.api.kind import Collection
from ironbell.app.processes.child import read_configuration, report, run_child
from ironbell.base.clock import SystemClock
from ironbell.base.randomness import SystemRandomness
from ironbell.kube.client import Client
from ironbell.kube.decision import Key
from ironbell.kube.manager.manager import Manager
from ironbell.kube.transport.connection import from_kubeconfig
from ironbell.kube.transport.http import HttpApi
from ironbell.lab.fleet.catalogue import fleet
from ironbell.lab.fleet.faults import FaultsFile
from ironbell.lab.fleet.faults import read as read_faults
from ironbell.lab.fleet.running import endpoint as fleet_endpoint
from ironbell.lab.fleet.running import running
from ironbell.lab.sim.cloud import Cloud
from ironbell.lab.sim.cluster.cluster import Endpoint
from ironbell.lab.sim.provider.controllers import controllers
from ironbell.lab.sim.provider.kinds import definitions
from ironbell.lab.sim.serving.serving import Ports, Serving
from ironbell.lab.sim.timing import SPEEDS

_DEFINITIONS = Collection("apiextensions.k8s.io", "v1", "customresourcedefinitions", namespaced=False)
_OPTIONS = WriteOptions(field_manager="ironbell-simulation", force=True)
_RETRY_S = 1.0

_log = structlog.get_logger()


class SimulationConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Addresses of the APIs, and of the clusters."""

    kubeconfig: str
    also: tuple[str, ...] = ()
    """Kubeconfigs of further management clusters, which have the same machines at their command."""
    host: str = "127.0.0.1"
    servers: int = 0
    """Number of simulated servers."""
    folder: str = ""
    """Folder of the servers' state."""
    site: str = ""
    """URL at which the servers reach the site's HTTP."""
    speed: str = "instant"
    faults_file: str = ""


def prepare() -> Callable[[], Awaitable[None]]:
    """Read the configuration; return a function that simulates until cancelled."""
    configuration = read_configuration(SimulationConfig)
    faults = read_faults(Path(configuration.faults_file)) if configuration.faults_file else FaultsFile()
    return lambda: simulate(configuration, faults)


async def simulate(configuration: SimulationConfig, faults: FaultsFile) -> None:
    """Run the simulation until cancelled."""
    clock, randomness = SystemClock(), SystemRandomness()
    async with AsyncExitStack() as stack:
        ports = stack.enter_context(closing(Ports(configuration.host)))
        apis: list[Api] = []
        for kubeconfig in (configuration.kubeconfig, *configuration.also):
            connection = await asyncio.to_thread(from_kubeconfig, Path(kubeconfig))
            apis.append(await stack.enter_async_context(HttpApi(connection)))
            await _define(apis[-1])

        async def read_secret(key: Key) -> Secret:
            for api in apis[:-1]:
                with suppress(ApiError):  # it is another API's, or that API has ended
                    return await Client(api).get(SECRET, *key)
            return await Client(apis[-1]).get(SECRET, *key)

        cloud = Cloud(
            read_secret,
            clock=clock,
            randomness=randomness,
            endpoint=lambda cluster: fleet_endpoint(cluster) or ports.endpoint(cluster),
            serve=Serving(clock).serve,
        )

        async def expose(cluster: Key) -> Endpoint:
            return cloud.cluster(cluster).endpoint

        managers = []
        for api in apis:
            manager = Manager(api, component="ironbell-simulation", clock=clock, randomness=randomness)
            for controller in controllers(cloud, expose=expose, workers=32):
                manager.add(controller)
            managers.append(manager)
        await stack.enter_async_context(cloud)
        if configuration.servers:
            await stack.enter_async_context(
                running(
                    fleet(configuration.servers),
                    api=apis[0],
                    cloud=cloud,
                    folder=Path(configuration.folder),
                    site=configuration.site,
                    speed=SPEEDS[configuration.speed],
                    faults=faults,
                    clock=clock,
                    randomness=randomness,
                )
            )
        async with asyncio.TaskGroup() as group:
            announce = group.create_task(_announce(managers), name="announce")
            try:
                async with asyncio.TaskGroup() as working:
                    for manager in managers:
                        working.create_task(manager.run(), name="simulation")
            finally:
                announce.cancel()


async def _announce(managers: Sequence[Manager]) -> None:
    for manager in managers:
        await manager.wait_ready()
    report("ready")


async def _define(api: Api) -> None:
    """Define the kinds; the API may still be starting."""
    for document in definitions():
        body = msgspec.json.encode(document)
        while True:
            try:
                await api.patch(
                    _DEFINITIONS, "", document["metadata"]["name"], body, patch_type=PatchType.APPLY, options=_OPTIONS
                )
                break
            except ApiError as error:
                _log.info("kinds not defined yet", cause=error.message)
            await asyncio.sleep(_RETRY_S)


if __name__ == "__main__":
    sys.exit(run_child("simulation", prepare))
