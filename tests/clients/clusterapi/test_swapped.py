"""Each of Cluster API's three managers, upstream's or ours, in any mixture: on simulated machines a cluster comes up,
and goes away again. Ours of a component that is upstream's is left out, with its kinds and their admission."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.capisite import NAMESPACE, cluster_documents
from support.clusterapi import Manager, managers
from support.embeddedcluster import EmbeddedCluster
from support.gobuild import CannotBuild
from support.kubeapi import APPLY, KubeApi, connect, eventually
from support.real import component

WITHIN_S = 120
COMPONENTS = {
    "cluster-api": "capi-core",
    "kubeadm-bootstrap": "capi-kubeadm-bootstrap",
    "kubeadm-control-plane": "capi-kubeadm-control-plane",
}
"""Upstream's manager by our component's name, in the order of a mixture's letters."""
MIXTURES = ["".join(letters) for letters in product("UO", repeat=3)]
"""Core, bootstrap, control plane: `U` is upstream's, `O` is ours."""
QUICK = {"UOO"}
"""Upstream's managers look for a new cluster every 30 seconds: one mixture is what there is time for."""
CLUSTERS = f"/apis/cluster.x-k8s.io/v1beta2/namespaces/{NAMESPACE}"
CONTROL_PLANES = f"/apis/controlplane.cluster.x-k8s.io/v1beta2/namespaces/{NAMESPACE}/kubeadmcontrolplanes"
INFRASTRUCTURE = f"/apis/infrastructure.cluster.x-k8s.io/v1beta2/namespaces/{NAMESPACE}"


@dataclass(frozen=True)
class Mixture:
    """A site that runs, with some of upstream's managers beside it."""

    api: KubeApi
    theirs: dict[str, Manager]
    folder: Path

    def said(self) -> str:
        """What explains a failure: Machines and the ends of all logs."""
        machines = [
            (one["metadata"]["name"], one.get("status", {}).get("phase"), bad_conditions(one))
            for one in self.api.get(f"{CLUSTERS}/machines").json.get("items", ())
        ]
        control_planes = [bad_conditions(one) for one in self.api.get(CONTROL_PLANES).json.get("items", ())]
        logs = [self.folder / "site" / "up.log", *(manager.log for manager in self.theirs.values())]
        ends = [f"{log.name}:\n{log.read_text()[-3000:]}" for log in logs]
        return "\n".join([*map(str, machines), *map(str, control_planes), *ends])


@pytest.fixture(params=[pytest.param(one, marks=() if one in QUICK else pytest.mark.soak) for one in MIXTURES])
def mixture(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Mixture]:
    letters = dict(zip(COMPONENTS, request.param, strict=True))
    left_out = [name for name, letter in letters.items() if letter == "U"]
    site = EmbeddedCluster(tmp_path / "site", ("--simulate", *(f"--without={name}" for name in left_out)))
    with ExitStack() as stack:
        stack.callback(site.stop)
        site.start()
        api = connect("", site.kubeconfig)
        authority = Path(api.pool.connection_pool_kw["ca_certs"]).read_bytes()
        names = [COMPONENTS[name] for name in left_out]
        try:
            theirs = stack.enter_context(
                managers(api, kubectl=component("kubectl"), authority=authority, folder=tmp_path, names=names)
            )
        except CannotBuild as error:
            pytest.skip(f"no Cluster API managers: {error}")
        yield Mixture(api, theirs, tmp_path)


def bad_conditions(value: dict[str, Any]) -> list[str]:
    """What is said of an object that is not as it should be."""
    conditions = value.get("status", {}).get("conditions", ())
    return [f"{one['type']}: {one['reason']}: {one['message']}" for one in conditions if one.get("message")]


def reached(mixture: Mixture, check: Callable[[], object]) -> None:
    try:
        eventually(check, timeout=WITHIN_S)
    except AssertionError as error:
        raise AssertionError(f"{error}\n{mixture.said()}") from error


def applied(api: KubeApi, document: dict[str, Any]) -> bool:
    """Whether it could be; kinds and webhooks may be on their way up."""
    path = f"/apis/{document['apiVersion']}/namespaces/{NAMESPACE}/{document['kind'].lower()}s"
    path = f"{path}/{document['metadata']['name']}"
    body = yaml.safe_dump(document).encode()
    answer = api.call("PATCH", path, body, content_type=APPLY, fieldManager="user", force=True)
    assert answer.status in {200, 201}, answer.body
    return True


def conditions(value: dict[str, Any]) -> dict[str, str]:
    return {one["type"]: one["status"] for one in value.get("status", {}).get("conditions", ())}


def test_a_cluster_comes_up_and_goes(mixture: Mixture) -> None:
    api = mixture.api
    for document in cluster_documents(control_planes=1, workers=2, vm="0s"):
        eventually(lambda document=dict(document): applied(api, document))

    def is_running() -> bool:
        machines = api.get(f"{CLUSTERS}/machines").json["items"]
        [control_plane] = api.get(CONTROL_PLANES).json["items"]
        return (
            len(machines) == 3 == sum(one.get("status", {}).get("phase") == "Running" for one in machines)
            and conditions(control_plane).get("Available") == "True"
            and conditions(api.get(f"{CLUSTERS}/clusters/one").json).get("Available") == "True"
        )

    reached(mixture, is_running)
    assert api.delete(f"{CLUSTERS}/clusters/one").status == 200
    reached(mixture, lambda: api.get(f"{CLUSTERS}/clusters/one").status == 404)
    for path in (f"{CLUSTERS}/machines", CONTROL_PLANES, f"{INFRASTRUCTURE}/devmachines"):
        assert api.get(path).json["items"] == []
