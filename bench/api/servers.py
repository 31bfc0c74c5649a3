"""The two servers that are compared: ours in a process of its own, and kube-apiserver with etcd. Both durable."""

from __future__ import annotations

import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, Protocol

from wire import Connection, Endpoint, trust

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from ironbell.api.crd.document import crd_document
from ironbell.apiserver.access.pki import Authority
from ironbell.app.registry import KINDS
from ironbell.base.clock import SystemClock
from support.api.realcluster import RealCluster

_SERVE = Path(__file__).with_name("serve.py")
_POLL_S = 0.005
_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class Server(Protocol):
    """A server that can be started, held and ended."""

    name: str

    def start(self) -> float:
        """Start it, and give the seconds until it was ready."""
        ...

    def endpoint(self) -> Endpoint: ...

    def pids(self) -> dict[str, int]:
        """Its processes, the one that answers clients first."""
        ...

    def stop(self) -> None: ...


class Ours:
    """The embedded API alone, as `ironbell up` serves it, with compiled modules, as an installation leaves them."""

    name = "ironbell"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> float:
        self._folder.mkdir(parents=True, exist_ok=True)
        started = time.perf_counter()
        command = [sys.executable, str(_SERVE), str(self._folder), str(self._port)]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=log, stderr=log, env=_installed(self._folder.parent)
            )
        wait_ready(self._port, self._process)
        return time.perf_counter() - started

    def endpoint(self) -> Endpoint:
        return endpoint(self._folder / "pki", self._port)

    def pids(self) -> dict[str, int]:
        assert self._process is not None
        return {"ironbell": self._process.pid}

    def stop(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)
            self._process.terminate()
            self._process.wait(30)
            self._process = None


class Real:
    """kube-apiserver and etcd, with RBAC, without audit."""

    name = "kube-apiserver"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._cluster = RealCluster(folder, durable=True, has_controllers=False)

    def start(self) -> float:
        started = time.perf_counter()
        self._cluster.start()
        return time.perf_counter() - started

    def endpoint(self) -> Endpoint:
        return endpoint(self._folder / "pki", int(self._cluster.server.rpartition(":")[2]))

    def pids(self) -> dict[str, int]:
        return {name: self._cluster.pid(name) for name in ("kube-apiserver", "etcd")}

    def stop(self) -> None:
        for pid in self.pids().values():
            os.kill(pid, signal.SIGCONT)
        self._cluster.stop()


def _installed(folder: Path) -> dict[str, str]:
    """The environment of a program whose modules are compiled once, into a folder that goes away with the others."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return kept | {"PYTHONPYCACHEPREFIX": str(folder / "compiled")}


def free_port() -> int:
    """A port that is free now."""
    with socket.create_server(("127.0.0.1", 0)) as sock:
        return int(sock.getsockname()[1])


def endpoint(pki: Path, port: int) -> Endpoint:
    """The server at a port, asked by the administrator that its authority vouches for."""
    authority = Authority(pki, SystemClock())
    pair = authority.client("bench", ["system:masters"])
    return Endpoint("127.0.0.1", port, trust(authority.certificate_path, pair.certificate, pair.key))


def wait_ready(port: int, process: subprocess.Popen[bytes]) -> None:
    """Wait until `/readyz` says so; whoever the server is, nothing secret is sent to it."""
    anybody = ssl.create_default_context()
    anybody.check_hostname = False
    anybody.verify_mode = ssl.CERT_NONE
    deadline = time.perf_counter() + 60
    while time.perf_counter() < deadline:
        try:
            with urllib.request.urlopen(f"https://127.0.0.1:{port}/readyz", context=anybody, timeout=10):
                return
        except (urllib.error.URLError, OSError):
            if process.poll() is not None:
                raise SystemExit("our server ended: see its log") from None
            time.sleep(_POLL_S)
    raise SystemExit("our server is not ready after 60 s")


def hold(server: Server) -> None:
    """Let a server do nothing, so that the other one is measured alone."""
    for pid in server.pids().values():
        os.kill(pid, signal.SIGSTOP)


def release(server: Server) -> None:
    for pid in server.pids().values():
        os.kill(pid, signal.SIGCONT)


def install(server: Server, more: list[dict[str, Any]]) -> int:
    """Install our definitions and `more` where they are not yet, wait until all are served, and give their number."""
    where = server.endpoint()
    connection = Connection(where)
    try:
        connection.call(where.request("GET", _CRDS))
        there = {item["metadata"]["name"] for item in _decoded(connection)["items"]}
        for crd in [*(crd_document(kind) for kind in KINDS), *more]:
            if crd["metadata"]["name"] not in there:
                connection.call(where.request("POST", _CRDS, json.dumps(crd).encode()), expect=201)
                there.add(crd["metadata"]["name"])
        deadline = time.perf_counter() + 60
        while time.perf_counter() < deadline:
            connection.call(where.request("GET", _CRDS))
            if all(map(_is_established, _decoded(connection)["items"])):
                return len(there)
            time.sleep(0.1)
        raise SystemExit(f"{server.name}: definitions are not served after 60 s")
    finally:
        connection.close()


def _is_established(crd: dict[str, Any]) -> bool:
    conditions = crd.get("status", {}).get("conditions") or ()
    return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)


def _decoded(connection: Connection) -> Any:
    head, _, body = bytes(connection.received).partition(b"\r\n\r\n")
    if b"chunked" in head:
        whole, rest = b"", body
        while rest:
            size, _, rest = rest.partition(b"\r\n")
            length = int(size, 16)
            whole, rest = whole + rest[:length], rest[length + 2 :]
        body = whole
    return json.loads(body)


def resident_mib(pid: int) -> float:
    """Resident memory of a process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


def processor_s(pid: int) -> float:
    """Processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
