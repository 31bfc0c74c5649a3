"""`ironbell install` and `ironbell run` as processes, each with its own ServiceAccount's token."""

from __future__ import annotations

import contextlib
import itertools
import json
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.api.kubeapi import KubeApi, connect
from support.api.realcluster import RealCluster
from support.network.namespaces import within
from support.waiting import eventually

IRONBELL = (sys.executable, "-m", "ironbell.cli.main")
NAMESPACE = "ironbell-system"
USER_AGENT = "ironbell"
_numbers = itertools.count()
READY_S = 60.0
WIRE = "wire"
"""The word of two processes and what supervises them."""
SERVED = "health served"
_VALIDATING = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/ironbell-validate"
_REFERENCES = ".references.ironbell.dev"
FAST_LEASE = ("--lease-duration=4s", "--renew-deadline=2500ms", "--retry-period=500ms")


def ironbell(*words: str | Path, status: int = 0) -> str:
    """What a command prints."""
    done = subprocess.run([*IRONBELL, *map(str, words)], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == status, f"{done.returncode}: {done.stdout}{done.stderr}"
    return done.stdout if status == 0 else done.stderr


@dataclass
class Process:
    """One `ironbell run`."""

    kubeconfig: Path
    log: Path
    arguments: tuple[str, ...]
    namespace: str = ""
    """The network namespace to run in; empty: this one."""
    health: tuple[str, ...] = ()
    """Where it says how it is: for each of its processes."""
    _process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, or start it again; it has its port for health once it says so."""
        before = len(self.said(SERVED)) if self.log.exists() else 0
        inside = ("ip", "netns", "exec", self.namespace) if self.namespace else ()
        command = [*inside, *IRONBELL, "run", *self.arguments, "--kubeconfig", str(self.kubeconfig)]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", *command, "--health-address", "127.0.0.1:0"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        count = 2 if WIRE in self.arguments else 1
        eventually(lambda: len(self.said(SERVED)) >= before + count or not self.is_running, within_s=READY_S)
        assert self.is_running, f"ended: {self.end_of_log()}"
        self._know_health()

    def _know_health(self) -> None:
        ports = {one["process"]: one["port"] for one in self.said(SERVED)}
        self.health = tuple(f"http://127.0.0.1:{port}" for port in ports.values())

    def wait_ready(self) -> None:
        """Until it is ready; where a process of it was started again, that has another port."""
        eventually(lambda: self._know_health() or self.ready() == 200, within_s=READY_S)

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def child(self, process: str) -> int:
        """The process id of what it supervises."""
        started = [one["pid"] for one in self.said("process started") if one.get("process") == process]
        return int(started[-1])

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def ready(self) -> int:
        """The status of /readyz, which is 200 where all its processes are; 0 where nobody answers."""
        return self.get("/readyz")[0]

    def get(self, path: str) -> tuple[int, str]:
        """Status and text of the health ports: the first status that is not 200, if any, and all texts."""

        def ask() -> list[tuple[int, str]]:
            return [self._get(f"{one}{path}") for one in self.health]

        found = within(self.namespace, ask) if self.namespace else ask()
        bad = [status for status, _ in found if status != 200]
        return bad[0] if bad else 200, "".join(text for _, text in found)

    def _get(self, url: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def metric(self, family: str, /, **labels: str) -> float:
        """A counter, added up over the component's processes; zero where it is not there."""
        wanted, total = {f'{key}="{value}"' for key, value in labels.items()}, 0.0
        for line in self.get("/metrics")[1].splitlines():
            series, _, value = line.rpartition(" ")
            name, _, given = series.partition("{")
            if name == family and wanted <= set(given.rstrip("}").split(",")):
                total += float(value)
        return total

    @property
    def leads(self) -> bool:
        """Whether it holds a Lease."""
        return "leader_election_master_status" in (text := self.get("/metrics")[1]) and any(
            line.endswith(" 1.0") for line in text.splitlines() if line.startswith("leader_election_master_status{")
        )

    def said(self, event: str) -> list[dict[str, Any]]:
        """Its log's lines of one kind."""
        found = []
        for line in self.log.read_bytes().splitlines():
            with contextlib.suppress(json.JSONDecodeError):
                if (entry := json.loads(line)).get("event") == event:
                    found.append(entry)
        return found

    def stop(self, within_s: float = 20) -> int:
        """SIGTERM, and its exit status."""
        assert self._process is not None
        self._process.terminate()
        return self._process.wait(within_s)

    def kill(self) -> None:
        """kill -9."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def end_of_log(self) -> str:
        return self.log.read_text(errors="replace")[-3000:]


@dataclass
class OnCluster:
    """Ironbell on one API server."""

    folder: Path
    admin: Path
    api: KubeApi
    processes: list[Process] = field(default_factory=list)

    def token(self, account: str) -> Path:
        """A kubeconfig with a token of one ServiceAccount, asked for as kubelet does, and with nothing else."""
        path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{account}/token"
        request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": 3600},
        }
        token = self.api.made(path, request)["status"]["token"]
        config = yaml.safe_load(self.admin.read_text())
        config["users"][0]["user"] = {"token": token}
        file = self.folder / f"{account}-{next(_numbers)}.kubeconfig"
        file.touch(mode=0o600)
        file.write_text(yaml.safe_dump(config))
        return file

    def run(self, word: str, *arguments: str, name: str = "", namespace: str = "") -> Process:
        """Start a component as its Deployment's pod would, and wait until it is ready."""
        log = self.folder / f"{name or word}-{next(_numbers)}.log"
        made = Process(self.token(f"ironbell-{word}"), log, (word, *arguments), namespace)
        self.processes.append(made)
        made.start()
        made.wait_ready()
        return made

    @property
    def kubeconfig(self) -> Path:
        """For those who look on."""
        return self.admin

    def logs(self, workflow: str) -> str:
        """What `ironbell logs` prints."""
        return ironbell("logs", f"workflow/{workflow}", "--kubeconfig", self.admin)

    def end_of_log(self) -> str:
        return "\n".join(f"{process.log.name}:\n{process.end_of_log()}" for process in self.processes[-5:])

    def stop(self) -> None:
        """End everything that runs."""
        for process in self.processes:
            if process.is_running:
                process.stop()

    def refused(self) -> list[str]:
        """What our processes asked for and were not allowed, as the server's audit log says."""
        users = f"system:serviceaccount:{NAMESPACE}:"
        return [
            f"{event['user']['username'].removeprefix(users)}: {event['verb']} {event['requestURI']}"
            for event in _audit(self.folder)
            if event["user"]["username"].startswith(users)
            and event.get("userAgent") == USER_AGENT  # tests ask for what must be refused
            and event.get("responseStatus", {}).get("code") == 403
        ]


def _audit(folder: Path) -> list[Mapping[str, Any]]:
    log = folder / "audit.log"
    lines = log.read_bytes().splitlines() if log.exists() else []
    return [json.loads(line) for line in lines if line.endswith(b"}")]


@contextmanager
def unchecked_references(cluster: OnCluster) -> Iterator[None]:
    """Nobody asks whether references into other namespaces and addresses of BMCs may be set while the block runs. No
    API server outside a cluster reaches the Service that would answer, and these questions must be answered."""
    found = cluster.api.get(_VALIDATING).json
    found["webhooks"] = [one for one in found["webhooks"] if not one["name"].endswith(_REFERENCES)]
    assert cluster.api.put(_VALIDATING, found).status == 200
    try:
        yield
    finally:
        ironbell("install", "--kubeconfig", cluster.admin)


@contextmanager
def installed(cluster: RealCluster) -> Iterator[OnCluster]:
    """Ironbell on a real API server; ends the processes, and fails where one of them asked for more than its role."""
    admin = cluster.kubeconfig()
    made = OnCluster(cluster.folder, admin, connect("real", admin))
    ironbell("install", "--kubeconfig", admin)
    try:
        yield made
        made.stop()
        assert made.refused() == []
    finally:
        for process in made.processes:
            process.kill()


@pytest.fixture(scope="module")
def on_cluster(real_cluster: RealCluster) -> Iterator[OnCluster]:
    """Ironbell on the real API server of this run."""
    with installed(real_cluster) as made:
        yield made
