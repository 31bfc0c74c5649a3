"""`ironbell pool`: what only a person can say about pools of addresses after a restore."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from ironbell.api.inclusteripam import GLOBAL_IN_CLUSTER_IP_POOL, IN_CLUSTER_IP_POOL
from ironbell.cli.api_options import api_options
from ironbell.cli.hardware import CONFIRMED, NOT_HELD, RESULTS
from ironbell.cli.namespaces import named, report_none
from ironbell.cli.output import JSON, ended, output_option, print_json, reference
from ironbell.cli.session import connected, namespace_options, run
from ironbell.contract.restored import RESTORED, restored
from ironbell.kube.client import Client
from ironbell.kube.decision import AnyKind, Key


@click.group()
@api_options
def pool(**_where: Any) -> None:
    """Pools of addresses after a restore."""


@pool.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--all", "everything", is_flag=True, help="All pools of the kind and namespace.")
@click.option("--global", "is_global", is_flag=True, help="GlobalInClusterIPPools instead of InClusterIPPools.")
@namespace_options
@output_option()
@api_options
def confirm(names: tuple[str, ...], *, everything: bool, output: str, **where: Any) -> None:
    """Let pools give addresses again after a restore: none of those that are free by their record is in use.

    Addresses that were given since the backup are free by the record: put those that are in use into
    spec.excludedAddresses first.
    """
    if bool(names) == everything:
        raise click.UsageError("name pools, or give --all")
    results = run(_confirm(names, **where))
    if output == JSON:
        kind = (GLOBAL_IN_CLUSTER_IP_POOL if where["is_global"] else IN_CLUSTER_IP_POOL).kind
        objects = [reference(kind, *key, result=result) for key, result in results.items()]
        print_json(ended("confirmed", objects=objects))
        return
    for key, result in results.items():
        click.echo(f"{'/'.join(filter(None, key))}: {RESULTS[result]}")


async def _confirm(
    names: Sequence[str],
    *,
    is_global: bool,
    namespace: str,
    all_namespaces: bool,
    kubeconfig: Path | None,
    context: str,
) -> dict[Key, str]:
    kind: AnyKind = GLOBAL_IN_CLUSTER_IP_POOL if is_global else IN_CLUSTER_IP_POOL
    place = "" if is_global else namespace
    results = {}
    async with connected(kubeconfig, context) as api:
        client = Client(api)
        if names:
            found: Sequence[Any] = [await named(api, kind, place, name) for name in names]
        else:
            found = (await client.list(kind, "" if all_namespaces else place)).items
        if not found:
            await report_none(api, kind.collection, "" if all_namespaces else place, kind.kind)
        for one in found:
            if restored(one) is None:
                results[one.key] = NOT_HELD
                continue
            await client.merge_patch(kind, *one.key, body={"metadata": {"annotations": {RESTORED: None}}})
            results[one.key] = CONFIRMED
    return results
