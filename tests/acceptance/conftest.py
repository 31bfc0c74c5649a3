"""What the acceptance tests look at: a life on virtual time, and a site whose servers are reached over sockets."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from support.fleet.clusters import cluster
from support.ports import free_ports
from support.programs.kubectl import NoKubectl, find_kubectl
from support.site.embeddedcluster import EmbeddedCluster
from support.site.seedstory import Story, live
from support.site.seedwire import WITHIN_S, Wire
from support.skips import missing_program
from support.waiting import eventually


@pytest.fixture(scope="session")
def story() -> Story:
    """The whole life, once."""
    return live()


@pytest.fixture(scope="session")
def wire(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wire]:
    """A cluster of one machine that was applied with kubectl, and runs."""
    try:
        kubectl = find_kubectl()
    except NoKubectl as reason:
        missing_program(reason)
    http, grpc = free_ports(2)
    ports = ("--http-port", str(http), "--grpc-port", str(grpc), "--workflow-http-port", "0")
    site = EmbeddedCluster(tmp_path_factory.mktemp("seed"), ("--simulate", "2", *ports))
    try:
        site.start()
        found = Wire(kubectl, site.kubeconfig, http)
        assert eventually(lambda: len(found.items("hardware")) == 2, within_s=WITHIN_S)
        manifest = json.dumps({"apiVersion": "v1", "kind": "List", "items": cluster("seed", "127.99.8.1")})
        assert eventually(lambda: found.run("apply", "-f", "-", text=manifest), within_s=WITHIN_S)

        def runs() -> bool:
            machines = found.items("machines.cluster.x-k8s.io")
            return [one.get("status", {}).get("phase") for one in machines] == ["Running"]

        assert eventually(runs, within_s=WITHIN_S), (site.folder / "up.log").read_text()[-3000:]
        yield found
    finally:
        site.stop()
