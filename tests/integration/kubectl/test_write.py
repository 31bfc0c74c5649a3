"""kubectl apply, create, replace, patch, edit, label, annotate, delete, diff and wait."""

from __future__ import annotations

import stat
from pathlib import Path

import msgspec
import pytest

from ironbell.codec import goyaml
from support.api.widgets import widget
from support.programs.kubectl import Kubectl


async def field(kubectl: Kubectl, what: str, path: str) -> str:
    return await kubectl.ok("get", *what.split(), "-o", f"jsonpath={{{path}}}")


async def test_apply_creates_changes_and_removes_fields(widgets: Kubectl) -> None:
    manifest = widget(size="5", labels="{a: '1', b: '2'}")
    assert "created" in await widgets.ok("apply", "-f", "-", stdin=manifest)
    assert "unchanged" in await widgets.ok("apply", "-f", "-", stdin=manifest)
    await widgets.ok("patch", "widget", "one", "--type=merge", "-p", '{"spec":{"labels":{"c":"3"}}}')
    assert "configured" in await widgets.ok("apply", "-f", "-", stdin=widget(labels="{b: '2'}"))
    labels = msgspec.json.decode(await field(widgets, "widget one", ".spec.labels"))
    assert labels == {"b": "2", "c": "3"}
    assert await field(widgets, "widget one", ".spec.size") == "3"


async def test_apply_of_a_core_kind_merges_three_ways(kubectl: Kubectl) -> None:
    first = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, labels: {x: z}}\ndata: {a: '1', b: '2'}\n"
    await kubectl.ok("apply", "-f", "-", stdin=first)
    await kubectl.ok("patch", "cm", "c", "-p", '{"data":{"z":"26"}}')
    second = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: '7'}\n"
    assert "configured" in await kubectl.ok("apply", "-f", "-", stdin=second)
    assert msgspec.json.decode(await field(kubectl, "cm c", ".data")) == {"a": "7", "z": "26"}
    assert await field(kubectl, "cm c", ".metadata.labels") == ""


async def test_strict_validation_names_the_unknown_field(widgets: Kubectl) -> None:
    refused = await widgets.fails("apply", "-f", "-", stdin=widget(shade="dark"))
    assert 'unknown field "spec.shade"' in refused
    warned = await widgets.run("apply", "--validate=warn", "-f", "-", stdin=widget(shade="dark"))
    assert warned.code == 0
    assert 'unknown field "spec.shade"' in warned.err
    await widgets.ok("apply", "--validate=ignore", "-f", "-", stdin=widget(shade="dark"))
    assert await field(widgets, "widget one", ".spec.shade") == ""


async def test_invalid_values_name_field_and_choices(widgets: Kubectl) -> None:
    refused = await widgets.fails("create", "-f", "-", stdin=widget(colour="mauve"))
    assert "spec.colour: Unsupported value" in refused
    assert '"red"' in refused
    missing = await widgets.fails("create", "-f", "-", stdin=widget().replace("colour: red", "size: 0"))
    assert "spec.colour: Required value" in missing
    assert "spec.size" in missing


async def test_create_twice_and_dry_run(widgets: Kubectl) -> None:
    await widgets.ok("create", "--dry-run=server", "-f", "-", stdin=widget())
    assert "not found" in await widgets.fails("get", "widget", "one")
    await widgets.ok("create", "-f", "-", stdin=widget())
    assert "AlreadyExists" in await widgets.fails("create", "-f", "-", stdin=widget())
    await widgets.ok("delete", "widget", "one", "--dry-run=server")
    await widgets.ok("get", "widget", "one")


async def test_names_are_generated(widgets: Kubectl) -> None:
    manifest = widget().replace("name: one", "generateName: w-")
    assert "widget.test.ironbell.dev/w-" in await widgets.ok("create", "-f", "-", stdin=manifest)


async def test_replace_needs_the_current_version(widgets: Kubectl) -> None:
    await widgets.ok("create", "-f", "-", stdin=widget())
    old = await widgets.ok("get", "widget", "one", "-o", "yaml")
    await widgets.ok("replace", "-f", "-", stdin=old.replace("colour: red", "colour: blue"))
    refused = await widgets.fails("replace", "-f", "-", stdin=old.replace("colour: red", "colour: green"))
    assert "Conflict" in refused
    assert "the object has been modified" in refused
    await widgets.ok("replace", "--force", "-f", "-", stdin=widget(colour="green"))
    assert await field(widgets, "widget one", ".spec.colour") == "green"


