"""The commands of `ironbell cluster`."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ironbell.base.printable import one_line
from ironbell.base.wording import counted
from ironbell.cli.options import JSON, api_options, namespace_options, output_option, read_text, values
from ironbell.cli.output import print_json, print_progress, reference, result_document
from ironbell.cli.session import SECONDS, with_api

if TYPE_CHECKING:
    from ironbell.kube.transport.http import HttpApi

_NAMESPACE = click.option("--namespace", "-n", default="default", show_default=True, help="Namespace.")
_TIMEOUT = click.option("--timeout", type=SECONDS, default="30m", show_default=True, help="Time limit of the wait.")


F = TypeVar("F", bound=Callable[..., Any])


def _wait(*, default: bool, until: str = "it is done") -> Callable[[F], F]:
    return click.option("--wait/--no-wait", default=default, show_default=True, help=f"Wait until {until}.")


def _options(*, default: bool, until: str = "it is done") -> Callable[[F], F]:
    """Options of the commands on one Cluster which can wait."""

    def added(command: F) -> F:
        return _wait(default=default, until=until)(_TIMEOUT(_NAMESPACE(output_option()(api_options(command)))))

    return added


@click.group()
@api_options
def cluster(**_where: Any) -> None:
    """Kubernetes clusters on machines, by Cluster API."""


@cluster.command()
@click.argument("name")
@click.option(
    "--from", "source", metavar="FILE", type=click.Path(allow_dash=True), required=True, help="Template; - reads stdin."
)
@click.option("--kubernetes-version", help="KUBERNETES_VERSION of the template.")
@click.option("--control-planes", type=click.IntRange(min=1), help="CONTROL_PLANE_MACHINE_COUNT of the template.")
@click.option("--workers", type=click.IntRange(min=0), help="WORKER_MACHINE_COUNT of the template.")
@click.option(
    "--set", "values", metavar="VAR=VALUE", multiple=True, callback=values, help="Set a variable of the template."
)
@click.option("--list-variables", is_flag=True, help="Print the template's variables, and create nothing.")
@click.option("--dry-run", is_flag=True, help="Print the objects, and create nothing.")
@_options(default=False)
def create(name: str, source: str, values: dict[str, str], list_variables: bool, dry_run: bool, **options: Any) -> None:
    """Create the cluster NAME from a template in clusterctl's form.

    Variables come from --set, from the options here, and from the environment; the first of these takes precedence.
    """
    from ironbell.codec.envsubst import variables
    from ironbell.codec.goyaml import dump
    from ironbell.operations.cluster.template import built_in, check_names, objects_of

    namespace, as_json = options["namespace"], options["output"] == JSON
    text = read_text(source, purpose="a cluster template")
    if list_variables:
        if as_json:
            print_json([{"name": variable, "default": default} for variable, default in variables(text).items()])
            return
        for variable, default in variables(text).items():
            click.echo(variable if default is None else f"{variable} (default: {one_line(default)})")
        return
    check_names(values, variables(text), source=source)
    given = {name: options[name] for name in ("kubernetes_version", "control_planes", "workers")}
    defaults = {"CONTROL_PLANE_MACHINE_COUNT": "1", "WORKER_MACHINE_COUNT": "0"}
    built = built_in(name, namespace, **given)
    objects = objects_of(text, {**defaults, **os.environ, **built, **values}, source=source)
    if dry_run and as_json:
        print_json({"apiVersion": "v1", "kind": "List", "items": objects})
        return
    if dry_run:
        click.echo("---\n".join(dump(obj) for obj in objects), nl=False)
        return
    _create(name, objects, **options)


def _create(
    name: str, objects: list[dict[str, Any]], *, namespace: str, wait: bool, timeout: float, output: str, **given: Any
) -> None:
    from ironbell.operations.cluster import lifecycle

    async def work(api: HttpApi) -> None:
        places = await lifecycle.create(api, namespace, objects, print_progress)
        if wait:
            await _wait_settled(api, namespace, name, subject=f"Cluster {namespace}/{name}", timeout_s=timeout)
            click.echo(f"Cluster {namespace}/{name} is available", err=True)
        applied = [reference(place.kind, place.namespace, place.name, result="applied") for place in places]
        await _print_result(api, namespace, name, "created", output=output, waited=wait, objects=applied)

    with_api(work, kubeconfig=given["kubeconfig"], context=given["context"])


async def _wait_settled(api: HttpApi, namespace: str, name: str, *, subject: str, timeout_s: float) -> None:
    from ironbell.operations.cluster.waits import wait_settled

    await wait_settled(api, namespace, name, subject=subject, timeout_s=timeout_s, report=print_progress)


async def _print_result(
    api: HttpApi, namespace: str, name: str, result: str, *, output: str, waited: bool, **values: Any
) -> None:
    """Print the result for `-o json`, and after a wait also the Cluster's current state."""
    from ironbell.operations.cluster.listing import summary

    if output != JSON:
        return
    state = (await summary(api, namespace, name)).plain() if waited else reference("Cluster", namespace, name)
    print_json(result_document(result, **state, waited=waited, **values))


