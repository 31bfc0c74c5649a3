"""HTTP artefacts: the boot service against nginx, the same files, the same client (curl).

    python bench/http_artefacts.py [--megabytes 512] [--requests 4000] [--rounds 3]

On the loopback. Both servers are one process, send files by `sendfile` and write no access log. Four loads: one big
file (an image), eight machines fetching it at once, many small files over kept connections, and ranges of one
megabyte. Rounds alternate between the servers; the best round of each counts, since whatever else runs only slows.
CPU is the server process's own, user and system.
"""

from __future__ import annotations

import argparse
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import uvloop

MB = 1_000_000
PARALLEL = 8
NGINX = """
daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log /dev/null; user root;
events {{ worker_connections 1024; }}
http {{
  access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000;
  client_body_temp_path {folder}/t1; proxy_temp_path {folder}/t2; fastcgi_temp_path {folder}/t3;
  uwsgi_temp_path {folder}/t4; scgi_temp_path {folder}/t5;
  server {{ listen 127.0.0.1:{port}; location /osie/ {{ alias {files}/; }} }}
}}
"""


@dataclass(frozen=True)
class Load:
    """What is asked for. `amount` is bytes, or requests where the unit says so."""

    name: str
    words: tuple[str, ...]
    amount: float
    unit: str


def main() -> None:
    arguments = parse()
    if arguments.role == "server":
        uvloop.run(serve(Path(arguments.folder), arguments.port))
    else:
        compare(arguments)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=512)
    parser.add_argument("--requests", type=int, default=4000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--role", choices=["compare", "server"], default="compare", help=argparse.SUPPRESS)
    parser.add_argument("--folder", default="", help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, default=0, help=argparse.SUPPRESS)
    return parser.parse_args()


def loads(arguments: argparse.Namespace, base: str) -> list[Load]:
    big, size, count = f"{base}/big", float(arguments.megabytes * MB), arguments.requests
    many = ("-Z", "--parallel-immediate", "--parallel-max", str(PARALLEL))
    return [
        Load("one big file", (big,), size / MB, "MB/s"),
        Load(f"{PARALLEL} big files at once", (*many, f"{big}?[1-{PARALLEL}]"), PARALLEL * size / MB, "MB/s"),
        Load("small files", (*many, f"{base}/small?[1-{count}]"), count, "requests/s"),
        Load("ranges of 1 MB", (*many, "-r", f"{MB}-{2 * MB - 1}", f"{big}?[1-{count // 4}]"), count / 4, "requests/s"),
    ]


def compare(arguments: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        folder.chmod(0o755)
        files = folder / "files"
        files.mkdir()
        with (files / "big").open("wb") as big:
            for _ in range(arguments.megabytes):
                big.write(os.urandom(MB))
        (files / "small").write_bytes(os.urandom(2000))
        best: dict[tuple[str, str], tuple[float, float]] = {}
        names = [load.name for load in loads(arguments, "")]
        servers = commands(folder, files)
        for _ in range(arguments.rounds):
            for name, (command, port) in servers.items():
                rates = measure(command, port, loads(arguments, f"http://127.0.0.1:{port}/osie"))
                for load, rate in rates.items():
                    best[load, name] = max(best.get((load, name), (0.0, 0.0)), rate)
        report(names, list(servers), best, loads(arguments, ""))


def report(
    names: list[str], servers: list[str], best: dict[tuple[str, str], tuple[float, float]], shown: list[Load]
) -> None:
    units = {load.name: load.unit for load in shown}
    for name in names:
        print(name)
        for server in servers:
            rate, cpu_s = best[name, server]
            print(f"  {server:10} {rate:10.0f} {units[name]:12} {cpu_s:6.2f} s CPU of the server")
        if "nginx" in servers:
            print(f"  ratio      {best[name, 'ironbell'][0] / best[name, 'nginx'][0]:10.2f} x nginx")


def commands(folder: Path, files: Path) -> dict[str, tuple[list[str], int]]:
    ours, theirs = free_port(), free_port()
    words = [sys.executable, __file__, "--role", "server", "--folder", str(files), "--port", str(ours)]
    found = {"ironbell": (words, ours)}
    if shutil.which("nginx"):
        file = folder / "nginx.conf"
        file.write_text(NGINX.format(folder=folder, files=files, port=theirs))
        found["nginx"] = (["nginx", "-e", "/dev/null", "-c", str(file)], theirs)
    return found


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        return int(sock.getsockname()[1])


def measure(command: list[str], port: int, wanted: list[Load]) -> dict[str, tuple[float, float]]:
    """Rate and CPU seconds of the server, by load."""
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until(lambda: answers(port))
        found = {}
        for load in wanted:
            before, started = cpu_seconds(server.pid), time.monotonic()
            subprocess.run(["curl", "-fsS", "--no-progress-meter", *load.words, "-o", "/dev/null"], check=True)
            seconds = time.monotonic() - started
            found[load.name] = (load.amount / seconds, cpu_seconds(server.pid) - before)
        return found
    finally:
        server.terminate()
        server.wait()


def answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def until(holds: Callable[[], bool]) -> None:
    for _ in range(200):
        if holds():
            return
        time.sleep(0.05)
    raise SystemExit("the server does not answer")


def cpu_seconds(pid: int) -> float:
    """User and system time of a process and of its living children (nginx works in one)."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    total = 0
    for one in (pid, *map(int, children)):
        fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


async def serve(folder: Path, port: int) -> None:
    """The product's handlers, run as the process `wire` runs them."""
    import asyncio

    from aiohttp import web

    from ironbell.contract.servers.directory import HardwareDirectory
    from ironbell.contract.servers.netboot import NetbootSettings
    from ironbell.services.boot.binaries import IpxeBinaries
    from ironbell.services.boot.http import BootHttp

    settings = NetbootSettings(osie_url="http://{address}/osie", grpc_authority="{address}:42113")
    boot = BootHttp(HardwareDirectory(), lambda: settings, IpxeBinaries(()), {"osie": folder})
    application = web.Application()
    application.add_routes(boot.routes())
    runner = web.AppRunner(application, access_log=None, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    await asyncio.Event().wait()


if __name__ == "__main__":
    main()
