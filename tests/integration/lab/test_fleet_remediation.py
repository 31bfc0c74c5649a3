"""A MachineHealthCheck has a simulated server power cycled, by controllers that each have their own rights."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from support.fleet.clusters import cluster
from support.programs.kubectl import NoKubectl, find_kubectl
from support.site.embeddedcluster import EmbeddedCluster
from support.skips import missing_program
from support.waiting import eventually

WITHIN_S = 120.0
GROUP = "infrastructure.cluster.x-k8s.io/v1beta1"


def test_an_unhealthy_machine_is_power_cycled_and_then_given_up(tmp_path: Path) -> None:
    try:
        kubectl = find_kubectl()
    except NoKubectl as reason:
        missing_program(reason)
    # (any port will do, and servers are told which it became)
    site = EmbeddedCluster(tmp_path, ("--simulate", "1", "--http-port", "0", "--grpc-port", "0"))

    def run(*words: str, text: str = "") -> str:
        command = [str(kubectl), "--kubeconfig", str(site.kubeconfig), *words]
        done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=WITHIN_S)
        return done.stdout if done.returncode == 0 else ""

    def items(plural: str) -> list[Any]:
        found = run("get", plural, "-A", "-o", "json")
        return json.loads(found)["items"] if found else []

    def apply(documents: list[Any]) -> bool:
        return bool(run("apply", "-f", "-", text=json.dumps({"apiVersion": "v1", "kind": "List", "items": documents})))

    def phase() -> str:
        machines = items("machines.cluster.x-k8s.io")
        return machines[0].get("status", {}).get("phase", "") if machines else ""

    def remedy() -> dict[str, Any]:
        found = items("tinkerbellremediations")
        return found[0].get("status", {}) if found else {}

    try:
        site.start()
        assert eventually(lambda: items("hardware"), within_s=WITHIN_S)
        assert eventually(lambda: apply(cluster("heal", "127.99.9.1")), within_s=WITHIN_S)
        assert eventually(lambda: phase() == "Running", within_s=WITHIN_S)
        assert apply(_health_check())
        assert run("annotate", "machines.cluster.x-k8s.io", "--all", "cluster.x-k8s.io/remediate-machine=")
        assert eventually(lambda: remedy().get("phase") == "WaitingForRecovery", within_s=WITHIN_S), remedy()
        assert remedy()["powerCycles"] == 1
        (infrastructure,) = items("tinkerbellclusters")
        assert infrastructure["metadata"]["annotations"]["ironbell.dev/power-cycle-turn"]
        assert eventually(lambda: "power-cycle" not in run("get", "jobs.bmc.tinkerbell.org", "-A"), within_s=WITHIN_S)
        assert eventually(lambda: remedy().get("phase") == "Replacing", within_s=WITHIN_S), remedy()

        def given_up() -> bool:
            conditions = items("machines.cluster.x-k8s.io")[0]["status"]["conditions"]
            return any(one["type"] == "OwnerRemediated" and one["status"] == "False" for one in conditions)

        assert eventually(given_up, within_s=WITHIN_S)
        table = run("get", "tinkerbellremediations")
        assert "Replacing" in table
    finally:
        site.stop()


def _health_check() -> list[dict[str, Any]]:
    metadata = {"namespace": "default", "name": "heal"}
    template = {"apiVersion": GROUP, "kind": "TinkerbellRemediationTemplate"}
    check = {
        "clusterName": "heal",
        "selector": {"matchLabels": {"cluster.x-k8s.io/cluster-name": "heal"}},
        "checks": {"unhealthyNodeConditions": [{"type": "Ready", "status": "Unknown", "timeoutSeconds": 300}]},
        "remediation": {"templateRef": {**template, "name": "heal"}},
    }
    spec = {"template": {"spec": {"powerCycle": {"attempts": 1, "timeoutSeconds": 30}}}}
    return [
        {**template, "metadata": metadata, "spec": spec},
        {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineHealthCheck", "metadata": metadata, "spec": check},
    ]
