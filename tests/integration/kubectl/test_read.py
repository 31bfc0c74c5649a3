"""kubectl get, describe, explain, api-resources and their kin."""

from __future__ import annotations

import msgspec

from ironbell.codec import goyaml
from support.api.widgets import widget
from support.programs.kubectl import Kubectl, end, line


async def test_get_prints_the_declared_columns(widgets: Kubectl) -> None:
    await widgets.ok("apply", "-f", "-", stdin=widget())
    header, row = (await widgets.ok("get", "widgets")).splitlines()
    assert header.split() == ["NAME", "COLOUR", "READY", "AGE"]
    assert row.split()[:2] == ["one", "red"]
    wide = (await widgets.ok("get", "wd", "-o", "wide")).splitlines()
    assert wide[0].split() == ["NAME", "COLOUR", "READY", "SIZE", "AGE"]
    assert wide[1].split()[2] == "3"


async def test_output_formats(widgets: Kubectl) -> None:
    await widgets.ok("apply", "-f", "-", stdin=widget())
    in_yaml = goyaml.load(await widgets.ok("get", "widget", "one", "-o", "yaml"))
    in_json = msgspec.json.decode(await widgets.ok("get", "widget/one", "-o", "json"))
    assert in_yaml["spec"] == in_json["spec"] == {"colour": "red", "size": 3, "replicas": 1}
    assert in_yaml["metadata"]["namespace"] == "default"
    assert await widgets.ok("get", "wd", "one", "-o", "jsonpath={.spec.colour}") == "red"
    assert await widgets.ok("get", "wd", "-o", "name") == "widget.test.ironbell.dev/one\n"
    assert "red" in await widgets.ok("get", "wd", "-o", "custom-columns=C:.spec.colour")
    assert (await widgets.ok("get", "wd", "--no-headers", "--sort-by=.metadata.name")).startswith("one")


async def test_get_across_namespaces_and_by_selector(widgets: Kubectl) -> None:
    await widgets.ok("create", "namespace", "other")
    await widgets.ok("apply", "-f", "-", stdin=widget("a"))
    await widgets.ok("apply", "-n", "other", "-f", "-", stdin=widget("b"))
    await widgets.ok("label", "-n", "other", "widget", "b", "mark=yes")
    listed = await widgets.ok("get", "wd", "-A", "--no-headers")
    assert [row.split()[:2] for row in listed.splitlines()] == [["default", "a"], ["other", "b"]]
    assert await widgets.ok("get", "wd", "-A", "-l", "mark=yes", "-o", "name") == "widget.test.ironbell.dev/b\n"
    assert "a" in await widgets.ok("get", "wd", "-A", "--field-selector", "metadata.name=a")
    assert "mark=yes" in await widgets.ok("get", "wd", "-A", "--show-labels")
    assert "No resources found" in (await widgets.run("get", "wd", "-l", "mark in (no)")).err


async def test_paged_lists_arrive_whole(widgets: Kubectl) -> None:
    manifests = "---\n".join(widget(f"w{number}") for number in range(25))
    await widgets.ok("apply", "-f", "-", stdin=manifests)
    listed = await widgets.ok("get", "wd", "--chunk-size=4", "-o", "name")
    assert len(listed.splitlines()) == 25


async def test_missing_things_are_told_apart(kubectl: Kubectl) -> None:
    assert '"none" not found' in await kubectl.fails("get", "configmap", "none")
    assert "the server doesn't have a resource type" in await kubectl.fails("get", "gadgets")
    assert 'namespaces "none" not found' in await kubectl.fails("create", "configmap", "c", "-n", "none")


async def test_built_in_kinds_print_as_they_do_everywhere(kubectl: Kubectl) -> None:
    await kubectl.ok("create", "configmap", "c", "--from-literal=a=1")
    await kubectl.ok("create", "secret", "generic", "s", "--from-literal=a=1", "--from-literal=b=2")
    await kubectl.ok("create", "serviceaccount", "robot")
    assert (await kubectl.ok("get", "cm", "c")).splitlines()[0].split() == ["NAME", "DATA", "AGE"]
    assert (await kubectl.ok("get", "secret", "s", "--no-headers")).split()[1:3] == ["Opaque", "2"]
    assert (await kubectl.ok("get", "ns", "default", "--no-headers")).split()[1] == "Active"
    assert (await kubectl.ok("get", "sa", "robot")).splitlines()[0].split() == ["NAME", "AGE"]
    assert "Data" in await kubectl.ok("describe", "secret", "s")
    assert "Status:" in await kubectl.ok("describe", "namespace", "default")


