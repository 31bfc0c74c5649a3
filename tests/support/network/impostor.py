"""A machine on the network of a real site, and a stranger who speaks in its name."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import urllib.error
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from grpclib.const import Status

from ironbell.agent.rpc import CallError, Client
from ironbell.agent.settings import Settings
from ironbell.codec.proto import workflow_pb2
from support.network import firmware
from support.network.machine import NetMachine, net_machine
from support.network.namespaces import Lan, ip, lan, within
from support.site.up import Site, site

OURS = "192.0.2.1"
STRANGER = "192.0.2.66"
HTTP = f"{OURS}:7080"


@dataclass
class Place:
    """A site, a machine on its network, and the namespace of a stranger."""

    site: Site
    victim: NetMachine
    impostor: str
    network: Lan

    def turn(self, who: str) -> None:
        """From here on this one is on the network: two with one address at once would take each other's answers."""
        for namespace in (self.victim.namespace, self.impostor):
            if namespace != who:
                ip("-n", namespace, "link", "set", "lan", "down")
        ip("-n", who, "link", "set", "lan", "up")

    def fetch(self, who: str, path: str, headers: dict[str, str] | None = None) -> str:
        """What one of them is answered over HTTP; the status where that is an error."""
        self.turn(who)

        def get() -> str:
            try:
                return firmware.get(f"http://{HTTP}{path}", headers).decode()
            except (firmware.BootFailedError, urllib.error.HTTPError, OSError) as error:
                return f"refused: {error}"

        return within(who, get)

    def as_agent(self, who: str, token: str = "", boot_id: str = "b1") -> workflow_pb2.ActionResponse | Status:
        """Ask for an action under the victim's agent id; without boot id as upstream's agents do."""
        return self.call(who, token, boot_id, lambda client: client.get_action(self.request()))

    def request(self) -> workflow_pb2.ActionRequest:
        return workflow_pb2.ActionRequest(agent_id=self.victim.mac)

    def call(self, who: str, token: str, boot_id: str, ask: Callable[[Client], object]) -> object:
        self.turn(who)
        settings = Settings(agent_id=self.victim.mac, host=OURS, port=42113, boot_id=boot_id, boot_token=token)

        async def once() -> object:
            client = Client(settings)
            try:
                async with asyncio.timeout(3):
                    return await ask(client)
            except CallError as error:
                return error.status
            except TimeoutError:
                return Status.DEADLINE_EXCEEDED
            finally:
                client.close()

        return within(who, lambda: asyncio.run(once()))

    def report(self, who: str, given: workflow_pb2.ActionResponse, state: str, token: str = "") -> object:
        """Report an action under the victim's agent id."""
        report = workflow_pb2.ActionStatusRequest(
            workflow_id=given.workflow_id,
            agent_id=self.victim.mac,
            task_id=given.task_id,
            action_id=given.action_id,
            action_name=given.name,
            action_state=workflow_pb2.ActionStatusRequest.StateType.Value(state),
        )
        return self.call(who, token, "b1", lambda client: client.report(report))

    def why(self, what: str) -> str:
        """What `ironbell why` answers."""
        command = [sys.executable, "-m", "ironbell.cli.main", "why", what, "--kubeconfig", str(self.site.kubeconfig)]
        return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False).stdout


@contextmanager
def a_place(folder: Path, *options: str, same_address: bool) -> Iterator[Place]:
    """A site, a machine, and a stranger: with the machine's MAC and address, or with its own."""
    osie = folder / "osie"
    osie.mkdir()
    for name in ("vmlinuz-x86_64", "initramfs-x86_64"):
        (osie / name).write_bytes(b"x" * 1000)
    with ExitStack() as stack:
        network = stack.enter_context(lan(f"{OURS}/24"))
        shared = ("--interface", "br0", "--osie-dir", str(osie))
        running = stack.enter_context(site(folder / "a", *shared, *options, http=HTTP))
        victim = stack.enter_context(net_machine(network, folder, name="victim", number=10))
        if same_address:
            impostor = network.add("impostor", f"{victim.address}/24", mac=victim.mac)
        else:
            impostor = network.add("stranger", f"{STRANGER}/24")
        yield Place(running, victim, impostor, network)
