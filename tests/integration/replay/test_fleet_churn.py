"""Clusters come and go on simulated servers where things go wrong, on virtual time."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from ironbell.api.cluster import CLUSTER, MACHINE
from ironbell.api.tinkerbell import HARDWARE
from ironbell.lab.fleet.faults import Fault
from ironbell.lab.sim.virtualtime import VirtualLoop
from support.fleet.clusters import NAMESPACE, cluster
from support.fleet.replay import endpoint_host, fleet_site
from support.fleet.seeds import HASH_SEED, Lived, Plan, lived, require, seeds_of
from support.fleet.watch import ChurnError, Watch

SEEDS, DAYS = "IRONBELL_CHURN_SEEDS", "IRONBELL_CHURN_DAYS"
"""Environment variables: which seeds to live, such as `10-19,42`; else all of them."""


def test_a_short_life() -> None:
    """In a process of its own, whose hashes are those of the seed: what fails here fails again."""
    environment = {**os.environ, "PYTHONHASHSEED": HASH_SEED, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-m", "support.fleet.seeds", "1", "--lives", "20", "--servers", "16", "--clusters", "3"],
        env=environment,
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


def test_a_server_that_is_not_wiped_is_seen() -> None:
    async def main() -> None:
        async with fleet_site(1, 1) as (site, fleet):
            watch = Watch(site, fleet)
            body = {"metadata": {"annotations": {"ironbell.dev/wipe": "none"}}}
            await site.client.merge_patch(HARDWARE, NAMESPACE, "sim-0001", body=body)
            await site.apply(cluster("one", endpoint_host("one"), spread=False))

            async def runs() -> bool:
                return [one.status.phase for one in await site.all(MACHINE)] == ["Running"]

            async def gone() -> bool:
                return not await site.all(CLUSTER)

            await site.until(runs, within_s=1800, message=lambda: "no machine")
            await site.client.delete(CLUSTER, NAMESPACE, "one")
            await site.until(gone, within_s=1800, message=lambda: "the cluster stays")
            with pytest.raises(ChurnError, match=r"sim-0001 is given back by .*, and not wiped"):
                watch.check()

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(main())


def test_seeds_are_judged_together() -> None:
    """A soak in which nothing goes wrong, or that is shorter than it says, shows nothing."""
    plan = Plan(lives=5, servers=4, clusters=2)
    everything = dict.fromkeys((*get_args(Fault), "crashes", "power cuts", "held"), 1)
    whole = {"lives": 5, "clusters": 2, **everything}

    def one(**counts: int) -> Lived:
        return Lived(7, "", {**whole, **counts}, 1.0, ())

    require([one()], plan)
    require([one(kubeadm_fails=0), one()], plan)
    for done, message in (
        ([one(kubeadm_fails=0, held=0)], "never in these seeds: kubeadm_fails, held"),
        ([one(lives=4)], "seed 7 was not as long as planned: lives 4 of 5"),
        ([one(), Lived(8, "a is lost", whole, 1.0, ())], "a is lost"),
    ):
        with pytest.raises(ChurnError, match=message):
            require(done, plan)
    assert seeds_of("3,10-12") == [3, 10, 11, 12]


@pytest.mark.soak
def test_many_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    _live(monkeypatch, os.environ.get(SEEDS, "0-49"), Plan(lives=500, servers=300, clusters=20))


@pytest.mark.soak
def test_long_days(monkeypatch: pytest.MonkeyPatch) -> None:
    _live(monkeypatch, os.environ.get(DAYS, "100-104"), Plan(lives=0, servers=300, clusters=20, hours=24))


def _live(monkeypatch: pytest.MonkeyPatch, seeds: str, plan: Plan) -> None:
    monkeypatch.setenv("PYTHONHASHSEED", HASH_SEED)
    done = []
    for one in lived(seeds_of(seeds), plan):
        print(one, flush=True)
        done.append(one)
    require(done, plan)