@cluster.command("list")
@click.option("--output", "-o", type=click.Choice(["table", "json"]), default="table", help="Output format.")
@_wait(default=False, until="all of them are available")
@_TIMEOUT
@namespace_options
@api_options
def list_clusters(
    output: str, *, namespace: str, all_namespaces: bool, wait: bool, timeout: float, **where: Any
) -> None:
    """List clusters: ready and desired Machines, the version, and whether each is available."""
    from ironbell.api.cluster import CLUSTER
    from ironbell.base.clock import SystemClock
    from ironbell.cli.objects.tables import clusters_table
    from ironbell.operations.cluster.listing import Summary, summaries
    from ironbell.operations.cluster.waits import wait_available
    from ironbell.operations.namespaces import elsewhere

    space = "" if all_namespaces else namespace

    async def work(api: HttpApi) -> tuple[list[Summary], str]:
        if wait:
            await wait_available(api, space, timeout_s=timeout, report=print_progress)
        clusters = await summaries(api, space)
        return clusters, "" if clusters else await elsewhere(api, CLUSTER.collection, space)

    clusters, hint = with_api(work, **where)
    if output == JSON:
        print_json([summary.plain() for summary in clusters])
        return
    click.echo(clusters_table(clusters, SystemClock().now(), with_namespace=all_namespaces), nl=False)
    if hint:
        click.echo(hint, err=True)


@cluster.command()
@click.argument("name")
@click.option("--output", "-o", type=click.Choice(["text", "json"]), default="text", help="Output format.")
@click.option(
    "--grouping/--no-grouping", default=True, show_default=True, help="Show Machines in the same state as one line."
)
@_wait(default=False, until="the cluster matches its manifest")
@_TIMEOUT
@_NAMESPACE
@api_options
def describe(
    name: str, output: str, *, grouping: bool, namespace: str, wait: bool, timeout: float, **where: Any
) -> None:
    """Show the cluster NAME as a tree: its objects, and which object blocks it."""
    from ironbell.base.clock import SystemClock
    from ironbell.base.printable import printable
    from ironbell.cli.objects.tables import cluster_tree
    from ironbell.operations.cluster.snapshot import Snapshot, read
    from ironbell.operations.cluster.tree import tree
    from ironbell.operations.cluster.waits import cause
    from ironbell.operations.why.model import Diagnosis
    from ironbell.operations.why.text import first_line

    async def work(api: HttpApi) -> tuple[Snapshot, Diagnosis]:
        if wait:
            await _wait_settled(api, namespace, name, subject=f"Cluster {namespace}/{name}", timeout_s=timeout)
        snapshot = await read(api, namespace, name, with_parts=True)
        return snapshot, await cause(api, snapshot)

    snapshot, diagnosis = with_api(work, **where)
    root, now = tree(snapshot, grouping=grouping), SystemClock().now()
    if output == JSON:
        print_json(root.plain() if diagnosis.is_good else {**root.plain(), "why": diagnosis.plain()})
        return
    if not diagnosis.is_good:
        click.echo(printable(first_line(diagnosis, now)) + "\n")
    click.echo(cluster_tree(root, now), nl=False)


@cluster.command()
@click.argument("name")
@_options(default=False, until="the cluster has one")
def kubeconfig(name: str, output: str, *, namespace: str, wait: bool, timeout: float, **where: Any) -> None:
    """Print the kubeconfig of the cluster NAME. It is a secret: it grants all rights in that cluster."""
    from ironbell.operations.cluster.snapshot import cluster_kubeconfig
    from ironbell.operations.cluster.waits import wait_kubeconfig

    async def work(api: HttpApi) -> bytes:
        if wait:
            await wait_kubeconfig(api, namespace, name, timeout_s=timeout, report=print_progress)
        return await cluster_kubeconfig(api, namespace, name)

    kubeconfig_bytes = with_api(work, **where)
    if output == JSON:
        print_json(reference("Cluster", namespace, name, kubeconfig=kubeconfig_bytes.decode()))
        return
    click.echo(kubeconfig_bytes, nl=False)


