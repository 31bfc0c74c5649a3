"""Sites where some of Cluster API's three managers are upstream's and the others ours, on simulated machines."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from support.api.kubeapi import APPLY, KubeApi, connect
from support.capi.managers import Manager, managers
from support.capi.site import NAMESPACE
from support.programs.catalog import build_program
from support.site.embeddedcluster import EmbeddedCluster
from support.waiting import eventually

COMPONENTS = {
    "cluster-api": "capi-core",
    "kubeadm-bootstrap": "capi-kubeadm-bootstrap",
    "kubeadm-control-plane": "capi-kubeadm-control-plane",
}
"""Upstream's manager by our component's name, in the order of a mixture's letters."""
CORE, BOOTSTRAP, CONTROL_PLANE, INFRASTRUCTURE = (
    f"/apis/{group}cluster.x-k8s.io/v1beta2/namespaces/{NAMESPACE}"
    for group in ("", "bootstrap.", "controlplane.", "infrastructure.")
)
MACHINES, CONTROL_PLANES = f"{CORE}/machines", f"{CONTROL_PLANE}/kubeadmcontrolplanes"
SECRETS = f"/api/v1/namespaces/{NAMESPACE}/secrets"
WITHIN_S = 120
BUSY = 429
Object = dict[str, Any]
_PLURALS = {"ClusterClass": "clusterclasses"}
_ADMISSION = "/apis/admissionregistration.k8s.io/v1"


@dataclass
class Site:
    """An API with managers of either kind, and what to ask it."""

    folder: Path
    api: KubeApi
    theirs: Mapping[str, Manager] = field(default_factory=dict)

    def items(self, path: str) -> list[Object]:
        found: list[Object] = self.get(path)["items"]
        return found

    def get(self, path: str) -> Object:
        """What is there; a server whose definition of the kind has just changed asks for patience."""
        answer = eventually(lambda: found if (found := self.api.get(path)).status != BUSY else None)
        assert answer.status == 200, answer.body
        body: Object = answer.json
        return body

    def patch(self, path: str, body: Object) -> None:
        """Webhooks may be on their way up."""

        def done() -> bool:
            answer = self.api.patch(path, body)
            assert answer.status == 200, answer.body
            return True

        eventually(done)

    def delete(self, path: str) -> None:
        assert self.api.delete(path).status in {200, 202}

    def apply(self, documents: Iterable[Mapping[str, Any]]) -> None:
        """Kinds and webhooks may be on their way up."""
        for document in documents:
            eventually(lambda document=dict(document): self._applied(document))

    def _applied(self, document: Object) -> bool:
        kind, meta = document["kind"], document["metadata"]
        plural = _PLURALS.get(kind, f"{kind.lower()}s")
        path = f"/apis/{document['apiVersion']}/namespaces/{NAMESPACE}/{plural}/{meta['name']}"
        body = yaml.safe_dump(document).encode()
        answer = self.api.call("PATCH", path, body, content_type=APPLY, fieldManager="user", force=True)
        assert answer.status in {200, 201}, answer.body
        return True

    def reached(self, check: Callable[[], object], within_s: float = WITHIN_S) -> None:
        """Until something holds; what explains a failure is told."""
        try:
            eventually(check, within_s=within_s)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.said()}") from error

    def said(self) -> str:
        """Machines, and what their owners lack, and the ends of all logs."""
        machines = [
            (one["metadata"]["name"], one["spec"].get("version"), one.get("status", {}).get("phase"), complaints(one))
            for one in self.items(MACHINES)
        ]
        paths = (f"{CORE}/clusters", CONTROL_PLANES, f"{CORE}/machinedeployments", f"{CORE}/machinesets")
        owners = [(one["kind"], one["metadata"]["name"], complaints(one)) for path in paths for one in self.items(path)]
        logs = [self.folder / "site" / "up.log", *(manager.log for manager in self.theirs.values())]
        ends = [f"{log.name}:\n{log.read_text()[-3000:]}" for log in logs if log.exists()]
        return "\n".join([*map(str, machines), *map(str, owners), *ends])

    def machines(self, cluster: str = "one") -> list[Object]:
        return [one for one in self.items(MACHINES) if one["spec"]["clusterName"] == cluster]

    def runs(
        self, count: int, version: str = "v1.34.0", *, cluster: str = "one", without: Collection[str] = ()
    ) -> None:
        """Until a cluster is available with so many Machines, all of this version; none of those named is left."""

        def look() -> bool:
            machines = self.machines(cluster)
            good = [one for one in machines if is_running(one) and one["spec"]["version"] == version]
            names = {one["metadata"]["name"] for one in machines}
            planes = [one for one in self.items(CONTROL_PLANES) if is_of(one, cluster)]
            return (
                len(good) == len(machines) == count
                and not names & set(without)
                and all(conditions(one).get("Available") == "True" for one in planes)
                and conditions(self.get(f"{CORE}/clusters/{cluster}")).get("Available") == "True"
            )

        self.reached(look)

    def gone(self, cluster: str = "one") -> None:
        """Delete a cluster, and wait until everything that was made for it has gone."""
        self.delete(f"{CORE}/clusters/{cluster}")
        self.reached(lambda: self.api.get(f"{CORE}/clusters/{cluster}").status == 404)
        for path in (MACHINES, CONTROL_PLANES, f"{INFRASTRUCTURE}/devmachines", f"{BOOTSTRAP}/kubeadmconfigs"):
            assert [one for one in self.items(path) if is_of(one, cluster)] == []


