"""Clusters come and go on simulated servers where things go wrong, on virtual time."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ironbell.api.cluster import CLUSTER, MACHINE
from ironbell.api.tinkerbell import HARDWARE
from ironbell.lab.sim.virtualtime import VirtualLoop
from support.fleetchurn import HASH_SEED, ChurnError, Watch, many
from support.fleetclusters import NAMESPACE, cluster
from support.fleetreplay import endpoint_host, fleet_site

SEEDS, LIVES, SERVERS, CLUSTERS, DAYS = 50, 500, 300, 20, 5


def test_a_short_life() -> None:
    """In a process of its own, whose hashes are those of the seed: what fails here fails again."""
    environment = {**os.environ, "PYTHONHASHSEED": HASH_SEED, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-m", "support.fleetchurn", "1", "12", "16", "3"],
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

            await site.until(runs, within_s=1800, say=lambda: "no machine")
            await site.client.delete(CLUSTER, NAMESPACE, "one")
            await site.until(gone, within_s=1800, say=lambda: "the cluster stays")
            with pytest.raises(ChurnError, match=r"sim-0001 is given back by .*, and not wiped"):
                watch.check()

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(main())


@pytest.mark.soak
def test_many_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    many(monkeypatch, SEEDS, lives=LIVES, servers=SERVERS, clusters=CLUSTERS)


@pytest.mark.soak
def test_long_days(monkeypatch: pytest.MonkeyPatch) -> None:
    many(monkeypatch, DAYS, lives=0, servers=SERVERS, clusters=CLUSTERS, hours=24)
