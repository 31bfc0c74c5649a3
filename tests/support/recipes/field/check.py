"""`maxFailureDomains` limits the failure domains in the status of a TinkerbellCluster."""

from __future__ import annotations

from typing import Any

import pytest

from ironbell.api.capt import TINKERBELL_CLUSTER
from ironbell.api.cluster import CLUSTER
from ironbell.api.crd.document import crd_document
from ironbell.api.tinkerbell.hardware import HARDWARE
from ironbell.controllers.capt.cluster import TinkerbellClusterReconciler
from ironbell.kube.testing import World
from support.servers.captworld import server


def domains_with(**spec: Any) -> list[str]:
    world = World()
    reference = {"apiGroup": TINKERBELL_CLUSTER.group, "kind": "TinkerbellCluster", "name": "prod"}
    names = {"namespace": "default", "name": "prod"}
    cluster = world.add(CLUSTER, {"metadata": names, "spec": {"infrastructureRef": reference}})
    owner = {"apiVersion": CLUSTER.api_version, "kind": "Cluster", "name": "prod", "uid": cluster.metadata.uid}
    spec |= {"controlPlaneEndpoint": {"host": "192.0.2.10", "port": 6443}, "failureDomainLabel": "rack"}
    world.add(TINKERBELL_CLUSTER, {"metadata": {**names, "ownerReferences": [owner]}, "spec": spec})
    for rack in "abc":
        world.add(HARDWARE, server(f"server-{rack}", labels={"rack": rack}))
    world.settle(TinkerbellClusterReconciler())
    return [domain.name for domain in world.require(TINKERBELL_CLUSTER, "default", "prod").status.failure_domains]


@pytest.mark.parametrize(("spec", "names"), [({}, ["a", "b", "c"]), ({"maxFailureDomains": 2}, ["a", "b"])])
def test_the_number_of_failure_domains_is_limited(spec: dict[str, Any], names: list[str]) -> None:
    assert domains_with(**spec) == names


def test_the_definition_has_its_limits() -> None:
    (version,) = crd_document(TINKERBELL_CLUSTER)["spec"]["versions"]
    schema = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["maxFailureDomains"]
    assert (schema["type"], schema["minimum"], schema["maximum"]) == ("integer", 1, 100)
