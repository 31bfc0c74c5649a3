"""Claims on servers of other namespaces: allowed by the Namespace of the servers, and by nobody else."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from ironbell.api.capt import TINKERBELL_MACHINE
from ironbell.api.core import EVENT, NAMESPACE
from ironbell.api.tinkerbell import HARDWARE
from ironbell.contract.servers.claim import claim_of
from ironbell.kube.conditions import find_condition
from ironbell.lab.sim.virtualtime import VirtualLoop
from support.servers.captreplay import CaptSite, capt_site

CLAIMS_FROM = "ironbell.dev/claims-from"
AT_ONCE_S = 20
"""Far less than the time after which a machine looks again by itself."""


def run(main: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(main)


async def add_namespace(site: CaptSite, name: str, claims_from: str | None = None) -> None:
    annotations = {} if claims_from is None else {CLAIMS_FROM: claims_from}
    await site.client.create(NAMESPACE, {"metadata": {"name": name, "annotations": annotations}})


async def allow(site: CaptSite, name: str, claims_from: str) -> None:
    body = {"metadata": {"annotations": {CLAIMS_FROM: claims_from}}}
    await site.client.merge_patch(NAMESPACE, "", name, body=body)


async def owner(site: CaptSite, name: str = "s1", namespace: str = "servers") -> str:
    """Who has a server; empty if nobody has."""
    claim = claim_of(await site.client.get(HARDWARE, namespace, name))
    return f"{claim.namespace}/{claim.name}" if claim is not None else ""


async def said(site: CaptSite, name: str, type_: str, namespace: str = "default") -> tuple[str, str, str]:
    machine = await site.client.get(TINKERBELL_MACHINE, namespace, name)
    found = find_condition(machine.status.conditions, type_)
    return (found.status, found.reason, found.message) if found is not None else ("", "", "")


async def refused(site: CaptSite, name: str) -> bool:
    return "allows no claims from namespace" in (await said(site, name, "HardwareReady"))[2]


async def claimed_or_refused(site: CaptSite, name: str) -> bool:
    return bool(await owner(site)) or await refused(site, name)


def test_a_server_is_not_claimed_from_a_namespace_that_its_own_does_not_name() -> None:
    async def main() -> None:
        async with capt_site(1) as site:
            await add_namespace(site, "servers", "team-b")
            await site.add_server("s1", namespace="servers")
            await site.add_machine("m1")
            await site.until(lambda: claimed_or_refused(site, "m1"), what="the attack, or the refusal")
            assert await owner(site) == ""
            status, reason, message = await said(site, "m1", "HardwareReady")
            assert (status, reason) == ("False", "NoHardware")
            assert f'Namespace "servers" allows no claims from namespace "default" ({CLAIMS_FROM})' in message
            await allow(site, "servers", "team-b, default")

            async def claimed() -> bool:
                return await owner(site) == "default/m1"

            await site.until(claimed, within_s=AT_ONCE_S, what="the claim that is allowed now")

            async def told() -> bool:
                return (await said(site, "m1", "ClaimAllowed"))[:2] == ("True", "Allowed")

            await site.until(told, what="the condition")

    run(main())


def test_without_any_annotation_a_claim_works_and_warns() -> None:
    async def main() -> None:
        async with capt_site(2) as site:
            await add_namespace(site, "servers")
            await site.add_server("s1", namespace="servers")
            await site.add_machine("m1")

            async def told() -> bool:
                return (await said(site, "m1", "ClaimAllowed"))[:2] == ("True", "NotRestricted")

            await site.until(told, what="the condition")
            assert await owner(site) == "default/m1"
            command = f"kubectl annotate namespace servers {CLAIMS_FROM}=default"
            assert command in (await said(site, "m1", "ClaimAllowed"))[2]

            async def warned() -> bool:
                found = [event for event in await site.all(EVENT) if event.reason == "ClaimNotRestricted"]
                return any(event.type == "Warning" and command in event.message for event in found)

            await site.until(warned, what="the warning event")

            await allow(site, "servers", "")
            await site.add_server("s2", namespace="servers")
            await site.add_machine("m2")
            await site.until(lambda: refused(site, "m2"), what="the refusal")
            assert await owner(site) == "default/m1", "what was claimed before stays claimed"

    run(main())


def test_nobody_waits_behind_a_machine_that_may_not_claim_the_server() -> None:
    async def main() -> None:
        async with capt_site(3) as site:
            for name in ("team-b", "team-c"):
                await add_namespace(site, name)
                await site.add_cluster("prod", name)
            await add_namespace(site, "servers", "team-c")
            for namespace in ("default", "team-b", "team-c"):
                await site.add_machine(f"of-{namespace}", namespace=namespace)
                await asyncio.sleep(2)
            await site.add_server("s1", namespace="servers")

            async def claimed() -> bool:
                return bool(await owner(site))

            await site.until(claimed, within_s=AT_ONCE_S, what="the claim")
            assert await owner(site) == "team-c/of-team-c"

    run(main())
