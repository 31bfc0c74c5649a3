"""Servers of a rack on virtual time: a BMC each, firmware, an agent that carries out Workflows, and what is installed.

They stand between the real controllers of Tinkerbell and the simulated clusters of `lab.sim`: who boots what was
installed runs kubeadm with the user data that its Hardware had, as cloud-init would.
"""

from __future__ import annotations

import asyncio
from base64 import b64encode
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from ironbell.api.bmc.action import PowerAction
from ironbell.api.bmc.connection import Connection
from ironbell.api.bmc.machine import PowerState
from ironbell.api.client import ApiError
from ironbell.api.cluster import MACHINE
from ironbell.api.cluster.names import LABEL_CONTROL_PLANE
from ironbell.api.core.secret import SECRET, Secret
from ironbell.api.meta import to_builtin
from ironbell.api.tinkerbell import HARDWARE, WORKFLOW
from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.api.tinkerbell.workflow import Workflow, WorkflowState
from ironbell.base.clock import rfc3339
from ironbell.bmc.driver import UnreachableError, UnsupportedError
from ironbell.contract.servers.claim import INSTALLED_SYSTEM_UP, claim_of
from ironbell.controllers.rufio.operation import Operation, SetBootDevice, SetPower, describe
from ironbell.controllers.rufio.secret import Credentials
from ironbell.kube.decision import Key
from ironbell.lab.sim.cluster.host import HostPlan
from ironbell.lab.sim.replay import ReplaySite
from support.servers.captworld import server
from support.servers.wipereports import wipe_report

NAMESPACE = "default"
POST_S = 30.0
LOOK_S = 3.0
ACTION_S = 5.0
_WORKS = (WorkflowState.PENDING, WorkflowState.RUNNING)


@dataclass
class Server:
    """One of them."""

    rack: Rack
    name: str
    power: PowerState = PowerState.OFF
    next_boot: str = ""
    disk: str = ""
    """uid of the system that is installed; empty if the disk is blank."""
    installs: int = 0
    wipes: int = 0
    power_cycles: int = 0
    broken: bool = False
    """Its installed system does not come up any more."""
    bmc_answers: bool = True
    done: list[str] = field(default_factory=list)
    _boot: asyncio.Task[None] | None = None

    async def power_state(self) -> PowerState:
        await self._asked()
        return self.power

    async def inventory(self) -> Any:
        raise UnsupportedError("no inventory")

    async def operate(self, operation: Operation) -> None:
        await self._asked()
        self.done.append(describe(operation))
        if isinstance(operation, SetBootDevice):
            self.next_boot = operation.device
        elif isinstance(operation, SetPower):
            if operation.action is PowerAction.ON:
                self._on()
            else:
                await self._off()

    async def close(self) -> None:
        return None

    async def _asked(self) -> None:
        await asyncio.sleep(0.2)
        if not self.bmc_answers:
            raise UnreachableError(f"{self.name}: no route to host")

    def _on(self) -> None:
        if self.power is PowerState.ON:
            return
        self.power = PowerState.ON
        self.rack.most_booting = max(self.rack.most_booting, self.rack.booting + 1)
        self._boot = asyncio.create_task(self._run(), name=f"server {self.name}")

    async def _off(self) -> None:
        self.power_cycles += self.power is PowerState.ON and bool(self.disk)
        self.power = PowerState.OFF
        if self._boot is not None:
            self._boot.cancel()
            await asyncio.gather(self._boot, return_exceptions=True)
        if self.disk:
            await self.rack.site.cloud.lose(self.disk)

    def end(self) -> None:
        """The test is over."""
        if self._boot is not None:
            self._boot.cancel()

    @property
    def is_booting(self) -> bool:
        return self._boot is not None and not self._boot.done()

    async def hang(self) -> None:
        """The installed system does nothing any more; a power cycle helps, unless it is broken."""
        await self.rack.site.cloud.lose(self.disk)

    async def _run(self) -> None:
        await asyncio.sleep(POST_S)
        over_network, self.next_boot = self.next_boot == "pxe" or not self.disk, ""
        if over_network:
            wiped = await self._agent()
            if wiped:
                return
        if self.disk:
            await self._boot_disk()

    async def _agent(self) -> bool:
        """The in-memory OS: carries out the Workflow for this machine; whether it was a wipe."""
        client = self.rack.site.client
        while True:
            for workflow in await self.rack.site.all(WORKFLOW):
                if workflow.spec.hardware_ref != self.name or workflow.status.state not in _WORKS:
                    continue
                is_wipe = workflow.metadata.name.endswith("-wipe")
                hardware = await client.get(HARDWARE, NAMESPACE, self.name)
                failed = await self._carry_out(workflow, wipe_report(hardware) if is_wipe else "")
                if failed:
                    break
                if self.disk:
                    await self.rack.site.cloud.release(self.disk)
                self.disk = ""
                self.wipes += is_wipe
                if not is_wipe:
                    self.installs += 1
                    self.disk = f"{self.name}-{self.installs}"
                    self.rack.user_data[self.disk] = hardware.spec.user_data or ""
                return is_wipe
            await asyncio.sleep(LOOK_S)

    async def _carry_out(self, workflow: Workflow, message: str) -> bool:
        """What the workflow service writes as actions begin and end; whether one failed."""
        fails = self.rack.failing.get(self.name, 0) > 0 and not workflow.metadata.name.endswith("-wipe")
        total = sum(len(task.actions) for task in workflow.status.tasks)
        last = 1 if fails else total
        for number in range(last + 1):
            await asyncio.sleep(ACTION_S)
            now, state = rfc3339(self.rack.site.clock.now()), "POST" if number == total else "RUNNING"
            tasks: list[Any] = to_builtin(list(workflow.status.tasks))
            actions = [action for task in tasks for action in task["actions"]]
            for action in actions[:number]:
                action |= {"state": "SUCCESS", "executionStart": now, "executionStop": now, "message": message}
            action = actions[min(number, total - 1)]
            if number < total:
                action |= {"state": "RUNNING", "executionStart": now}
            if fails and number == last:
                self.rack.failing[self.name] -= 1
                state = "FAILED"
                action |= {"state": state, "executionStop": now, "message": "exit status 1: no space left on device"}
            current = {"taskID": tasks[0]["id"], "actionID": action["id"], "state": action["state"]}
            current["actionName"] = action["name"]
            status = {"state": state, "tasks": tasks, "currentState": current}
            with suppress(ApiError):
                await self.rack.site.client.merge_patch(
                    WORKFLOW, *workflow.key, body={"status": status}, subresource="status"
                )
        return fails

    async def _boot_disk(self) -> None:
        site = self.rack.site
        if self.broken:
            return
        if self.disk in site.cloud.hosts:
            await site.cloud.revive(self.disk)
        else:
            site.cloud.power_on(await self._plan())
        up = {"metadata": {"annotations": {INSTALLED_SYSTEM_UP: rfc3339(site.clock.now())}}}
        await asyncio.sleep(ACTION_S)
        await site.client.merge_patch(HARDWARE, NAMESPACE, self.name, body=up)

    async def _plan(self) -> HostPlan:
        """The installed system's first boot, with what the metadata service says then."""
        hardware: Hardware = await self.rack.site.client.get(HARDWARE, NAMESPACE, self.name)
        claim = claim_of(hardware)
        assert claim is not None, f"{self.name} boots what was installed for nobody"
        machine = await self.rack.site.client.get(MACHINE, claim.namespace, claim.name)
        dhcp = hardware.spec.interfaces[0].dhcp
        return HostPlan(
            uid=self.disk,
            key=(claim.namespace, claim.name),
            cluster=(claim.namespace, machine.spec.cluster_name),
            secret=("", self.disk),
            version=machine.spec.version,
            control_plane=LABEL_CONTROL_PLANE in machine.metadata.labels,
            provider_id=f"tinkerbell://{NAMESPACE}/{self.name}",
            address=dhcp.ip.address if dhcp is not None and dhcp.ip is not None else "",
        )


