"""One object in both versions: it is stored in the newer one, completed, and shown in either."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.capi.life import CORE, MACHINES, NEW, OLD, Place

MACHINE = """
apiVersion: cluster.x-k8s.io/v1beta1
kind: Machine
metadata: {name: older}
spec:
  clusterName: nobodys
  version: 1.36.0
  nodeDrainTimeout: 1m30s
  bootstrap: {dataSecretName: s}
  infrastructureRef: {apiVersion: hosts.test/v1alpha3, kind: Host, name: h}
"""


async def test_an_object_is_stored_converted_and_completed(place: Place) -> None:
    await place.apply(MACHINE)
    stored: dict[str, Any] = await place.json(f"{MACHINES}/older")
    assert stored["spec"]["version"] == "v1.36.0"
    assert stored["spec"]["deletion"]["nodeDrainTimeoutSeconds"] == 90
    assert stored["spec"]["infrastructureRef"] == {"apiGroup": "hosts.test", "kind": "Host", "name": "h"}
    assert stored["metadata"]["labels"] == {f"{CORE}/cluster-name": "nobodys"}
    shown = await place.json(f"machines.{OLD}.{CORE}/older")
    assert shown["spec"]["nodeDrainTimeout"] == "1m30s"
    assert shown["spec"]["infrastructureRef"]["apiVersion"] == "hosts.test/v1beta1"
    assert [one["apiVersion"] for one in await place.items(f"machines.{OLD}.{CORE}")] == [f"{CORE}/{OLD}"]


async def test_nothing_is_lost_by_who_writes_in_the_older_version(place: Place) -> None:
    await place.apply(MACHINE)
    stored = await place.json(f"{MACHINES}/older")

    async def replaced() -> None:
        # the controllers write too
        shown = await place.json(f"machines.{OLD}.{CORE}/older")
        shown["spec"]["version"] = "v1.36.1"
        words = ("replace", "--namespace", place.namespace, "--filename", "-")
        done = await place.kubectl.run(*words, stdin=json.dumps(shown))
        assert done.code == 0, done.err

    await place.until(replaced)
    again = await place.json(f"{MACHINES}/older")
    assert again["spec"] == {**stored["spec"], "version": "v1.36.1"}
    assert f"{CORE}/conversion-data" not in again["metadata"].get("annotations", {})


@pytest.mark.parametrize("version", [OLD, NEW])
async def test_what_breaks_the_rules_is_refused(place: Place, version: str) -> None:
    reference = {"apiVersion": "hosts.test/v1alpha3"} if version == OLD else {"apiGroup": "hosts.test"}
    body = {
        "apiVersion": f"{CORE}/{version}",
        "kind": "Machine",
        "metadata": {"name": "refused", "namespace": place.namespace},
        "spec": {
            "clusterName": "nobodys",
            "version": "one",
            "bootstrap": {"dataSecretName": "s"},
            "infrastructureRef": {**reference, "kind": "Host", "name": "h"},
        },
    }
    said = await place.kubectl.fails("create", "--filename", "-", stdin=json.dumps(body))
    assert "spec.version: Invalid value" in said
