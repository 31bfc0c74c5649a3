"""An agent that falls silent in the middle of an action with a long timeout; and one that is merely slow. Real agent
processes against the workflow service over a socket."""

from __future__ import annotations

import asyncio
import os
import signal
import sys

import pytest

AGENT = "52:54:00:00:00:01"
SILENCE_S = 2.0
A_DAY_S = 86400
RUNNING = "RUNNING"


class AgentProcess:
    """The agent as the in-memory OS starts it."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.process: asyncio.subprocess.Process | None = None

    async def start(self, **environment: str) -> None:
        self.process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "ironbell.agent", "--id", AGENT, "--grpc-server", f"127.0.0.1:{self._port}",
            "--attribute-detection=false", "--heartbeat-interval=200ms",
            stdout=asyncio.subprocess.DEVNULL,
            env={**os.environ, "IRONBELL_BOOT_ID": "boot-1", "IRONBELL_ALLOW_FILE_DISKS": "1", **environment},
        )  # fmt: skip

    def signal(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    async def end(self) -> None:
        if self.process is not None and self.process.returncode is None:
            self.signal(signal.SIGCONT)
            self.signal(signal.SIGTERM)
            try:
                async with asyncio.timeout(10):
                    await self.process.wait()
            except TimeoutError:
                self.signal(signal.SIGKILL)
                await self.process.wait()


@pytest.fixture
async def agent(bench):
    bench.silence_s = SILENCE_S
    await bench.stop()
    await bench.start()
    made = AgentProcess(bench.port)
    yield made
    await made.end()


def a_slow_write(action, web, disk, name="stream"):
    """An image whose server sends no more after its beginning."""
    web.body = bytes(1 << 20)
    web.steps.append(type(web.step())(hang_after=1000))
    variables = {"IMG_URL": web.url, "DEST_DISK": str(disk), "RETRY_DURATION_MINUTES": "10"}
    return action(name, image="image2disk", timeout=A_DAY_S, environment=variables)


async def at_work(bench):
    return await bench.until("wf", lambda workflow: _state(workflow) == RUNNING)


def _state(workflow) -> str:
    return workflow.status.tasks[0].actions[0].state


@pytest.mark.parametrize("number", [signal.SIGSTOP, signal.SIGKILL], ids=["hangs", "loses-power"])
async def test_an_action_whose_agent_vanishes_fails_long_before_its_timeout(
    bench, agent, action, web, file_disk, number
):
    await bench.add("wf", a_slow_write(action, web, file_disk(2 << 20)))
    await agent.start()
    await at_work(bench)
    agent.signal(number)
    stored = await bench.until("wf", lambda workflow: workflow.status.state == "FAILED")
    said = stored.status.tasks[0].actions[0].message
    assert "no sign of life" in said
    assert AGENT in said
    assert _state(stored) == "FAILED"


async def test_an_action_whose_agent_lives_is_left_alone_however_slow(bench, agent, action, web, file_disk):
    await bench.add("wf", a_slow_write(action, web, file_disk(2 << 20)))
    await agent.start()
    await at_work(bench)
    version = (await bench.workflow("wf")).metadata.resource_version
    await asyncio.sleep(2.5 * SILENCE_S)  # neither output nor progress comes in this time
    stored = await bench.workflow("wf")
    assert _state(stored) == RUNNING
    assert stored.metadata.resource_version == version, "a sign of life costs no write"


async def test_a_server_that_was_restarted_gives_an_agent_its_time_and_no_more(bench, agent, action, web, file_disk):
    """The agent vanishes while nobody listens."""
    await bench.add("wf", a_slow_write(action, web, file_disk(2 << 20)))
    await agent.start()
    await at_work(bench)
    await bench.stop()
    agent.signal(signal.SIGKILL)
    await bench.start()
    loop = asyncio.get_running_loop()
    began = loop.time()
    await bench.until("wf", lambda workflow: workflow.status.state == "FAILED")
    assert loop.time() - began >= SILENCE_S