async def test_patches_of_all_types(widgets: Kubectl) -> None:
    await widgets.ok("create", "-f", "-", stdin=widget())
    await widgets.ok("patch", "widget", "one", "--type=merge", "-p", '{"spec":{"size":9}}')
    assert await field(widgets, "widget one", ".spec.size") == "9"
    operations = '[{"op":"test","path":"/spec/size","value":9},{"op":"replace","path":"/spec/size","value":4}]'
    await widgets.ok("patch", "widget", "one", "--type=json", "-p", operations)
    assert await field(widgets, "widget one", ".spec.size") == "4"
    assert "spec.size" in await widgets.fails("patch", "widget", "one", "--type=merge", "-p", '{"spec":{"size":0}}')
    await widgets.fails("patch", "widget", "one", "--type=json", "-p", operations)
    await widgets.ok("create", "configmap", "c", "--from-literal=a=1")
    await widgets.ok("patch", "cm", "c", "-p", '{"data":{"a":null,"b":"2"}}')
    assert await field(widgets, "cm c", ".data") == '{"b":"2"}'


async def test_strategic_patch_is_refused_for_custom_resources(widgets: Kubectl) -> None:
    await widgets.ok("create", "-f", "-", stdin=widget())
    refused = await widgets.fails("patch", "widget", "one", "--type=strategic", "-p", '{"spec":{"size":9}}')
    assert "strategic" in refused or "media type" in refused or "format" in refused


async def test_status_is_written_apart_from_spec(widgets: Kubectl) -> None:
    await widgets.ok("create", "-f", "-", stdin=widget())
    body = '{"spec":{"size":9},"status":{"phase":"Up"}}'
    await widgets.ok("patch", "widget", "one", "--subresource=status", "--type=merge", "-p", body)
    assert await field(widgets, "widget one", ".status.phase") == "Up"
    assert await field(widgets, "widget one", ".spec.size") == "3"
    assert await field(widgets, "widget one", ".metadata.generation") == "1"
    await widgets.ok("patch", "widget", "one", "--type=merge", "-p", body)
    assert await field(widgets, "widget one", ".metadata.generation") == "2"


async def test_scale(widgets: Kubectl) -> None:
    await widgets.ok("create", "-f", "-", stdin=widget())
    await widgets.ok("scale", "widget", "one", "--replicas=4")
    assert await field(widgets, "widget one", ".spec.replicas") == "4"


@pytest.mark.parametrize("what", ["widget one", "cm c"])
async def test_edit_stores_what_the_editor_wrote(widgets: Kubectl, tmp_path: Path, what: str) -> None:
    await widgets.ok("create", "-f", "-", stdin=widget())
    await widgets.ok("create", "configmap", "c", "--from-literal=colour=red")
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nsed -i "s/colour: red/colour: blue/" "$1"\n')
    editor.chmod(editor.stat().st_mode | stat.S_IXUSR)
    assert "edited" in await widgets.ok("edit", *what.split(), environment={"EDITOR": str(editor)})
    edited = goyaml.load(await widgets.ok("get", *what.split(), "-o", "yaml"))
    assert (edited.get("spec") or edited["data"])["colour"] == "blue"


async def test_label_and_annotate(widgets: Kubectl) -> None:
    await widgets.ok("create", "-f", "-", stdin=widget())
    await widgets.ok("label", "widget", "one", "a=b")
    assert "already has a value" in await widgets.fails("label", "widget", "one", "a=c")
    await widgets.ok("label", "widget", "one", "a=c", "--overwrite")
    await widgets.ok("annotate", "widget", "--all", "note=hello")
    assert await field(widgets, "widget one", ".metadata.labels.a") == "c"
    await widgets.ok("label", "widget", "one", "a-")
    assert await field(widgets, "widget one", ".metadata.labels") == ""


async def test_diff_shows_what_apply_would_do(widgets: Kubectl) -> None:
    await widgets.ok("apply", "-f", "-", stdin=widget())
    same = await widgets.run("diff", "-f", "-", stdin=widget())
    assert same.code == 0
    other = await widgets.run("diff", "-f", "-", stdin=widget(colour="blue"))
    assert other.code == 1
    assert "+  colour: blue" in other.out
    assert await field(widgets, "widget one", ".spec.colour") == "red"


