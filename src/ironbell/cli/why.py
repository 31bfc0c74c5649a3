"""`ironbell why`: an object, and those that it depends on, each with what it waits for."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

from ironbell.api import core
from ironbell.api.bmc import JOB, MACHINE, TASK
from ironbell.api.capt import TINKERBELL_MACHINE
from ironbell.api.client import ListOptions, NotFound, Selector
from ironbell.api.kind import Kind
from ironbell.api.tinkerbell import HARDWARE, TEMPLATE, WORKFLOW
from ironbell.base.clock import SystemClock
from ironbell.base.errors import IronbellError, Retry
from ironbell.cli.cluster.related import related as of_clusters
from ironbell.cli.explain import Explanation, Object, explain
from ironbell.cli.servers import of_machine
from ironbell.cli.session import api_options, connected, objects_named, run
from ironbell.kube.http import HttpApi

LATEST_TASKS = 1


class NothingThereError(IronbellError):
    """No object of this kind and name."""

    reason = "NothingThere"
    retry = Retry.NEVER


@click.command()
@click.argument("target", metavar="KIND/NAME")
@click.option("--namespace", "-n", default="default", show_default=True, help="Namespace.")
@click.option("--output", "-o", type=click.Choice(["text", "json"]), default="text", help="Form of the answer.")
@api_options
def why(target: str, namespace: str, output: str, kubeconfig: Path | None, context: str) -> None:
    """Tell why KIND/NAME waits or failed: workflow/install-node-1, hardware/node-1, machine/node-1, cluster/one, ...

    A KIND of several groups, such as machine, means all of them; machine.cluster.x-k8s.io/NAME is only one.
    """
    kinds, name = objects_named(target)
    found = run(_explanations(kinds, namespace, name, kubeconfig=kubeconfig, context=context))
    if output == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(found), indent=2).decode())
    else:
        click.echo("\n".join(part.text() for part in found))


async def _explanations(
    kinds: Sequence[Kind[Any]], namespace: str, name: str, *, kubeconfig: Path | None, context: str
) -> list[Explanation]:
    now = SystemClock().now()
    async with connected(kubeconfig, context) as api:
        roots = [(kind, root) for kind in kinds async for root in _there(api, kind, namespace, name)]
        if not roots:
            known = " or ".join(f"{kind.plural}.{kind.group}".rstrip(".") for kind in kinds)
            raise NothingThereError(f"there is no {name!r} among {known} in namespace {namespace}; -n names another")
        events = await _list(api, core.EVENT, namespace)
        found = []
        for kind, root in roots:
            found.append(explain(root, events, now, with_group=len(roots) > 1))
            found += [explain(obj, events, now) async for obj in _related(api, kind, root)]
    return found


async def _there(api: HttpApi, kind: Kind[Any], namespace: str, name: str) -> AsyncIterator[Object]:
    with contextlib.suppress(NotFound):
        found = msgspec.json.decode(await api.get(kind.collection, namespace, name))
        yield {"kind": kind.kind, "apiVersion": kind.api_version, **found}


async def _related(api: HttpApi, kind: Kind[Any], obj: Object) -> AsyncIterator[Object]:
    """What the object depends on, nearest first."""
    namespace, spec = obj["metadata"].get("namespace", ""), obj.get("spec", {})
    if kind.group.endswith("cluster.x-k8s.io"):
        if obj["kind"] == TINKERBELL_MACHINE.kind:
            async for server in of_machine(api, obj):
                yield server
        async for related in of_clusters(api, obj):
            yield related
            if related["kind"] == TINKERBELL_MACHINE.kind and "spec" in related:
                async for server in of_machine(api, related):
                    yield server
    elif kind is WORKFLOW:
        if not obj.get("status", {}).get("tasks") and spec.get("templateRef"):
            async for template in _one(api, TEMPLATE, namespace, spec["templateRef"]):
                yield template
        for job in sorted(obj.get("status", {}).get("bootOptions", {}).get("jobs", {})):
            async for one in _one(api, JOB, namespace, job):
                yield one
                async for related in _related(api, JOB, one):
                    yield related
        if spec.get("hardwareRef"):
            async for hardware in _one(api, HARDWARE, namespace, spec["hardwareRef"]):
                yield hardware
                async for related in _related(api, HARDWARE, hardware):
                    yield related
    elif kind is HARDWARE and spec.get("bmcRef"):
        async for machine in _one(api, MACHINE, namespace, spec["bmcRef"]["name"]):
            yield machine
    elif kind is JOB:
        tasks = await _list(api, TASK, namespace, labels=f"owner-name={obj['metadata']['name']}")
        unfinished = [t for t in tasks if not any(c["status"] == "True" for c in t["status"].get("conditions", []))]
        failed = [t for t in tasks if t not in unfinished and _has(t, "Failed")]
        for task in (failed or unfinished)[:LATEST_TASKS]:
            yield task


def _has(obj: Object, condition: str) -> bool:
    return any(c["type"] == condition and c["status"] == "True" for c in obj.get("status", {}).get("conditions", []))


async def _one(api: HttpApi, kind: Kind[Any], namespace: str, name: str) -> AsyncIterator[Object]:
    try:
        yield msgspec.json.decode(await api.get(kind.collection, namespace, name))
    except NotFound:
        yield {
            "kind": kind.kind,
            "metadata": {"namespace": namespace, "name": name},
            "status": {"state": "does not exist"},
        }


async def _list(api: HttpApi, kind: Kind[Any], namespace: str, *, labels: str = "") -> list[Object]:
    page = await api.list(kind.collection, namespace, ListOptions(Selector(labels=labels)))
    return [{"status": {}, **msgspec.json.decode(item)} for item in page.items]
