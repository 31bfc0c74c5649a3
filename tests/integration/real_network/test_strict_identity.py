"""Strict identity on a real network: a second machine with the victim's MAC, address and agent id gets nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from grpclib.const import Status

from ironbell.api.tinkerbell import HARDWARE
from ironbell.codec.proto import log_pb2, workflow_pb2
from ironbell.contract.servers.boot_token import BOOT_SECONDS, PLACEHOLDER, metadata_token, record_of
from support.network.impostor import HTTP, Place, a_place
from support.network.machine import NetMachine, action, template, workflow
from support.site.up import Seen, seen

pytestmark = pytest.mark.root

SECRET = "#cloud-config\n# kubeadm join --token abcdef.0123456789abcdef\n"


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with a_place(tmp_path, "--identity", "strict", same_address=True) as made:
        yield made


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
        assert place.report(impostor, first, "FAILED") is Status.PERMISSION_DENIED
        said = log_pb2.MachineReport(agent_id=victim.mac, kind=log_pb2.MachineReport.AGENT_FAILURE, text="dead")
        assert place.call(impostor, "", "b1", lambda c: c.report_machine(said)) is Status.PERMISSION_DENIED
        path = environment["CONTENTS"].removeprefix(f"http://{HTTP}")
        assert place.fetch(victim.namespace, f"{path}/2009-04-04/user-data") == SECRET
        assert place.fetch(victim.namespace, f"{path}/nocloud/user-data") == SECRET

        # asking for the script takes the token from both and ends the installation
        script = place.fetch(impostor, f"/ipxe/script/{victim.mac}/auto.ipxe")
        assert "boots from its disk" in script
        assert "boot_token" not in script
        await watching.until(lambda: "requested again" in watching.outcome("one"), within_s=10, what="a safe end")
        assert watching.state("one") == "FAILED"
        await watching.until(lambda: not watching.allows_pxe("victim"), within_s=10, what="no netboot")
        assert place.fetch(victim.namespace, f"{path}/2009-04-04/user-data").startswith("refused")
        assert not isinstance(place.as_agent(victim.namespace, token), workflow_pb2.ActionResponse)
        await watching.until(
            lambda: any("requested again" in one.message for one in watching.events("Hardware", "victim")),
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
