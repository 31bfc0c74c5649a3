"""`ironbell up` as scripts use it: ready, kubeconfig, several side by side, a clean end, nothing lost."""

from __future__ import annotations

import base64
import fcntl
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ironbell.api import core
from ironbell.api.capt import TINKERBELL_CLUSTER
from ironbell.api.client import Forbidden
from ironbell.api.cluster import CLUSTER
from ironbell.api.inclusteripam import IN_CLUSTER_IP_POOL
from ironbell.api.tinkerbell import HARDWARE, TEMPLATE
from ironbell.kube.client import Client
from ironbell.kube.transport.connection import from_kubeconfig, over_socket
from ironbell.kube.transport.http import HttpApi
from support.skips import require_program, require_root
from support.waiting import eventually

NIC = {"dhcp": {"mac": "52:54:00:00:00:01"}, "netboot": {"allowPXE": False}}
MAKE_HARDWARE = f"""
import asyncio, sys
from ironbell.api.tinkerbell import HARDWARE
from ironbell.kube.client import Client
from ironbell.kube.transport.connection import from_kubeconfig
from ironbell.kube.transport.http import HttpApi

async def main():
    async with HttpApi(from_kubeconfig(sys.argv[1])) as api:
        body = {{"metadata": {{"name": "x", "namespace": "default"}}, "spec": {{"interfaces": [{NIC!r}]}}}}
        await Client(api).create(HARDWARE, body)

asyncio.run(main())
"""
COMMAND = [sys.executable, "-m", "ironbell.cli.main", "up"]


def wait_ready(process: subprocess.Popen[str], timeout_s: float = 30) -> Path:
    assert process.stdout is not None
    readable, _, _ = select.select([process.stdout], [], [], timeout_s)
    assert readable, "not ready in time"
    word, _, path = process.stdout.readline().strip().partition(" ")
    assert word == "ready"
    return Path(path)


