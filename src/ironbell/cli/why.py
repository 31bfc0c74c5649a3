"""`ironbell why`: the object that blocks another, why, and what a person can do."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import msgspec

from ironbell.api import core
from ironbell.api.bmc import JOB, MACHINE, TASK
from ironbell.api.capt import TINKERBELL_MACHINE
from ironbell.api.client import Forbidden, ListOptions, NotFound, Selector
from ironbell.api.kind import Kind
from ironbell.api.tinkerbell import HARDWARE, TEMPLATE, WORKFLOW
from ironbell.base.clock import SystemClock
from ironbell.base.errors import IronbellError, Retry
from ironbell.base.printable import printable
from ironbell.cli.api_options import api_options
from ironbell.cli.cluster.related import related as of_clusters
from ironbell.cli.explain import Explanation, Object, explain
from ironbell.cli.namespaces import elsewhere
from ironbell.cli.output import print_json
from ironbell.cli.servers import of_machine
from ironbell.cli.session import connected, named, qualified, run
from ironbell.kube.http import HttpApi
from ironbell.operations.discovered import Discovered, NoSuchKindError
from ironbell.operations.why.model import Why
from ironbell.operations.why.reader import read_world
from ironbell.operations.why.rootcause import why as find_cause
from ironbell.operations.why.text import lines
from ironbell.operations.why.world import ref_of

LATEST_TASKS = 1


class NothingThereError(IronbellError):
    """No object of this kind and name."""

    reason = "NothingThere"
    retry = Retry.NEVER


@click.command()
@click.argument("target", nargs=-1, required=True, metavar="[KIND] NAME")
@click.option("--namespace", "-n", default="default", show_default=True, help="Namespace.")
@click.option(
    "--output",
    "-o",
    type=click.Choice(["text", "wide", "json"]),
    default="text",
    help="Form of the answer; wide adds every object that is related, with its conditions and events.",
)
@api_options
def why(target: tuple[str, ...], namespace: str, output: str, kubeconfig: Path | None, context: str) -> None:
    """Tell why an object waits or failed: KIND/NAME, KIND NAME, or a NAME alone.

    The first line names the object that blocks, the cause, since when, what ends it, and what you can do. The lines
    below it lead from the object you named to the one that blocks.

    A KIND of several groups, such as machine, means all of them; machine.cluster.x-k8s.io/NAME is only one.
    """
    kinds, name, bare = named(target)
    found = run(_answers(kinds, namespace, name, bare=bare, output=output, kubeconfig=kubeconfig, context=context))
    if output == "json":
        plain = [{**answer.why.plain(), "related": [part.plain() for part in answer.related]} for answer in found]
        print_json(plain)
        return
    now = SystemClock().now()
    for number, answer in enumerate(found):
        if len(found) > 1:
            click.echo(("\n" if number else "") + f"{answer.why.object.qualified}:")
        click.echo(printable("\n".join(lines(answer.why, now))))
        if answer.also:
            click.echo(printable(f"Also named {name}: {', '.join(answer.also)}."))
        if output == "wide":
            click.echo("\n" + "\n".join(part.text() for part in answer.related))


@dataclass(frozen=True)
class _Answer:
    why: Why
    related: tuple[Explanation, ...] = ()
    also: tuple[str, ...] = ()


async def _answers(
    kinds: Sequence[Kind[Any]],
    namespace: str,
    name: str,
    *,
    bare: bool,
    output: str,
    kubeconfig: Path | None,
    context: str,
) -> list[_Answer]:
    now = SystemClock().now()
    async with connected(kubeconfig, context) as api:
        forbidden: list[str] = []
        roots = [(kind, root) for kind in kinds async for root in _there(api, kind, namespace, name, forbidden)]
        if not roots:
            if not bare:
                await _require_installed(api, kinds)
            known = "the kinds that can wait" if bare else " or ".join(qualified(kind) for kind in kinds)
            hints = [] if bare else [await elsewhere(api, kind.collection, namespace, name) for kind in kinds]
            hints += [f"Not read, as you may not: {', '.join(forbidden)}."] if forbidden else []
            hint = " ".join(dict.fromkeys(filter(None, hints))) or "-n names another namespace."
            raise NothingThereError(f'there is no "{name}" among {known} in namespace "{namespace}". {hint}')
        also = tuple(qualified(kind) for kind, _ in roots[1:]) if bare else ()
        events = await _events(api, namespace) if output != "text" else []
        found = []
        for kind, root in roots[:1] if bare else roots:
            world = await read_world(api, root)
            related: list[Explanation] = []
            if output != "text":
                related = [explain(root, events, now, with_group=len(roots) > 1)]
                # what may not be read ends the list; the answer says what that is
                with contextlib.suppress(Forbidden):
                    async for obj in _related(api, kind, root):
                        related.append(explain(obj, events, now))
            found.append(_Answer(find_cause(world, ref_of(root), now), tuple(related), also))
        return found


async def _there(
    api: HttpApi, kind: Kind[Any], namespace: str, name: str, forbidden: list[str]
) -> AsyncIterator[Object]:
    """The object, if it exists; a kind that may not be read is added to `forbidden`."""
    try:
        found = msgspec.json.decode(await api.get(kind.collection, namespace, name))
    except NotFound:
        return
    except Forbidden:
        forbidden.append(qualified(kind))
        return
    yield {"kind": kind.kind, "apiVersion": kind.api_version, **found}


async def _require_installed(api: HttpApi, kinds: Sequence[Kind[Any]]) -> None:
    """Raise NoSuchKindError if the API has none of these kinds."""
    discovered, absent = Discovered(api), []
    for kind in kinds:
        try:
            await discovered.collection(kind.group, kind.kind)
        except NoSuchKindError as error:
            absent.append(error)
    if len(absent) == len(kinds):
        raise absent[0]


async def _events(api: HttpApi, namespace: str) -> list[Object]:
    """The events of a namespace; none if they may not be read."""
    with contextlib.suppress(Forbidden):
        return await _list(api, core.EVENT, namespace)
    return []


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