def is_of(value: Object, cluster: str) -> bool:
    return bool(value["metadata"].get("labels", {}).get("cluster.x-k8s.io/cluster-name") == cluster)


def is_running(machine: Object) -> bool:
    return bool(machine.get("status", {}).get("phase") == "Running")


def is_control_plane(machine: Object) -> bool:
    return "cluster.x-k8s.io/control-plane" in machine["metadata"].get("labels", {})


def conditions(value: Object) -> dict[str, str]:
    return {one["type"]: one["status"] for one in value.get("status", {}).get("conditions", ())}


def complaints(value: Object) -> list[str]:
    """What is said of an object that is not as it should be."""
    found = value.get("status", {}).get("conditions", ())
    return [f"{one['type']}: {one['reason']}: {one['message']}" for one in found if one.get("message")]


@contextmanager
def mixture(letters: str, folder: Path) -> Iterator[Site]:
    """A site on simulated machines: core, bootstrap, control plane; `U` is upstream's, `O` is ours.

    Raises:
        CannotBuild: upstream's managers cannot be had.
    """
    chosen = dict(zip(COMPONENTS, letters, strict=True))
    left_out = [name for name, letter in chosen.items() if letter == "U"]
    server = EmbeddedCluster(folder / "site", ("--simulate", *(f"--without={name}" for name in left_out)))
    with ExitStack() as stack:
        stack.callback(server.stop)
        server.start()
        api = connect("", server.kubeconfig)
        yield Site(folder, api, stack.enter_context(upstream(api, folder, [COMPONENTS[name] for name in left_out])))


@contextmanager
def upstream(
    api: KubeApi, folder: Path, names: Collection[str] = tuple(COMPONENTS.values())
) -> Iterator[dict[str, Manager]]:
    """Upstream's managers beside an API; their logs are in the folder.

    Raises:
        CannotBuild: they cannot be had.
    """
    authority = Path(api.pool.connection_pool_kw["ca_certs"]).read_bytes()
    folder.mkdir(exist_ok=True)
    kubectl = build_program("kubectl")
    with managers(api, kubectl=kubectl, authority=authority, folder=folder, names=names) as running:
        yield running


def forget_webhooks(api: KubeApi) -> None:
    """What a user does who has stopped upstream's managers: nobody answers their webhooks any more."""
    for plural in ("mutatingwebhookconfigurations", "validatingwebhookconfigurations"):
        selector = "labelSelector=cluster.x-k8s.io/provider"
        assert api.delete(f"{_ADMISSION}/{plural}?{selector}").status == 200


@contextmanager
def simulation(kubeconfig: Path, folder: Path) -> Iterator[Path]:
    """The simulated provider as `ironbell up --simulate` starts it, but by itself: it outlives the API; its log."""
    log = folder / "simulation.log"
    with log.open("ab") as out:
        process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", sys.executable, "-m", "ironbell.lab.sim.process"],
            stdin=subprocess.PIPE, stdout=out, stderr=out,
        )  # fmt: skip
    assert process.stdin is not None
    try:
        process.stdin.write(json.dumps({"kubeconfig": str(kubeconfig)}).encode() + b"\n")
        process.stdin.flush()
        eventually(lambda: b'{"event":"ready"}' in log.read_bytes() or process.poll() is not None, within_s=60)
        assert process.poll() is None, log.read_text()[-3000:]
        yield log
    finally:
        process.stdin.close()
        try:
            process.wait(20)
        finally:
            process.kill()
            process.wait()


def settled(look: Callable[[], object], *, quiet_s: float, within_s: float = WITHIN_S) -> None:
    """Until what `look` gives has stayed the same for a while."""
    deadline = time.monotonic() + within_s
    before, since = look(), time.monotonic()
    while time.monotonic() - since < quiet_s:
        time.sleep(0.5)
        now = look()
        if now != before:
            before, since = now, time.monotonic()
        assert time.monotonic() < deadline, "it does not come to rest"
