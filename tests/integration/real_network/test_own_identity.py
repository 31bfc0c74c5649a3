"""How machines are known unless somebody says otherwise: by token for our Templates, else by their address."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from grpclib.const import Status

from ironbell.api.tinkerbell import HARDWARE, WORKFLOW
from ironbell.codec.proto import log_pb2, workflow_pb2
from ironbell.contract.servers.boot_token import PLACEHOLDER, metadata_token
from ironbell.contract.servers.identity import IDENTITY
from support.network.impostor import HTTP, STRANGER, Place, a_place
from support.network.machine import action, template, workflow
from support.site.up import Seen, seen

pytestmark = pytest.mark.root

PROXY = "192.0.2.77"
PASSWORD = "hunter2-of-the-registry"
USER_DATA = "#cloud-config\n# kubeadm join --token abcdef.0123456789abcdef\n"
DENIED = (Status.PERMISSION_DENIED, Status.DEADLINE_EXCEEDED)


async def install(watching: Seen, place: Place, name: str, *, identity: str = "", base: str = "") -> None:
    """A Workflow whose actions have a password in their environment, as upstream's templates have; it waits."""
    made = template(name, action("pull", "oci2disk", REGISTRY_PASSWORD=PASSWORD, CONTENTS=base), action("go", "reboot"))
    made["metadata"]["annotations"] = {IDENTITY: identity} if identity else {}
    await watching.apply(made, workflow(name, place.victim))
    await watching.until(lambda: watching.state(name) == "PENDING", within_s=10, what="a Workflow that waits")


async def test_another_servers_agent_id_is_not_enough_unless_a_trusted_proxy_asks(
    tmp_path: Path,
) -> None:
    with a_place(tmp_path, "--trusted-proxies", PROXY, same_address=False) as place:
        victim, stranger = place.victim, place.impostor
        proxy = place.network.add("proxy", f"{PROXY}/24")
        hardware = victim.hardware()
        hardware["spec"]["userData"] = USER_DATA
        async with seen(place.site) as watching:
            await watching.apply(hardware)
            await install(watching, place, "one")

            # the attack: from another address, under the agent id of a server that is to be installed
            stolen = place.as_agent(stranger, boot_id="")
            assert not isinstance(stolen, workflow_pb2.ActionResponse), [*stolen.environment]
            assert stolen in DENIED
            await watching.until(
                lambda: "ironbell.dev/refused-agent" in watching.find(WORKFLOW, "one").metadata.annotations,
                within_s=10,
                what="a note of who was refused",
            )
            why = place.why("workflow/one")
            assert f"{STRANGER}" in why
            assert f"has {victim.address}" in why
            assert "--trusted-proxies" in why

            # upstream's agent on the server itself gets its action as ever, and nobody else can report or log for it
            place.turn(victim.namespace)
            boot = await asyncio.to_thread(victim.netboot)
            assert "ironbell.boot_token" not in boot.arguments
            first = place.as_agent(victim.namespace, boot_id="")
            assert isinstance(first, workflow_pb2.ActionResponse)
            assert f"REGISTRY_PASSWORD={PASSWORD}" in first.environment
            assert place.report(stranger, first, "FAILED") is Status.PERMISSION_DENIED
            said = log_pb2.MachineReport(agent_id=victim.mac, kind=log_pb2.MachineReport.AGENT_FAILURE, text="dead")
            assert place.call(stranger, "", "b1", lambda c: c.report_machine(said)) is Status.PERMISSION_DENIED
            assert place.report(victim.namespace, first, "RUNNING") is None
            assert f"by its address, {victim.address}" in place.why("hardware/victim")
            assert place.fetch(victim.namespace, "/2009-04-04/user-data") == USER_DATA

            # a trusted proxy speaks for the server, and nobody else does
            forwarded = {"X-Forwarded-For": f"198.51.100.9, {victim.address}"}
            assert place.fetch(proxy, "/2009-04-04/user-data", forwarded) == USER_DATA
            assert place.fetch(proxy, "/2009-04-04/user-data").startswith("refused")
            assert place.fetch(stranger, "/2009-04-04/user-data", forwarded).startswith("refused")
            assert isinstance(place.as_agent(proxy, boot_id=""), workflow_pb2.ActionResponse)
            why = place.why("hardware/victim")
            assert f"through the trusted proxy {PROXY}" in why
            assert "not compared" in why
            await watching.client.delete(WORKFLOW, "default", "one")
            await watching.until(lambda: watching.workflow("one") is None, within_s=10, what="no Workflow")

            # a Template that is marked as ours are: who has the address is told nothing without the token
            base = f"http://{HTTP}/t/{PLACEHOLDER}"
            await install(watching, place, "two", identity="strict", base=base)
            assert place.fetch(victim.namespace, "/2009-04-04/user-data").startswith("refused")
            script = f"/ipxe/script/{victim.mac}/auto.ipxe"
            assert place.fetch(stranger, script).startswith("refused"), "who asks first from elsewhere gets no token"
            place.turn(victim.namespace)
            token = (await asyncio.to_thread(victim.netboot)).arguments["ironbell.boot_token"]
            assert place.as_agent(victim.namespace) in DENIED
            assert place.fetch(stranger, script).startswith("refused"), "and takes it from nobody"
            second = place.as_agent(victim.namespace, token)
            assert isinstance(second, workflow_pb2.ActionResponse)
            path = f"/t/{metadata_token(token)}/2009-04-04/user-data"
            assert f"CONTENTS=http://{HTTP}/t/{metadata_token(token)}" in second.environment
            assert place.report(victim.namespace, second, "RUNNING", token) is None
            assert place.report(victim.namespace, second, "FAILED") is Status.PERMISSION_DENIED
            assert place.fetch(victim.namespace, path) == USER_DATA
            assert place.fetch(victim.namespace, "/2009-04-04/user-data").startswith("refused")
            assert "by the token of its boot" in place.why("hardware/victim")
            await watching.client.delete(WORKFLOW, "default", "two")
            await watching.until(lambda: not watching.allows_pxe("victim"), within_s=10, what="no netboot")
            assert place.fetch(victim.namespace, path) == USER_DATA
            assert place.fetch(victim.namespace, "/2009-04-04/user-data").startswith("refused")

            # what upstream's template installs after it knows of no token
            await install(watching, place, "three")
            third = place.as_agent(victim.namespace, boot_id="")
            assert isinstance(third, workflow_pb2.ActionResponse)
            assert place.report(victim.namespace, third, "RUNNING") is None
            await watching.until(
                lambda: "ironbell.dev/boot-superseded" in watching.find(HARDWARE, "victim").metadata.annotations,
                within_s=10,
                what="the earlier token to count no longer",
            )
            assert place.fetch(victim.namespace, "/2009-04-04/user-data") == USER_DATA
