"""Kubernetes' own end-to-end tests of its API machinery (`tests/real/kubernetes/endtoend`), run against one server.

Each spec runs in a process of its own, so that one that panics or hangs takes no other along, and a few run at once;
those that upstream marks as serial run alone, after the others.
"""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from support.programs.catalog import build_program

PREFIX = "[sig-api-machinery] "
PASSED = "passed"
SLOW_S = 1200.0
"""For what upstream marks as slow, such as a wait until the server has forgotten old versions."""
_GRACE_S = 10
_STOP_S = 20
_LIST_TIMEOUT_S = 60


class Listed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Specs that do not pass, for one reason."""

    reason: str
    specs: tuple[str, ...]
    servers: tuple[str, ...] = ("embedded", "real")


@dataclass(frozen=True)
class Outcome:
    """What became of one spec."""

    spec: str
    state: str
    """Ginkgo's word (`passed`, `failed`, `skipped`, `timedout`, `panicked`), or `none` if it told nothing."""
    seconds: float
    message: str = ""

    @property
    def passed(self) -> bool:
        return self.state == PASSED

    def __str__(self) -> str:
        return f"{self.spec}: {self.state} after {self.seconds:.0f} s: {self.message[:1000]}"


def read_listed(path: Path) -> tuple[Listed, ...]:
    """The list of what does not pass."""
    return msgspec.yaml.decode(path.read_bytes(), type=tuple[Listed, ...])


def listed_for(listed: Iterable[Listed], server: str) -> dict[str, str]:
    """The reasons of one server, by spec."""
    return {spec: each.reason for each in listed if server in each.servers for spec in each.specs}


@cache
def program() -> Path:
    """The specs as a program; built if it is not in the cache.

    Raises:
        CannotBuild: with the reason.
    """
    return build_program("endtoend")


def all_specs(folder: Path) -> list[str]:
    """The names of all specs of the API machinery, without `PREFIX`."""
    nowhere = folder / "nowhere.kubeconfig"
    nowhere.write_text(json.dumps({"apiVersion": "v1", "kind": "Config"}))
    report = folder / "specs.json"
    command = [*_command(nowhere, report), "--ginkgo.dry-run"]
    subprocess.run(command, check=True, capture_output=True, timeout=_LIST_TIMEOUT_S, cwd=folder)
    return sorted(name for name, _ in _reported(report))


def run_specs(specs: Iterable[str], *, kubeconfig: Path, folder: Path, limit_s: float, at_once: int) -> list[Outcome]:
    """Run these specs; one that takes longer than `limit_s` seconds is ended, and did not pass.

    What upstream marks as slow has `SLOW_S`.
    """
    folder.mkdir(exist_ok=True)
    numbered = [(spec, folder / f"{number}") for number, spec in enumerate(specs)]
    serial = [each for each in numbered if "[Serial]" in each[0]]
    with ThreadPoolExecutor(at_once) as threads:
        together = [each for each in numbered if each not in serial]
        outcomes = list(threads.map(lambda each: _run(each[0], each[1], kubeconfig, limit_s), together))
    return outcomes + [_run(spec, place, kubeconfig, limit_s) for spec, place in serial]


def _run(spec: str, place: Path, kubeconfig: Path, limit_s: float) -> Outcome:
    place.mkdir()
    limit_s = SLOW_S if "[Slow]" in spec else limit_s
    report = place / "report.json"
    command = [
        *_command(kubeconfig, report),
        f"--ginkgo.focus={_pattern(PREFIX + spec)}$",
        f"--ginkgo.timeout={limit_s}s",
        f"--ginkgo.grace-period={_GRACE_S}s",
    ]
    started = time.monotonic()
    with (place / "log").open("wb") as log:
        # Whatever ends this process also ends its children.
        guarded = ["setpriv", "--pdeathsig", "KILL", *command]
        try:
            subprocess.run(guarded, stdout=log, stderr=log, cwd=place, timeout=limit_s + 2 * _GRACE_S + _STOP_S)
        except subprocess.TimeoutExpired:
            return Outcome(spec, "timedout", time.monotonic() - started, "it did not end when it was told to")
    seconds = time.monotonic() - started
    told = dict(_reported(report)).get(spec) if report.exists() else None
    if told is None:
        end = (place / "log").read_text(errors="replace")[-1000:]
        return Outcome(spec, "none", seconds, end)
    failure = told.get("Failure") or {}
    panic = failure.get("ForwardedPanic") or ""
    return Outcome(spec, str(told["State"]), seconds, f"{failure.get('Message', '')} {panic}".strip())


def _command(kubeconfig: Path, report: Path) -> list[str]:
    return [
        str(program()),
        f"--kubeconfig={kubeconfig}",
        f"--kubectl-path={build_program('kubectl')}",
        # No provider of machines, and no nodes to count, wait for or fetch logs from.
        "--provider=skeleton",
        "--num-nodes=0",
        "--dump-logs-on-failure=false",
        "--ginkgo.no-color",
        "--ginkgo.silence-skips",
        f"--ginkgo.json-report={report}",
    ]


def _reported(report: Path) -> list[tuple[str, dict[str, Any]]]:
    """The specs of the API machinery in a report."""
    told = [each for each in json.loads(report.read_bytes())[0]["SpecReports"] if each["LeafNodeType"] == "It"]
    named = [(" ".join([*each["ContainerHierarchyTexts"], each["LeafNodeText"]]), each) for each in told]
    return [(name.removeprefix(PREFIX), each) for name, each in named if name.startswith(PREFIX)]


def _pattern(text: str) -> str:
    """A pattern of Go's for just this text: other than Python's, it takes no escapes of what needs none."""
    return re.sub(r"([\\.+*?()|\[\]{}^$])", r"\\\1", text)
