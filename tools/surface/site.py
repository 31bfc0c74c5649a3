"""A running site of a checkout on the loopback network: `ironbell up`, its API, and `ironbell run` beside it."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

import urllib3
import yaml

from surface.checkout import Checkout, CheckoutError

START_S = 120.0
STOP_S = 30.0
SETTLED_S = 60.0
QUIET_S = 3.0
"""A site has settled when nothing has changed for so long."""


@dataclass(frozen=True)
class Site:
    """A site, and its administrator's access to it."""

    checkout: Checkout
    folder: Path
    server: str
    pool: urllib3.PoolManager
    ports: dict[str, int]
    """Those of the servers toward machines, by the name of their option."""

    @property
    def kubeconfig(self) -> Path:
        return self.folder / "data" / "kubeconfig"

    def request(self, path: str, *, body: Any = None, **headers: str) -> bytes:
        """The answer of the API to a GET, or to a POST where there is a body; `_` in a header's name stands for `-`.

        Raises:
            CheckoutError: the API rejects it or does not answer.
        """
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        content = None if body is None else json.dumps(body).encode()
        if content is not None:
            named["Content-Type"] = "application/json"
        try:
            answer = self.pool.request(
                "GET" if content is None else "POST", f"{self.server}{path}", body=content, headers=named, timeout=30.0
            )
        except urllib3.exceptions.HTTPError as error:
            raise CheckoutError(f"{self.server}{path}: {error}") from error
        if answer.status >= 300:
            raise CheckoutError(f"{self.server}{path}: {answer.status} {answer.data[:500]!r}")
        return answer.data

    def get(self, path: str, **headers: str) -> Any:
        """The same as a JSON value."""
        return json.loads(self.request(path, **headers))

    def metrics(self) -> str:
        """What the process of the API exposes."""
        return self.request("/metrics").decode()

    def items(self, path: str) -> list[Any]:
        """The objects of a collection by namespace and name; none if it is not served."""
        answer = self.pool.request("GET", f"{self.server}{path}", timeout=30.0)
        if answer.status == 404:
            return []
        found: list[Any] = json.loads(answer.data)["items"]
        return sorted(found, key=lambda item: (item["metadata"].get("namespace", ""), item["metadata"]["name"]))

    @contextmanager
    def running(self, *components: str, processes: int = 1, arguments: Sequence[str] = ()) -> Iterator[list[int]]:
        """`ironbell run` of these components, in so many processes, against the site; yields their health ports.

        Raises:
            CheckoutError: it is not ready in time.
        """
        first = free_ports(1, following=processes)[0]
        ports = list(range(first, first + processes))
        health = f"127.0.0.1:{first}"
        words = ["run", *components, "--kubeconfig", str(self.kubeconfig), "--health-address", health, *arguments]
        log = self.folder / f"run-{components[0]}.log"
        with _process(self.checkout, words, log) as process:

            def is_ready() -> bool:
                if process.poll() is not None:
                    raise CheckoutError(f"ironbell {' '.join(words)} ended: {_end_of(log)}")
                return all(_is_ready(port) for port in ports)

            _wait(is_ready, START_S, f"ironbell {' '.join(words)} is not ready", log)
            yield ports


@contextmanager
def site(checkout: Checkout, *arguments: str, servers: bool = False) -> Iterator[Site]:
    """Start a site in a temporary folder, and end it afterwards; with `servers`, its servers toward machines get ports.

    Raises:
        CheckoutError: it does not start in time.
    """
    with tempfile.TemporaryDirectory(prefix="surface-site-") as name:
        folder = Path(name)
        names = ("http-port", "grpc-port", "workflow-http-port") if servers else ()
        ports = dict(zip(names, free_ports(len(names)), strict=True))
        words = ["up", "--data-dir", str(folder / "data"), *arguments]
        words += [word for option, port in ports.items() for word in (f"--{option}", str(port))]
        log = folder / "up.log"
        with _process(checkout, words, log) as process:
            _await_ready(process, log)
            yield Site(checkout, folder, *_access(folder), ports)


def settled(look: Callable[[], dict[str, str]]) -> dict[str, str]:
    """What `look` returns once it has returned the same for a while: a site that has started still creates objects.

    Raises:
        CheckoutError: it does not settle.
    """
    deadline = time.monotonic() + SETTLED_S
    before, since = look(), time.monotonic()
    while time.monotonic() - since < QUIET_S:
        if time.monotonic() > deadline:
            raise CheckoutError(f"the site has not settled after {SETTLED_S:.0f} s")
        time.sleep(0.5)
        if (now := look()) != before:
            before, since = now, time.monotonic()
    return before


def free_ports(count: int, *, following: int = 1) -> list[int]:
    """Free TCP ports, each the first of so many free ones."""
    found: list[int] = []
    while len(found) < count:
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
            first = stack.enter_context(socket.socket())
            first.bind(("127.0.0.1", 0))
            port = int(first.getsockname()[1])
            for number in range(1, following):
                stack.enter_context(socket.socket()).bind(("127.0.0.1", port + number))
            if port not in found:
                found.append(port)
    return found


@contextmanager
def _process(checkout: Checkout, words: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("ab") as stderr:
        process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", *checkout.command, *words],
            cwd="/",
            env=checkout.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.communicate(timeout=STOP_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


def _is_ready(port: int) -> bool:
    try:
        answer = urllib3.request("GET", f"http://127.0.0.1:{port}/readyz", timeout=5.0, retries=False)
    except urllib3.exceptions.HTTPError:
        return False
    return answer.status == 200


def _await_ready(process: subprocess.Popen[bytes], log: Path) -> None:
    stdout = cast("IO[bytes]", process.stdout)
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        readable, _, _ = select.select([stdout], [], [], 1.0)
        line = stdout.readline() if readable else b""
        if line.startswith(b"ready"):
            return
        if readable and not line:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(STOP_S)
            break
    status = "" if process.poll() is None else f", and ended with status {process.returncode}"
    raise CheckoutError(f"ironbell up is not ready{status}: {_end_of(log)}")


def _access(folder: Path) -> tuple[str, urllib3.PoolManager]:
    config = yaml.safe_load((folder / "data" / "kubeconfig").read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    files: dict[str, Any] = {}
    for name, value in (
        ("ca_certs", cluster["certificate-authority-data"]),
        ("cert_file", user["client-certificate-data"]),
        ("key_file", user["client-key-data"]),
    ):
        path = folder / f"{name}.pem"
        path.touch(mode=0o600)
        path.write_bytes(base64.b64decode(value))
        files[name] = str(path)
    return str(cluster["server"]), urllib3.PoolManager(maxsize=4, retries=False, **files)


def _wait(condition: Callable[[], bool], timeout_s: float, problem: str, log: Path) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise CheckoutError(f"{problem}: {_end_of(log)}")
        time.sleep(0.2)


def _end_of(log: Path) -> str:
    return log.read_text()[-1500:]
