"""Strict identity on a real network: a second machine with the victim's MAC, address and agent id gets nothing."""

from __future__ import annotations

import asyncio
import urllib.error
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest
from grpclib.const import Status

from ironbell.agent.rpc import CallError, Client
from ironbell.agent.settings import Settings
from ironbell.api.tinkerbell import HARDWARE
from ironbell.codec.proto import log_pb2, workflow_pb2
from ironbell.contract.boot_token import BOOT_SECONDS, PLACEHOLDER, metadata_token, record_of
from support import firmware
from support.netmachine import NetMachine, action, net_machine, template, workflow
from support.network import ip, lan, within
from support.site import Seen, Site, seen, site

pytestmark = pytest.mark.root

OURS = "192.0.2.1"
HTTP = f"{OURS}:7080"
SECRET = "#cloud-config\n# kubeadm join --token abcdef.0123456789abcdef\n"


@dataclass
class Place:
    """A strict site, a machine on its network, and the namespace of an impostor."""

    site: Site
    victim: NetMachine
    impostor: str

    def turn(self, who: str) -> None:
        """From here on this one has the address: two at once would take each other's answers."""
        for namespace in (self.victim.namespace, self.impostor):
            if namespace != who:
                ip("-n", namespace, "link", "set", "lan", "down")
        ip("-n", who, "link", "set", "lan", "up")

    def fetch(self, who: str, path: str) -> str:
        """What one of them is answered over HTTP; the status where that is an error."""
        self.turn(who)

        def get() -> str:
            try:
                return firmware.get(f"http://{HTTP}{path}").decode()
            except (firmware.BootFailedError, urllib.error.HTTPError, OSError) as error:
                return f"refused: {error}"

        return within(who, get)

    def as_agent(self, who: str, token: str = "", boot_id: str = "b1") -> workflow_pb2.ActionResponse | Status:
        """Ask for an action under the victim's agent id."""
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


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    osie = tmp_path / "osie"
    osie.mkdir()
    for name in ("vmlinuz-x86_64", "initramfs-x86_64"):
        (osie / name).write_bytes(b"x" * 1000)
    with ExitStack() as stack:
        network = stack.enter_context(lan(f"{OURS}/24"))
        options = ("--interface", "br0", "--osie-dir", str(osie), "--identity", "strict")
        running = stack.enter_context(site(tmp_path / "a", *options, http=HTTP))
        victim = stack.enter_context(net_machine(network, tmp_path, name="victim", number=10))
        impostor = network.add("impostor", f"{victim.address}/24", mac=victim.mac)
        yield Place(running, victim, impostor)


async def install(watching: Seen, victim: NetMachine, name: str) -> None:
    """A Workflow that tells the installed system where its metadata is."""
    url = f"http://{HTTP}/t/{PLACEHOLDER}"
    tell = template(name, action("tell", "writefile", CONTENTS=url), action("go", "reboot"))
    await watching.apply(tell, workflow(name, victim))
    await watching.until(lambda: watching.allows_pxe("victim"), within_s=10, what="netboot")
    await watching.until(lambda: watching.state(name) == "PENDING", within_s=10, what="a Workflow that waits")


