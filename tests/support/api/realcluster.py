"""A real Kubernetes control plane for tests, all on loopback: etcd, kube-apiserver, and the parts of
kube-controller-manager that complete it (garbage collection, namespaces, service accounts, aggregated roles, signing).

Authorisation is RBAC, and every request is in the audit log, so that a test can say that nobody asked for what its role
does not give.
"""

from __future__ import annotations

import json
import os
import ssl
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from ironbell.apiserver.access.kubeconfig import Credentials, kubeconfig, write_kubeconfig
from ironbell.apiserver.access.pki import Authority
from ironbell.base.clock import SystemClock
from support.ports import free_ports
from support.programs.catalog import build_program
from support.programs.gobuild import CannotBuild
from support.skips import missing_program
from support.waiting import eventually

START_TIMEOUT_S = 90
STOP_TIMEOUT_S = 20
CONTROLLERS = (
    "garbage-collector-controller",
    "namespace-controller",
    "serviceaccount-controller",
    "root-ca-certificate-publisher-controller",
    "serviceaccount-token-controller",
    "clusterrole-aggregation-controller",
    "certificatesigningrequest-signing-controller",
    "certificatesigningrequest-approving-controller",
)
_AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived", "ResponseStarted"],
    "rules": [{"level": "Metadata"}],
}


@dataclass
class RealCluster:
    """One control plane in one folder. Ports are taken from the kernel; `stop` leaves no process."""

    folder: Path
    durable: bool = False
    """Whether etcd syncs its writes to disk: for benchmarks. Tests do without."""
    has_controllers: bool = True
    more_arguments: tuple[str, ...] = ()
    """Further arguments of kube-apiserver."""
    server: str = ""
    _processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def start(self) -> None:
        """Start everything, and wait until it is ready.

        Raises:
            CannotBuild: a component is not there and cannot be built.
            TimeoutError: with the end of the log of what did not start.
        """
        names = ["etcd", "kube-apiserver", *(["kube-controller-manager"] if self.has_controllers else [])]
        programs = {name: build_program(name) for name in names}
        self.folder.mkdir(parents=True, exist_ok=True)
        self._authority = Authority(self.folder / "pki", SystemClock())
        self._pair = self._authority.server(["127.0.0.1", "localhost", "kubernetes.default.svc", "10.0.0.1"])
        client, peer, secure = free_ports(3)
        self.server = f"https://127.0.0.1:{secure}"
        self._start(programs["etcd"], *self._etcd(client, peer))
        self._start(programs["kube-apiserver"], *self._apiserver(client, secure))
        self._wait("kube-apiserver", f"{self.server}/readyz")
        if self.has_controllers:
            manager_port = free_ports(1)[0]
            self._start(programs["kube-controller-manager"], *self._manager(manager_port))
            self._wait("kube-controller-manager", f"https://127.0.0.1:{manager_port}/healthz")

    def stop(self) -> None:
        """End all processes, those that depend on others first: kube-apiserver does not end without its etcd."""
        for process in reversed(self._processes.values()):
            process.terminate()
            try:
                process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._processes.clear()

    def pid(self, name: str) -> int:
        """The process id of a component, for measuring it."""
        return self._processes[name].pid

    def kubeconfig(self, user: str = "admin", groups: tuple[str, ...] = ("system:masters",)) -> Path:
        """A kubeconfig with a client certificate for this user."""
        pair = self._authority.client(user, groups)
        content = kubeconfig(
            server=self.server,
            authority_pem=self._authority.certificate_pem,
            user=user,
            credentials=Credentials(certificate=pair),
            name="real",
        )
        return write_kubeconfig(self.folder / f"{user.replace(':', '-')}.kubeconfig", content)

    def audit(self) -> list[dict[str, Any]]:
        """All requests so far, as audit.k8s.io/v1 events."""
        lines = (self.folder / "audit.log").read_bytes().splitlines()
        return [json.loads(line) for line in lines if line.endswith(b"}")]

    def _etcd(self, client: int, peer: int) -> list[str]:
        arguments = [
            f"--data-dir={self.folder / 'etcd'}",
            f"--listen-client-urls=http://127.0.0.1:{client}",
            f"--advertise-client-urls=http://127.0.0.1:{client}",
            f"--listen-peer-urls=http://127.0.0.1:{peer}",
            f"--initial-advertise-peer-urls=http://127.0.0.1:{peer}",
            f"--initial-cluster=default=http://127.0.0.1:{peer}",
            "--log-level=warn",
        ]
        return arguments if self.durable else [*arguments, "--unsafe-no-fsync"]

    def _apiserver(self, etcd: int, port: int) -> list[str]:
        policy = self.folder / "audit-policy.json"
        policy.write_text(json.dumps(_AUDIT_POLICY))
        key = self._pair.key
        arguments = [
            f"--etcd-servers=http://127.0.0.1:{etcd}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--secure-port={port}",
            f"--tls-cert-file={self._pair.certificate}",
            f"--tls-private-key-file={key}",
            f"--client-ca-file={self._authority.certificate_path}",
            "--authorization-mode=RBAC",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={self._pair.certificate}",
            f"--service-account-signing-key-file={key}",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--allow-privileged=true",
            "--endpoint-reconciler-type=none",
        ]
        if not self.durable:
            arguments += [f"--audit-policy-file={policy}", f"--audit-log-path={self.folder / 'audit.log'}"]
        return [*arguments, *self.more_arguments]

    def _manager(self, port: int) -> list[str]:
        configuration = self.kubeconfig("system:kube-controller-manager", ())
        authority = self._authority.certificate_path
        return [
            f"--kubeconfig={configuration}",
            f"--authentication-kubeconfig={configuration}",
            f"--authorization-kubeconfig={configuration}",
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            f"--service-account-private-key-file={self._pair.key}",
            f"--root-ca-file={authority}",
            f"--cluster-signing-cert-file={authority}",
            f"--cluster-signing-key-file={self.folder / 'pki' / 'ca.key'}",
            "--use-service-account-credentials=true",
            "--leader-elect=false",
            f"--controllers={','.join(CONTROLLERS)}",
        ]

    def _start(self, program: Path, *arguments: str) -> None:
        # Whatever ends this process also ends its children: nothing is left behind by a test run that was killed.
        command = ["setpriv", "--pdeathsig", "KILL", str(program), *arguments]
        with (self.folder / f"{program.name}.log").open("ab") as log:
            self._processes[program.name] = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env={"PATH": os.environ.get("PATH", "")}
            )

    def _wait(self, name: str, url: str) -> None:
        trust = ssl.create_default_context(cafile=str(self._authority.certificate_path))
        trust.check_hostname = False
        if name != "kube-apiserver":
            trust.verify_mode = ssl.CERT_NONE  # the manager signs its certificate itself

        def answers() -> bool:
            for other, process in self._processes.items():
                if process.poll() is not None:
                    pytest.fail(f"{other} ended: {self._end_of_log(other)}")
            with urllib.request.urlopen(url, context=trust, timeout=5):
                return True

        eventually(
            answers,
            f"{name} is ready",
            within_s=START_TIMEOUT_S,
            ignored=(OSError,),
            seen=lambda: self._end_of_log(name),
        )

    def _end_of_log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(errors="replace")[-1500:]


@pytest.fixture(scope="session")
def real_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCluster]:
    """A real control plane for all tests of the run; the test is skipped where its components cannot be built."""
    cluster = RealCluster(tmp_path_factory.mktemp("real-cluster"))
    try:
        cluster.start()
        yield cluster
    except CannotBuild as error:
        missing_program(f"real Kubernetes: {error}")
    finally:
        cluster.stop()