async def test_describe_shows_fields_and_events(widgets: Kubectl) -> None:
    await widgets.ok("apply", "-f", "-", stdin=widget())
    uid = await widgets.ok("get", "widget", "one", "-o", "jsonpath={.metadata.uid}")
    event = {
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": "one.1", "namespace": "default"},
        "involvedObject": {
            "apiVersion": "test.ironbell.dev/v1", "kind": "Widget", "name": "one", "namespace": "default", "uid": uid,
        },
        "reason": "Painted", "message": "it is red now", "type": "Normal", "count": 2,
        "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:00:00Z",
        "source": {"component": "painter"},
    }  # fmt: skip
    await widgets.ok("create", "-f", "-", stdin=msgspec.json.encode(event).decode())
    described = await widgets.ok("describe", "widget", "one")
    assert "Colour:" in described
    assert "Painted" in described
    assert "it is red now" in described
    events = await widgets.ok("get", "events")
    assert events.splitlines()[0].split() == ["LAST", "SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"]
    assert "widget/one" in events
    assert "Painted" in await widgets.ok("events", "--for", "widget.test.ironbell.dev/one")


async def test_api_resources_and_versions(widgets: Kubectl) -> None:
    listed = await widgets.ok("api-resources", "--no-headers")
    found = next(row.split() for row in listed.splitlines() if row.startswith("widgets"))
    assert found == ["widgets", "wd", "test.ironbell.dev/v1", "true", "Widget"]
    assert "customresourcedefinitions" in listed
    assert "test.ironbell.dev/v1" in await widgets.ok("api-versions")
    assert "widgets.test.ironbell.dev" in await widgets.ok("api-resources", "--categories=all", "-o", "name")
    wide = await widgets.ok("api-resources", "-o", "wide", "--api-group=test.ironbell.dev")
    assert "deletecollection" in wide


async def test_explain_describes_nested_fields(widgets: Kubectl) -> None:
    whole = await widgets.ok("explain", "widgets")
    assert "Widget is a thing for tests." in whole
    assert "GROUP:" in whole
    field = await widgets.ok("explain", "widget.spec.parts.name")
    assert "Name of the part." in field
    assert "<[]Object>" in await widgets.ok("explain", "wd.spec")
    assert "metadata" in await widgets.ok("explain", "configmap")
    assert "uid" in await widgets.ok("explain", "widget.metadata.ownerReferences")
    assert "parts" in await widgets.ok("explain", "widget", "--recursive")
    assert 'field "nothing" does not exist' in await widgets.fails("explain", "widget.spec.nothing")


async def test_watch_prints_changes_as_they_come(widgets: Kubectl) -> None:
    await widgets.ok("apply", "-f", "-", stdin=widget())
    process = await widgets.start("get", "widgets", "-w")
    try:
        assert (await line(process)).split()[0] == "NAME"
        assert (await line(process)).split()[1] == "red"
        await widgets.ok("patch", "widget", "one", "--type=merge", "-p", '{"spec":{"colour":"blue"}}')
        assert (await line(process)).split()[1] == "blue"
        await widgets.ok("apply", "-f", "-", stdin=widget("two", colour="green"))
        assert (await line(process)).split()[:2] == ["two", "green"]
    finally:
        await end(process)


async def test_watch_of_one_object_tells_events_and_its_end(widgets: Kubectl) -> None:
    await widgets.ok("apply", "-f", "-", stdin=widget() + "---\n" + widget("other"))
    process = await widgets.start("get", "widget", "one", "-w", "--output-watch-events")
    try:
        assert (await line(process)).split()[:2] == ["EVENT", "NAME"]
        assert (await line(process)).split()[:2] == ["ADDED", "one"]
        await widgets.ok("label", "widget", "other", "a=b")
        await widgets.ok("delete", "widget", "one", "--wait=false")
        assert (await line(process)).split()[:2] == ["DELETED", "one"]
    finally:
        await end(process)


async def test_version_health_and_identity(kubectl: Kubectl) -> None:
    assert "Server Version: v1.36" in await kubectl.ok("version")
    assert await kubectl.ok("get", "--raw", "/readyz") == "ok"
    assert "[+]store ok" in await kubectl.ok("get", "--raw", "/livez?verbose")
    assert "apiserver_request_total" in await kubectl.ok("get", "--raw", "/metrics")
    assert await kubectl.ok("auth", "can-i", "delete", "secrets", "-A") == "yes\n"
    assert "*.*" in await kubectl.ok("auth", "can-i", "--list")
    assert "kubernetes-admin" in await kubectl.ok("auth", "whoami")