async def test_server_side_apply_tracks_owners_and_conflicts(widgets: Kubectl) -> None:
    await widgets.ok("apply", "--server-side", "-f", "-", stdin=widget(size="5"))
    refused = await widgets.fails("apply", "--server-side", "--field-manager=other", "-f", "-", stdin=widget(size="6"))
    assert "conflict" in refused.lower()
    assert ".spec.size" in refused
    forced = ("apply", "--server-side", "--field-manager=other", "--force-conflicts", "-f", "-")
    await widgets.ok(*forced, stdin=widget(size="6"))
    assert await field(widgets, "widget one", ".spec.size") == "6"


async def test_delete_waits_for_finalizers(widgets: Kubectl) -> None:
    held = widget().replace("name: one", "name: one\n  finalizers: [test.ironbell.dev/hold]")
    await widgets.ok("apply", "-f", "-", stdin=held)
    await widgets.ok("delete", "widget", "one", "--wait=false")
    assert await field(widgets, "widget one", ".metadata.deletionTimestamp") != ""
    waiting = await widgets.start("wait", "--for=delete", "widget/one", "--timeout=30s")
    await widgets.ok("patch", "widget", "one", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    out, _ = await waiting.communicate()
    assert waiting.returncode == 0, out
    assert "not found" in await widgets.fails("get", "widget", "one")


async def test_delete_by_name_selector_file_and_all(widgets: Kubectl) -> None:
    await widgets.ok("apply", "-f", "-", stdin="---\n".join(widget(name) for name in "abcd"))
    assert 'widget.test.ironbell.dev "a" deleted' in await widgets.ok("delete", "widget", "a")
    await widgets.ok("label", "widget", "b", "x=y")
    await widgets.ok("delete", "widget", "-l", "x=y")
    await widgets.ok("delete", "-f", "-", stdin=widget("c"))
    assert await widgets.ok("get", "wd", "-o", "name") == "widget.test.ironbell.dev/d\n"
    await widgets.ok("delete", "wd", "--all")
    assert await widgets.ok("get", "wd", "-o", "name") == ""
    await widgets.ok("delete", "wd", "none", "--ignore-not-found")


async def test_owned_objects_go_with_their_owner(widgets: Kubectl) -> None:
    await widgets.ok("create", "-f", "-", stdin=widget())
    uid = await field(widgets, "widget one", ".metadata.uid")
    owner = f"[{{apiVersion: test.ironbell.dev/v1, kind: Widget, name: one, uid: {uid}}}]"
    child = widget("child").replace("name: child", f"name: child\n  ownerReferences: {owner}")
    await widgets.ok("create", "-f", "-", stdin=child)
    await widgets.ok("delete", "widget", "one")
    await widgets.ok("wait", "--for=delete", "widget/child", "--timeout=30s")


async def test_a_namespace_takes_its_objects_with_it(widgets: Kubectl) -> None:
    await widgets.ok("create", "namespace", "short")
    await widgets.ok("apply", "-n", "short", "-f", "-", stdin=widget())
    await widgets.ok("delete", "namespace", "short", "--timeout=30s")
    assert await widgets.ok("get", "wd", "-A", "-o", "name") == ""


async def test_wait_for_a_path_and_for_a_condition(widgets: Kubectl) -> None:
    await widgets.ok("create", "-f", "-", stdin=widget())
    phase = await widgets.start("wait", "--for=jsonpath={.status.phase}=Up", "widget/one", "--timeout=30s")
    ready = await widgets.start("wait", "--for=condition=Ready", "widget/one", "--timeout=30s")
    condition = {"type": "Ready", "status": "True", "reason": "Done", "message": "", "lastTransitionTime": None}
    condition["lastTransitionTime"] = "2026-01-01T00:00:00Z"
    body = msgspec.json.encode({"status": {"phase": "Up", "conditions": [condition]}}).decode()
    await widgets.ok("patch", "widget", "one", "--subresource=status", "--type=merge", "-p", body)
    for process in (phase, ready):
        out, err = await process.communicate()
        assert process.returncode == 0, err
        assert b"condition met" in out
    late = await widgets.fails("wait", "--for=jsonpath={.status.phase}=Down", "widget/one", "--timeout=1s")
    assert "timed out" in late
