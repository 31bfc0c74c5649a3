"""`ironbell restore` holds every server before anything works, and `ironbell hardware` lets it go: real commands."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ironbell.api.bmc import JOB
from ironbell.api.client import NotFound
from ironbell.api.clusteripam import IP_ADDRESS_CLAIM
from ironbell.api.inclusteripam import IN_CLUSTER_IP_POOL
from ironbell.api.tinkerbell import HARDWARE, WORKFLOW
from ironbell.contract.servers.claim import HELD
from ironbell.contract.servers.restored import RESTORED
from ironbell.kube.client import Client
from ironbell.kube.transport.connection import from_kubeconfig
from ironbell.kube.transport.http import HttpApi
from support.site.embeddedcluster import EmbeddedCluster
from support.waiting import until

POOL = {"apiGroup": IN_CLUSTER_IP_POOL.group, "kind": IN_CLUSTER_IP_POOL.kind, "name": "rack"}


def ironbell(*arguments: object, status: int = 0) -> str:
    command = [sys.executable, "-m", "ironbell.cli.main", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout + done.stderr


@pytest.fixture
def site(tmp_path: Path) -> Iterator[EmbeddedCluster]:
    made = EmbeddedCluster(tmp_path / "site")
    try:
        made.start()
        yield made
    finally:
        made.stop()


def named(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "default"}, "spec": spec}


async def claim_says(client: Client, reason: str, timeout_s: float = 30.0) -> None:
    async def is_ready() -> bool:
        claim = await client.get(IP_ADDRESS_CLAIM, "default", "c")
        assert [one.reason for one in claim.status.conditions if one.type == "Ready"] == [reason]
        return True

    await until(is_ready, within_s=timeout_s)


async def test_servers_are_held_from_the_first_moment_on_until_a_person_confirms(
    site: EmbeddedCluster, tmp_path: Path
) -> None:
    nic = {"dhcp": {"mac": "02:00:00:00:00:01", "ip": {"address": "192.0.2.1"}}}
    async with HttpApi(from_kubeconfig(site.kubeconfig)) as api:
        client = Client(api)
        for name in ("free", "busy"):
            await client.create(HARDWARE, named(name, interfaces=[nic] if name == "busy" else []))
        await client.create(WORKFLOW, named("under-way", templateRef="t", hardwareRef="busy"))
        await client.create(WORKFLOW, named("adrift", templateRef="t"))
        await client.create(IN_CLUSTER_IP_POOL, named("rack", addresses=["192.0.2.10-192.0.2.19"], prefix=24))
        reference = {"name": "none", "namespace": "default"}
        await client.create(JOB, named("off", machineRef=reference, tasks=[{"powerAction": "off"}]))
    data, file = site.folder / "data", tmp_path / "b.tar"
    ironbell("backup", file, "--data-dir", data)
    site.stop()
    ironbell("restore", file, "--data-dir", data, "--force")
    assert (data / "restored.json").exists()

    site.start()
    where = ("--kubeconfig", site.kubeconfig)
    async with HttpApi(from_kubeconfig(site.kubeconfig)) as api:
        client = Client(api)
        assert not (data / "restored.json").exists()
        for name in ("free", "busy"):
            annotations = (await client.get(HARDWARE, "default", name)).metadata.annotations
            assert RESTORED in annotations
            assert "restored from a backup" in annotations[HELD]
        with pytest.raises(NotFound):
            await client.get(JOB, "default", "off")
        adrift = await client.get(WORKFLOW, "default", "adrift")
        assert "tinkerbell.org/disabled" in adrift.metadata.annotations
        assert "is held, so nothing may claim, install or wipe it: restored from a backup" in ironbell(
            "why", "hardware/free", *where
        )

        await client.create(IP_ADDRESS_CLAIM, named("c", poolRef=POOL))
        await claim_says(client, "PoolNotConfirmed")
        assert "default/rack: confirmed" in ironbell("pool", "confirm", "rack", *where)
        await claim_says(client, "Ready")
        assert "nothing to confirm" in ironbell("pool", "confirm", "--all", *where)

        said = ironbell("hardware", "confirm", "free", "busy", *where, status=1)
        assert "busy: workflow under-way was under way" in said
        assert HELD in (await client.get(HARDWARE, "default", "free")).metadata.annotations, "all or none"
        assert "default/free: confirmed" in ironbell("hardware", "confirm", "--free", "--go-on", *where)
        assert HELD not in (await client.get(HARDWARE, "default", "free")).metadata.annotations

        assert "2 servers held, 1 pool held" in ironbell(
            "hardware", "hold", "--restored-from", "2026-11-22T09:00:00Z", *where
        )
        done = json.loads(ironbell("hardware", "confirm", "busy", "--installed", "-o", "json", *where))
        busy = {"kind": "Hardware", "namespace": "default", "name": "busy", "result": "confirmed"}
        assert done["objects"] == [busy]
        pools = json.loads(ironbell("pool", "confirm", "--all", "-o", "json", *where))
        rack = {"kind": "InClusterIPPool", "namespace": "default", "name": "rack", "result": "confirmed"}
        assert pools["objects"] == [rack]
        annotations = (await client.get(HARDWARE, "default", "busy")).metadata.annotations
        assert annotations["v1alpha1.tinkerbell.org/provisioned"] == "true"
        assert HELD not in annotations
        with pytest.raises(NotFound):
            await client.get(WORKFLOW, "default", "under-way")
        assert "nothing to confirm" in ironbell("hardware", "confirm", "busy", *where)


async def test_records_that_are_trusted_hold_nothing(site: EmbeddedCluster, tmp_path: Path) -> None:
    async with HttpApi(from_kubeconfig(site.kubeconfig)) as api:
        await Client(api).create(HARDWARE, named("free"))
    data, file = site.folder / "data", tmp_path / "b.tar"
    ironbell("backup", file, "--data-dir", data)
    site.stop()
    done = json.loads(ironbell("restore", file, "--data-dir", data, "--force", "--trust-records", "-o", "json"))
    assert done["serversHeld"] is False
    site.start()
    async with HttpApi(from_kubeconfig(site.kubeconfig)) as api:
        assert HELD not in (await Client(api).get(HARDWARE, "default", "free")).metadata.annotations