@cluster.command()
@click.argument("name")
@click.option("--control-planes", type=int, help="New number of control plane Machines.")
@click.option("--workers", type=int, help="New number of workers.")
@click.option("--machine-deployment", metavar="MD", help="MachineDeployment to scale, if there are several.")
@_options(default=False)
def scale(
    name: str,
    output: str,
    *,
    control_planes: int | None,
    workers: int | None,
    machine_deployment: str | None,
    namespace: str,
    wait: bool,
    timeout: float,
    **where: Any,
) -> None:
    """Change the number of Machines of the cluster NAME."""
    from ironbell.operations.cluster import lifecycle

    counts = {"control_planes": control_planes, "workers": workers}

    async def work(api: HttpApi) -> None:
        changes = await lifecycle.scale(
            api, namespace, name, **counts, deployment=machine_deployment, report=print_progress
        )
        if wait:
            await _wait_settled(api, namespace, name, subject="scaling", timeout_s=timeout)
        plain = [change.plain() for change in changes]
        result = "scaled" if wait else "scaling"
        await _print_result(api, namespace, name, result, output=output, waited=wait, changes=plain)

    with_api(work, **where)


@cluster.command()
@click.argument("name")
@click.option("--kubernetes-version", required=True, help="Version to upgrade to, such as v1.34.2.")
@_options(default=True)
def upgrade(
    name: str, kubernetes_version: str, output: str, *, namespace: str, wait: bool, timeout: float, **where: Any
) -> None:
    """Upgrade the cluster NAME: the control plane, then the workers; waits for both.

    If it is interrupted, run the same command again. With --no-wait it takes only the next step: the workers follow
    once the control plane is done.
    """
    from ironbell.operations.cluster import lifecycle

    target, timeout_s = kubernetes_version, timeout if wait else None

    async def work(api: HttpApi) -> None:
        done = await lifecycle.upgrade(api, namespace, name, target, timeout_s=timeout_s, report=print_progress)
        if done.workers_wait:
            click.echo(f"The workers are next. Run this again once the control plane runs {target}.", err=True)
        if wait:
            click.echo(f"Cluster {namespace}/{name} runs {target}", err=True)
        plain = [change.plain() for change in done.changes]
        result = "upgraded" if wait else "upgrading"
        await _print_result(api, namespace, name, result, output=output, waited=wait, target=target, changes=plain)

    with_api(work, **where)


@cluster.command()
@click.argument("name")
@click.option("--yes", is_flag=True, help="Skip the confirmation.")
@_options(default=True)
def delete(name: str, yes: bool, output: str, *, namespace: str, wait: bool, timeout: float, **where: Any) -> None:
    """Delete the cluster NAME with all its machines, and wait until it is deleted."""
    from ironbell.operations.cluster import lifecycle
    from ironbell.operations.cluster.snapshot import read
    from ironbell.operations.cluster.status import title
    from ironbell.operations.cluster.waits import wait_deleted

    async def work(api: HttpApi) -> None:
        snapshot = await read(api, namespace, name)
        if not yes:
            machines = counted(len(snapshot.machines), "Machine")
            confirmation = f"This deletes Cluster {namespace}/{name} and its {machines}. Type its name to continue"
            if click.prompt(confirmation, default="", show_default=False, err=True) != name:
                raise click.ClickException("that is not the cluster's name; nothing was deleted")
        await lifecycle.delete(api, snapshot)
        left = []
        if wait:
            await wait_deleted(api, snapshot.cluster, timeout_s=timeout, report=print_progress)
            click.echo(f"Cluster {namespace}/{name} was deleted", err=True)
            left = await lifecycle.templates_left(api, snapshot)
        for obj in left:
            click.echo(f"left: {title(obj)}", err=True)
        if output == JSON:
            place = reference("Cluster", namespace, name, waited=wait)
            kept = [reference(obj["kind"], obj["metadata"]["namespace"], obj["metadata"]["name"]) for obj in left]
            print_json(result_document("deleted" if wait else "deleting", **place, left=kept))

    with_api(work, **where)
