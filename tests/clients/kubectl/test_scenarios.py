"""kubectl end to end: each scenario is played on the embedded API and on a real kube-apiserver, and every command must
print the same and end the same on both. The real one defines what is right."""

from __future__ import annotations

import asyncio
import difflib
from pathlib import Path

import pytest

from support.api.realcluster import RealCluster
from support.api.transcripts import Said, Scenario, expected, play, read_scenario
from support.programs.catalog import build_program
from support.programs.gobuild import CannotBuild
from support.site.embeddedcluster import EmbeddedCluster
from support.skips import missing_program

SCENARIOS = [read_scenario(path) for path in sorted((Path(__file__).parent / "scenarios").glob("*.txt"))]


@pytest.fixture(scope="session")
def kubectl() -> Path:
    """The kubectl of the real cluster's version."""
    try:
        return build_program("kubectl")
    except CannotBuild as error:
        missing_program(f"kubectl: {error}")


@pytest.mark.parametrize("scenario", SCENARIOS, ids=[scenario.name for scenario in SCENARIOS])
async def test_both_servers_answer_kubectl_alike(
    scenario: Scenario, kubectl: Path, embedded_cluster: EmbeddedCluster, real_cluster: RealCluster, tmp_path: Path
) -> None:
    async def on(name: str, kubeconfig: Path) -> list[Said]:
        folder = tmp_path / name
        folder.mkdir()
        return await play(scenario, kubectl=kubectl, kubeconfig=kubeconfig, folder=folder)

    embedded, real = await asyncio.gather(
        on("embedded", embedded_cluster.kubeconfig), on("real", real_cluster.kubeconfig())
    )
    unexpected = [said.text for said in real if not expected(said)]
    assert not unexpected, f"the scenario is wrong: {unexpected}"
    differences = "".join(
        "".join(difflib.unified_diff(right.text.splitlines(True), ours.text.splitlines(True), "real", "embedded", n=1))
        for right, ours in zip(real, embedded, strict=True)
        if right.text != ours.text
    )
    assert not differences, differences
