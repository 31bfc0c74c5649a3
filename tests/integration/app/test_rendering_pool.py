"""The processes that render: killed when they take too long or too much, replaced, gone with their parent, shared."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from ironbell.api.tinkerbell import HARDWARE, TEMPLATE
from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.api.tinkerbell.template import Template
from ironbell.base.errors import Retry
from ironbell.controllers.tink.render import RenderError
from ironbell.controllers.tink.rendering.engine import TemplateEngine
from ironbell.controllers.tink.rendering.pool import RenderingPool, RenderingUnavailableError
from support.site.up import is_alive
from support.waiting import eventually, until

DOCUMENT = """
name: "{{ .hardware.metadata.name }}"
tasks:
- name: os
  worker: {{ .device_1 }}
  environment: {DISK: {{ index .Hardware.Disks 0 }}}
  actions: [{name: a, image: reboot, timeout: 90, on-failure: [x]}]
"""
VARIABLES = {"device_1": "02:00:00:00:00:01"}
MEMORY = "{{ $x := list }}{{ range 30 }}{{ $x = append $x (until 90000) }}{{ end }}"
LONG = '{{ range 900 }}{{ derivePassword 1 "long" "a" "b" "c" }}{{ end }}'
BUSY = "{{ range 90000 }}{{ $x := add 1 2 }}{{ end }}"
PARENT = """
import asyncio
from ironbell.controllers.tink.rendering.pool import RenderingPool

async def main():
    pool = RenderingPool()
    await asyncio.gather(pool.parse("x", "a"), pool.parse("x", "b"))
    print(*pool.pids, flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


def template(text: str, namespace: str = "default") -> Template:
    body = {"metadata": {"name": "t", "namespace": namespace}, "spec": {"data": text}}
    return TEMPLATE.decode(msgspec.json.encode(body))


def hardware() -> Hardware:
    metadata = {"name": "node-1", "namespace": "default", "labels": {"a": "b"}}
    spec = {"disks": [{"device": "/dev/sda"}], "interfaces": [{"dhcp": {"mac": VARIABLES["device_1"]}}]}
    return HARDWARE.decode(msgspec.json.encode({"metadata": metadata, "spec": spec}))


def state_of(pid: int) -> str:
    """A letter: `R` for a process that computes."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return "gone"


def is_at_work(pool: RenderingPool) -> bool:
    """Whether one of the processes computes: the others wait for a request."""
    return "R" in map(state_of, pool.pids)


@pytest.fixture
async def pool() -> AsyncIterator[RenderingPool]:
    pool = RenderingPool()
    pool.start()
    try:
        await pool.parse("warm", "default")
        yield pool
    finally:
        await pool.close()
        assert pool.pids == []


async def test_the_outcome_is_what_the_engine_gives(pool: RenderingPool) -> None:
    one, machine = template(DOCUMENT), hardware()
    expected = TemplateEngine().workflow(one, machine, name="w", variables=VARIABLES)
    assert msgspec.json.encode(await pool.workflow(one, machine, name="w", variables=VARIABLES)) == msgspec.json.encode(
        expected
    )
    url = "http://x/{{ (index .Hardware.Interfaces 0).DHCP.MAC }}.iso"
    assert await pool.media_url(url, machine) == TemplateEngine().media_url(url, machine)
    with pytest.raises(RenderError, match=r'^template line 2: map has no entry for key "nope"$') as caught:
        await pool.workflow(template("\n{{ .nope }}"), None, name="w", variables={})
    assert caught.value.retry is Retry.NEVER
    with pytest.raises(RenderError, match="template line 1: unclosed action"):
        await pool.parse("{{", "default")


async def test_a_process_that_does_not_answer_in_time_is_killed_and_replaced(
    pool: RenderingPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The template takes longer than it may here, and less than the engine would let it."""
    before = set(pool.pids)
    monkeypatch.setattr(pool, "_wall_s", 0.5)
    with pytest.raises(RenderError) as caught:
        await pool.workflow(template(LONG, "heavy"), hardware(), name="w", variables=VARIABLES)
    assert caught.value.message == (
        "Template heavy/t exceeds a limit of rendering: rendering took more than 0.5 s and was cancelled: make the "
        "template simpler, or compute keys, passwords and the like beforehand"
    )
    monkeypatch.undo()
    assert (await pool.workflow(template(DOCUMENT), hardware(), name="w", variables=VARIABLES)).tasks
    assert sum(is_alive(pid) for pid in before) == 1


async def test_a_process_that_gets_no_processor_time_fails_no_template(
    pool: RenderingPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped by a signal, it stands for one on a machine that has too much to do."""
    stopped = pool.pids
    monkeypatch.setattr(pool, "_wall_s", 2.0)
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    with pytest.raises(RenderingUnavailableError, match=r"0\.0 s of processor time in 2 s: the host is overloaded"):
        await pool.workflow(template(DOCUMENT), hardware(), name="w", variables=VARIABLES)
    assert sum(is_alive(pid) for pid in stopped) == 1
    monkeypatch.undo()
    assert (await pool.workflow(template(DOCUMENT), hardware(), name="w", variables=VARIABLES)).tasks


async def test_a_template_that_takes_memory_ends_its_process_and_not_ours(pool: RenderingPool) -> None:
    before = set(pool.pids)
    with pytest.raises(RenderError, match=r"Template heavy/t exceeds a limit of rendering: .*needs more than 56 MiB"):
        await pool.workflow(template(MEMORY, "heavy"), None, name="w", variables={})
    assert (await pool.workflow(template(DOCUMENT), hardware(), name="w", variables=VARIABLES)).tasks
    assert len(before - set(pool.pids)) == 1, "it has grown, and was replaced"


async def test_a_process_that_is_killed_is_replaced_and_fails_no_template(pool: RenderingPool) -> None:
    before = pool.pids
    for pid in before:
        os.kill(pid, signal.SIGKILL)
    for _ in before:
        assert (await pool.workflow(template(DOCUMENT), hardware(), name="w", variables=VARIABLES)).tasks
    asked = asyncio.create_task(pool.workflow(template(BUSY + DOCUMENT), hardware(), name="w", variables=VARIABLES))
    await until(lambda: is_at_work(pool))
    os.kill(next(pid for pid in pool.pids if state_of(pid) == "R"), signal.SIGKILL)
    assert (await asked).tasks


async def test_a_request_that_nobody_waits_for_any_more_leaves_no_answer_behind(pool: RenderingPool) -> None:
    asked = asyncio.create_task(pool.workflow(template(BUSY, "a"), None, name="w", variables={}))
    await until(lambda: is_at_work(pool))
    asked.cancel()
    await asyncio.gather(asked, return_exceptions=True)
    for _ in range(3):
        rendered = await pool.workflow(template(DOCUMENT), hardware(), name="w", variables=VARIABLES)
        assert rendered.tasks[0].name == "os"


def test_the_processes_are_gone_with_their_parent_even_while_they_compute() -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    pids = [int(word) for word in parent.stdout.readline().split()]
    assert len(pids) == 2
    assert all(map(is_alive, pids))
    for pid in pids:
        words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
        assert words[1:4] == ["-m", "ironbell.controllers.tink.rendering.child", str(parent.pid)]
        os.kill(pid, signal.SIGSTOP)  # it could not even read that its pipe was closed
    parent.kill()
    parent.communicate()
    eventually(lambda: not any(map(is_alive, pids)), within_s=10, what="the processes' end")
