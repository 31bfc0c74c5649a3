"""TFTP: throughput against tftpd-hpa and dnsmasq, one file, the same clients.

    sudo python bench/tftp.py [--megabytes 16] [--parallel 50] [--rounds 3]

Everything happens on the loopback of a network namespace of its own. Three loads: one transfer in lock-step with
blocks of 1468 bytes (client: curl), one with windowsize 16 asked for (client: this project's `Download`; servers that
do not know windowsize answer in lock-step, which is the point), and many transfers at once (curl). Rounds alternate
between the servers; the best round counts.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import uvloop

MB = 1_000_000
BLOCK = 1468
URL = "tftp://127.0.0.1/file"


def main() -> None:
    arguments = parse()
    if arguments.role == "server":
        uvloop.run(serve(Path(arguments.folder)))
    elif arguments.role == "client":
        print(window_client())
    elif os.environ.get("IRONBELL_BENCH_NAMESPACE"):
        compare(arguments)
    else:
        with namespace() as name:
            environment = {**os.environ, "IRONBELL_BENCH_NAMESPACE": name}
            subprocess.run(["ip", "netns", "exec", name, sys.executable, *sys.argv], env=environment, check=True)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=16)
    parser.add_argument("--parallel", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--role", choices=["compare", "server", "client"], default="compare", help=argparse.SUPPRESS)
    parser.add_argument("--folder", default="", help=argparse.SUPPRESS)
    return parser.parse_args()


@contextmanager
def namespace() -> Iterator[str]:
    name = f"ibbench{os.getpid()}"
    subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        subprocess.run(["ip", "-n", name, "link", "set", "lo", "up"], check=True)
        # As on a wire: with loopback's own 64 KiB frames a server may choose blocks that no network carries.
        subprocess.run(["ip", "-n", name, "link", "set", "lo", "mtu", "1500"], check=True)
        yield name
    finally:
        subprocess.run(["ip", "netns", "del", name], check=True)


def compare(arguments: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        folder.chmod(0o755)
        (folder / "file").write_bytes(os.urandom(arguments.megabytes * MB))
        (folder / "small").write_bytes(os.urandom(MB))
        servers = commands(folder)
        loads: dict[str, Callable[[], float]] = {
            f"one transfer, blocks of {BLOCK}": lambda: curl_one(arguments.megabytes * MB),
            "one transfer, windowsize 16": window_transfer,
            f"{arguments.parallel} transfers of 1 MB": lambda: curl_many(arguments.parallel),
        }
        for load, run in loads.items():
            best = dict.fromkeys(servers, (0.0, 0.0))
            for _ in range(arguments.rounds):
                for name, command in servers.items():
                    best[name] = max(best[name], measure(command, run))
            report(load, best)


def report(load: str, best: dict[str, tuple[float, float]]) -> None:
    print(load)
    for name, (rate, cpu) in best.items():
        # A server that forks for each transfer and does not wait for its children shows no CPU time.
        print(f"  {name:10} {rate / MB:8.1f} MB/s  {f'{cpu * 1000:6.1f} ms CPU per MB' if cpu else ''}")
    for name in best:
        if name != "ironbell":
            print(f"  ratio      {best['ironbell'][0] / best[name][0]:8.2f} x {name}")


def commands(folder: Path) -> dict[str, list[str]]:
    found = {"ironbell": [sys.executable, __file__, "--role", "server", "--folder", str(folder)]}
    if shutil.which("in.tftpd"):
        found["tftpd-hpa"] = ["in.tftpd", "-4", "-L", "--user", "root", "-s", str(folder)]
    if shutil.which("dnsmasq"):
        found["dnsmasq"] = [
            "dnsmasq", "--keep-in-foreground", "--port=0", "--conf-file=/dev/null", "--pid-file=", "--user=root",
            "--enable-tftp", f"--tftp-root={folder}", "--tftp-max=1000", "--log-facility=/dev/null",
        ]  # fmt: skip
    return found


def measure(command: list[str], run: Callable[[], float]) -> tuple[float, float]:
    """Bytes per second, and the server's CPU seconds per megabyte (with its children's)."""
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until_served()
        before = cpu_seconds(server.pid)
        started = time.monotonic()
        size = run()
        seconds = time.monotonic() - started
        return size / seconds, (cpu_seconds(server.pid) - before) / (size / MB)
    finally:
        server.terminate()
        server.wait()


def until_served() -> None:
    for _ in range(100):
        command = ["curl", "-s", "-o", "/dev/null", "--connect-timeout", "1", "tftp://127.0.0.1/missing"]
        if subprocess.run(command, check=False).returncode == 68:
            return
        time.sleep(0.1)
    raise SystemExit("the server does not answer")


def cpu_seconds(pid: int) -> float:
    """User and system time of a process and of its children that have ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(int(field) for field in fields[11:15]) / os.sysconf("SC_CLK_TCK")


def curl_one(size: int) -> float:
    command = ["curl", "-sS", "-o", "/dev/null", "--tftp-blksize", str(BLOCK), URL]
    subprocess.run(command, check=True)
    return float(size)


def curl_many(count: int) -> float:
    words = [
        "curl",
        "--no-progress-meter",
        "-Z",
        "--parallel-immediate",
        "--parallel-max",
        str(count),
        "--tftp-blksize",
        str(BLOCK),
    ]
    for _ in range(count):
        words += ["-o", "/dev/null", "tftp://127.0.0.1/small"]
    subprocess.run(words, check=True)
    return float(count * MB)


def window_transfer() -> float:
    command = [sys.executable, __file__, "--role", "client"]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def window_client() -> int:
    """Fetch the file with windowsize 16; its size."""
    from ironbell.lab.tftpclient import fetch

    return len(fetch("127.0.0.1", "file", options={"blksize": str(BLOCK), "windowsize": "16", "tsize": "0"}))


async def serve(folder: Path) -> None:
    """The product's server, files from memory as in production."""
    import logging

    import structlog

    from ironbell.services.tftp import TftpServer, open_tftp_socket

    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    files = {entry.name: entry.read_bytes() for entry in folder.iterdir()}

    async def fetch(path: str, client: str) -> bytes | None:
        del client
        return files.get(path)

    await TftpServer(open_tftp_socket(), fetch=fetch).run()


if __name__ == "__main__":
    main()
