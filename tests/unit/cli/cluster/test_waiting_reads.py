"""How much `--wait` reads while a cluster is blocked and nothing changes."""

from __future__ import annotations

import asyncio

import pytest

from ironbell.cli.cluster.operations import wait_settled
from ironbell.cli.cluster.waiting import StillWaitingError
from ironbell.lab.sim.virtualtime import VirtualLoop
from support.whyworld import CAPI, CLUSTER, KCP, OF_ONE, PLANE, Objects, condition, hardware, host, machine, obj


def test_a_wait_reads_little_while_nothing_changes(capsys: pytest.CaptureFixture[str]) -> None:
    workers = {**OF_ONE, "cluster.x-k8s.io/deployment-name": "md"}
    deployment = obj(CAPI, "MachineDeployment", "md", condition("Available", "False"), metadata={"labels": OF_ONE})
    found = [CLUSTER, KCP, deployment]
    for name, labels in (("a", PLANE), ("b", workers), ("c", workers), ("d", workers)):
        found += [machine(name, labels, "WaitingForHardware"), host(name, "WaitingForHardware", "all are claimed")]
    api = Objects(*found, hardware())

    async def main() -> None:
        with pytest.raises(StillWaitingError, match="all are claimed"):
            await wait_settled(api, "site", "one", what="it", timeout_s=60)  # type: ignore[arg-type]

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(main())
    assert api.read + api.discovered < 240, "requests in a minute; 1380 with a look at everything each second"
    assert len(capsys.readouterr().err.splitlines()) == 6, "a line every ten seconds"
