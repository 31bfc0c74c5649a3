"""One suite for two servers: each test asks the embedded API and a real kube-apiserver the same.

The real one defines what is right. A test that the embedded API does not pass is marked with
`@pytest.mark.differs("...")`; the reason is a line of docs/kubernetes-api.md.
"""

from __future__ import annotations

from uuid import uuid4

import pytest

from support.api.kubeapi import KubeApi, connect
from support.api.kubeobjects import THINGS
from support.waiting import eventually

SERVERS = ("embedded", "real")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run whatever uses the fixture `server` against both."""
    if "server" in metafunc.fixturenames:
        differs = metafunc.definition.get_closest_marker("differs")
        marks = {"embedded": [pytest.mark.xfail(reason=differs.args[0], strict=True)]} if differs else {}
        metafunc.parametrize(
            "server", [pytest.param(name, marks=marks.get(name, ())) for name in SERVERS], scope="session"
        )


@pytest.fixture(scope="session")
def server(request: pytest.FixtureRequest) -> str:
    """Which server is asked."""
    return str(request.param)


@pytest.fixture(scope="session")
def api(server: str, request: pytest.FixtureRequest) -> KubeApi:
    """The server, asked by a member of `system:masters`."""
    cluster = request.getfixturevalue(f"{server}_cluster")
    path = cluster.kubeconfig() if server == "real" else cluster.kubeconfig
    return connect(server, path)


@pytest.fixture
def namespace(api: KubeApi) -> str:
    """A namespace of the test's own. It is left there: the servers do not outlive the run, and the real one's
    controller needs five seconds and dozens of requests to empty one. What the real one's controllers put into each
    is there already, so that no watch, webhook or list of a test sees it come."""
    name = f"test-{uuid4().hex[:10]}"
    api.made("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    if api.name == "real":
        place = f"/api/v1/namespaces/{name}"
        for path in (f"{place}/configmaps/kube-root-ca.crt", f"{place}/serviceaccounts/default"):
            eventually(lambda path=path: api.get(path).status == 200)
    return name


@pytest.fixture
def config_maps(namespace: str) -> str:
    """The path of the ConfigMaps in the test's namespace."""
    return f"/api/v1/namespaces/{namespace}/configmaps"


@pytest.fixture(scope="session")
def things_served(api: KubeApi) -> KubeApi:
    """The server with the custom resource `things.conf.example.org` (`support.api.kubeobjects.THINGS`)."""
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    assert api.post(definitions, THINGS).status in {201, 409}
    eventually(lambda: api.get("/apis/conf.example.org/v1/things").status == 200)
    # kube-apiserver begins to serve a resource before all of its handlers know its schema.
    probe = {"apiVersion": "conf.example.org/v1", "kind": "Thing", "metadata": {"name": "probe"}}
    path = "/apis/conf.example.org/v1/namespaces/default/things?dryRun=All"
    eventually(lambda: api.post(path, probe).status == 201)
    return api


@pytest.fixture
def things(things_served: KubeApi, namespace: str) -> str:
    """The path of the Things in the test's namespace."""
    return f"/apis/conf.example.org/v1/namespaces/{namespace}/things"
