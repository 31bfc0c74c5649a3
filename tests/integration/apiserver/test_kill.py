"""kill -9 under load: nothing that was acknowledged is lost, and a watch goes on without a gap."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

import msgspec

from ironbell.api.client import EventType, ListOptions
from ironbell.api.core import CONFIG_MAP
from ironbell.apiserver.core import ApiServer
from ironbell.apiserver.identity import ADMIN
from ironbell.base.clock import SystemClock
from ironbell.base.randomness import SystemRandomness

WHERE = CONFIG_MAP.collection
ROUNDS = 3
LINES = 400


async def write_and_kill(path: Path, turn: int) -> list[tuple[str, int, str]]:
    """Let a process write, kill it in the middle, and give what it was told was stored."""
    script = Path(__file__).with_name("writer_process.py")
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(script), str(path), str(turn), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    lines: list[bytes] = []
    async with asyncio.timeout(60):
        while len(lines) < LINES:
            line = await process.stdout.readline()
            assert line, "the writer ended by itself"
            lines.append(line)
        process.send_signal(signal.SIGKILL)
        lines += (await process.stdout.read()).splitlines(keepends=True)
        await process.wait()
    told = [line.decode().split() for line in lines if line.endswith(b"\n")]
    return [(name, int(version), what) for name, version, what in told]


async def test_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    made: dict[str, int] = {}
    gone: set[str] = set()
    newest = 0
    start = 0
    for turn in range(ROUNDS):
        told = await write_and_kill(path, turn)
        assert told[0][2] == "ready"
        assert told[0][1] >= newest, "versions went back after a restart"
        start = start or told[0][1]
        made |= {name: version for name, version, what in told if what == "made"}
        gone |= {name for name, _, what in told if what == "deleted"}
        newest = max(version for _, version, _ in told)
    assert len(made) > ROUNDS * LINES // 2
    async with ApiServer.open(path, clock=SystemClock(), randomness=SystemRandomness()) as server:
        api = server.client(ADMIN)
        page = await api.list(WHERE, "default", ListOptions())
        metas = [msgspec.json.decode(item)["metadata"] for item in page.items]
        stored = {meta["name"]: int(meta["resourceVersion"]) for meta in metas}
        assert not gone & stored.keys(), "a deletion was lost"
        possibly_deleted = {
            name for name in made if name.rsplit("-", 1)[1].isdigit() and int(name.rsplit("-", 1)[1]) % 3 == 0
        }
        for name, version in made.items():
            assert stored.get(name) == version or name in possibly_deleted, f"{name} was acknowledged and lost"
        assert await replay(server, start) == stored


async def replay(server: ApiServer, start: int) -> dict[str, int]:
    """The objects that a watch from the very start leads to."""
    found: dict[str, int] = {}
    last, target = start, int(server.resource_version)
    events = server.client(ADMIN).watch(WHERE, "default", resource_version=str(start))
    async with asyncio.timeout(60):
        async for event in events:
            version = int(event.resource_version)
            assert version > last
            last = version
            if event.type is EventType.BOOKMARK:
                break
            name = msgspec.json.decode(event.body)["metadata"]["name"]
            if event.type is EventType.DELETED:
                del found[name]
            else:
                assert (event.type is EventType.ADDED) == (name not in found)
                found[name] = version
            if last == target:
                break
    return found
