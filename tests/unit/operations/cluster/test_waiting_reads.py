"""How much `--wait` reads while a cluster is blocked and nothing changes."""

from __future__ import annotations

import asyncio

import pytest

from ironbell.lab.sim.virtualtime import VirtualLoop
from ironbell.operations.cluster.waits import wait_settled
from ironbell.operations.progress import Progress, StillWaitingError
from support.servers.whyworld import CAPI, CLUSTER, KCP, OF_ONE, PLANE, Objects, condition, hardware, host, machine, obj


def test_a_wait_reads_little_while_nothing_changes() -> None:
    workers = {**OF_ONE, "cluster.x-k8s.io/deployment-name": "md"}
    deployment = obj(CAPI, "MachineDeployment", "md", condition("Available", "False"), metadata={"labels": OF_ONE})
    found = [CLUSTER, KCP, deployment]
    for name, labels in (("a", PLANE), ("b", workers), ("c", workers), ("d", workers)):
        found += [machine(name, labels, "WaitingForHardware"), host(name, "WaitingForHardware", "all are claimed")]
    api = Objects(*found, hardware())

    reports: list[Progress] = []

    async def main() -> None:
        with pytest.raises(StillWaitingError, match="all are claimed"):
            await wait_settled(api, "site", "one", subject="it", timeout_s=60, report=reports.append)  # type: ignore[arg-type]

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(main())
    assert api.read + api.discovered < 240, "requests in a minute; 1380 with a look at everything each second"
    assert len(reports) == 7, "a line within every ten seconds"


def test_a_line_with_new_counts_names_what_blocks_now() -> None:
    workers = {**OF_ONE, "cluster.x-k8s.io/deployment-name": "md"}
    deployment = obj(CAPI, "MachineDeployment", "md", condition("Available", "False"), metadata={"labels": OF_ONE})
    plane = [machine("a", PLANE, "Installing"), host("a", "Installing", "the control plane is installed")]
    worker = [machine("b", workers, "WaitingForHardware"), host("b", "WaitingForHardware", "all are claimed")]
    before = [CLUSTER, KCP, deployment, *plane]
    ready = {**KCP, "status": {**KCP["status"], "readyReplicas": 1}}
    api = Objects(*before)

    reports: list[Progress] = []

    async def main() -> None:
        async def change() -> None:
            await asyncio.sleep(1.5)
            api.replace(CLUSTER, ready, deployment, *worker)

        changing = asyncio.ensure_future(change())
        with pytest.raises(StillWaitingError):
            await wait_settled(api, "site", "one", subject="it", timeout_s=5, report=reports.append)  # type: ignore[arg-type]
        await changing

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(main())
    first, second = (report.message for report in reports)
    assert first.startswith("control plane 0/1 ready, workers 0/1 ready; TinkerbellMachine site/a: ")
    assert second.startswith("control plane 1/1 ready, workers 0/1 ready; TinkerbellMachine site/b: ")
