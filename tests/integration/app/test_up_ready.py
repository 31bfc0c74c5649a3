"""`ready` means that everything that was requested is being served; what is not is an error or a warning before it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.ports import free_port
from support.site.up import UP
from support.skips import require_program, require_root

ADDRESS = "127.0.0.1"


def failed(*options: str, prefix: tuple[str, ...] = ()) -> str:
    """What `up` prints when it cannot start: nothing on standard output, and one line at the end of its log."""
    done = subprocess.run([*prefix, *UP, *options], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (1, ""), done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr.splitlines()[-1]


@pytest.fixture
def taken() -> Iterator[int]:
    """A port of this machine that somebody else has."""
    with socket.socket() as holder:
        holder.bind((ADDRESS, 0))
        holder.listen()
        yield holder.getsockname()[1]


@pytest.mark.parametrize(
    ("option", "service", "where", "remedy"),
    [
        ("--http-port", "HTTP", ADDRESS, "choose another port with --http-port"),
        ("--grpc-port", "gRPC", ADDRESS, "choose another port with --grpc-port"),
        (
            "--workflow-http-port",
            "health of the workflow service",
            ADDRESS,
            "choose another port with --workflow-http-port",
        ),
        ("--api-port", "the Kubernetes API", ADDRESS, "choose another port with --api-port"),
    ],
)
def test_a_taken_port_is_an_error_that_names_who_has_it(
    tmp_path: Path, taken: int, option: str, service: str, where: str, remedy: str
) -> None:
    ports = {"--http-port": "0", "--grpc-port": "0", "--api-port": "0", option: str(taken)}
    words = [word for pair in ports.items() for word in pair]
    mine = Path("/proc/self/comm").read_text().strip()
    assert failed("--data-dir", str(tmp_path / "a"), "--simulate", "1", *words) == (
        f"ironbell: Cannot serve {service} on port {taken} of {where}: port {taken} is in use by {mine} "
        f"(process {os.getpid()}). Stop it, or {remedy}."
    )


def test_servers_and_machines_are_served_on_ready(tmp_path: Path) -> None:
    port = free_port(ADDRESS)
    options = ("--data-dir", str(tmp_path / "a"), "--simulate", "2", "--http-port", str(port), "--grpc-port", "0")
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen([*UP, *options], stdout=subprocess.PIPE, stderr=log, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("ready ")
        with urllib.request.urlopen(f"http://{ADDRESS}:{port}/readyz", timeout=5) as answer:
            assert answer.read() == b"ok"
        get = [sys.executable, "-m", "ironbell.cli.main", "get", "hardware", "-o", "name"]
        found = subprocess.run(
            [*get, "--kubeconfig", str(tmp_path / "a" / "kubeconfig")], capture_output=True, text=True, check=False
        )
        assert found.returncode == 0, found.stderr
        assert found.stdout.splitlines() == ["hardware.tinkerbell.org/sim-0001", "hardware.tinkerbell.org/sim-0002"]
    finally:
        process.terminate()
        process.communicate(timeout=20)


@pytest.fixture
def namespace() -> Iterator[tuple[str, ...]]:
    """A command that runs another in a network namespace with the interfaces `eno2`, 192.0.2.1/24, and `eno3`."""
    require_root()
    require_program("ip")
    name = f"ib-ready-{os.getpid()}"
    subprocess.run(["ip", "netns", "add", name], check=True)
    for words in (
        "link set lo up",
        "link add eno2 type bridge",
        "link add eno3 type bridge",
        "address add 192.0.2.1/24 dev eno2",
        "link set eno2 up",
        "link set eno3 up",
    ):
        subprocess.run(["ip", "-n", name, *words.split()], check=True)
    yield ("ip", "netns", "exec", name)
    subprocess.run(["ip", "netns", "delete", name], check=True)


@pytest.mark.root
def test_an_interface_or_folder_that_does_not_exist_is_an_error(tmp_path: Path, namespace: tuple[str, ...]) -> None:
    site = ("--data-dir", str(tmp_path / "a"))
    assert failed(*site, "--interface", "eno9", prefix=namespace) == (
        'ironbell: --interface: this machine has no interface "eno9"; it has: eno2, eno3, lo'
    )
    folder = tmp_path / "osie"
    assert failed(*site, "--interface", "eno2", "--osie-dir", str(folder), prefix=namespace) == (
        f'ironbell: --osie-dir: folder "{folder}" does not exist; `ironbell osie build --output {folder}` builds the '
        "in-memory OS there"
    )


@pytest.mark.root
@pytest.mark.parametrize(
    ("interface", "osie", "expected"),
    [
        ("eno2", None, ["Servers get no in-memory OS, so none can be installed or wiped: neither --osie-dir nor"]),
        ("eno2", (), ['Servers get no in-memory OS, so none can be installed or wiped: folder "']),
        ("eno3", ("vmlinuz-x86_64", "initramfs-x86_64"), ['Interface "eno3" has no IPv4 address, so servers get no']),
        ("eno2", ("vmlinuz-x86_64", "initramfs-x86_64"), []),
    ],
)
def test_what_servers_will_not_get_is_a_warning_before_ready(
    tmp_path: Path, namespace: tuple[str, ...], interface: str, osie: tuple[str, ...] | None, expected: list[str]
) -> None:
    folder = tmp_path / "osie"
    options = ["--data-dir", str(tmp_path / "a"), "--interface", interface, "--force"]
    if osie is not None:
        folder.mkdir()
        for name in osie:
            (folder / name).write_bytes(b"x")
        options += ["--osie-dir", str(folder)]
    log = tmp_path / "log"
    with log.open("w") as file:
        process = subprocess.Popen([*namespace, *UP, *options], stdout=subprocess.PIPE, stderr=file, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("ready "), log.read_text()
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        warned = [line["event"] for line in lines if line["level"] == "warning" and line["process"] == "up"]
        assert len(warned) == len(expected)
        assert all(found.startswith(start) for found, start in zip(warned, expected, strict=True))
    finally:
        process.terminate()
        process.communicate(timeout=20)