async def test_an_impostor_gets_neither_workflow_nor_user_data(place: Place) -> None:
    victim, impostor = place.victim, place.impostor
    hardware = victim.hardware()
    hardware["spec"]["userData"] = SECRET
    async with seen(place.site) as watching:
        await watching.apply(hardware)
        await install(watching, victim, "one")
        assert place.as_agent(impostor) in (Status.PERMISSION_DENIED, Status.DEADLINE_EXCEEDED)
        place.turn(victim.namespace)
        boot = await asyncio.to_thread(victim.netboot)
        token = boot.arguments["ironbell.boot_token"]

        # with the same address and id, and whatever it makes up, it gets nothing
        denied = (Status.PERMISSION_DENIED, Status.DEADLINE_EXCEEDED)
        for guess in ("", "0" * 64, record_of(watching.find(HARDWARE, "victim")).agent):
            assert place.as_agent(impostor, guess, boot_id="made-up") in denied
            assert place.fetch(impostor, f"/t/{guess or 'x'}/2009-04-04/user-data").startswith("refused")
        for path in ("/2009-04-04/user-data", "/nocloud/user-data", "/2009-04-04/meta-data/instance-id"):
            assert place.fetch(impostor, path).startswith("refused")

        # the machine that has booted does, and only it can report
        first = place.as_agent(victim.namespace, token)
        assert isinstance(first, workflow_pb2.ActionResponse)
        environment = dict(pair.split("=", 1) for pair in first.environment)
        assert environment["CONTENTS"] == f"http://{HTTP}/t/{metadata_token(token)}"
        report = workflow_pb2.ActionStatusRequest(
            workflow_id=first.workflow_id,
            agent_id=victim.mac,
            task_id=first.task_id,
            action_id=first.action_id,
            action_name=first.name,
            action_state=workflow_pb2.ActionStatusRequest.FAILED,
        )
        assert place.call(impostor, "", "b1", lambda c: c.report(report)) is Status.PERMISSION_DENIED
        said = log_pb2.MachineReport(agent_id=victim.mac, kind=log_pb2.MachineReport.AGENT_FAILURE, text="dead")
        assert place.call(impostor, "", "b1", lambda c: c.report_machine(said)) is Status.PERMISSION_DENIED
        path = environment["CONTENTS"].removeprefix(f"http://{HTTP}")
        assert place.fetch(victim.namespace, f"{path}/2009-04-04/user-data") == SECRET
        assert place.fetch(victim.namespace, f"{path}/nocloud/user-data") == SECRET

        # asking for the script takes the token from both and ends the installation
        script = place.fetch(impostor, f"/ipxe/script/{victim.mac}/auto.ipxe")
        assert "boots from its disk" in script
        assert "boot_token" not in script
        await watching.until(lambda: "asked for again" in watching.outcome("one"), within_s=10, what="a safe end")
        assert watching.state("one") == "FAILED"
        await watching.until(lambda: not watching.allows_pxe("victim"), within_s=10, what="no netboot")
        assert place.fetch(victim.namespace, f"{path}/2009-04-04/user-data").startswith("refused")
        assert not isinstance(place.as_agent(victim.namespace, token), workflow_pb2.ActionResponse)
        await watching.until(
            lambda: any("asked for again" in one.message for one in watching.events("Hardware", "victim")),
            within_s=10,
            what="an Event",
        )

        # the next installation is a new boot with a token of its own
        await install(watching, victim, "two")
        place.turn(victim.namespace)
        again = (await asyncio.to_thread(victim.netboot)).arguments["ironbell.boot_token"]
        assert again != token
        assert not isinstance(place.as_agent(victim.namespace, token), workflow_pb2.ActionResponse)
        assert isinstance(place.as_agent(victim.namespace, again), workflow_pb2.ActionResponse)
        everything = place.site.log.read_text() + msgspec.json.encode(watching.find(HARDWARE, "victim")).decode()
        for secret in (token, again, metadata_token(token), metadata_token(again)):
            assert secret not in everything


async def test_an_impostor_who_is_faster_than_the_machine_is_given_away_before_it_gets_anything(place: Place) -> None:
    victim, impostor = place.victim, place.impostor
    hardware = victim.hardware(annotations={BOOT_SECONDS: "3600"})
    hardware["spec"]["userData"] = SECRET
    async with seen(place.site) as watching:
        await watching.apply(hardware)
        await install(watching, victim, "one")
        script = place.fetch(impostor, f"/ipxe/script/{victim.mac}/auto.ipxe")
        token = script.partition("ironbell.boot_token=")[2].split()[0]
        assert place.as_agent(impostor, token) in (Status.PERMISSION_DENIED, Status.DEADLINE_EXCEEDED)
        path = f"/t/{metadata_token(token)}/2009-04-04/user-data"
        assert place.fetch(impostor, path).startswith("refused")
        place.turn(victim.namespace)
        boot = await asyncio.to_thread(victim.netboot)
        assert boot.from_disk
        await watching.until(lambda: watching.state("one") == "FAILED", within_s=10, what="a safe end")