@dataclass
class Rack:
    """All of them."""

    site: ReplaySite
    servers: dict[str, Server] = field(default_factory=dict)
    user_data: dict[str, str] = field(default_factory=dict)
    """What was written into each installed system."""
    failing: dict[str, int] = field(default_factory=dict)
    """How many Workflows are still to fail, by server."""
    most_booting: int = 0

    @property
    def booting(self) -> int:
        return sum(one.is_booting for one in self.servers.values())

    async def connect(self, connection: Connection, _credentials: Credentials) -> Server:
        return self.servers[connection.host]

    async def read_user_data(self, key: Key) -> Secret:
        """In place of the Secret: what cloud-init gets."""
        value = b64encode(self.user_data[key[1]].encode()).decode()
        return SECRET.convert({"metadata": {"name": key[1]}, "data": {"value": value}})

    async def add(self, name: str, number: int, *, labels: dict[str, str] | None = None, bmc: bool = True) -> Server:
        """A server that is off, its Hardware and its BMC."""
        made = to_builtin(server(name))
        address = f"192.0.2.{number}"
        ip = {"address": address, "netmask": "255.255.255.0", "gateway": "192.0.2.254"}
        dhcp = {"mac": f"02:00:00:00:01:{number:02x}", "ip": ip, "uefi": True, "name_servers": ["192.0.2.253"]}
        interface = {"dhcp": dhcp}
        spec = {**made["spec"], "interfaces": [interface]}
        if bmc:
            spec["bmcRef"] = {"apiGroup": "bmc.tinkerbell.org", "kind": "Machine", "name": name}
            connection = {"host": name, "insecureTLS": True, "authSecretRef": {"name": "bmc", "namespace": NAMESPACE}}
            await self._create("bmc.tinkerbell.org/v1alpha1", "Machine", name, {"spec": {"connection": connection}})
        await self._create("tinkerbell.org/v1alpha1", "Hardware", name, {"spec": spec}, labels)
        self.servers[name] = Server(self, name)
        return self.servers[name]

    async def _create(
        self, api: str, kind: str, name: str, body: dict[str, Any], labels: dict[str, str] | None = None
    ) -> None:
        metadata = {"namespace": NAMESPACE, "name": name, "labels": labels or {}}
        await self.site.apply([{"apiVersion": api, "kind": kind, "metadata": metadata, **body}])
