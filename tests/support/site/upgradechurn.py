"""A person who creates, scales, rolls and deletes clusters at random while their site is killed and upgraded.

Each request is made until it is known to have been carried out, whatever becomes of the site meanwhile.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import urllib3

from support.fleet.clusters import NAMESPACE, cluster
from support.site.upgraderecord import CLUSTERS, DEPLOYMENTS, HARDWARE, MACHINES, Recorder

_GROUPS = {
    "TinkerbellCluster": "/apis/infrastructure.cluster.x-k8s.io/v1beta1",
    "TinkerbellMachineTemplate": "/apis/infrastructure.cluster.x-k8s.io/v1beta1",
    "KubeadmControlPlane": "/apis/controlplane.cluster.x-k8s.io/v1beta2",
    "KubeadmConfigTemplate": "/apis/bootstrap.cluster.x-k8s.io/v1beta2",
    "Cluster": "/apis/cluster.x-k8s.io/v1beta2",
    "MachineDeployment": "/apis/cluster.x-k8s.io/v1beta2",
}
_USED = 0.8
"""The part of the servers that is wanted at most: one that is rolled needs another one meanwhile."""
_REQUEST_S = 300.0
_PAUSE_S = 0.5


@dataclass
class Churn:
    """The clusters that are wanted, and the changes to them."""

    recorder: Recorder
    servers: int
    seed: int
    wanted: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Control planes and workers by the name of the cluster."""
    counts: Counter[str] = field(default_factory=Counter)
    _made: int = 0
    _random: random.Random = field(init=False)
    _thread: threading.Thread | None = None
    _ended: threading.Event = field(default_factory=threading.Event)
    _failure: BaseException | None = None

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    def fill(self) -> None:
        """Create clusters until half of the servers are wanted."""
        while self._in_use < self.servers // 2:
            self._create()

    def begin(self) -> None:
        """Change something again and again, in a thread."""
        self._ended.clear()
        self._thread = threading.Thread(target=self._live, daemon=True, name="churn")
        self._thread.start()

    def end(self) -> None:
        """Stop when the change that is under way has been carried out.

        Raises:
            AssertionError: a change was rejected, or could not be made in time.
        """
        self._ended.set()
        if self._thread is not None:
            self._thread.join(2 * _REQUEST_S)
        if self._failure is not None:
            raise AssertionError("churn ended") from self._failure

    def request_cluster(self, name: str, address: str, *, control_planes: int = 1, workers: int) -> None:
        """Create a cluster."""
        self.wanted[name] = (control_planes, workers)
        for document in cluster(name, address, control_planes=control_planes, workers=workers, spread=False):
            self._post(document)

    def request_workers(self, name: str, workers: int) -> None:
        """Scale a cluster."""
        self.wanted[name] = (self.wanted[name][0], workers)
        self._patch(name, {"replicas": workers})

    def request_deletion(self, name: str) -> None:
        """Delete a cluster."""
        del self.wanted[name]
        self._request("DELETE", self._path(CLUSTERS, name), None, (200, 202, 404))

    def _live(self) -> None:
        try:
            while not self._ended.wait(self._random.random() * _PAUSE_S):
                self._change()
        except BaseException as error:
            self._failure = error

    @property
    def _in_use(self) -> int:
        return sum(control_planes + workers for control_planes, workers in self.wanted.values())

    @property
    def _most_workers(self) -> int:
        """How many workers a cluster has at most."""
        return max(1, min(8, self.servers // 5))

    @property
    def _room(self) -> int:
        return int(self.servers * _USED) - self._in_use

    def _change(self) -> None:
        what = self._random.random()
        if not self.wanted or (what < 0.35 and self._room > self._most_workers):
            self._create()
        elif what < 0.7:
            self._scale(self._random.choice(sorted(self.wanted)))
        elif what < 0.8:
            self._roll(self._random.choice(sorted(self.wanted)))
        elif len(self.wanted) > 2:
            self._delete(self._random.choice(sorted(self.wanted)))

    def _create(self) -> None:
        self._made += 1
        self.counts["created"] += 1
        name, control_planes = (
            f"c{self._made}",
            3 if self._room > 2 * self._most_workers and self._random.random() < 0.2 else 1,
        )
        workers = self._random.randint(1, max(1, min(self._most_workers, self._room - control_planes)))
        address = f"127.99.{self._made // 250 + 1}.{self._made % 250 + 1}"
        self.request_cluster(name, address, control_planes=control_planes, workers=workers)

    def _scale(self, name: str) -> None:
        self.counts["scaled"] += 1
        workers = self.wanted[name][1]
        self.request_workers(name, self._random.randint(0, max(0, min(self._most_workers, workers + self._room))))

    def _roll(self, name: str) -> None:
        self.counts["rolled"] += 1
        self._made += 1
        template = f"{name}-{self._made}"
        documents = cluster(template, "127.99.0.1", spread=False)
        self._post(next(document for document in documents if document["kind"] == "TinkerbellMachineTemplate"))
        self._patch(name, {"template": {"spec": {"infrastructureRef": {"name": template}}}})

    def _delete(self, name: str) -> None:
        self.counts["deleted"] += 1
        self.request_deletion(name)

    def _post(self, document: dict[str, Any]) -> None:
        path = f"{_GROUPS[document['kind']]}/namespaces/{NAMESPACE}/{document['kind'].lower()}s"
        # it exists already if the site was killed between carrying it out and answering
        self._request("POST", path, document, (201, 409))

    def _patch(self, name: str, spec: dict[str, Any]) -> None:
        self._request("PATCH", self._path(DEPLOYMENTS, name), {"spec": spec}, (200,))

    def _path(self, collection: str, name: str) -> str:
        prefix, _, plural = collection.rpartition("/")
        return f"{prefix}/namespaces/{NAMESPACE}/{plural}/{name}"

    def _request(self, method: str, path: str, body: Any, accepted: tuple[int, ...]) -> None:
        content_type = "application/merge-patch+json" if method == "PATCH" else "application/json"
        deadline = time.monotonic() + _REQUEST_S
        while True:
            try:
                answer = self.recorder.api.call(method, path, body, content_type=content_type)
            except urllib3.exceptions.HTTPError as error:
                self.counts["requests without an answer"] += 1
                problem = str(error)
            else:
                if answer.status in accepted:
                    return
                # a site that has just started does not serve all kinds yet
                assert answer.status in (404, 429, 500, 503), f"{method} {path}: {answer.status} {answer.body[:500]!r}"
                problem = str(answer.body[:500])
            assert time.monotonic() < deadline, f"{method} {path} not within {_REQUEST_S:.0f} s: {problem}"
            time.sleep(0.2)

    def unmet(self, states: Callable[[], dict[str, Any]]) -> list[str]:
        """What differs from what is wanted: clusters and Machines by the API, servers by their `states`."""
        recorder = self.recorder
        names = {item["metadata"]["name"] for item in recorder.all(CLUSTERS)}
        found = [f"cluster {name} is missing" for name in self.wanted.keys() - names]
        found += [f"cluster {name} is there" for name in names - self.wanted.keys()]
        machines = recorder.all(MACHINES)
        counts = Counter(item["spec"]["clusterName"] for item in machines)
        for name, wanted in self.wanted.items():
            if counts[name] != sum(wanted):
                found.append(f"{name} has {counts[name]} of {sum(wanted)} Machines")
        found += [
            f"Machine {item['metadata']['name']} is {item.get('status', {}).get('phase')}"
            for item in machines
            if item.get("status", {}).get("phase") != "Running"
        ]
        owners = recorder.owners
        if len(owners) != len(machines):
            found.append(f"{len(owners)} servers are claimed, {len(machines)} Machines exist")
        found += [problem for name, state in states().items() if (problem := _problem_of(name, state, owners))]
        if len(recorder.all(HARDWARE)) != self.servers:
            found.append(f"{len(recorder.all(HARDWARE))} of {self.servers} servers are there")
        return found


def _problem_of(name: str, state: dict[str, Any], owners: dict[str, str]) -> str:
    joined = bool((state.get("node") or {}).get("joined"))
    if name in owners:
        return "" if joined and state.get("on") else f"{name} is claimed, and is not a node"
    in_use = state.get("on") or state.get("disks") or state.get("node")
    return f"{name} is not claimed, and not off and wiped" if in_use else ""