@contextmanager
def up(folder: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    log = (folder.parent / f"{folder.name}.log").open("w")
    process = subprocess.Popen(
        [*COMMAND, "--data-dir", str(folder), *options], stdout=subprocess.PIPE, stderr=log, text=True
    )
    try:
        yield process, wait_ready(process)
    finally:
        process.terminate()
        process.wait(timeout=10)
        assert process.stdout is not None
        process.stdout.close()
        log.close()


async def test_two_sites_run_side_by_side_and_keep_what_they_are_told(tmp_path: Path) -> None:
    with up(tmp_path / "a") as (_, one), up(tmp_path / "b") as (_, two):
        assert one == tmp_path / "a" / "kubeconfig"
        assert one.stat().st_mode & 0o777 == 0o600
        async with HttpApi(from_kubeconfig(one)) as api:
            body = {"metadata": {"name": "kept", "namespace": "default"}, "data": {"a": "b"}}
            await Client(api).create(core.CONFIG_MAP, body)
        async with HttpApi(from_kubeconfig(two)) as api:
            assert await Client(api).find(core.CONFIG_MAP, "default", "kept") is None
    with up(tmp_path / "a") as (_, one):
        async with HttpApi(from_kubeconfig(one)) as api:
            assert (await Client(api).get(core.CONFIG_MAP, "default", "kept")).data == {"a": "b"}


@pytest.mark.parametrize("start", range(2))
async def test_on_ready_every_kind_can_be_used_at_the_first_start_too(tmp_path: Path, start: int) -> None:
    with up(tmp_path / "a") as (_, kubeconfig):
        async with HttpApi(from_kubeconfig(kubeconfig)) as api:
            reference = {"apiGroup": TINKERBELL_CLUSTER.group, "kind": TINKERBELL_CLUSTER.kind, "name": "c"}
            body = {"metadata": {"name": "c", "namespace": "default"}, "spec": {"infrastructureRef": reference}}
            await Client(api).create(CLUSTER, body)
            pool = {"addresses": ["192.0.2.10-192.0.2.20"], "prefix": 24}
            body = {"metadata": {"name": "p", "namespace": "default"}, "spec": pool}
            await Client(api).create(IN_CLUSTER_IP_POOL, body)


async def test_secrets_are_encrypted_without_being_asked_for(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "a", tmp_path / "key"
    word = b"correct-horse-battery-staple"
    with up(folder, "--encryption-key-file", str(elsewhere)) as (_, kubeconfig):
        async with HttpApi(from_kubeconfig(kubeconfig)) as api:
            body = {"metadata": {"name": "s", "namespace": "default"}, "stringData": {"p": word.decode()}}
            await Client(api).create(core.SECRET, body)
            assert (await Client(api).get(core.SECRET, "default", "s")).data
        needles = (word, base64.b64encode(word))
        files = [path for path in tmp_path.rglob("*") if path.is_file()]
        assert [path for path in files if any(needle in path.read_bytes() for needle in needles)] == []
    assert elsewhere.stat().st_mode & 0o777 == 0o600
    refused = subprocess.run([*COMMAND, "--data-dir", str(folder)], capture_output=True, text=True, timeout=60)
    assert refused.returncode == 1
    assert f"ironbell: the key file {folder}/storage.key is missing" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_ends_cleanly_within_five_seconds_of_sigterm(tmp_path: Path) -> None:
    with up(tmp_path / "a") as (process, _):
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=10) == 0
        assert time.monotonic() - began < 5
    leftovers = subprocess.run(["pgrep", "-f", str(tmp_path / "a")], capture_output=True, check=False)
    assert not leftovers.stdout


def test_second_site_in_the_same_folder_is_refused(tmp_path: Path) -> None:
    with up(tmp_path / "a"):
        done = subprocess.run(
            [*COMMAND, "--data-dir", str(tmp_path / "a")], capture_output=True, text=True, timeout=30, check=False
        )
    assert done.returncode == 1
    assert "another ironbell runs in" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_database_that_is_still_being_closed_is_waited_for(tmp_path: Path) -> None:
    """As after the supervisor was killed: its children end by themselves, and not at once."""
    with up(tmp_path / "a"):
        pass
    with (tmp_path / "a" / "api.db-lock").open("r+") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        process = subprocess.Popen(
            [*COMMAND, "--data-dir", str(tmp_path / "a")], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert process.stderr is not None
        assert process.stdout is not None
        try:
            assert "process started" in process.stderr.readline()
            assert not select.select([process.stdout], [], [], 1.5)[0]
            fcntl.flock(held, fcntl.LOCK_UN)
            wait_ready(process)
        finally:
            process.terminate()
            process.communicate(timeout=10)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--api-port", "99999"], "api-port must be between"),
        (["--artefacts", "osie=/tmp"], "the name 'osie' is reserved"),
        (["--lab", "x", "--interface", "y"], "exclude each other"),
        (["--lab", "/nowhere/lab.yaml"], "/nowhere/lab.yaml"),
        (["--config", "/nowhere/file"], "/nowhere/file"),
    ],
)
def test_wrong_options_are_named(tmp_path: Path, options: list[str], message: str) -> None:
    done = subprocess.run(
        [*COMMAND, "--data-dir", str(tmp_path / "a"), *options], capture_output=True, text=True, timeout=30, check=False
    )
    assert done.returncode == 1
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_configuration_file_with_an_unknown_option_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "ironbell.yaml"
    file.write_text(f"data-dir: {tmp_path / 'a'}\ninterfaces: eth0\n")
    done = subprocess.run([*COMMAND, "--config", str(file)], capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 1
    assert "interfaces" in done.stderr


@pytest.fixture
def namespace() -> Iterator[str]:
    """A network namespace with one bridge, `br0`, 192.0.2.1/24."""
    require_root()
    require_program("ip")
    name = f"ib-test-{os.getpid()}"
    subprocess.run(["ip", "netns", "add", name], check=True)
    for words in (
        "link set lo up",
        "link add br0 type bridge",
        "address add 192.0.2.1/24 dev br0",
        "link set br0 up",
    ):
        subprocess.run(["ip", "-n", name, *words.split()], check=True)
    yield name
    subprocess.run(["ip", "netns", "delete", name], check=True)


def children_of(process: subprocess.Popen[str], module: str) -> list[int]:
    found = subprocess.run(["pgrep", "-P", str(process.pid), "-f", module], capture_output=True, text=True, check=False)
    return [int(pid) for pid in found.stdout.split()]


@pytest.mark.root
async def test_servers_are_ordinary_users_that_may_not_read_secrets(tmp_path: Path, namespace: str) -> None:
    """They run without root, without capabilities, have only their own sockets, and each token opens only what its
    process needs."""
    folder = tmp_path / "a"
    log = (tmp_path / "log").open("w")
    command = ["ip", "netns", "exec", namespace, *COMMAND, "--data-dir", str(folder), "--interface", "br0", "--force"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
    inside = ["ip", "netns", "exec", namespace, sys.executable, "-c", MAKE_HARDWARE, str(folder / "kubeconfig")]
    try:
        wait_ready(process)
        eventually(lambda: "workflow service ready" in (tmp_path / "log").read_text())
        for module, own in (("boot", {"67", "69", "7080"}), ("workflow", {"42113", "42114"})):
            (server,) = children_of(process, f"ironbell.app.wire.{module}")
            check_ordinary(server)
            bound = subprocess.run(
                ["ip", "netns", "exec", namespace, "ss", "-Hlntup"], capture_output=True, text=True, check=True
            ).stdout
            ports = {line.split()[4].rsplit(":", 1)[1] for line in bound.splitlines() if f"pid={server}," in line}
            assert ports == own
        subprocess.run(inside, check=True)
        await check_token(folder / "wire", "token", allowed="ironbell.dev/installed-system-up")
        await check_token(folder / "wire", "workflow-token", allowed="tinkerbell.org/agent-attributes")
    finally:
        process.terminate()
        process.wait(timeout=10)
        assert process.stdout is not None
        process.stdout.close()
        log.close()


def check_ordinary(pid: int) -> None:
    status = Path(f"/proc/{pid}/status").read_text()
    assert "Uid:\t0" not in status
    assert all(int(line.split()[1], 16) == 0 for line in status.splitlines() if line.startswith(("CapEff", "CapPrm")))
    assert "NoNewPrivs:\t1" in status


async def check_token(wire: Path, token: str, *, allowed: str) -> None:
    """It opens what its process needs, and nothing of what the other one may write."""
    both = {"ironbell.dev/installed-system-up", "tinkerbell.org/agent-attributes"}
    async with HttpApi(over_socket(wire / "api.sock", (wire / token).read_text())) as api:
        client = Client(api)
        assert [one.metadata.name for one in (await client.list(HARDWARE)).items] == ["x"]
        for kind in (core.SECRET, TEMPLATE, core.CONFIG_MAP):
            with pytest.raises(Forbidden):
                await client.list(kind)
        with pytest.raises(Forbidden):
            await client.create(HARDWARE, {"metadata": {"name": "y", "namespace": "default"}})
        with pytest.raises(Forbidden):
            await client.delete(HARDWARE, "default", "x")
        await client.merge_patch(HARDWARE, "default", "x", body={"metadata": {"annotations": {allowed: "now"}}})
        netboot = {"spec": {"interfaces": [NIC | {"netboot": {"allowPXE": True}}]}}
        others = [{"metadata": {"annotations": {one: "another"}}} for one in both - {allowed}]
        for body in (netboot, *others):
            with pytest.raises(Forbidden, match="annotations"):
                await client.merge_patch(HARDWARE, "default", "x", body=body)


def test_a_stop_is_quiet(tmp_path: Path) -> None:
    """What uses the API ends before it, so that nothing reports that the API is gone."""
    with up(tmp_path / "a", "--simulate", "2", "--http-port", "0", "--grpc-port", "0") as (process, _):
        log = tmp_path / "a.log"
        before = len(log.read_text().splitlines())
        process.terminate()
        assert process.wait(timeout=10) == 0
    said = log.read_text().splitlines()[before:]
    assert [line for line in said if '"level":"info"' not in line] == []
