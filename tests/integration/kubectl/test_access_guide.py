"""The example of the guide to access: what it gives a team, and what it does not."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

from support.programs.kubectl import Kubectl
from support.site.embeddedcluster import EmbeddedCluster

GUIDE = Path(__file__).parents[3] / "docs" / "guide" / "access.md"
TOKEN = "kubeadm join --token abcdef.0123456789abcdef"
AS_TEAM = ("--as", "ann", "--as-group", "team-a", "--as-group", "system:authenticated")


def commands() -> list[list[str]]:
    """Those of the first example below `Roles`."""
    text = GUIDE.read_text().partition("\n## Roles\n")[2]
    found = re.search(r"```sh\n(.*?)```", text, re.DOTALL)
    assert found is not None
    return [shlex.split(line)[1:] for line in found.group(1).splitlines()]


async def test_a_team_sees_servers_and_no_join_tokens(
    embedded_cluster: EmbeddedCluster, kubectl_binary: Path, tmp_path: Path
) -> None:
    kubectl = Kubectl(kubectl_binary, embedded_cluster.kubeconfig, tmp_path)
    await kubectl.ok("create", "namespace", "team-a")
    for namespace in ("team-a", "default"):
        document = {
            "apiVersion": "tinkerbell.org/v1alpha1",
            "kind": "Hardware",
            "metadata": {"name": "claimed", "namespace": namespace},
            "spec": {"userData": TOKEN},
        }
        await kubectl.ok("apply", "-f", "-", stdin=json.dumps(document))
    for command in commands():
        done = await kubectl.run(*command)
        assert done.code == 0 or done.out == "no\n", done.err
    stolen = await kubectl.run("get", "hardware.tinkerbell.org", "-n", "default", "-o", "yaml", *AS_TEAM)
    assert TOKEN not in stolen.out
    assert "is forbidden" in stolen.err
    assert TOKEN in await kubectl.ok("get", "hardware.tinkerbell.org", "-n", "team-a", "-o", "yaml", *AS_TEAM)
    await kubectl.ok("get", "machines.bmc.tinkerbell.org", "-A", *AS_TEAM)
    await kubectl.ok("delete", "clusterrole/server-viewer", "clusterrolebinding/team-sees-servers")
    await kubectl.ok("delete", "hardware.tinkerbell.org", "claimed", "-n", "default")
    await kubectl.ok("delete", "namespace", "team-a")
