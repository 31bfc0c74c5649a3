"""BMCs that fail in every way, in front of QEMU machines: each fault is said with its remedy, passes by itself, and the
machine is powered on exactly once. No password is anywhere but in its Secret.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ironbell.api import core
from ironbell.api.bmc import JOB, MACHINE, TASK
from ironbell.lab.control import send
from ironbell.lab.files import LabFolder, LabState, read_state
from ironbell.lab.manifests import manifests
from support.site.up import WATCHED, Seen, Site, seen, site
from support.skips import require_program, require_root
from support.waiting import eventually

pytestmark = [pytest.mark.root, pytest.mark.qemu]

SAID_S, DONE_S, SLOW_S = 30, 90, 150
WRONG = "mistyped-password"


@dataclass(frozen=True)
class Case:
    """What a BMC has, and the words that its Machine's condition must say."""

    fault: str
    words: tuple[str, ...]
    password: str = ""
    """In the Secret, instead of the right one."""


CASES = {
    "unreachable": Case("unreachable", ("BMCUnreachable", "127.0.0.1")),
    "busy": Case("busy", ("BMCUnreachable", "busy")),
    "locked-out": Case("wrong-password", ("BMCAuthenticationFailed", "Secret")),
    "mistyped": Case("none", ("BMCAuthenticationFailed", "Secret"), WRONG),
}

WORKING = {"slow": "slow", "broken": "broken"}
"""BMCs that answer; one takes seconds for each answer, the other's power controller does nothing."""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Site, LabState]]:
    """A site with machines that have nothing to boot; they only have power."""
    require_root()
    require_program("qemu-system-x86_64")
    folder = tmp_path_factory.mktemp("bmc")
    file = folder / "lab.yaml"
    machines = [
        {"name": name, "firmware": "bios", "memory": 256, "cpus": 1, "disks": [{"size": "16MiB"}]}
        for name in (*CASES, *WORKING)
    ]
    file.write_bytes(msgspec.json.encode({"name": folder.name.replace("_", "-"), "machines": machines}))
    with site(folder / "data", "--lab", str(file), "--api-port", "0", serves=False) as running:
        yield running, eventually(lambda: state_of(running), within_s=60, what="the lab")


def state_of(running: Site) -> LabState | None:
    with suppress(Exception):
        return read_state(running.folder)
    return None


async def fault(running: Site, name: str, value: str) -> None:
    await send(LabFolder(running.folder / "lab").control, {"machine": name, "fault": value})


def documents(state: LabState, name: str, password: str = "") -> list[dict[str, Any]]:
    """Secret and Machine of one machine, and a Job that powers it on."""
    right = Path(state.machine(name).password_file).read_text()
    passwords = {machine.name: password or right for machine in state.machines}
    found = [d for d in manifests(state, passwords) if d["metadata"]["name"].removesuffix("-bmc") == name]
    job = {
        "apiVersion": "bmc.tinkerbell.org/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "machineRef": {"name": name, "namespace": "default"},
            "tasks": [{"oneTimeBootDeviceAction": {"device": ["pxe"], "efiBoot": False}}, {"powerAction": "on"}],
        },
    }
    return [d for d in found if d["kind"] != "Hardware"] + [job]


def contactable(watching: Seen, name: str) -> tuple[str, str]:
    """Status and message of the condition."""
    machine = watching.find(MACHINE, name)
    conditions = machine.status.conditions if machine else []
    return next(((c.status, c.message) for c in conditions if c.type == "Contactable"), ("", ""))


def job_is(watching: Seen, name: str, kind: str) -> bool:
    job = watching.find(JOB, name)
    return job is not None and any(c.type == kind and c.status == "True" for c in job.status.conditions)


async def check_done(watching: Seen, running: Site, name: str, *, within_s: float = DONE_S) -> None:
    await watching.until(lambda: contactable(watching, name)[0] == "True", within_s=within_s, what=f"{name}: contact")
    await watching.until(lambda: job_is(watching, name, "Completed"), within_s=within_s, what=f"{name}: job")
    machine = read_state(running.folder).machine(name)
    assert (machine.power, machine.starts) == ("On", 1)


async def test_faults_are_said_and_pass_by_themselves(lab: tuple[Site, LabState]) -> None:
    """All at once: none of them holds up another."""
    running, state = lab
    async with seen(running) as watching:
        for name, value in {**{name: case.fault for name, case in CASES.items()}, **WORKING}.items():
            await fault(running, name, value)
            await watching.apply(*documents(state, name, CASES[name].password if name in CASES else ""))
        for name, case in CASES.items():
            await check_said(watching, running, name, case.words)
        await watching.until(
            lambda: "power controller does not answer" in task_says(watching, "broken-task-1"),
            within_s=SAID_S,
            what="broken says so",
        )
        assert contactable(watching, "broken")[0] == "True"
        for name in (*CASES, "broken"):
            await fault(running, name, "none")
        right = Path(state.machine("mistyped").password_file).read_text()
        await watching.client.merge_patch(
            core.SECRET, "default", "mistyped-bmc", body={"stringData": {"password": right}}
        )
        for name in ("unreachable", "busy", "mistyped", "broken", "locked-out"):
            await check_done(watching, running, name)
        await check_done(watching, running, "slow", within_s=SLOW_S)


async def check_said(watching: Seen, running: Site, name: str, words: tuple[str, ...]) -> None:
    await watching.until(
        lambda: (
            contactable(watching, name)[0] == "False" and all(word in contactable(watching, name)[1] for word in words)
        ),
        within_s=SAID_S,
        what=f"{name} says {words}",
    )
    await watching.until(lambda: words[0] in watching.reasons("Machine", name), within_s=10, what=f"{name}: an Event")
    assert read_state(running.folder).machine(name).starts == 0


def task_says(watching: Seen, name: str) -> str:
    task = watching.find(TASK, name)
    return " ".join(condition.message for condition in task.status.conditions) if task else ""


async def test_no_password_is_anywhere_but_in_its_secret(lab: tuple[Site, LabState]) -> None:
    running, state = lab
    passwords = [WRONG, *(Path(machine.password_file).read_text() for machine in state.machines)]
    places = {"log": running.log.read_text()}
    async with seen(running) as watching:
        await asyncio.gather(*(informer.wait_synced() for informer in watching.informers.values()))
        for kind in WATCHED:
            found = watching.informers[kind.kind].store.list()
            places[kind.kind] = msgspec.json.encode(found).decode()
    assert "BMCAuthenticationFailed" in places["Event"]
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with suppress(OSError):
                places[f"process {entry.name}"] = (entry / "cmdline").read_text()
    for place, text in places.items():
        for password in passwords:
            assert password not in text, place
