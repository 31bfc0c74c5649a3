"""Definitions, restarts, and clients that hold on over them."""

from __future__ import annotations

import asyncio

import msgspec

from ironbell.codec import goyaml
from support.api.cluster import Cluster
from support.api.widgets import WIDGETS, widget
from support.programs.kubectl import Kubectl, end, line
from support.programs.upstream import definitions

HARDWARE = """
apiVersion: tinkerbell.org/v1alpha1
kind: Hardware
metadata: {name: server-1, namespace: default}
spec:
  disks: [{device: /dev/sda}]
  interfaces:
  - dhcp:
      mac: "02:00:00:00:00:01"
      ip: {address: 192.168.1.10, netmask: 255.255.255.0, gateway: 192.168.1.1}
    netboot: {allowPXE: true, allowWorkflow: true}
"""


async def test_a_definition_is_usable_at_once(kubectl: Kubectl) -> None:
    await kubectl.ok("apply", "-f", "-", stdin=WIDGETS)
    await kubectl.ok("apply", "-f", "-", stdin=widget())
    await kubectl.ok("wait", "--for=condition=Established", "crd/widgets.test.ironbell.dev", "--timeout=10s")
    assert "widgets.test.ironbell.dev" in await kubectl.ok("get", "crd")


async def test_a_changed_definition_holds_at_once(widgets: Kubectl) -> None:
    changed = WIDGETS.replace("enum: [red, green, blue]", "enum: [red, green, blue, mauve]")
    await widgets.ok("apply", "-f", "-", stdin=changed)
    await widgets.ok("apply", "-f", "-", stdin=widget(colour="mauve"))
    assert "mauve" in await widgets.ok("get", "wd", "-o", "jsonpath={.items[*].spec.colour}")


async def test_a_deleted_definition_takes_its_objects(widgets: Kubectl) -> None:
    await widgets.ok("apply", "-f", "-", stdin=widget())
    await widgets.ok("delete", "crd", "widgets.test.ironbell.dev", "--timeout=30s")
    refused = await widgets.fails("get", "widgets")
    assert "could not find the requested resource" in refused or "doesn't have a resource type" in refused
    await widgets.ok("apply", "-f", "-", stdin=WIDGETS)
    assert await widgets.ok("get", "widgets", "-o", "name") == ""


async def test_a_wrong_definition_is_refused_by_field(kubectl: Kubectl) -> None:
    refused = await kubectl.fails("apply", "-f", "-", stdin=WIDGETS.replace("scope: Namespaced", "scope: Galactic"))
    assert "spec.scope" in refused


async def test_upstream_tinkerbell_definitions(kubectl: Kubectl) -> None:
    upstreams = {"apiVersion": "v1", "kind": "List", "items": definitions("tinkerbell", "v1alpha1/")}
    await kubectl.ok("apply", "-f", "-", stdin=msgspec.json.encode(upstreams).decode())
    await kubectl.ok("apply", "-f", "-", stdin=HARDWARE)
    assert "server-1" in await kubectl.ok("get", "hardware,workflows,templates,machines.bmc.tinkerbell.org")
    assert "allowPXE" in await kubectl.ok("explain", "hardware.spec.interfaces.netboot")
    refused = await kubectl.fails("apply", "-f", "-", stdin=HARDWARE.replace("allowPXE", "allowPxe"))
    assert 'unknown field "spec.interfaces[0].netboot.allowPxe"' in refused
    body = goyaml.load(await kubectl.ok("get", "hw", "server-1", "-o", "yaml"))
    assert body["spec"]["interfaces"][0]["dhcp"]["ip"]["address"] == "192.168.1.10"


async def test_a_restart_keeps_everything(widgets: Kubectl, cluster: Cluster) -> None:
    await widgets.ok("apply", "-f", "-", stdin=widget())
    await widgets.ok("create", "secret", "generic", "s", "--from-literal=a=1")
    before = await widgets.ok("get", "widget/one", "secret/s", "-o", "json")
    await cluster.restart()
    assert await widgets.ok("get", "widget/one", "secret/s", "-o", "json") == before
    assert "unchanged" in await widgets.ok("apply", "-f", "-", stdin=widget())
    await widgets.ok("apply", "-f", "-", stdin=widget("two"))


async def test_a_watch_resumed_over_a_restart_misses_nothing(widgets: Kubectl, cluster: Cluster) -> None:
    await widgets.ok("apply", "-f", "-", stdin=widget("a"))
    listed = msgspec.json.decode(await widgets.ok("get", "--raw", "/apis/test.ironbell.dev/v1/widgets"))
    version = listed["metadata"]["resourceVersion"]
    await widgets.ok("apply", "-f", "-", stdin=widget("b"))
    await widgets.ok("delete", "widget", "a")
    await cluster.restart()
    await widgets.ok("apply", "-f", "-", stdin=widget("c"))
    path = f"/apis/test.ironbell.dev/v1/widgets?watch=1&resourceVersion={version}&timeoutSeconds=1"
    events = [msgspec.json.decode(text) for text in (await widgets.ok("get", "--raw", path)).splitlines()]
    seen = [(event["type"], event["object"]["metadata"]["name"]) for event in events]
    assert seen == [("ADDED", "b"), ("DELETED", "a"), ("ADDED", "c")]


async def test_an_open_watch_does_not_hold_the_stop(widgets: Kubectl, cluster: Cluster) -> None:
    process = await widgets.start("get", "widgets", "-w")
    await widgets.ok("apply", "-f", "-", stdin=widget())
    await line(process)
    async with asyncio.timeout(1.5):
        await cluster.stop()
    await end(process)


async def test_of_two_writers_one_is_told_to_look_again(widgets: Kubectl) -> None:
    await widgets.ok("create", "-f", "-", stdin=widget())
    current = msgspec.json.decode(await widgets.ok("get", "widget", "one", "-o", "json"))
    writes = []
    for colour in ("green", "blue"):
        changed = current | {"spec": current["spec"] | {"colour": colour}}
        writes.append(widgets.run("replace", "-f", "-", stdin=msgspec.json.encode(changed).decode()))
    results = await asyncio.gather(*writes)
    assert sorted(result.code for result in results) == [0, 1]
    assert "Conflict" in next(result.err for result in results if result.code)
