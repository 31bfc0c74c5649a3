"""Cluster API's components on a real API server, each a process under its own ServiceAccount; simulated machines.

What a cluster would add is done here: the API server asks webhooks at an address instead of through a Service.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

from ironbell.app.systems import SYSTEMS, converted_in
from support.ports import free_ports
from support.site.components import OnCluster, Process, ironbell
from support.waiting import eventually

CONVERTED = converted_in(SYSTEMS)

KUBEADM = ("kubeadm-bootstrap", "kubeadm-control-plane")
PATIENT_LEASE = ("--lease-duration=60s", "--renew-deadline=50s")
"""Nobody else wants to lead: a busy machine shall not end who does."""
_ADMISSION = "/apis/admissionregistration.k8s.io/v1"
_CONFIGURATIONS = [
    f"{_ADMISSION}/{plural}/ironbell-cluster-api"
    for plural in ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")
]
_DEFINITIONS = [f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}" for name in sorted(CONVERTED)]


@contextmanager
def cluster_api(
    on_cluster: OnCluster,
    *more: str,
    force: bool = False,
    lease: Sequence[str] = PATIENT_LEASE,
    options: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> Iterator[list[Process]]:
    """`cluster-api`, whose webhooks the API server asks, and other components beside it, some with options of their
    own; processes in this order. With `force` definitions of others are taken over."""
    port = free_ports(1)[0]
    words = ",".join(("tink-controller", "rufio", "wire", "cluster-api", *more))
    forced = ["--force-conflicts"] if force else []
    # processes stand in for pods
    ironbell("install", "--without-pods", "--kubeconfig", on_cluster.admin, "--components", words, *forced)
    served = ("--webhook-address", f"127.0.0.1:{port}", "--webhook-host", "127.0.0.1")
    try:
        # processes end with the thread that has started them: the pool is left last
        with ThreadPoolExecutor() as pool:
            starting = [pool.submit(on_cluster.run, "cluster-api", *served, *lease)]
            starting += [pool.submit(on_cluster.run, word, *options.get(word, ()), *lease) for word in more]
            made = [one.result() for one in starting]
            for path in (*_CONFIGURATIONS, *_DEFINITIONS):
                _point(on_cluster, path, port)
            yield made
            for process in made:
                process.stop()
    finally:
        # other tests on this API server must not meet webhooks that nobody serves, nor definitions that never go
        for path in (*_CONFIGURATIONS, *_DEFINITIONS):
            on_cluster.api.delete(path)
        eventually(lambda: not _left(on_cluster), seen=lambda: _left(on_cluster), within_s=60)


def _left(on_cluster: OnCluster) -> list[str]:
    """Definitions that are still there, and why: objects of theirs may have finalizers that nobody takes away."""
    found = [answer.json for path in _DEFINITIONS if (answer := on_cluster.api.get(path)).status != 404]
    return [
        f"{one['metadata']['name']}: {[each.get('message') for each in one.get('status', {}).get('conditions', ())]}"
        for one in found
    ]


def _point(on_cluster: OnCluster, path: str, port: int) -> None:
    def put() -> bool:
        found = on_cluster.api.get(path).json
        conversion = ((found.get("spec") or {}).get("conversion") or {}).get("webhook")
        for holder in [*found.get("webhooks", ()), *([conversion] if conversion else ())]:
            client = holder["clientConfig"]
            assert client["caBundle"]
            if "service" in client:
                client["url"] = f"https://127.0.0.1:{port}{client.pop('service')['path']}"
        return on_cluster.api.put(path, found).status == 200

    assert eventually(put)


@contextmanager
def simulation(on_cluster: OnCluster, *also: Path, **servers: int | str) -> Iterator[Path]:
    """The simulated provider, as `ironbell up --simulate` starts it, also for APIs of other kubeconfigs; its log.
    `servers` are the further fields of its configuration."""
    log = on_cluster.folder / "simulation.log"
    with log.open("ab") as out:
        process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", sys.executable, "-m", "ironbell.lab.sim.process"],
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=out,
        )
    assert process.stdin is not None
    try:
        configuration = {"kubeconfig": str(on_cluster.admin), "also": [*map(str, also)], **servers}
        process.stdin.write(json.dumps(configuration).encode() + b"\n")
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
