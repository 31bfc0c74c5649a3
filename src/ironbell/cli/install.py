"""`ironbell install` and `ironbell uninstall`: Ironbell on a cluster."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ironbell.app.install.options import DEFAULT_COMPONENTS
from ironbell.cli.options import api_options
from ironbell.cli.output import print_json, result_document
from ironbell.cli.session import connected

if TYPE_CHECKING:
    from ironbell.app.install.apply import Outcome
    from ironbell.app.install.options import InstallOptions

_OUTPUT = click.option("--output", "-o", type=click.Choice(["table", "json"]), default="table", help="Output format.")
_NAMESPACE = click.option(
    "--namespace", "-n", default="ironbell-system", show_default=True, help="Namespace for Ironbell."
)


@click.command()
@api_options
@_NAMESPACE
@click.option("--image", help="Container image of the Deployments.  [default: ironbell:VERSION]")
@click.option(
    "--components",
    default=",".join(DEFAULT_COMPONENTS),
    show_default=True,
    help="Components to install, with commas; each becomes a Deployment. The words are those of `ironbell run`.",
)
@click.option(
    "--replicas", type=click.IntRange(min=0), default=2, show_default=True, help="Replicas of each Deployment."
)
@click.option(
    "--argument",
    "arguments",
    multiple=True,
    metavar="COMPONENT=ARGUMENT",
    help="Additional argument of `ironbell run` in a Deployment, such as wire=--interface=eth1.",
)
@click.option("--print", "print_only", is_flag=True, help="Print the manifests instead of applying them.")
@click.option("--dry-run", is_flag=True, help="Print what the server would change, and change nothing.")
@click.option("--without-pods", is_flag=True, help="Apply even to an API without pods, such as that of `up`.")
@click.option("--force-conflicts", is_flag=True, help="Take over fields that other managers have set.")
@_OUTPUT
def install(
    *,
    kubeconfig: Path | None,
    context: str,
    print_only: bool,
    dry_run: bool,
    force_conflicts: bool,
    without_pods: bool,
    output: str,
    **given: Any,
) -> None:
    """Install Ironbell on a cluster: definitions, roles, policies and Deployments, by server-side apply.

    Another run changes only what differs, so this is also the upgrade.
    """
    from ironbell.app.install.apply import ApplyOptions, apply, check_pods_run
    from ironbell.app.install.manifests import manifests, manifests_yaml

    objects = manifests(_options(given))
    if print_only:
        if output == "json":
            print_json({"apiVersion": "v1", "kind": "List", "items": objects})
        else:
            click.echo(manifests_yaml(objects), nl=False)
        return

    async def work() -> list[Outcome]:
        async with connected(kubeconfig, context) as api:
            if not without_pods:
                await check_pods_run(api)
            options = ApplyOptions(dry_run=dry_run, force=force_conflicts)
            return await _print_outcomes(apply(api, objects, options), quiet=output == "json")

    _finish(asyncio.run(work()), output=output, dry_run=dry_run)


@click.command()
@api_options
@_NAMESPACE
@click.option(
    "--purge-crds", is_flag=True, help="Also remove the CustomResourceDefinitions, and with them all objects."
)
@click.option("--dry-run", is_flag=True, help="Print what would be removed, and remove nothing.")
@click.option("--yes", "-y", is_flag=True, help="Skip the confirmation.")
@_OUTPUT
def uninstall(
    *,
    kubeconfig: Path | None,
    context: str,
    namespace: str,
    purge_crds: bool,
    dry_run: bool,
    yes: bool,
    output: str,
) -> None:
    """Remove Ironbell from a cluster. Hardware, Workflows and its other objects stay, unless --purge-crds is set."""
    from ironbell.app.install.apply import remove

    if not yes and not dry_run:
        lost = "and ALL Hardware, Templates, Workflows and BMC objects " if purge_crds else ""
        click.confirm(f"Remove Ironbell {lost}from the cluster?", abort=True, err=True)

    async def work() -> list[Outcome]:
        async with connected(kubeconfig, context) as api:
            removed = remove(api, namespace, purge_definitions=purge_crds, dry_run=dry_run)
            return await _print_outcomes(removed, quiet=output == "json")

    _finish(asyncio.run(work()), output=output, dry_run=dry_run)


def _options(given: dict[str, Any]) -> InstallOptions:
    from ironbell.app.install.options import InstallOptions
    from ironbell.cli.version import ironbell_version

    words = tuple(word.strip() for word in given["components"].split(",") if word.strip())
    arguments: dict[str, tuple[str, ...]] = {}
    for text in given["arguments"]:
        word, equals, argument = text.partition("=")
        if not equals or word not in words:
            raise click.BadParameter(f"{text!r} is not COMPONENT=ARGUMENT with a word of --components")
        arguments[word] = (*arguments.get(word, ()), argument)
    return InstallOptions(
        namespace=given["namespace"],
        image=given["image"] or f"ironbell:{ironbell_version()}",
        words=words,
        replicas=given["replicas"],
        arguments=arguments,
    )


async def _print_outcomes(outcomes: AsyncIterator[Outcome], *, quiet: bool) -> list[Outcome]:
    """Print each outcome as it happens."""
    kept = []
    async for outcome in outcomes:
        if outcome.result != "waiting":
            kept.append(outcome)
        if not quiet:
            where = f"{outcome.namespace}/" if outcome.namespace else ""
            click.echo(f"{outcome.result:<12}{outcome.kind:<34}{where}{outcome.name}")
    return kept


def _finish(outcomes: Iterable[Outcome], *, output: str, dry_run: bool) -> None:
    outcomes = list(outcomes)
    if output == "json":
        print_json(result_document("unchanged" if dry_run else "done", dryRun=dry_run, objects=outcomes))
        return
    counts: dict[str, int] = {}
    for outcome in outcomes:
        counts[outcome.result] = counts.get(outcome.result, 0) + 1
    total = ", ".join(f"{count} {result}" for result, count in counts.items()) or "nothing to do"
    click.echo(f"{total}{' (dry run: nothing was changed)' if dry_run else ''}")
