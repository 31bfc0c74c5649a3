"""The system that was installed on a simulated server: cloud-init, which requests user data from the site, and the node
that kubeadm makes of it in a simulated cluster.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import msgspec
import structlog

from ironbell.base.errors import IronbellError
from ironbell.lab.fleet import installed
from ironbell.lab.fleet.actions import booted_disk
from ironbell.lab.fleet.link import NoAnswerError
from ironbell.lab.fleet.state import DiskContents, Node
from ironbell.lab.sim.cluster.bootstrap import BootstrapDataError, Kubeadm
from ironbell.lab.sim.cluster.cluster import Endpoint
from ironbell.lab.sim.cluster.host import HostFault, HostPlan

if TYPE_CHECKING:
    from ironbell.lab.fleet.server import SimServer

RETRY_S: Final = 5.0
REPORT_AGAIN_S: Final = 2.0
REPORTS: Final = 5
_FINAL: Final = "modules-final"

log = structlog.get_logger()


class InstalledSystem:
    """The system that runs when a server has booted its disk."""

    def __init__(self, server: SimServer) -> None:
        self._of = server

    async def run(self, *, resumed: bool) -> None:
        """Come up, become a node if the user data contains kubeadm, and run until cancelled."""
        server, around = self._of, self._of.around
        contents = booted_disk(server.server, server.state)
        if contents is not None:
            if not resumed:
                await asyncio.sleep(around.speed.installed_system.draw(around.randomness))
            await self._come_up(contents, resumed=resumed)
        await asyncio.Event().wait()

    async def _come_up(self, contents: DiskContents, *, resumed: bool) -> None:
        config = installed.cloud_config(contents, site=self._of.around.site)
        node = self._of.state.node
        if node is None or not resumed:
            instance, hostname = await self._identity(config)
            if node is None or node.instance != instance:
                node = Node(instance=instance, hostname=hostname, user_data=await self._fetch(config, "user-data"))
                # stored before it is run: a power cut now leaves a system that never became a node
                self._of.change(node=node)
                node = await self._become(node, contents, rejoins=False)
            elif node.joined:
                node = await self._rejoin(node, contents)
        elif node.joined or not node.error:
            node = await self._become(node, contents, rejoins=node.joined)
        await self._report(config, node)

    async def _rejoin(self, node: Node, contents: DiskContents) -> Node:
        """Boot again, unchanged."""
        cloud, uid = self._of.around.cloud, self._of.server.uuid
        if uid not in cloud.hosts:
            return await self._become(node, contents, rejoins=True)
        await cloud.revive(uid)
        return node

    async def _become(self, node: Node, contents: DiskContents, *, rejoins: bool) -> Node:
        """Run kubeadm, if there is something for it."""
        error = ""
        joined = False
        try:
            joined = await self._kubeadm(node, contents, rejoins=rejoins)
        except IronbellError as failure:
            error = failure.message
            log.info("simulated server did not become a node", server=self._of.server.name, cause=error)
        node = msgspec.structs.replace(node, joined=joined, error=error)
        self._of.change(node=node)
        return node

    async def _kubeadm(self, node: Node, contents: DiskContents, *, rejoins: bool) -> bool:
        server, around = self._of.server, self._of.around
        provider = {"provider_id": ""}
        names = dict.fromkeys(("local_hostname", "hostname", "name"), node.hostname)
        ids = dict.fromkeys(("instance_id", "uuid"), node.instance)
        run = installed.kubeadm_of(node.user_data, {**names, **ids, **provider})
        if run is None:
            return False
        endpoint = installed.endpoint_of(run)
        if run.is_control_plane and not around.can_listen(endpoint.host):
            raise BootstrapDataError(
                f"the cluster's API cannot be at {endpoint.host}: simulated servers live in 127.0.0.0/8; "
                "use an address of that network for controlPlaneEndpoint"
            )
        around.cloud.power_on(self._plan(node, contents, run, endpoint, rejoins=rejoins))
        state = await around.cloud.hosts[server.uuid].settled()
        if state.error:
            raise BootstrapDataError(state.error)
        return True

    def _plan(self, node: Node, contents: DiskContents, run: Kubeadm, endpoint: Endpoint, *, rejoins: bool) -> HostPlan:
        server, around = self._of.server, self._of.around
        fails = not rejoins and self._of.meets("kubeadm_fails")
        return HostPlan(
            uid=server.uuid,
            key=("", node.hostname or server.name),
            cluster=around.cluster_at(endpoint),
            secret=("", ""),
            version=installed.version_of(contents, run),
            control_plane=run.is_control_plane,
            address=server.address,
            run=run,
            rejoins=rejoins,
            node=around.speed.kubeadm,
            etcd=around.speed.control_plane,
            api_server=around.speed.control_plane,
            fault=HostFault(kubeadm_fails="the simulation made kubeadm fail" if fails else ""),
        )

    async def _identity(self, config: installed.CloudConfig) -> tuple[str, str]:
        instance = await self._fetch(config, "meta-data/instance-id")
        return instance, await self._fetch(config, "meta-data/local-hostname")

    async def _fetch(self, config: installed.CloudConfig, path: str) -> str:
        """Fetch a value of the metadata, retrying until it is available."""
        while True:
            for base in config.metadata_urls:
                try:
                    answer = await self._of.around.link.get(self._of.server, f"{base}/2009-04-04/{path}")
                except NoAnswerError as error:
                    log.debug("no metadata", server=self._of.server.name, cause=error.message)
                    continue
                if answer.status == 200:
                    return answer.text
            await asyncio.sleep(RETRY_S)

    async def _report(self, config: installed.CloudConfig, node: Node) -> None:
        """Report that the system is up, as cloud-init does, with a limited number of attempts."""
        text = node.error or ("kubeadm has ended" if node.joined else "up")
        document: Any = installed.report(_FINAL, finish=True, ok=not node.error, text=text[:250])
        for endpoint in config.endpoints:
            for _ in range(REPORTS):
                try:
                    answer = await self._of.around.link.post(self._of.server, endpoint, document)
                except NoAnswerError as error:
                    log.debug("report not delivered", server=self._of.server.name, cause=error.message)
                else:
                    if answer.status < 500:
                        break
                await asyncio.sleep(REPORT_AGAIN_S)
